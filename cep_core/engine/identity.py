"""What a match is called: a documented 128-bit hash, the same on every machine, in every run and on every plan.

Enters: a query id and, per bound element in pattern order, its name and its members' event ids in event order.
Leaves: 32 hex digits.

All arithmetic is on unsigned 64-bit integers modulo 2^64. There are two lanes; lane L has the seed S_L and the odd
factor K_L.
- step_L(state, word): x = (state ^ word) * K_L; x ^ (x >> 32).
- mix(x): x = (x ^ x>>30) * FINISH_1; x = (x ^ x>>27) * FINISH_2; x ^ x>>31.
- string_L(bytes): state = S_L; step over the UTF-8 bytes as little-endian words of 8, the last one padded with zeros;
  mix(state ^ number of bytes). For a fixed length this is one-to-one in every single word.
- match_L: state = S_L; step with string_L(query id); for each element step with string_L(name), with the number of its
  members, and with string_L(id) of each member; mix(state ^ number of members of all elements).
The id is lane 1 then lane 2, each as 16 lower-case hex digits. The counts make the steps readable in one way only: a
member can not be taken for an element's name, nor slip from one element to the next. Elements without members are
left out. The kernels of text.py and output.py compute the same; this module is their definition in plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence

SEED_1, SEED_2 = 0x48696E6473696768, 0x7420706174746572
LANE_1, LANE_2 = 0xC2A63E6F8F1BBCDD, 0x9B97F4A7D1A3F56B
FINISH_1, FINISH_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

_MASK = (1 << 64) - 1


def match_id(query_id: str, elements: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The id of the match of this query with these members.

    >>> match_id("theft", [("s", ["e1"]), ("x", ["e2"])])
    '4290f637956aa653a44dbff97872496b'
    """
    lanes = []
    for seed, factor in ((SEED_1, LANE_1), (SEED_2, LANE_2)):
        state = _step(seed, factor, string_hash(query_id, seed, factor))
        total = 0
        for name, ids in elements:
            if not ids:
                continue
            total += len(ids)
            state = _step(state, factor, string_hash(name, seed, factor))
            state = _step(state, factor, len(ids))
            for event_id in ids:
                state = _step(state, factor, string_hash(event_id, seed, factor))
        lanes.append(_mix(state ^ total))
    return f"{lanes[0]:016x}{lanes[1]:016x}"


def string_hash(value: str, seed: int, factor: int) -> int:
    data = value.encode()
    state = seed
    for place in range(0, len(data), 8):
        state = _step(state, factor, int.from_bytes(data[place : place + 8], "little"))
    return _mix(state ^ len(data))


def _step(state: int, factor: int, word: int) -> int:
    state = ((state ^ word) * factor) & _MASK
    return state ^ (state >> 32)


def _mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * FINISH_1) & _MASK
    value = ((value ^ (value >> 27)) * FINISH_2) & _MASK
    return value ^ (value >> 31)
