"""A further field of the answer to a decision, `made`: the class `Decision` of one module of the package is edited, and nothing else."""

import sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path

EDITS = {
    "    model: int\n    densities": "    model: int\n    made: float\n    densities",
    "model=stored.model,": "model=stored.model, made=stored.time,",
}

spec = find_spec("manul.service.wire")
source = Path(spec.origin).read_text()
for before, after in EDITS.items():
    assert source.count(before) == 1
    source = source.replace(before, after)
sys.modules[spec.name] = module_from_spec(spec)
exec(compile(source, spec.origin, "exec"), vars(sys.modules[spec.name]))
