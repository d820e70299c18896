"""Where decisions and losses are kept: what is stored, and what every store must do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from manul.service.errors import Unknown
from manul.service.store.blocks import Block, Decided

Kind = Literal["loss", "part", "default", "combined", "late", "import", "damaged"]

# The kinds that settle a decision: the model learns these, and each decision has at most one.
OUTCOMES: tuple[Kind, ...] = ("loss", "default", "combined")


class Event(NamedTuple):
    """Something that happened to a decision, or to a whole loop where `decision` is 0. Numbers count from 1 in each loop.

    `loss` is the outcome, `part` one of several losses that will combine, `default` and `combined` what was learned at
    the end of the wait, `late` a loss that came after it, and `import` a model that takes the place of the one before.
    `damaged` is a row that cannot be read.
    """

    number: int
    decision: int
    kind: Kind
    loss: float
    time: float
    key: str | None = None


class LoopRow(Struct, frozen=True, kw_only=True):
    """A loop as it is stored; `settings` is the JSON that made it."""

    number: int
    name: str
    settings: bytes
    created: float
    paused: bool
    apprentice: bool


class Counts(Struct):
    """How much a loop has had; `events` and `numbers` are the highest numbers given so far."""

    decisions: int = 0
    outcomes: int = 0
    loss_sum: float = 0.0
    late: int = 0
    defaulted: int = 0
    events: int = 0
    numbers: int = 0
    latest: float = 0.0


class Snapshot(NamedTuple):
    """A model as bytes, the last event it contains, how many outcomes it has learned and refused, and its past in sums."""

    event: int
    model: bytes
    learned: int
    refused: int
    history: bytes = b""


class StoreFailure(Exception):  # noqa: N818 - reads as what it is
    """The store cannot take anything now, a full disk for example. Nothing of the transaction was kept."""


class Collision(Exception):  # noqa: N818 - reads as what it is
    """Another replica was in the way. Nothing of the transaction was kept, and the same again can work."""


class LoopGone(Unknown):
    """The loop was deleted. Nothing was written for it."""

    def __init__(self) -> None:
        super().__init__("The loop was deleted.", "loop")


class State(NamedTuple):
    """What replicas tell each other about a loop: `begun` once it has a decision, `snapshot` the event of the newest."""

    number: int
    paused: bool
    apprentice: bool
    events: int
    snapshot: int
    begun: bool


class Replicas(Protocol):
    """The services on one store: exactly one of them leads, which is to learn and to settle what has waited too long."""

    def leads(self) -> bool:
        """Whether it is this one."""

    def states(self) -> list[State]:
        """The loops as the others left them."""


class Transaction(Protocol):
    """Reads and writes that become durable together. LoopGone comes out of each call that writes to a loop which any
    replica has deleted: at once or, where the store finds it out only then, at the end of the transaction, of which nothing is kept."""

    def add_loop(self, name: str, settings: bytes, created: float, *, apprentice: bool) -> int | None:
        """The number of a new loop; None where the name is taken."""

    def change_loop(self, loop: int, *, paused: bool | None = None, apprentice: bool | None = None) -> None:
        """Keep a new state of a loop."""

    def claim(self, loop: int, ids: Mapping[str, int]) -> dict[str, int]:
        """Give ids to decision numbers; returns those that other decisions have already, with their numbers."""

    def add_block(self, loop: int, block: Block) -> None:
        """Keep decisions."""

    def numbers(self, loop: int, ids: Sequence[str]) -> list[int | None]:
        """The decision numbers behind given ids."""

    def decisions(self, loop: int, numbers: Sequence[int]) -> list[Decided | None]:
        """Stored decisions."""

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All events of some decisions, in order; decisions without one are left out."""

    def add_events(self, loop: int, events: Iterable[Event]) -> list[Event]:
        """Keep events under the next numbers of the loop; returns them with these."""

    def ended(self, loop: int, before: float, limit: int) -> list[int]:
        """Decisions made before a time that have not been asked for by this before, the oldest first.

        They count as asked for once the transaction is durable.
        """

    def add_model(self, loop: int, event: int, model: bytes) -> None:
        """Keep an imported model under its event."""

    def add_snapshot(self, loop: int, snapshot: Snapshot, *, keep: int) -> None:
        """Keep a snapshot, and of the older ones the newest, `keep` in all."""

    def forget(self, loop: int, blocks: Sequence[Block]) -> None:
        """Remove blocks, the ids and the events of their decisions; counts go on, and blocks that are gone already are no error."""

    def delete_loop(self, loop: int) -> None:
        """Remove a loop, at once whatever its history; `purge` removes the rest. Its number is not given again."""

    def purge(self, limit: int) -> bool:
        """Remove up to `limit` rows of deleted loops; whether more are left."""


class Store(Protocol):
    """A place that survives. Transactions come from one thread; reads may come from any.

    Every call but `reserve` may wait for the store, at most for some seconds, and then raises StoreFailure.
    `replicas` is None where one service has the store for itself.
    """

    @property
    def replicas(self) -> Replicas | None:
        """The services on this store."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Everything inside is durable after the block or, where an error comes out of it, undone."""

    def reserve(self, loop: int, count: int) -> int | None:
        """The first of some consecutive decision numbers that nobody else gets; None if not as many are at hand.

        It never waits. After None, `refill` in another thread.
        """

    def refill(self, loop: int, count: int) -> None:
        """Have at least `count` numbers at hand; it may wait for the store."""

    def loops(self) -> list[LoopRow]:
        """All loops in the order they were made."""

    def counts(self, loop: int) -> Counts:
        """How much a loop holds."""

    def first_decision(self, loop: int) -> Decided | None:
        """The oldest decision, whose context says what contexts look like."""

    def events(self, loop: int, after: int, limit: int) -> list[tuple[Event, Decided | None]]:
        """The next events in order, each with its decision."""

    def blocks(self, loop: int, after: int, limit: int) -> list[Block]:
        """The next blocks of decisions, the oldest first; `after` is the last number of the block before."""

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All durable events of some decisions, in order; decisions without one are left out."""

    def model(self, loop: int, event: int) -> bytes:
        """An imported model; empty if it is missing."""

    def snapshot(self, loop: int, before: int | None = None) -> Snapshot | None:
        """The newest snapshot, or the newest of those that contain only events before a number."""

    def snapshots(self, loop: int) -> list[int]:
        """The events of all snapshots, newest first."""

    def check(self) -> None:
        """Raises StoreFailure where the store cannot be used."""

    def close(self) -> None:
        """Let go of everything; nothing is used afterwards."""


__all__ = [
    "OUTCOMES",
    "Block",
    "Collision",
    "Counts",
    "Decided",
    "Event",
    "Kind",
    "LoopGone",
    "LoopRow",
    "Replicas",
    "Snapshot",
    "State",
    "Store",
    "StoreFailure",
    "Transaction",
]
