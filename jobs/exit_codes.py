"""Exit codes of the command line: what a scheduler can act on.

Enters: an error. Leaves: its code. `hindsight --help` shows this table.
"""

from __future__ import annotations

from cep_core.errors import DeclarationError, PublishError, QualityError, QueryError, StateError

OK = 0
FAILED = 1
REFUSED = 2
QUALITY = 3
CONFLICT = 4
STATE = 5
INTERRUPTED = 130

# Trying the same again gives the same: a scheduler need not.
FINAL = frozenset({REFUSED, QUALITY, CONFLICT, STATE})

MEANING = {
    OK: "done",
    FAILED: "failed while running (an absent or unreadable table, bad events, a limit): trying again may help",
    REFUSED: "refused before running: wrong usage, setting, declaration or query; trying again cannot help",
    QUALITY: "a data-quality check of error level failed; nothing was published, staging is kept",
    CONFLICT: "not published: another run over the same range won; the result table is as that run left it",
    STATE: "the state of a CONSUME query is missing: the message says which earlier range must run first",
    INTERRUPTED: "interrupted",
}


def exit_code(error: BaseException) -> int:
    """The code of an error that ended a command."""
    match error:
        case QueryError() | DeclarationError():
            return REFUSED
        case QualityError():
            return QUALITY
        case PublishError():
            return CONFLICT
        case StateError():
            return STATE
        case KeyboardInterrupt():
            return INTERRUPTED
        case _:
            return FAILED
