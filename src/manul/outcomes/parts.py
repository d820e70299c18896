"""The parts of outcomes over one space of actions: reading what is reported, and the value of the formula.

What is reported beside the parts, a loss or a reward, is learned instead of the value of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manul.actions.limits import field_values
from manul.actions.space import ActionSpace
from manul.contexts import conversion
from manul.contexts.batches import NamedBatch, named_batch, rows_with
from manul.errors import InputError, ParameterError, remedy
from manul.outcomes import MOST_OF_FORMULA, Outcome, PartKind
from manul.utils.formulas import Formula, Instruction, parse
from manul.utils.validation import Flags, Floats, are_within

ACTION = "action"  # the name of a single knob in formulas
_NEEDS = "The formula needs"
_NOTHING = np.empty(0)


class Told(NamedTuple):
    """What one decision led to: its loss, its parts in order, NaN if they are absent, and whether the loss was reported itself.

    `parts` is None if none were reported."""

    loss: float
    parts: list[float] | None = None
    judged: bool = False


class ToldMany(NamedTuple):
    """The same of many decisions: losses, rows of parts, and 1 for each loss that was reported itself."""

    losses: Floats
    parts: Floats | None = None
    judged: Floats | None = None


class PartsReader:
    """Reads the parts of an `outcome` over a `space`. `modelled` are those that its formula uses, and `fields` the numbers of
    contexts that it needs.

    >>> from manul import Sale
    >>> reader = PartsReader(Sale(cost="cost"), ActionSpace((10, 50)))
    >>> reader.fields, reader.value(30.0, {"cost": 9}, {"bought": True})
    (('cost',), 21.0)
    """

    def __init__(self, outcome: Outcome, space: ActionSpace) -> None:
        assert outcome.formula is not None
        self.outcome, self.formula, self.modelled = outcome, parse(outcome.formula), outcome.modelled
        names = [name or ACTION for name in space.names]
        self._knobs = dict(zip(names, space.names, strict=True))
        if len(names) == 1:  # a single knob may also be called `action`, so that an outcome fits any knob
            self._knobs.setdefault(ACTION, space.names[0])
        self._space, self._kinds = space, dict(space.knobs)
        taken = [name for name in self.modelled if name in self._knobs]
        if taken:
            raise ParameterError(f"the part {taken[0]!r} has the name of a knob. Rename one of them.", "outcome")
        self._check_choices()
        self._own = (*self._knobs, *self.modelled)
        used = [name for name in self._knobs if name in self.formula.names]
        self._taken = dict.fromkeys(used, "a knob in the formula") | dict.fromkeys(
            self.modelled, "a part of the outcome"
        )
        self.fields = tuple(name for name in self.formula.names if name not in self._own)

    @classmethod
    def of(cls, outcome: Outcome, space: ActionSpace) -> PartsReader | None:
        """The reader of an outcome; None if it has no formula."""
        return None if outcome.formula is None else cls(outcome, space)

    def _check_choices(self) -> None:
        """Check that options that are texts are quoted, and that quoted ones exist."""
        compared = set()
        for part in self.formula:
            if any(each.operation == "text" for each in part.parts):
                name, text = (str(each.constant) for each in part.parts)
                compared.add(id(part.parts[0]))
                knob = self._kinds.get(self._knobs.get(name, name))
                if knob is None or not knob.is_option:
                    rule = f"the formula compares {name!r} with a text, but it is not a choice"
                    raise ParameterError(f"{rule}. Compare it with a number.", "outcome")
                if text not in knob.sweep(0):
                    known = [str(option) for option in knob.sweep(0)]
                    advice = remedy(text, known, f"The options are {', '.join(known)}.")
                    raise ParameterError(f"the formula has an unknown option {text!r} of {name!r}. {advice}", "outcome")
        for part in self.formula:
            knob = self._kinds.get(self._knobs.get(str(part.constant), "")) if part.operation == "name" else None
            if knob is None or not knob.is_option or id(part) in compared or part.constant not in self._knobs:
                continue
            if any(isinstance(option, str) for option in knob.sweep(0)):
                rule = f"the formula uses {part.constant!r} as a number, but its options are texts"
                raise ParameterError(f"{rule}. Quote them.", "outcome")

    @property
    def is_in_core(self) -> bool:
        """Whether the core predicts the parts: the space is one knob of numbers."""
        return len(self._space.knobs) == 1 and not self._space.knobs[0][1].is_option

    def core_settings(self) -> dict[str, Any] | None:
        """The formula as the core takes it, if the space is one knob of numbers: `value` 0 is the action, and the parts follow."""
        if not self.is_in_core:
            return None
        directions: dict[str, int] = {"falls": -1, "rises": 1}
        return {
            **self.core_programs({}),
            "kinds": [*self.modelled.values()],
            "hints": [directions.get(self.outcome.hints.get(name, ""), 0) for name in self.modelled],
            "higher": self.outcome.higher,
        }

    def core_programs(self, others: Mapping[str, Formula]) -> dict[str, Any]:
        """The formula and `others` of the same parts as programs by name, and the fields that they load."""
        places = {name: 1 + place for place, name in enumerate(self.modelled)} | dict.fromkeys(self._knobs, 0)
        formulas = {"program": self.formula, **others}
        names = dict.fromkeys(name for formula in formulas.values() for name in formula.names)
        fields = [name for name in names if name not in self._own]

        def load(name: str, is_text: bool) -> Instruction:  # noqa: ARG001, FBT001 - a callback
            return ("value", float(places[name])) if name in places else ("field", float(fields.index(name)))

        programs = {name: formula.program(load, lambda *_: 0.0) for name, formula in formulas.items()}
        return {**programs, "fields": fields}

    def context_numbers(self, context: Any) -> Floats:
        """The numbers of a context that the formula needs, in the order of `fields`."""
        fields = conversion.to_dict(context) if conversion.is_named(context) else None
        self._check_names(fields)
        return field_values(self.fields, fields, _NEEDS, self._own) if self.fields else _NOTHING

    def context_columns(self, contexts: Any) -> Floats:
        """The numbers of many contexts, a row each."""
        batch = contexts if isinstance(contexts, NamedBatch) else None
        if batch is None and not isinstance(contexts, np.ndarray):
            batch = named_batch(contexts)
        if batch is not None and isinstance(batch.contexts, dict):
            columns = batch.contexts
            numbers = [columns.get(name) for name in self.fields]
            if not {*columns} & {*self._taken} and all(map(_are_numbers, numbers)):
                return np.array(numbers, dtype=np.float64).T.reshape(len(batch), len(self.fields))
        if batch is None:
            self.context_numbers(None)
            return np.empty((len(contexts), 0))
        rows = []
        for row in rows_with(batch, [*self.fields, *self._taken]):
            self._check_names(row)
            rows.append(field_values(self.fields, row, _NEEDS, self._own) if self.fields else np.empty(0))
        return np.array(rows, dtype=np.float64).reshape(len(batch), len(self.fields))

    def _check_names(self, fields: Mapping[str, Any] | None) -> None:
        for name, what in self._taken.items() if fields else ():
            if name in fields:  # type: ignore[operator]
                raise InputError(f"the context has a field {name!r}, which is {what}. Rename one of them.", name)

    def read(self, context: Any, action: Any, loss: Any, reward: Any, parts: Any) -> Told:
        """What one decision led to: its `parts`, and the `loss` or `reward` if it was reported beside them."""
        numbers = self.numbers(parts)
        if loss is not None or reward is not None:
            judged = self.outcome.read(loss, reward)
            self._check_size(np.array([judged]))
            return Told(judged, numbers, judged=True)
        loss = self.outcome.to_loss(self._value(action, context, numbers))
        self._check_size(np.array([loss]))
        return Told(loss, numbers)

    def read_many(self, contexts: Any, actions: Any, losses: Any, rewards: Any, parts: Any) -> ToldMany:
        """The same for many decisions; `actions` are columns as in `Decisions`. A loss or reward that is NaN was not reported."""
        table = self.table(parts)
        judged, values = np.zeros(len(table)), np.empty(0)
        if losses is not None or rewards is not None:
            values = self.outcome.read_many(losses, rewards)
            if values.shape != (len(table),):
                rule = f"one number for each of the {len(table)} rows of parts"
                raise InputError(f"{self.outcome.keywords} must have {rule}, got shape {values.shape}.", "parts")
            judged = 1.0 - np.isnan(values)
        if not judged.all():
            computed = self.outcome.to_loss(self.values(actions, contexts, table, judged == 0))
            values = computed if not judged.any() else np.where(judged == 1, values, computed)
        self._check_size(values)
        return ToldMany(values, table, judged)

    def _check_size(self, losses: Floats) -> None:
        """Refuse finite losses that are too large to be learned; what is wrong with others, the learner says."""
        if (np.isfinite(losses) & (np.abs(losses) > MOST_OF_FORMULA)).any():
            self.outcome.check(losses)

    def numbers(self, parts: Any) -> list[float]:
        """The modelled ones of the `parts` of one decision by name as numbers in order, NaN if they are absent."""
        given = part_numbers(self.outcome, parts)
        return [given.get(name, math.nan) for name in self.modelled]

    def table(self, parts: Any) -> Floats:
        """The modelled ones of the `parts` of many decisions, columns by name, as rows of numbers."""
        columns = part_columns(self.outcome, parts)
        absent = np.full(len(next(iter(columns.values()))), np.nan)
        return np.column_stack([columns.get(name, absent) for name in self.modelled])

    def value(self, action: Any, context: Any, parts: Mapping[str, Any]) -> float:
        """The value of the formula, in the outcome's own sign; raises InputError if it has none."""
        return self._value(action, context, self.numbers(parts))

    def _value(self, action: Any, context: Any, numbers: list[float]) -> float:
        known: dict[str, Any] = dict(zip(self.modelled, numbers, strict=True))
        self._check_present(known)
        known.update(zip(self.fields, self.context_numbers(context).tolist(), strict=True))
        knobs = self._space.wrap(action)
        known.update((name, knobs[own]) for name, own in self._knobs.items())
        value = self.formula.value(known)
        if math.isnan(value):
            raise self._no_value(known)
        return value

    def values(self, actions: Any, contexts: Any, table: Floats, needed: npt.NDArray[np.bool_] | None = None) -> Floats:
        """The values of the formula for rows of parts; NaN in rows that are not `needed`."""
        needed = np.ones(len(table), np.bool_) if needed is None else needed
        columns: dict[str, Any] = dict(zip(self.modelled, table.T, strict=True))
        fields = self.context_columns(contexts)
        columns |= dict(zip(self.fields, fields.T, strict=True))
        knobs = self._space.wrap_columns(actions)
        columns |= {name: np.asarray(knobs[own]) for name, own in self._knobs.items()}
        lengths = {name: len(column) for name, column in columns.items() if len(column) != len(table)}
        for name, length in lengths.items():
            raise InputError(f"parts must have one value per decision, got {len(table)} for {length}.", name)
        values = np.where(needed, self.formula.values(columns, len(table)), np.nan)
        wrong = needed & np.isnan(values)
        for name, kind in self.modelled.items():
            if kind != "amount":
                wrong |= needed & np.isnan(columns[name])
        if wrong.any():
            row = int(np.argmax(wrong))
            known = {name: _item(column[row]) for name, column in columns.items()}
            try:
                self._check_present(known)
                raise self._no_value(known)
            except InputError as error:
                if len(table) == 1:
                    raise
                raise InputError(f"{str(error).removesuffix('.')} in row {row}.", error.field) from None
        return values

    def _check_present(self, known: Mapping[str, Any]) -> None:
        for name, kind in self.modelled.items():
            if kind != "amount" and math.isnan(known[name]):
                raise InputError(f"parts must say {name!r}, as in {_example(self.modelled)}.", "parts")

    def _no_value(self, known: Mapping[str, Any]) -> InputError:
        absent = [name for name in self.modelled if math.isnan(known[name])]
        formula = f"the formula {self.outcome.formula!r}"
        if absent:
            return InputError(f"{formula} needs the amount {absent[0]!r}, which is absent.", "parts")
        given = ", ".join(f"{name} = {known[name]!r}" for name in self.formula.names)
        return InputError(f"{formula} has no finite value for {given}.", "parts")


def _example(kinds: Mapping[str, PartKind]) -> str:
    examples = {"yes/no": "True", "count": "3", "amount": "12.3"}
    return f"{{{', '.join(f'{name!r}: {examples[kind]}' for name, kind in kinds.items())}}}"


def part_numbers(outcome: Outcome, parts: Any) -> dict[str, float]:
    """The `parts` of one decision by name as numbers, NaN if they are absent."""
    if not isinstance(parts, Mapping):
        rule = f"parts must be values by name, such as {_example(outcome.parts)}"
        raise InputError(f"{rule}, got {parts!r:.60}.", "parts")
    return {name: outcome.part_number(name, value) for name, value in parts.items()}


def part_columns(outcome: Outcome, parts: Any) -> dict[str, Floats]:
    """The `parts` of many decisions, columns by name, as numbers."""
    if not isinstance(parts, Mapping) or not parts:
        rule = f"parts must be columns by name, such as {_example(outcome.parts)}"
        raise InputError(f"{rule}, got {parts!r:.60}.", "parts")
    columns = {name: part_column(outcome, name, values) for name, values in parts.items()}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"parts must all have one value per decision, got lengths {sorted(lengths)}.", "parts")
    return columns


def part_column(outcome: Outcome, name: str, values: Any) -> Floats:
    """The values of a part of many decisions as numbers, NaN if they are absent."""
    column = values if isinstance(values, list | tuple) else np.asarray(values)
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "biuf" and name in outcome.parts:
        numbers = column.astype(np.float64)
        if (np.isnan(numbers) | are_parts(numbers, outcome.parts[name])).all():
            return numbers
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(f"the part {name!r} must have one value per decision, got shape {column.shape}.", "parts")
    each = column.tolist() if isinstance(column, np.ndarray) else column
    numbers = np.empty(len(each))
    for row, value in enumerate(each):
        try:
            numbers[row] = outcome.part_number(name, value)
        except InputError as error:
            raise InputError(f"{str(error).removesuffix('.')} in row {row}.", error.field) from None
    return numbers


def are_parts(column: Floats, kind: str | None) -> Flags:
    """Flag the values that a part of a kind can have; None is one of which the kind is not known."""
    flags: Flags = np.isfinite(column) if kind is None else are_within(column, 0.0, np.finfo(np.float64).max)
    if kind == "yes/no":
        flags = (column == 0.0) | (column == 1.0)
    elif kind == "count":
        flags &= column == np.floor(column)
    return flags


def read_report(
    outcome: Outcome, reader: PartsReader | None, context: Any, action: Any, loss: Any, reward: Any, parts: Any
) -> Told:
    """What the arguments of `learn` say; the `reader` is that of the outcome's formula."""
    if parts is not None and reader is not None:
        return reader.read(context, action, loss, reward, parts)
    if parts is not None:
        part_numbers(_with_parts(outcome), parts)
    return Told(outcome.read(loss, reward))


def read_reports(
    outcome: Outcome, reader: PartsReader | None, contexts: Any, actions: Any, losses: Any, rewards: Any, parts: Any
) -> ToldMany:
    """What the arguments of `learn_many` say, as `read_report`."""
    if parts is not None and reader is not None:
        return reader.read_many(contexts, actions, losses, rewards, parts)
    values = outcome.read_many(losses, rewards)
    if parts is not None:
        count = len(next(iter(part_columns(_with_parts(outcome), parts).values())))
        if values.shape != (count,):
            raise InputError(f"parts must have one value per decision, got {count} for {values.size}.", "parts")
    return ToldMany(values)


def _with_parts(outcome: Outcome) -> Outcome:
    if not outcome.parts:
        advice = "such as outcome=manul.Sale(cost=20.0) or manul.Outcome(parts={'returned': 'yes/no'})"
        raise InputError(f"parts need an outcome with parts, {advice}.", "parts")
    return outcome


def _are_numbers(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iuf" and bool(np.isfinite(column).all())


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
