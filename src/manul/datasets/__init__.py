"""The regression tables of the paper's experiments, and any other: from OpenML, from disk, drawn, or grown."""

from manul.datasets.bng import bng
from manul.datasets.catalogue import NAMES, load
from manul.datasets.tables import Dataset, read

__all__ = ["NAMES", "Dataset", "bng", "load", "read"]
