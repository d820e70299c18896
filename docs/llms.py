"""Writes `llms.txt` beside the site: all pages with what they say first, for language models. A hook of MkDocs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# Pages with text from elsewhere are complete only as HTML; of the others, the source is copied.
ELSEWHERE = re.compile(r"^(:::|\s*--8<--)", re.MULTILINE)
# Characters of a summary after which no further sentence is added.
ENOUGH = 60
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def on_post_build(config: Any) -> None:
    """Write the file, and copy the sources that it refers to."""
    docs, site = Path(config.docs_dir), Path(config.site_dir)
    for path in paths(config.nav):
        if is_complete((docs / path).read_text(encoding="utf-8")):
            (site / path).write_bytes((docs / path).read_bytes())
    (site / "llms.txt").write_text(llms_text(config, docs), encoding="utf-8")


def llms_text(config: Any, docs: Path) -> str:
    """The text: a title, a summary, and the pages of each section of the navigation."""
    lines = [
        f"# {config.site_name}",
        "",
        f"> {config.site_description}: {summary((docs / 'index.md').read_text(encoding='utf-8'))}",
    ]
    loose = [each for each in config.nav if isinstance(each, str)]
    sections = [("Start", loose)] + [pair for each in config.nav if isinstance(each, dict) for pair in each.items()]
    for title, nav in sections:
        lines += ["", f"## {title}", ""]
        for path in paths(nav):
            text = (docs / path).read_text(encoding="utf-8")
            target = path if is_complete(text) else path.removesuffix(".md") + ".html"
            lines.append(f"- [{heading(text)}]({target}): {summary(text)}")
    return "\n".join(lines) + "\n"


def paths(nav: Any) -> Iterator[str]:
    """The pages of a navigation, in order."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from paths(each)


def is_complete(text: str) -> bool:
    """Whether a source needs nothing from elsewhere."""
    return ELSEWHERE.search(text) is None


def heading(text: str) -> str:
    """The title of a page."""
    found = re.search(r"^# (.+)$", included(text), re.MULTILINE)
    assert found is not None, "every page has a title"
    return plain(found[1])


def included(text: str) -> str:
    """A page that is a file of the repository as this file; others as they are."""
    found = re.fullmatch(r'--8<-- "(\S+)"\s*', text)
    return text if found is None else (ROOT / found[1]).read_text(encoding="utf-8")


def summary(text: str) -> str:
    """The first sentences of a page: prose, no picture, table, list or code."""
    for paragraph in CODE.sub("", included(text)).split("\n\n"):
        stripped = paragraph.strip()
        if stripped and stripped[0] not in "#!|-*<[:>0123456789" and not stripped.startswith("--8<--"):
            told = ""
            for sentence in re.split(r"(?<=[.!?])\s", plain(stripped).rstrip(".:") + "."):
                told = f"{told} {sentence}".strip()
                if len(told) >= ENOUGH:
                    break
            return told
    return heading(text) + "."


def plain(text: str) -> str:
    """A text without the targets of links and without line breaks."""
    return re.sub(r"\s+", " ", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)).replace("`", "").replace("**", "").strip()
