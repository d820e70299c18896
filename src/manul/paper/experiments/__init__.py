"""Repeats the experiments of section 5 of the paper: tables, figures and a page, with the published numbers."""

from manul.paper.experiments.reproduction import NAMES, Reproduction, reproduce

__all__ = ["NAMES", "Reproduction", "reproduce"]
