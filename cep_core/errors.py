"""Every error that Hindsight raises on purpose: one root, one class per stage.

A message says what is wrong, where, and what to do; nobody should need a traceback to act on it.
"""

from __future__ import annotations


class HindsightError(Exception):
    """The root. `except HindsightError` catches all that Hindsight refuses on purpose."""


class QueryError(HindsightError):
    """A query, or a catalogue of queries, that the language contract does not allow."""


class DeclarationError(HindsightError):
    """A declaration of primitive events, or a setting, that is wrong or does not fit its table."""


class EventError(HindsightError):
    """Events that cannot be mined: a missing column, a null time, rows that share an id and differ."""


class LimitError(HindsightError):
    """A query with more answers than its limit; nothing is ever cut off silently."""


class EvaluationError(HindsightError):
    """A value of a match that cannot be kept exactly: a whole number in RETURN that does not fit 64 bits."""


class StateError(HindsightError):
    """A CONSUME query whose state from the run before is missing or does not fit."""


class TableError(HindsightError):
    """A table that is absent, unreadable or not as its contract says."""


class PublishError(HindsightError):
    """Matches that could not be published; the result table is as it was."""


class QualityError(HindsightError):
    """A data-quality check of error level that failed; staging is kept for inspection."""
