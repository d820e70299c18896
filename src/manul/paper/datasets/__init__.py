"""The regression tables of the paper's experiments, and any other: from OpenML, from disk, drawn, or grown."""

from manul.paper.datasets.bng import bng
from manul.paper.datasets.catalogue import NAMES, load
from manul.worlds.tables.tables import Dataset, read

__all__ = ["NAMES", "Dataset", "bng", "load", "read"]
