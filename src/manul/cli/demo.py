"""`manul demo`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--out", type=Path, default="manul-demo", show_default=True, help="Folder for the pictures.")
@click.option("--rounds", type=int, default=100_000, show_default=True, help="How many decisions to play.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same result.")
def demo(out: Path, rounds: int, seed: int) -> None:
    """Heat a made-up house, and draw what was learned."""
    from manul.demonstration import demonstrate

    click.echo(demonstrate(out, rounds=rounds, seed=seed, progress=True))
