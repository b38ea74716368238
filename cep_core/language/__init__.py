"""The query language: text in, checked queries out.

Enters: query texts, catalogues, and the classes with their attributes. Leaves: `CheckedQuery` values, canonical texts,
and, for anything that the contract does not allow, one QueryError that shows every problem with its place.
"""

from cep_core.language.format import format_query
from cep_core.language.parser import parse

__all__ = ["format_query", "parse"]
