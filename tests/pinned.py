"""Cases that once broke a law, kept as data: a random generator may change, what it once found may not be lost.

Enters: tests/engine/pinned.json, one case a line. Leaves: `RandomCase`s.
`python -m tests.fuzz --cases 1 --seed N --pin` adds the smallest case of a failure.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.random_cases import RandomCase

FILE = Path(__file__).parent / "engine" / "pinned.json"


def pinned() -> list[RandomCase]:
    return [_loaded(json.loads(line)) for line in FILE.read_text(encoding="utf-8").splitlines() if line]


def pin(case: RandomCase) -> None:
    """Appends a case to the file."""
    names = ("seed", "queries", "schema", "start", "end", "events")
    values = {name: getattr(case, name) for name in names}
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(values, default=lambda moment: moment.isoformat()) + "\n")


def _loaded(values: dict[str, Any]) -> RandomCase:
    for event in values["events"]:
        kinds = values["schema"][event["event_class"]]
        for name, value in event["attributes"].items():
            if kinds.get(name) == "timestamp" and value is not None:
                event["attributes"][name] = datetime.fromisoformat(value)
    events = tuple(values.pop("events"))
    return RandomCase(events=events, features=frozenset(), **values)
