"""The paper's experiments (section 5), repeated beside its published numbers: tables, figures and one page."""

from manul.paper.experiments.reproduction import NAMES, Reproduction, reproduce

__all__ = ["NAMES", "Reproduction", "reproduce"]
