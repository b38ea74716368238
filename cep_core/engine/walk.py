"""The shared walk: all simple queries over one store in one pass.

Enters: the store (`Ordered`), the symbols that elements stand for, a `Network` and the range of detection times.
Leaves: chunks of `Answers`, never larger than asked for.
Always holds: an answer is found once, at its completing event, by going back through that event's window. Where the
window holds few events, they are looked at one by one and the network says who wants them; where it holds many more
than the node has children, each child's own events are found in its symbol's list instead (SASE 4: active instance
stacks), so the cost follows the answers and not the window. `recent` goes from the latest event back and enters a
node again only if that can bring something new; what it would discard is not enumerated. A single event with more
answers than a chunk holds is resumed by counting, so memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cep_core.engine.network import Network
from cep_core.engine.order import Ordered
from cep_core.engine.output import Answers
from cep_core.engine.steps import descend, expand_items, reach, symbol_lists
from cep_core.errors import LimitError

CHUNK = 1 << 19


@dataclass(frozen=True)
class Symbol:
    """What an element stands for. classes: codes of Events. mask: uint8[m] by place in the store (1 keeps), or None."""

    classes: tuple[int, ...]
    mask: np.ndarray | None = None


@dataclass(frozen=True)
class Items:
    """The store as symbols: one item for each (event, symbol), in event order. k items.

    row int32[k]: index into Events. start, end int64[k]; symbol int32[k]; offsets int64[p+1].
    before int32[k]: the last item that may stand before this one (networks differ in what that means).
    lists int32[k], list_offsets int64[symbols+1]: the items of each symbol.
    """

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    symbol: np.ndarray
    offsets: np.ndarray
    lists: np.ndarray
    list_offsets: np.ndarray


def items(store: Ordered, symbols: Sequence[Symbol]) -> Items:
    """Events that no symbol takes are left out; where each class has one symbol and no filter, nothing is copied."""
    classes = 1 + max(
        [int(store.cls.max(initial=-1)), *(code for symbol in symbols for code in symbol.classes)], default=0
    )
    of_class: list[list[int]] = [[] for _ in range(classes)]
    for number, symbol in enumerate(symbols):
        for code in symbol.classes:
            of_class[code].append(number)
    row, start, end, offsets = store.row, store.start, store.end, store.offsets
    if all(len(numbers) == 1 for numbers in of_class) and all(symbol.mask is None for symbol in symbols):
        table = np.array([numbers[0] for numbers in of_class], np.int32)
        symbol_of = store.cls if (table == np.arange(classes)).all() else table[store.cls]
    else:
        masks = [symbol.mask for symbol in symbols if symbol.mask is not None]
        mask_of = np.cumsum([symbol.mask is not None for symbol in symbols]) - 1
        mask_of[[symbol.mask is None for symbol in symbols]] = -1
        stacked = np.stack(masks).astype(np.uint8) if masks else np.empty((0, 0), np.uint8)
        places, symbol_of, offsets = expand_items(
            store.cls,
            offsets,
            np.cumsum([0, *map(len, of_class)]).astype(np.int64),
            np.array([number for numbers in of_class for number in numbers], np.int32),
            mask_of.astype(np.int64),
            stacked,
        )
        row, end = row[places], end[places]
        start = end if store.points else start[places]
    lists = np.empty(len(symbol_of), np.int32)
    list_offsets = symbol_lists(symbol_of, len(symbols), lists)
    for array in (row, start, end, symbol_of, offsets):
        array.flags.writeable = False
    return Items(row, start, end, symbol_of, offsets, lists, list_offsets)


def walk(
    events: Items,
    network: Network,
    lo_us: int,
    hi_us: int,
    ids: Sequence[str],
    limit: np.ndarray | None = None,
    chunk: int = CHUNK,
    names: Callable[[], Sequence[str]] = lambda: (),
) -> Iterator[Answers]:
    """Matches whose completing event ends in [lo_us, hi_us). limit int64[queries]: most answers per query and
    partition; names: what the partitions are called, for errors."""
    points = events.start is events.end
    before = np.empty(len(events.row), np.int32)
    reach(events.offsets, events.row, events.start, events.end, _mode(network), before)
    limits = np.full(network.queries, np.iinfo(np.int64).max) if limit is None else np.asarray(limit, np.int64)
    counted, part_of = np.zeros(network.queries, np.int64), np.full(network.queries, -1, np.int64)
    first, skip = 0, 0
    while True:
        query, rows = np.empty(chunk, np.int32), np.empty((chunk, network.slots), np.int32)
        found, first, skip, over, part = descend(
            events.row,
            events.start,
            events.end,
            events.symbol,
            events.offsets,
            before,
            events.lists,
            events.list_offsets,
            network.root,
            network.inner,
            network.child,
            network.kids,
            network.kid_symbol,
            network.kid_node,
            network.wants,
            network.onward,
            network.window,
            network.ends,
            network.end_query,
            network.end_window,
            network.end_slot,
            network.kind == "and",
            network.recent,
            points,
            lo_us,
            hi_us,
            first,
            skip,
            query,
            rows,
            limits,
            counted,
            part_of,
        )
        if over >= 0:
            called = names()
            raise LimitError(
                f"query {ids[over]}: more than {limits[over]} answers in partition {called[part] if called else part}; "
                f"narrow its conditions or its WITHIN, use SELECT recent, or raise its limit on answers per partition"
            )
        if found:
            yield Answers(query[:found], rows[:found])
        if first < 0:
            return


def _mode(network: Network) -> int:
    """How `reach` reads precedence: 0 strictly before, 1 TIES ordered, 2 any earlier event (AND)."""
    if network.kind == "and":
        return 2
    return 1 if network.ordered else 0
