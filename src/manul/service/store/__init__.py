"""The store of decisions and losses: what is stored, and the interface of every store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from manul.service.errors import Unavailable, Unknown
from manul.service.store.blocks import Block, DecisionRow

Kind = Literal[
    "loss", "part", "default", "combined", "late", "import", "rollout", "void", "overdue", "limits", "damaged"
]

# The kinds of events that are outcomes: the model learns these, and each decision has at most one.
OUTCOMES: tuple[Kind, ...] = ("loss", "default", "combined")


class Event(NamedTuple):
    """An event of a decision, or of a whole loop if `decision` is 0. Events are numbered from 1 in each loop.

    `loss` is the outcome, `part` one of several losses that will be combined, `default` and `combined` the outcome at the
    end of the wait, `late` a loss reported after it, and `import` a model that replaces the previous one. `rollout` is what
    the owner does to a rollout, `void` a number that no decision has, so that no rollout waits for its loss, and `overdue` a
    decision that a rollout does not wait for any more. `limits` says what decisions from this one on are expected to spend and keep,
    or the amount of a budget (`engine.loop_limits`). `damaged` is a row that cannot be read. `parts` are those of the outcome as JSON,
    if some were reported (`engine.losses`).
    """

    number: int
    decision: int
    kind: Kind
    loss: float
    time: float
    key: str | None = None
    parts: str | None = None


def numbered(events: Iterable[Event], first: int) -> list[Event]:
    """Events with consecutive numbers, in less than half the time of the constructor."""
    new = tuple.__new__
    return [new(Event, (number, *event[1:])) for number, event in enumerate(events, first)]


# An event with its decision, if it has one that can be read.
Fact = tuple[Event, DecisionRow | None]


class LoopRow(Struct, frozen=True, kw_only=True):
    """A loop as it is stored; `settings` is the JSON it was created with.

    Rollouts that were started by events up to `stopped` were aborted, even if the loop has not learned that yet.
    """

    number: int
    name: str
    settings: bytes
    created: float
    paused: bool
    apprentice: bool
    stopped: int = 0


class Counts(Struct):
    """The totals of a loop; `events` and `numbers` are the highest numbers of events and decisions so far."""

    decisions: int = 0
    outcomes: int = 0
    loss_sum: float = 0.0
    late: int = 0
    defaulted: int = 0
    events: int = 0
    numbers: int = 0
    latest: float = 0.0


class Snapshot(NamedTuple):
    """A model as bytes, the last event it contains, the numbers of outcomes learned and refused, the loop's history, and its
    rollout, empty if there is none."""

    event: int
    model: bytes
    learned: int
    refused: int
    history: bytes = b""
    rollout: bytes = b""


class DownloadPiece(NamedTuple):
    """A piece of a model that was downloaded at a time; `signature` is the SHA-256 of all its `pieces`."""

    signature: str
    place: int
    pieces: int
    time: float
    body: bytes


class StoreFailure(Exception):  # noqa: N818 - not an error of manul but of what it stores to
    """The store is unavailable, because of a full disk for example. The transaction was rolled back."""


DAMAGED = "the store is damaged where it keeps this loop"


class Damaged(Unavailable):
    """What the store has of one loop cannot be read or changed. Others are not affected, unlike by a `StoreFailure`."""

    def __init__(self) -> None:
        super().__init__(
            f"{DAMAGED.capitalize()}. Nothing was changed. Restore a backup, or delete the loop.",
            "loop",
        )


class Collision(Exception):  # noqa: N818 - an event to handle, not a fault
    """The transaction collided with that of another replica and was rolled back; a retry can succeed."""


class LoopGone(Unknown):
    """The loop was deleted; nothing was written for it."""

    def __init__(self) -> None:
        super().__init__("The loop was deleted.", "loop")


class Lookup(NamedTuple):
    """Decisions of a loop whose events will be read: some by the ids of callers, others by their numbers."""

    loop: int
    ids: Sequence[str]
    numbers: Sequence[int]


class State(NamedTuple):
    """The state of a loop that replicas share; `snapshot` is the last event of the newest snapshot, and `numbers` the highest number
    of a decision that is reserved."""

    number: int
    paused: bool
    apprentice: bool
    events: int
    snapshot: int
    has_decisions: bool
    stopped: int
    numbers: int


class Replicas(Protocol):
    """The services on one store. Exactly one of them is the leader, and exactly one learns a loop and ends its waits."""

    def leads(self) -> bool:
        """Whether this replica is the leader, which removes deleted data."""

    def learns(self, loop: int) -> bool:
        """Whether this replica learns a loop."""

    def states(self) -> list[State]:
        """The current state of all loops."""


class Transaction(Protocol):
    """Reads and writes that become durable together.

    A write to a loop that any replica has deleted raises LoopGone, either immediately or at the end of the transaction,
    which is then rolled back.
    """

    def add_loop(self, name: str, settings: bytes, created: float, *, apprentice: bool) -> int | None:
        """Add a loop; returns its number, or None if the name is taken."""

    def change_loop(
        self, loop: int, *, paused: bool | None = None, apprentice: bool | None = None, stopped: int | None = None
    ) -> None:
        """Change the state of a loop."""

    def claim(self, loop: int, ids: Mapping[str, int]) -> dict[str, int]:
        """Assign ids to decision numbers; returns the ids that other decisions already have, with their numbers."""

    def add_block(self, loop: int, block: Block, *, waits: bool = True) -> None:
        """Add decisions; those that wait will be returned by `take_expired`."""

    def numbers(self, loop: int, ids: Sequence[str]) -> list[int | None]:
        """The decision numbers of ids."""

    def decisions(self, loop: int, numbers: Sequence[int]) -> list[DecisionRow | None]:
        """Stored decisions."""

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All events of some decisions, in order; decisions without events are omitted."""

    def prefetch(self, lookups: Sequence[Lookup]) -> None:
        """Read what `numbers`, `decisions` and `events_of` will be asked for, in as few round trips as possible."""

    def add_events(self, loop: int, events: Iterable[Event]) -> list[Event]:
        """Add events; returns them with the numbers they were assigned."""

    def limits_after(self, loop: int, event: int) -> list[int]:
        """The numbers of events of the kind "limits" after an event that other transactions have added; no replica can add events
        until this one ends."""

    def take_expired(self, loop: int, before: float, limit: int) -> list[DecisionRow]:
        """Decisions made before a time that this method has not returned before, the oldest first.

        They count as returned once the transaction is durable.
        """

    def add_model(self, loop: int, event: int, model: bytes) -> None:
        """Add an imported model, or what the owner does to a rollout, under its event."""

    def add_piece(self, loop: int, event: int, place: int, piece: bytes) -> None:
        """Add a piece of a large model; `add_snapshot` makes it part of a snapshot."""

    def add_snapshot(self, loop: int, snapshot: Snapshot, *, keep: int, pieces: int = 0) -> None:
        """Add a snapshot, whose model is in `pieces` that were added before if there are any, and delete all but the newest
        `keep`."""

    def add_download(self, loop: int, piece: DownloadPiece) -> None:
        """Add a piece of a model that is downloaded; one that is there already is left as it is."""

    def trim_downloads(self, loop: int, *, keep: int, most_bytes: int) -> None:
        """Remove the oldest downloads, so that at most `keep` are left with at most `most_bytes`, but always the newest."""

    def forget(self, loop: int, blocks: Sequence[Block]) -> None:
        """Remove blocks with the ids and events of their decisions. Totals do not change; missing blocks are ignored."""

    def delete_loop(self, loop: int) -> None:
        """Remove a loop immediately; `purge` removes its data later. Its number is not reused."""

    def purge(self, limit: int) -> bool:
        """Remove up to `limit` rows of deleted loops; returns whether more are left."""


class Store(Protocol):
    """A durable store. Transactions come from one thread; reads may come from any.

    Every call except `reserve` may wait for the store, for a few seconds at most, and then raises StoreFailure. One about a
    loop whose data are damaged raises Damaged. `replicas` is None if only one service can use the store; `damaged` are the
    numbers of loops whose data were found to be damaged, and `lost` says why nothing may be written any more.
    """

    damaged: set[int]
    lost: str | None

    @property
    def replicas(self) -> Replicas | None:
        """The services on this store."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Everything inside is durable after the block; if it raises, everything is rolled back."""

    def transaction_beside(self) -> AbstractContextManager[Transaction] | None:
        """A transaction that those of `transaction` do not wait for, for one thread; None if the store has no such."""

    def reserve(self, loop: int, count: int) -> int | None:
        """Reserve consecutive decision numbers; returns the first, or None if too few are at hand.

        It never waits. After None, call `refill` in another thread.
        """

    def refill(self, loop: int, count: int) -> None:
        """Fetch decision numbers until at least `count` are at hand; it may wait for the store."""

    def keep_numbers(self, loop: int, *, ahead: bool, left: bool = True) -> list[range]:
        """Reserve numbers ahead of decisions, or none, so that numbers are in the order of decisions.

        Returns numbers that no decision gets: those that were at hand when reserving ahead ended and, unless those that are `left` stay
        at hand, those of requests that needed fewer.
        """

    def loops(self) -> list[LoopRow]:
        """All loops in the order of their creation."""

    def counts(self, loop: int) -> Counts:
        """The totals of a loop."""

    def first_decision(self, loop: int) -> DecisionRow | None:
        """The first decision, whose context determines the shape of contexts."""

    def events(self, loop: int, after: int, limit: int) -> list[tuple[Event, DecisionRow | None]]:
        """The next events in order, each with its decision."""

    def blocks(self, loop: int, after: int, limit: int) -> list[Block]:
        """The next blocks of decisions, the oldest first; `after` is the last number of the block before."""

    def block_with(self, loop: int, number: int) -> Block | None:
        """The block that contains a decision, or the last one before it."""

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All durable events of some decisions, in order; decisions without events are omitted."""

    def model(self, loop: int, event: int) -> bytes:
        """What `add_model` added; empty if it is missing."""

    def downloads(self, loop: int) -> list[str]:
        """The signatures of the models that were downloaded, the newest first."""

    def download(self, loop: int, signature: str) -> bytes | None:
        """The model that was downloaded under a signature; None if it is not known."""

    def snapshot(self, loop: int, before: int | None = None) -> Snapshot | None:
        """The newest snapshot, or the newest one that contains only events before a number."""

    def snapshots(self, loop: int) -> list[int]:
        """The last events of all snapshots, newest first."""

    def free_bytes(self) -> int | None:
        """Free space on the disk of the store; None if that is not known here."""

    def close(self) -> None:
        """Close the store."""
