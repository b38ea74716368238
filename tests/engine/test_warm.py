"""The warming-up mines for real."""

from __future__ import annotations

import pytest

from cep_core.warm import warm

pytestmark = pytest.mark.core


def test_warming_finds_matches() -> None:
    assert warm() > 10
