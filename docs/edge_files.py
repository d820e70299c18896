"""A hook of mkdocs: the files of the page that decides in the browser, of the package for JavaScript and an agent."""

from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import manul
from manul.utils import model_files

JS = Path(__file__).parent.parent / "js"


def contents() -> dict[str, bytes]:
    """The files by their addresses on the site."""
    wasm = JS / "dist" / "manul.wasm"
    if not wasm.exists():
        raise PluginError("js/dist/manul.wasm must be built before the documentation. Run make js/dist/manul.wasm.")
    agent = manul.Auto(actions=(0, 40), rewards=(0, 40), seed=7)
    return {
        "edge/manul.js": (JS / "manul.js").read_bytes(),
        "edge/dist/manul.wasm": wasm.read_bytes(),
        "edge/shop.manul": model_files.dumps(agent),
    }


def on_files(files: Any, config: Any) -> Any:
    """Add the files to the site."""
    for address, content in contents().items():
        files.append(File.generated(config, address, content=content))
    return files
