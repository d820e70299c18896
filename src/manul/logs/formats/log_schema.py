"""The columns of a log as an Arrow schema, and how they are read and made.

`action`, `density` and `loss` are in every log. The loss of a log of rewards is the negative reward, and the metadata has
`rewards`; files may have a column `reward` instead of `loss`, which CSV and JSON Lines write for such a log. In the same
way, `estimated_density` instead of `density` says that the densities were estimated, and the metadata has
`densities_estimated`.
`low`, `high`, `floor` (the smallest density that the logged policy gave any action), `density_levels` (what the action was
drawn from; the metadata has `levels`), `time` (seconds), `id` and `rollout_arm` ("learner" or "baseline") are optional, and
so are the parts of outcomes, `part.NAME`, which are numbers; the metadata has `parts`, and the `formula` with their kinds if
it is known. In a file without metadata, all columns `part.NAME` are parts. The context is a column `context` (a fixed-size
list of float32, or a struct of the lists `index` and `value`), or all other columns, each of the type of its field (`contexts.schema`).
The metadata holds the format version, the ranges, and for a sparse context its width and the names of its features. In
format 1, fields of contexts were numbers or texts only, and the metadata says which had been dates, flags or lists.
If actions have several knobs, `action` is a struct of their values, and the metadata has the knobs and `limits`;
`density_by_knob`, a struct of their densities, and `within`, narrower ranges as JSON text, are optional. They have no `low` and `high`.
CSV and data frames have one column per knob instead of structs. One knob without a name is the column `action` itself, of
the knob's type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from manul.actions.space import ActionSpace
from manul.contexts.schema import ContextSchema, Field
from manul.contexts.sparse_features import SparseFeatures
from manul.errors import FileError, InputError, ParameterError
from manul.logs.formats.level_columns import LEVELS, level_type
from manul.outcomes import Outcome
from manul.utils.validation import Floats

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 4  # of logs with levels; others are written as those of the version that can read them
WITH_PARTS, WITHOUT_PARTS = 3, 2
REWARD = "reward"
ESTIMATED_DENSITY = "estimated_density"
NUMBERS = ("action", "density", "loss")
RANGE = ("low", "high")
FLOOR = "floor"
ARM = "rollout_arm"
TEXTS = ("id", ARM)
OPTIONAL = (*RANGE, FLOOR, "time", *TEXTS, LEVELS)
_ESTIMATE = " Estimate it with density='estimate'."
RESERVED = (*NUMBERS, *OPTIONAL, "context")
KNOB_COLUMNS = ("density_by_knob", "within")  # of logs with several knobs
Layout = Literal["dense", "sparse", "columns"]
Range = tuple[float, float]
FLAGS = (
    "rewards",
    "outcome_name",
    "densities_estimated",
    "knobs",
    "converted",
    "parts",
    "formula",
    "levels",
)  # in the metadata only if true, or given
INDEX = re.compile(r"0|[1-9][0-9]{0,6}")
STRUCTS = {"action": "action.", "density_by_knob": "density."}  # the prefixes of flat columns
Columns = dict[str, npt.NDArray[Any]]
PART = "part."  # the prefix of the columns of parts
PREFIX = "context."  # of a field that has the name of a column of the log


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The metadata of a log.

    >>> Metadata(action_range=(0.0, 32.0)).to_arrow()
    {b'manul': b'{"action_range": [0.0, 32.0], "format": 2, "loss_range": null, "names": null, "width": null}'}
    """

    action_range: Range | None = None
    loss_range: Range | None = None
    width: int | None = None
    names: tuple[str, ...] | None = None
    rewards: bool = False
    outcome_name: str | None = None  # if it is neither "loss" nor "reward"
    densities_estimated: bool = False
    knobs: ActionSpace | None = None
    converted: Mapping[str, str] | None = None  # fields of a log of format 1 that had been dates or lists
    parts: bool = False  # whether columns `part.NAME` are parts; in older logs, they are fields of contexts
    formula: Mapping[str, Any] | None = None  # with the kinds of its parts and its hints, as an outcome is described
    levels: bool = False  # whether there is a column of levels

    @cached_property
    def outcome(self) -> Outcome:
        """What the log has: losses or rewards, their name, and their range, which is "auto" if it is not declared."""
        formula: Any = {} if self.formula is None else {**self.formula, "parts": dict(self.formula["parts"])}
        better: Any = "high" if self.rewards else "low"
        outcome = Outcome(self.outcome_name or "", better=better, range="auto", **formula)
        return outcome if self.loss_range is None else outcome.with_losses(self.loss_range)

    def with_outcome(self, outcome: Outcome) -> Metadata:
        """A copy with another outcome; its wait has ended for every row of a log."""
        span = None if outcome.range == "auto" else outcome.loss_bounds
        name = None if outcome.name == outcome.keyword else outcome.name
        described = outcome.describe().get("outcome", {})
        formula = {key: described[key] for key in ("formula", "parts", "hints")} if outcome.parts else None
        return replace(self, rewards=outcome.higher, outcome_name=name, loss_range=span, formula=formula)

    def to_arrow(self) -> dict[bytes, bytes]:
        return {b"manul": self._encoded}

    @cached_property
    def _encoded(self) -> bytes:
        values = {name: value for name, value in vars(self).items() if name in _FIELDS and (name not in FLAGS or value)}
        if self.knobs is not None:
            values["knobs"] = self.knobs.describe()
            values |= {"limits": list(map(str, self.knobs.limits))} if self.knobs.limits else {}
        oldest = WITH_PARTS if self.parts or self.formula is not None else WITHOUT_PARTS
        version = VERSION if self.levels else oldest
        return json.dumps({"format": version, **values}, sort_keys=True).encode()

    @staticmethod
    def from_arrow(metadata: Mapping[bytes, bytes] | None, path: Path | None = None) -> Metadata:
        """Decode from an Arrow schema; empty if another program wrote the schema."""
        try:
            version, decoded = _decode((metadata or {}).get(b"manul", b"{}"))
        except (LookupError, TypeError, ValueError):
            raise FileError(f"{path or 'log'} has invalid metadata under the key manul. Remove it.") from None
        if decoded is not None:
            return decoded
        advice = f"this version reads format {VERSION}. Update manul: pip install -U manul."
        raise FileError(f"{path or 'log'} has format {version}, but {advice}")

    def with_missing(self, space: ActionSpace | None, outcome: Outcome | None) -> Metadata:
        """A copy with what is not declared yet and applies: not the range of losses for a log of rewards."""
        known = self
        if space is not None and space.is_number and self.knobs is None and self.action_range is None:
            known = replace(known, action_range=space.ends)
        if outcome is not None and outcome.higher == self.rewards:
            named = self.with_outcome(outcome)
            name, span = self.outcome_name or named.outcome_name, self.loss_range or named.loss_range
            known = replace(known, outcome_name=name, loss_range=span, formula=self.formula or named.formula)
        return known

    def with_ranges(
        self, action_range: Range | None, loss_range: Range | None, reward_range: Range | None = None
    ) -> Metadata:
        """A copy with the given ranges, if any; only a log of rewards has a range of rewards."""
        if reward_range is not None:
            if not self.rewards:
                advice = "this one has losses. Use loss_range=(low, high)."
                raise ParameterError(f"reward_range is for logs of rewards; {advice}", "reward_range")
            loss_range = self.outcome.flip(reward_range)
        if action_range is None and loss_range is None:
            return self
        if self.knobs is not None and action_range is not None:
            raise ParameterError("action_range is for logs with one knob; this one has several.", "action_range")
        return replace(self, action_range=action_range or self.action_range, loss_range=loss_range or self.loss_range)


_FIELDS = tuple(field.name for field in dataclass_fields(Metadata))


@lru_cache(maxsize=4)  # each batch of a file has the same metadata, perhaps with many names
def _decode(text: bytes) -> tuple[object, Metadata | None]:
    """The version of metadata, and the metadata if it is this version's; raises ValueError or TypeError."""
    values: dict[str, Any] = dict(json.loads(text))
    version = values.pop("format", VERSION)
    if version not in (1, WITHOUT_PARTS, WITH_PARTS, VERSION):
        return version, None
    if "changes" in values:  # of format 1
        values["converted"] = dict(values.pop("changes")["converted"])
    lists: dict[str, Any] = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    if "knobs" in values:
        lists["knobs"] = ActionSpace.from_description(values["knobs"]).with_limits(lists.pop("limits", None))
        values.pop("limits", None)
    metadata = Metadata(**(values | lists))
    if not isinstance(metadata.knobs, ActionSpace | None):
        raise TypeError
    if not all(isinstance(kind, str) for kind in dict(metadata.converted or {}).values()):
        raise TypeError
    assert metadata.outcome is not None  # raises ValueError if the formula is invalid
    names = metadata.names
    if names is not None and (len({*names}) != metadata.width or not all(isinstance(name, str) for name in names)):
        raise ValueError
    return version, metadata


def context_layout(schema: pa.Schema) -> Layout:
    import pyarrow as pa

    if "context" not in schema.names:
        return "columns"
    return "sparse" if pa.types.is_struct(schema.field("context").type) else "dense"


def reserved_names(*, several: bool) -> tuple[str, ...]:
    """The names of the columns besides those of the context, in a log with one knob or several.

    >>> "within" in reserved_names(several=True), "within" in reserved_names(several=False)
    (True, False)
    """
    return (*RESERVED, *KNOB_COLUMNS) if several else RESERVED


def user_columns(schema: pa.Schema) -> list[str]:
    """The names of the columns of the context."""
    several = is_several(schema) or (
        any(name in schema.names for name in KNOB_COLUMNS) and Metadata.from_arrow(schema.metadata).knobs is not None
    )
    reserved = (*reserved_names(several=several), *part_columns(schema))
    return [name for name in schema.names if name not in reserved]


def is_part(name: str) -> bool:
    """Whether a column is that of a part, if the log has any."""
    return name.startswith(PART) and len(name) > len(PART)


def part_columns(schema: pa.Schema) -> list[str]:
    """The columns of the parts of outcomes."""
    names = [name for name in schema.names if is_part(name)]
    return names if names and Metadata.from_arrow(schema.metadata).parts else []


def field_name(column: str) -> str:
    """The field of a context that a column is; one with the name of a column of the log has a prefix there.

    >>> field_name("context.loss"), field_name("context.age")
    ('loss', 'context.age')
    """
    name = column.removeprefix(PREFIX)
    return name if name in (*RESERVED, *KNOB_COLUMNS, REWARD, ESTIMATED_DENSITY) else column


def context_schema(schema: pa.Schema) -> ContextSchema:
    """The schema of the contexts of a log."""
    layout, metadata = context_layout(schema), Metadata.from_arrow(schema.metadata)
    if layout == "dense":
        return ContextSchema(schema.field("context").type.list_size)
    if layout == "sparse":
        return ContextSchema(None, dict.fromkeys(metadata.names or (), Field("number")), True)
    fields = {field_name(name): Field.of_arrow(schema.field(name).type, name) for name in user_columns(schema)}
    return ContextSchema.from_fields(fields)


def is_text(schema: pa.Schema, name: str) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(schema.field(name).type))


def schema_of(
    *,
    optional: Sequence[str] = (),
    width: int | None = None,
    fields: Mapping[str, Field] | None = None,
    metadata: Metadata | None = None,
) -> pa.Schema:
    """A schema with a dense context of a width, a column for each of the `fields`, or otherwise a sparse context."""
    import pyarrow as pa

    knobs = None if metadata is None else metadata.knobs
    if knobs is not None and {*RANGE} & {*optional}:
        raise FileError("a log with several knobs has within instead of the columns low and high. Rename them.", "low")
    names = (*NUMBERS, *(name for name in (*KNOB_COLUMNS, *OPTIONAL) if name in optional), *filter(is_part, optional))
    columns = [pa.field(name, _own_type(name, knobs)) for name in names]
    metadata = replace(metadata or Metadata(), levels=LEVELS in optional)
    if fields is not None:
        columns += [pa.field(name, field.arrow()) for name, field in fields.items()]
    else:
        columns.append(pa.field("context", dense_type(width) if width is not None else sparse_type()))
    return pa.schema(columns, metadata=metadata.to_arrow())


def _own_type(name: str, knobs: ActionSpace | None) -> pa.DataType:
    import pyarrow as pa

    if name == LEVELS:
        return level_type(knobs)
    if knobs is not None and name in STRUCTS:
        return column_type(name, knobs)
    return pa.string() if name in (*TEXTS, "within") else pa.float64()


def dense_type(width: int) -> pa.DataType:
    import pyarrow as pa

    return pa.list_(pa.float32(), width)


def sparse_type() -> pa.DataType:
    import pyarrow as pa

    return pa.struct([("index", pa.list_(pa.int32())), ("value", pa.list_(pa.float32()))])


def require(names: Sequence[str], path: str, *, needs_density: bool = True) -> None:
    """Check that columns can form a log, apart from the density if it is estimated later.

    >>> require(["action", "los", "density"], "run.csv")
    Traceback (most recent call last):
    manul.errors.FileError: run.csv has no column loss, only action, los, density. Rename los to loss.
    """
    for name in NUMBERS:
        if name not in own_names(names) and (needs_density or name != "density"):
            given = f", only {', '.join(list(names)[:20])}" if names else ""
            close = get_close_matches(name, list(names), n=1, cutoff=0.6)
            advice = f" Rename {close[0]} to {name}." if close else _ESTIMATE if name == "density" else ""
            raise FileError(f"{path} has no column {name}{given}.{_separator_advice(names) or advice}", name)
    if (RANGE[0] in names) != (RANGE[1] in names):
        raise FileError(f"{path} must have both columns low and high, or neither.", RANGE[0])
    duplicates = sorted({name for name in names if list(names).count(name) > 1})
    if duplicates:
        raise FileError(f"{path} has two columns named {duplicates[0]!r}. Rename one.", duplicates[0])


def _separator_advice(names: Sequence[str]) -> str:
    """The advice for a text file whose header is one name, with other separators in it."""
    found = [word for mark, word in ((";", "semicolons"), ("\t", "tabs")) if len(names) == 1 and mark in names[0]]
    return (
        f" Its columns are separated by {found[0]}. Separate them by commas, with points in numbers." if found else ""
    )


def has_rewards(names: Sequence[str]) -> bool:
    """Whether a file with these columns has rewards; beside losses, `reward` is a column of the context.

    >>> has_rewards(["action", "density", "reward"]), has_rewards(["action", "density", "loss", "reward"])
    (True, False)
    """
    return REWARD in names and "loss" not in names


def has_estimates(names: Sequence[str]) -> bool:
    """Whether a file with these columns has estimated densities; beside densities, the column belongs to the context.

    >>> has_estimates(["action", "estimated_density", "loss"])
    True
    """
    return ESTIMATED_DENSITY in names and "density" not in names


def own_names(names: Sequence[str]) -> list[str]:
    """The names of a file's columns in a log: `reward` and `estimated_density` become `loss` and `density`.

    >>> own_names(["age", "action", "estimated_density", "reward"])
    ['age', 'action', 'density', 'loss']
    """
    own = {REWARD: "loss"} if has_rewards(names) else {}
    own |= {ESTIMATED_DENSITY: "density"} if has_estimates(names) else {}
    return [own.get(name, name) for name in names]


def stated_name(name: str, metadata: Metadata) -> str:
    """The name of a column of a log in files; the inverse of `own_names`.

    >>> stated_name("loss", Metadata(rewards=True))
    'reward'
    """
    stated = {"loss": REWARD} if metadata.rewards else {}
    stated |= {"density": ESTIMATED_DENSITY} if metadata.densities_estimated else {}
    return stated.get(name, name)


def negate_losses(table: pa.Table) -> pa.Table:
    """The table with the opposite sign of its losses, which are rewards before or after."""
    import pyarrow.compute as pc

    return table.set_column(table.column_names.index("loss"), "loss", pc.subtract(0.0, table.column("loss")))


def require_same(schema: pa.Schema, other: pa.Schema) -> None:
    ours, theirs = Metadata.from_arrow(schema.metadata), Metadata.from_arrow(other.metadata)
    require_same_outcomes(ours, theirs)
    if ours.formula and theirs.formula and ours.formula != theirs.formula:
        both = f"{ours.formula['formula']!r} and {theirs.formula['formula']!r}"
        raise InputError(f"logs must all have the same formula and parts, got {both}. Use log.with_outcome.", "logs")
    if ours.knobs != theirs.knobs:
        raise InputError("logs must all have the same knobs, in the same order.", "logs")
    if ours.knobs is not None and theirs.knobs is not None and ours.knobs.limits != theirs.knobs.limits:
        raise InputError("logs must all have the same limits between their knobs.", "logs")
    if not (
        schema.equals(other) and (ours.width, ours.names, ours.parts) == (theirs.width, theirs.names, theirs.parts)
    ):
        raise InputError(f"logs must have the same columns, got {describe(schema)} and {describe(other)}.", "logs")


def require_same_outcomes(one: Metadata, other: Metadata) -> None:
    """Check that logs both have losses or both have rewards, and densities of the same origin."""
    if one.outcome.better != other.outcome.better:
        raise InputError("logs must all have losses or all have rewards, got both.", "logs")
    if one.densities_estimated != other.densities_estimated:
        raise InputError("logs must all have logged densities or all have estimated ones, got both.", "logs")


def describe(schema: pa.Schema) -> str:
    """Describe the contexts and optional columns of a log."""
    contexts = {
        "columns": lambda: f"columns {', '.join(user_columns(schema))}",
        "dense": lambda: f"{schema.field('context').type.list_size} numbers per context",
        "sparse": lambda: f"sparse contexts of {Metadata.from_arrow(schema.metadata).width} features",
    }[context_layout(schema)]()
    knobs = Metadata.from_arrow(schema.metadata).knobs
    several = (
        []
        if knobs is None
        else [f"knobs {', '.join(knobs.names)}"]
        if knobs.is_named
        else [f"knob {knobs.knobs[0][1].written()}"]
    )
    optional = (*KNOB_COLUMNS, *OPTIONAL) if several else OPTIONAL
    own = [*(name for name in optional if name in schema.names), *part_columns(schema)]
    return ", ".join([*several, contexts, *own])


def is_several(schema: pa.Schema) -> bool:
    """Whether the actions of a table have named knobs."""
    import pyarrow as pa

    return "action" in schema.names and bool(pa.types.is_struct(schema.field("action").type))


def label(name: str, knob: str) -> str:
    """The flat column of a knob in `action` or `density_by_knob`, which is the column itself if the knob has no name.

    >>> label("action", "price"), label("action", "")
    ('action.price', 'action')
    """
    return STRUCTS[name] + knob if knob else name


def column_type(name: str, knobs: ActionSpace) -> pa.DataType:
    """The type of the column `action` or `density_by_knob`."""
    import pyarrow as pa

    types = {each: knob.arrow_type if name == "action" else pa.float64() for each, knob in knobs.knobs}
    return pa.struct([*types.items()]) if knobs.is_named else types[knobs.names[0]]


def knob_array(name: str, columns: Mapping[str, Sequence[Any]], knobs: ActionSpace) -> pa.Array:
    """The column `action` or `density_by_knob` from columns by knob."""
    import pyarrow as pa

    parts = [
        knob.to_arrow(columns[each]) if name == "action" else pa.array(columns[each], pa.float64())
        for each, knob in knobs.knobs
    ]
    return pa.StructArray.from_arrays(parts, fields=[*column_type(name, knobs)]) if knobs.is_named else parts[0]


def columns_of(table: pa.Table, name: str, knobs: ActionSpace) -> Columns:
    """The columns by knob of `action` or `density_by_knob`; missing numbers are NaN, missing options None."""
    parts = parts_by_knob(table, name, knobs)
    return {
        each: knob.from_arrow(parts[each])
        if name == "action"
        else np.asarray(parts[each].to_numpy(zero_copy_only=False), dtype=np.float64)
        for each, knob in knobs.knobs
    }


def parts_by_knob(table: pa.Table, name: str, knobs: ActionSpace) -> dict[str, pa.Array]:
    """The Arrow arrays of the knobs."""
    if knobs.is_named:
        return struct_parts(table, name)
    return {knobs.names[0]: single_array(table, name)}


def struct_parts(table: pa.Table, name: str) -> dict[str, pa.Array]:
    """The fields of a struct column; those of a missing struct are missing."""
    whole = single_array(table, name)
    return dict(zip((field.name for field in whole.type), whole.flatten(), strict=True))


def nested_knobs(table: pa.Table) -> pa.Table:
    """The table with structs instead of the columns action.NAME and density.NAME, if it has no column action.

    >>> import pyarrow as pa
    >>> nested_knobs(pa.table({"action.price": [3.0], "density.price": [1.0], "loss": [0.5]})).column_names
    ['action', 'density_by_knob', 'loss']
    """
    import pyarrow as pa

    if "action" in table.column_names or not parts_of("action", table.column_names):
        return table
    for name in STRUCTS:
        parts = parts_of(name, table.column_names)
        if parts:
            place = table.column_names.index(next(iter(parts.values())))
            arrays = [table.column(part).combine_chunks() for part in parts.values()]
            struct = pa.StructArray.from_arrays(arrays, [*parts])
            table = table.add_column(place, name, struct).drop_columns([*parts.values()])
    return table


def nested_names(names: Sequence[str]) -> list[str]:
    """The names of the columns that `nested_knobs` makes of columns with these names.

    >>> nested_names(["action.price", "action.days", "density", "density.price", "density.days"])
    ['action', 'density', 'density_by_knob']
    """
    if "action" in names or not parts_of("action", names):
        return [*names]
    structs = {part: name for name in STRUCTS for part in parts_of(name, names).values()}
    return [*dict.fromkeys(structs.get(name, name) for name in names)]


def parts_of(name: str, names: Sequence[str]) -> dict[str, str]:
    """The knobs of the flat columns of `action` or `density_by_knob`, with the names of their columns."""
    prefix = STRUCTS[name]
    return {part.removeprefix(prefix): part for part in names if part.startswith(prefix) and len(part) > len(prefix)}


def check_flat(schema: pa.Schema) -> None:
    """Reject contexts whose names would be those of knobs if each knob has a column."""
    taken = [part for name in STRUCTS for part in parts_of(name, schema.names).values()]
    if taken and is_several(schema):
        raise FileError(
            f"the context {taken[0]!r} has the name of a knob's column. Rename it, or use .jsonl or .parquet.", taken[0]
        )


def flat_knobs(table: pa.Table) -> pa.Table:
    if not is_several(table.schema):
        return table
    check_flat(table.schema)
    for name, prefix in STRUCTS.items():
        if name in table.column_names:
            place, parts = table.column_names.index(name), struct_parts(table, name)
            table = table.drop_columns(name)
            for offset, (part, column) in enumerate(parts.items()):
                table = table.add_column(place + offset, prefix + part, column)
    return table


def normal_within(within: Any, knobs: ActionSpace) -> Any:
    """Narrower ranges in one form: pairs of numbers and lists of options, in the order of knobs; None if there are none.

    >>> from manul import Choice
    >>> knobs = ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> normal_within({"template": "a", "price": [12, 20]}, knobs)
    {'price': (12.0, 20.0), 'template': ['a']}
    """
    knobs.ranges(within)
    given = {} if within is None else knobs.wrap_within(within)
    ranges = {
        name: knob.stated(given[name], name or "action") for name, knob in knobs.knobs if given.get(name) is not None
    }
    return knobs.unwrap(ranges) if ranges else None


def within_text(within: Any) -> str | None:
    return None if within is None else json.dumps(within, ensure_ascii=False)


def parse_within(text: Any, knobs: ActionSpace) -> Any:
    """The narrower ranges of a JSON text, in the form of `normal_within`; raises InputError."""
    if not isinstance(text, str):
        return normal_within(text, knobs)
    try:
        within = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"within must be JSON, got {text!r:.60}.", "within") from None
    return normal_within(within, knobs)


def numbers(table: pa.Table, name: str) -> Floats:
    """A numeric column, with NaN for missing values; without a copy if none are missing."""
    column = table.column(name).combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def single_array(table: pa.Table, name: str) -> pa.Array:
    """A column as a single array, not in chunks."""
    import pyarrow as pa

    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def dense_column(contexts: np.ndarray) -> pa.Array:
    """Build a column of dense contexts from a matrix, without a copy."""
    import pyarrow as pa

    width = contexts.shape[1]
    if width == 0:
        return pa.array([[]] * len(contexts), dense_type(0))
    return pa.FixedSizeListArray.from_arrays(pa.array(contexts.reshape(-1)), width)


def sparse_features(table: pa.Table, names: tuple[Any, ...]) -> SparseFeatures:
    context = single_array(table, "context")
    lists = context.field("index")
    starts = np.concatenate([[0], np.cumsum(np.asarray(lists.value_lengths(), dtype=np.int64))])
    places = np.asarray(lists.flatten(), dtype=np.int64)
    return SparseFeatures(names, starts, places, np.asarray(context.field("value").flatten(), dtype=np.float64))
