"""Modules of optional packages are collected where those are installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("ray") else ["src/manul/offpolicy/optimization/engines/ray.py"]
