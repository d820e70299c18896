"""The tools that `manul mcp` offers to assistants: what they read, and how they say what is wrong."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Any

import msgspec
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

import manul
from manul.cli._options import MODEL
from manul.cli._wording import in_options
from manul.errors import FileError, ManulError, ParameterError

INSTRUCTIONS = (
    "manul learns which number to choose in a context (contextual bandits with continuous actions). Lower losses are better; a reward is "
    "a negative loss. Files are named relative to the folder of this server: logs of decisions (.parquet, .csv, .jsonl, ...) and saved "
    "agents and policies (.manul). An estimate with usable=false, and a log with fit=false, must not be relied on; the objections and "
    "findings say why. A comparison proves a difference only if its verdict says so."
)
RETRIES = 2  # an assistant waits for the answer
Result = dict[str, Any]


@dataclass(frozen=True)
class Tools:
    """The tools: files come from one folder, and loops from one service."""

    folder: Path
    url: str
    token: str | None

    def loops(self) -> Result:
        """List the loops of the service with their settings, decisions, losses, and whether they are in trouble."""
        return {"loops": self._ask(methodcaller("loops"))}

    def loop_status(self, loop: str) -> Result:
        """Return the status of one loop: settings, counts of decisions and losses, mean loss, and trouble if there is any."""
        return self._object(methodcaller("status", loop))

    def loop_report(self, loop: str) -> Result:
        """Return what the model of a loop has learned, and the estimated losses of the model and of constant actions."""
        return self._object(methodcaller("report", loop))

    def rollout_evidence(self, loop: str) -> Result:
        """Return the rollout of a loop: traffic, evidence with its bounds, guards, moves, and what the next step needs."""
        return self._object(methodcaller("rollout", loop))

    def inspect_file(self, file: str, contexts: list[Any] | None = None, data: str | None = None) -> Result:
        """Show what the agent or policy in a .manul file has learned, its action in some contexts, and the effect of each
        feature over the contexts of a table or log."""
        from manul.inspection import inspect as inspection

        parsed = [inspection.parse_context(json.dumps(each)) for each in contexts or []]
        table = None if data is None else self._file(data)
        return dict(inspection.inspect(self._model(file), *parsed, data=table).as_dict())

    def check_log(self, log: str, policy: str | None = None) -> Result:
        """Check whether a log is suitable for off-policy evaluation, of a policy if one is given; returns findings."""
        from manul.offpolicy import doctor
        from manul.offpolicy.evaluation import report

        loaded = None if policy is None else manul.load(self._model(policy))
        findings = doctor(report.Stored([self._file(log)], policy=loaded), loaded)
        return _object(report.findings_json(findings))

    def evaluate_policy(
        self, policy: str, logs: list[str], estimator: str | None = None, level: float = 0.95
    ) -> Result:
        """Estimate the mean loss or reward that a policy would have had in logs of another one, with a confidence interval."""
        from manul.offpolicy.evaluation import report

        loaded = manul.load(self._model(policy))
        stored = report.Stored([self._file(each) for each in logs], policy=loaded)
        return _object(report.estimates_json([manul.evaluate(loaded, stored, estimator, level=level)]))

    def compare_policies(
        self,
        policies: list[str],
        logs: list[str],
        against: str = "logged",
        by: str | None = None,
        clusters: str | None = None,
        level: float = 0.95,
    ) -> Result:
        """Compare policies with the logged one, or with the one whose file name without suffix is `against`, on logs by paired
        differences; `by` compares within each value of a column of the contexts, `clusters` names a column such as the user."""
        from manul.offpolicy.evaluation import report

        loaded = {Path(each).stem: manul.load(self._model(each)) for each in policies}
        if not policies or len(loaded) < len(policies):
            raise ParameterError(f"policies must be files of different names, got {policies}.", "policies")
        stored = report.Stored([self._file(each) for each in logs], policy=loaded[Path(policies[0]).stem])
        comparison = manul.compare(loaded, stored, against, by=by, clusters=clusters, level=level)
        return _object(report.comparison_json(comparison))

    def pause_loop(self, loop: str) -> Result:
        """Pause the learning of a loop; it goes on deciding, and losses are stored."""
        return self._object(methodcaller("pause", loop))

    def resume_loop(self, loop: str) -> Result:
        """Resume the learning of a loop, beginning with the losses that arrived during the pause."""
        return self._object(methodcaller("resume", loop))

    def pause_rollout(self, loop: str) -> Result:
        """Pause the rollout of a loop: the learner gets no more traffic, but can still lose it."""
        return self._object(methodcaller("pause_rollout", loop))

    def abort_rollout(self, loop: str) -> Result:
        """Abort the rollout of a loop: from now on the baseline makes all decisions."""
        return self._object(methodcaller("abort_rollout", loop))

    def _ask(self, call: Callable[[manul.Client], Any]) -> Any:
        with manul.Client(self.url, self.token, retries=RETRIES) as client:
            return msgspec.to_builtins(call(client))

    def _object(self, call: Callable[[manul.Client], Any]) -> Result:
        told: Result = self._ask(call)
        return told

    def _file(self, name: str) -> Path:
        """A file in the folder; others cannot be read, whatever a conversation asks for."""
        try:
            path = (self.folder / name).resolve()
            path.exists()
        except (OSError, RuntimeError, ValueError):  # a name that is too long, a link to itself, a null character
            raise FileError(f"{name!r:.60} is not the name of a file.") from None
        if not path.is_relative_to(self.folder.resolve()):
            raise FileError(f"{name} is outside the folder of this server. Start manul mcp with another --folder.")
        return path

    def _model(self, name: str) -> Path:
        if Path(name).suffix not in MODEL:
            raise ParameterError(f"a saved agent or policy must end with .manul, got {name!r}.", "file")
        return self._file(name)


READ = (
    "loops",
    "loop_status",
    "loop_report",
    "rollout_evidence",
    "inspect_file",
    "check_log",
    "evaluate_policy",
    "compare_policies",
)
WRITE = ("pause_loop", "resume_loop", "pause_rollout", "abort_rollout")


def server(tools: Tools, *, write: bool) -> MCPServer:
    """The server with the tools that read, and with `write` those that change loops."""
    made: MCPServer = MCPServer("manul", instructions=INSTRUCTIONS, version=manul.__version__, log_level="WARNING")
    for name in (*READ, *(WRITE if write else ())):
        hints = ToolAnnotations(read_only_hint=name in READ, destructive_hint=name in WRITE, idempotent_hint=True)
        made.tool(name=name, annotations=hints)(_told(getattr(tools, name)))
    return made


def _told(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function, with errors of the library as one sentence for the assistant."""

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Result:
        try:
            return function(*given, **named)
        except ManulError as error:
            raise ToolError(in_options(error)) from None

    return call


def _object(text: str) -> Result:
    parsed: Result = json.loads(text)
    return parsed
