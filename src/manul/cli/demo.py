"""`manul demo`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from manul.cli._options import FILE, WHOLE


@click.command(epilog="\b\nExample:\n  manul demo --rounds 2000 --out pictures")
@click.option("--out", type=FILE, default="manul-demo", show_default=True, help="Folder for the pictures.")
@click.option("--rounds", type=WHOLE, default=100_000, show_default=True, help="How many decisions to play.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="The same seed gives the same result.")
@click.option("--json", "as_json", is_flag=True, help="Print the result for programs.")
def demo(out: Path, rounds: int, seed: int, *, as_json: bool) -> None:
    """Heat a made-up house, and draw what was learned."""
    from manul.worlds.demonstration import demonstrate

    shown = demonstrate(out, rounds=rounds, seed=seed, progress=True)
    click.echo(json.dumps(asdict(shown), default=str) if as_json else shown)
