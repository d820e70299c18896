"""`manul demo`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from manul.cli._options import FILE, INTEGER


@click.command(epilog="\b\nExample:\n  manul demo --rounds 2000 --out pictures")
@click.option("--out", type=FILE, default="manul-demo", help="Folder for the plots.")
@click.option("--rounds", type=INTEGER, default=100_000, help="Number of rounds.")
@click.option("--seed", type=INTEGER, default=0, help="Random seed.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(out: Path, rounds: int, seed: int, *, as_json: bool) -> None:
    """Learn to heat a simulated house, and plot the result."""
    from manul.worlds.demonstration import demonstrate

    result = demonstrate(out, rounds=rounds, seed=seed, progress=True)
    click.echo(json.dumps(asdict(result), default=str) if as_json else result)
