"""The query language: text in, checked queries out.

Enters: query texts, catalogues, and the classes with their attributes. Leaves: `CheckedQuery` values, canonical texts,
and, for anything that the contract does not allow, one QueryError that shows every problem with its place.
"""

from cep_core.language.catalogue import Entry, load_catalogue
from cep_core.language.check import check
from cep_core.language.checked import CheckedQuery, Schema
from cep_core.language.format import format_query
from cep_core.language.parser import parse

__all__ = ["CheckedQuery", "Entry", "Schema", "check", "format_query", "load_catalogue", "parse"]
