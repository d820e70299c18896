"""The native core of manul."""

from collections.abc import Callable, Mapping, Sequence
import enum
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


class Rejected(ValueError):
    pass

class Kind(enum.Enum):
    number = 0

    text = 1

    flag = 2

    time = 3

class Fault(enum.Enum):
    none = 0

    infinite = 1

    changed_kind = 2

    too_many = 3

    unknown_type = 4

    too_deep = 5

    bad_key = 6

    bad_text = 7

    bad_date = 8

    bad_clock = 9

class BasePlayer:
    def sketch_names(self) -> None: ...

    @property
    def fault(self) -> tuple[Fault, str, str]: ...

    @property
    def late_fields(self) -> list[tuple[int, str]]: ...

    @property
    def fields(self) -> dict[str, Kind]: ...

    @fields.setter
    def fields(self, arg: Mapping[str, Kind], /) -> None: ...

    @property
    def names(self) -> dict[int, str]: ...

    @names.setter
    def names(self, arg: Mapping[int, str], /) -> None: ...

    @property
    def columns(self) -> dict[int, int]: ...

    @columns.setter
    def columns(self, arg: Mapping[int, int], /) -> None: ...

    def names_json(self) -> tuple[str, str]: ...

    @property
    def decisions(self) -> int: ...

    @decisions.setter
    def decisions(self, arg: int, /) -> None: ...

    @property
    def learned(self) -> int: ...

    @learned.setter
    def learned(self, arg: int, /) -> None: ...

    @property
    def epsilon(self) -> float: ...

    def forget(self, half_life: float) -> None: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def most_nbytes(self) -> int: ...

    def state(self) -> dict[str, Any]: ...

    def views(self) -> dict[str, Any]: ...

    def restore(self, saved: dict[str, Any]) -> None: ...

class Player(BasePlayer):
    @overload
    def window(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float) -> tuple[float, float]: ...

    @overload
    def window(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float) -> tuple[float, float]: ...

    @overload
    def window(self, context: dict[str, Any], low: float, high: float) -> tuple[float, float]: ...

    @overload
    def played(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float) -> tuple[float, float, float]: ...

    @overload
    def played(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float) -> tuple[float, float, float]: ...

    @overload
    def played(self, context: dict[str, Any], low: float, high: float) -> tuple[float, float, float]: ...

    @overload
    def decide(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float) -> tuple[float, float, float]: ...

    @overload
    def decide(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float) -> tuple[float, float, float]: ...

    @overload
    def decide(self, context: dict[str, Any], low: float, high: float) -> tuple[float, float, float]: ...

    @overload
    def decide(self, context: object | None, low: float, high: float) -> object: ...

    @overload
    def decide_again(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float, number: int, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> tuple[float, float, float]: ...

    @overload
    def decide_again(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float, number: int, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> tuple[float, float, float]: ...

    @overload
    def decide_again(self, context: dict[str, Any], low: float, high: float, number: int, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> tuple[float, float, float]: ...

    @overload
    def decide_again(self, context: object | None, low: float, high: float, number: int, windows: object | None = None) -> object: ...

    @overload
    def learn(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], action: float, density: float, loss: float, low: float, high: float, parts: Sequence[float] | None = None, judged: bool = False) -> bool: ...

    @overload
    def learn(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], action: float, density: float, loss: float, low: float, high: float, parts: Sequence[float] | None = None, judged: bool = False) -> bool: ...

    @overload
    def learn(self, context: dict[str, Any], action: float, density: float, loss: float, low: float, high: float, parts: Sequence[float] | None = None, judged: bool = False) -> bool: ...

    @overload
    def learn(self, context: object | None, action: float, density: float, loss: float, low: float, high: float, parts: object | None = None, judged: bool = False) -> object: ...

    @overload
    def decide_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many(self, contexts: list[dict[str, Any]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many(self, contexts: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many_again(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many_again(self, contexts: list[dict[str, Any]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many_again(self, contexts: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many_again(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def densities_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def densities_many(self, contexts: list[dict[str, Any]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def densities_many(self, contexts: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def densities_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def largest_densities_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def largest_densities_many(self, contexts: list[dict[str, Any]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def largest_densities_many(self, contexts: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def largest_densities_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def moments_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], means: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def moments_many(self, contexts: list[dict[str, Any]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], means: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def moments_many(self, contexts: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], means: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def moments_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], means: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def learn_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, judged: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def learn_many(self, contexts: list[dict[str, Any]], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, judged: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def learn_many(self, contexts: dict[str, Any], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, judged: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def learn_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, judged: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class CatsPlayer(Player):
    def __init__(self, *, actions: tuple[float, float], losses: tuple[float, float], width: int, epsilon: float | tuple[float, float, float] | Sequence[tuple[float, float]], seed: int, depth: int, bandwidth: float, bits: int = 0) -> None: ...

    def weights(self, row: int, features: Sequence[int]) -> list[float]: ...

    @overload
    def route(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float) -> list[tuple[int, float, bool, bool]]: ...

    @overload
    def route(self, context: dict[str, Any], low: float, high: float) -> list[tuple[int, float, bool, bool]]: ...

class NodeLearner(enum.Enum):
    coin_costs = 0

    coin_margin = 1

    adagrad_squared = 2

    adagrad_logistic = 3

class PaperCatsPlayer(Player):
    def __init__(self, *, actions: tuple[float, float], losses: tuple[float, float], width: int, epsilon: float | tuple[float, float, float] | Sequence[tuple[float, float]], seed: int, depth: int, bandwidth: float, offset: float, learner: NodeLearner) -> None: ...

    def trace(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], action: float, density: float, loss: float, low: float, high: float) -> list[tuple[int, float, float]]: ...

class Penalty(enum.Enum):
    measured = 0

    practical = 1

    paper = 2

class AdaptiveCatsPlayer(Player):
    def __init__(self, *, actions: tuple[float, float], losses: tuple[float, float], width: int, epsilon: float | tuple[float, float, float] | Sequence[tuple[float, float]], seed: int, depth: int, bandwidths: Sequence[float], penalty: Penalty, complexity: float) -> None: ...

    @property
    def best_member(self) -> int: ...

    def risk(self, member: int) -> float: ...

class AutoPlayer(Player):
    def __init__(self, *, actions: tuple[float, float], losses: tuple[float, float], width: int, epsilon: float | tuple[float, float, float] | Sequence[tuple[float, float]], seed: int, features: int = 0, bandwidth: float = 0.0, nearby: float = 0.0, by_evidence: bool = False, early: bool = True, start: float = float('nan'), prior: bool = False, parts: dict[str, Any] | None = None) -> None: ...

    def report(self) -> dict[str, Any]: ...

    def inherit(self, sister: AutoPlayer) -> bool: ...

    def levels(self, centre: float, bandwidth: float, low: float, high: float, epsilon: float = 1.0) -> list[tuple[float, float, float]]: ...

    @overload
    def predict_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def predict_many(self, contexts: list[dict[str, Any]], actions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def predict_many(self, contexts: dict[str, Any], actions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def predict_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], actions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def centres_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bandwidth: float, centres: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def centres_many(self, contexts: list[dict[str, Any]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bandwidth: float, centres: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def centres_many(self, contexts: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bandwidth: float, centres: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def centres_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bandwidth: float, centres: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

class NothingLeft(ValueError):
    pass

class Side(enum.Enum):
    least = 0

    most = 1

    above = 2

    below = 3

    only = 4

class KnobLimits:
    def ranges_left(self, lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    def place(self, lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class DeclaredLimits(KnobLimits):
    def __init__(self, scales: Sequence[tuple[KnobKind, int, float, float, float, float, Sequence[float], Sequence[tuple[str, float]]]], limits: Sequence[tuple[int, Side, int, Sequence[tuple[str, float]], Sequence[tuple[str, float]]]], order: Sequence[int], fields: int) -> None: ...

class FunctionLimits(KnobLimits):
    def __init__(self, function: Callable[[int, Sequence[float], float, float], tuple[float, float]], choices: Sequence[bool]) -> None: ...

def evaluate(program: Sequence[tuple[str, float]], fields: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float: ...

class KnobKind(enum.Enum):
    number = 0

    steps = 1

    choice = 2

class KnobsPlayer(BasePlayer):
    def __init__(self, *, knobs: Sequence[tuple[KnobKind, int]], losses: tuple[float, float], width: int, epsilon: float | tuple[float, float, float] | Sequence[tuple[float, float]], seed: int, nearby: float, features: int = 0, starts: Sequence[float] = [], by_evidence: bool = False, early: bool = True, parts: dict[str, Any] | None = None) -> None: ...

    @overload
    def decide(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], number: int, limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> tuple[list[float], list[float], float]: ...

    @overload
    def decide(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], number: int, limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> tuple[list[float], list[float], float]: ...

    @overload
    def decide(self, context: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], number: int, limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> tuple[list[float], list[float], float]: ...

    @overload
    def decide(self, context: object | None, lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], number: int, limits: object | None = None, fields: object | None = None, windows: object | None = None) -> object: ...

    @overload
    def best(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> list[float]: ...

    @overload
    def best(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> list[float]: ...

    @overload
    def best(self, context: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> list[float]: ...

    @overload
    def windows(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[tuple[float, float]]: ...

    @overload
    def windows(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[tuple[float, float]]: ...

    @overload
    def windows(self, context: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[tuple[float, float]]: ...

    @overload
    def distributions(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[list[list[tuple[float, float, float]]], float]: ...

    @overload
    def distributions(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[list[list[tuple[float, float, float]]], float]: ...

    @overload
    def distributions(self, context: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[list[list[tuple[float, float, float]]], float]: ...

    @overload
    def learn(self, context: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], density: float, loss: float, parts: Sequence[float] | None = None, judged: bool = False) -> bool: ...

    @overload
    def learn(self, context: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], density: float, loss: float, parts: Sequence[float] | None = None, judged: bool = False) -> bool: ...

    @overload
    def learn(self, context: dict[str, Any], positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], density: float, loss: float, parts: Sequence[float] | None = None, judged: bool = False) -> bool: ...

    @overload
    def learn(self, context: object | None, positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], density: float, loss: float, parts: object | None = None, judged: bool = False) -> object: ...

    @overload
    def decide_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many(self, contexts: list[dict[str, Any]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many(self, contexts: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def decide_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], densities: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], floors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, windows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @overload
    def densities_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def densities_many(self, contexts: list[dict[str, Any]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def densities_many(self, contexts: dict[str, Any], lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def densities_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], lows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], limits: KnobLimits | None = None, fields: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def learn_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, judged: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def learn_many(self, contexts: list[dict[str, Any]], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, judged: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def learn_many(self, contexts: dict[str, Any], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, judged: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def learn_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, judged: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    @overload
    def predict_many(self, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], per_context: int, positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def predict_many(self, contexts: list[dict[str, Any]], per_context: int, positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def predict_many(self, contexts: dict[str, Any], per_context: int, positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def predict_many(self, contexts: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], per_context: int, positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def inherit(self, sister: KnobsPlayer) -> bool: ...

    def report(self) -> dict[str, Any]: ...

class LinearPlayer(Player):
    def __init__(self, *, actions: tuple[float, float], losses: tuple[float, float], width: int, epsilon: float | tuple[float, float, float] | Sequence[tuple[float, float]], seed: int, bandwidth: float, rate: float) -> None: ...

class DiscreteTreePlayer(Player):
    def __init__(self, *, actions: tuple[float, float], losses: tuple[float, float], width: int, epsilon: float | tuple[float, float, float] | Sequence[tuple[float, float]], seed: int, depth: int, learner: NodeLearner) -> None: ...

class DiscreteLinearPlayer(Player):
    def __init__(self, *, actions: tuple[float, float], losses: tuple[float, float], width: int, epsilon: float | tuple[float, float, float] | Sequence[tuple[float, float]], seed: int, depth: int) -> None: ...

def atoms_inside(actions: tuple[float, float], leaves: int, low: float, high: float) -> tuple[int, int]: ...

class Loss(enum.Enum):
    absolute = 0

    squared = 1

    knots = 2

class Table:
    def __init__(self, *, contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], loss: Loss, actions: tuple[float, float], positions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def loss(self, number: int, action: float) -> float: ...

def simulate(players: Sequence[Player], tables: Sequence[Table], first: int, last: int, actions: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]], densities: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]], losses: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]], floors: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]], windows: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]], threads: int) -> None: ...

def replay(players: Sequence[Player], contexts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], densities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lows: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], highs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None: ...

def instruction_set() -> str: ...

def draw(seed: int, decision: int) -> tuple[float, float]: ...
