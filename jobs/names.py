"""The nearest valid name, for messages about a name that is not known.

Enters: a name and the valid ones. Leaves: the tail of an error message, empty where nothing is near.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the empty string.

    >>> did_you_mean("categroy", ["category", "price"])
    "; did you mean 'category'?"
    >>> did_you_mean("zzz", ["category"])
    ''
    """
    by_folded = {candidate.lower(): candidate for candidate in sorted(valid)}
    near = get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return f"; did you mean {by_folded[near[0]]!r}?" if near else ""


def or_list(valid: Iterable[str], limit: int = 12) -> str:
    """`a, b, c`; a long list is cut and says how long it is.

    >>> or_list(["b", "a"])
    'a, b'
    """
    names = sorted(valid)
    if len(names) <= limit:
        return ", ".join(names)
    return ", ".join(names[:limit]) + f", ... ({len(names)} in all)"
