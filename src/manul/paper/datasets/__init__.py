"""Regression tables from OpenML or from disk, and synthetic ones."""

from manul.paper.datasets.bng import bng
from manul.paper.datasets.catalogue import NAMES, load
from manul.worlds.tables.tables import Dataset, read

__all__ = ["NAMES", "Dataset", "bng", "load", "read"]
