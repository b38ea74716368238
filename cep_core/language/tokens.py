"""From text to tokens, and the cursor that the parser moves over them.

Enters: a query's text. Leaves: a `Cursor` over its tokens, each with its place.
Always holds: a token's `word` is its text in upper case if it is a plain word (so keywords are case-insensitive), and
empty otherwise (so a backquoted name is never a keyword). Comments and spaces leave no token.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple, NoReturn

from cep_core.language.algebra import NOWHERE, At
from cep_core.language.problems import Refusal, nearest
from cep_core.language.times import LONGEST_US, UNIT_NAMES, duration_us, format_duration

CLAUSES = ("PATTERN", "WHERE", "WITHIN", "SELECT", "CONSUME", "TIES", "RETURN")
RESERVED = frozenset(
    (
        *(*CLAUSES, "SEQ", "AND", "OR", "ANY", "AT", "EVERY", "AFTER", "TIMES_EQ", "TIMES_DF"),
        *("NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE", "AS", "FORALL"),
    )
)
DEEPEST = 60  # levels of nesting that a query may have: far more than a person writes, far less than Python's stack

_TOKEN = re.compile(
    r"""(?:\s++|--[^\n]*+)*+           # spaces and comments before it; possessive, so that they are read once
    (?:(?P<name>[^\W\d]\w*)
    |(?P<op>\.\.|<=|>=|!=|<>|==|[-=<>+*/%()\[\]{},.!])
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<stop>))                     # nothing of these: the text ends here, or has a character without a meaning""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[^\W\d]\w*")


class Token(NamedTuple):
    kind: str  # name, quoted, number, string, op, end
    text: str  # as meant: without quotes, with doubled quotes made single
    word: str
    offset: int


class Cursor:
    """The tokens of one query and how far the parser has come."""

    __slots__ = ("_at", "_at_offset", "depth", "index", "starts", "text", "token", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        start = text.find("\n")
        while start >= 0:
            self.starts.append(start + 1)
            start = text.find("\n", start + 1)
        self.tokens = self._tokens()
        self.index = 0
        self.depth = 0
        self._at_offset, self._at = -1, NOWHERE
        self.token = self.tokens[0]

    def _tokens(self) -> list[Token]:
        text, tokens = self.text, []
        new = tuple.__new__  # a NamedTuple's own constructor takes twice the time
        for found in _TOKEN.finditer(text):
            kind = found.lastgroup or ""
            behind = found.end()
            if kind == "stop":
                if behind < len(text):
                    self._refuse_character(behind)
                break
            piece = found[kind]
            offset = behind - len(piece)
            if kind == "name":
                tokens.append(new(Token, ("name", piece, piece.upper(), offset)))
            elif kind == "op" or kind == "number":
                tokens.append(new(Token, (kind, piece, "", offset)))
            elif kind == "string":
                tokens.append(Token("string", piece[1:-1].replace("''", "'"), "", offset))
            else:
                tokens.append(Token("quoted", piece[1:-1].replace("``", "`"), "", offset))
        tokens.append(Token("end", "", "", len(text.rstrip())))
        return tokens

    def _refuse_character(self, offset: int) -> NoReturn:
        character = self.text[offset]
        advice = {
            "'": "this text has no closing quote; write '' for a quote inside it",
            "`": "this name has no closing backquote",
            '"': "double quotes have no meaning; "
            "write texts in single quotes and names with other characters in backquotes",
            ";": "a semicolon has no meaning; a catalogue separates queries by their ids",
        }.get(character, f"the character {character!r} has no meaning here")
        raise Refusal(advice, self.place(offset))

    def place(self, offset: int) -> At:
        line = bisect_right(self.starts, offset)
        return At(line, offset - self.starts[line - 1] + 1)

    def at(self) -> At:
        """The place of the current token. Every level of the descent asks for it, so the last answer is kept."""
        offset = self.token.offset
        if offset != self._at_offset:
            self._at_offset, self._at = offset, self.place(offset)
        return self._at

    def advance(self) -> Token:
        """The current token; the cursor moves to the next."""
        token = self.token
        if token.kind != "end":
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def peek(self) -> Token:
        """The token after the current one."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def is_op(self, op: str) -> bool:
        return self.token.kind == "op" and self.token.text == op

    def take_op(self, op: str) -> bool:
        if self.token.kind == "op" and self.token.text == op:
            self.advance()
            return True
        return False

    def take_word(self, word: str) -> bool:
        if self.token.word == word:
            self.advance()
            return True
        return False

    def expect_op(self, op: str, after: str) -> None:
        if not self.take_op(op):
            self.refuse(f'expected "{op}" {after}, found {self.found()}')

    def expect_word(self, word: str, after: str) -> None:
        if not self.take_word(word):
            self.refuse(f"expected {word} {after}, found {self.found()}" + self._near((word,)))

    def expect_name(self, what: str, reserved_too: bool = False) -> str:
        """A name: a plain word that is not reserved (unless allowed here), or anything in backquotes."""
        token = self.token
        if token.kind == "quoted" or (token.kind == "name" and (reserved_too or token.word not in RESERVED)):
            return self.advance().text
        hint = "; a reserved word needs backquotes to be a name" if token.word in RESERVED else ""
        self.refuse(f"expected {what}, found {self.found()}{hint}")

    def expect_count(self, what: str) -> int:
        token = self.token
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > 9:
            self.refuse(f"expected {what}, a whole number below a thousand million, found {self.found()}")
        return int(self.advance().text)

    def expect_one_of(self, words: tuple[str, ...], what: str) -> str:
        """One of some words, in any case; leaves it in lower case."""
        if self.token.word.lower() not in words or not self.token.word:
            self.refuse(f"expected {what} ({', '.join(words)}), found {self.found()}" + self._near(words))
        return self.advance().word.lower()

    def expect_duration(self, what: str) -> int:
        at = self.at()
        if self.token.kind != "number":
            self.refuse(f"expected {what}, such as 5 min or 1.5 hours, found {self.found()}")
        number = self.advance().text
        unit = self.token.text
        if self.token.kind != "name" or unit.lower() not in UNIT_NAMES:
            self.refuse(
                f"expected a unit of time (ms, s, min, hours, days, weeks), found {self.found()}"
                + self._near(tuple(UNIT_NAMES))
            )
        self.advance()
        duration = duration_us(number, unit)
        if duration is None:
            longest = format_duration(LONGEST_US)
            message = f"{_short(number)} {unit} is not a whole number of microseconds, or more than {longest}"
            raise Refusal(message, at)
        return duration

    def found(self) -> str:
        """The current token as an error message calls it."""
        token = self.token
        if token.kind == "end":
            return "the end of the query"
        shown = _short(token.text)
        return f"the text '{shown}'" if token.kind == "string" else f'"{shown}"'

    def _near(self, words: tuple[str, ...]) -> str:
        near = nearest(self.token.text, words) if self.token.kind == "name" else None
        return "" if near is None else f'; did you mean "{near}"?'

    def refuse(self, message: str) -> NoReturn:
        """Stops, at the current token."""
        raise self.refusal(message)

    def refusal(self, message: str) -> Refusal:
        return Refusal(message, self.at())

    def deeper(self) -> None:
        """One level of nesting more; leave it with `depth -= 1`."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"nested more than {DEEPEST} levels deep; write a part of it as a query of its own")


def _short(text: str) -> str:
    """A text as a message can hold it."""
    return text if len(text) <= 60 else text[:60] + "..."


def quote_name(name: str, reserved_too: bool = False) -> str:
    """The name as the language writes it: plain where it can be, else in backquotes. Behind a point a reserved word
    can be plain too."""
    if _PLAIN.fullmatch(name) and (reserved_too or name.upper() not in RESERVED):
        return name
    return "`" + name.replace("`", "``") + "`"
