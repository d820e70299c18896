"""Writes the pages that are made from the code: `python docs/generate.py`. The tests compare them."""

from pathlib import Path

import click

from manul.cli import main

HERE = Path(__file__).parent
WIDTH = 100
HEAD = """# Command line

Every command takes files first and then options, which are called as the keywords of Python are. Fractions such as `1/16` are
read as written. Tables go to the standard output, or `--json` for programs; progress with the time left goes to standard error.
What is wrong is said in one sentence, with exit status 2 for a setting and 1 for the rest. This page is made by
`docs/generate.py` from the commands themselves.
"""


def helped(command: click.Command, name: str) -> str:
    """The help of a command, as a terminal of a fixed width shows it."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    context.help_option_names = ["-h", "--help"]
    return command.get_help(context)


def cli() -> str:
    """The page of the command line."""
    context = click.Context(main, info_name="manul")
    parts = [HEAD, f"## manul\n\n```text\n{helped(main, 'manul')}\n```\n"]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        parts.append(f"## manul {name}\n\n```text\n{helped(command, f'manul {name}')}\n```\n")
    return "\n".join(parts)


PAGES = {HERE / "reference" / "cli.md": cli}

if __name__ == "__main__":
    for path, made in PAGES.items():
        path.write_text(made(), encoding="utf-8")
