"""The demo's raw tables as events, by pandas alone: what conf/events says, written a second time and without Spark.

Enters: worlds. Leaves: event rows as dicts, in the form that tests/naive.py reads, and as one Arrow table for cep_core.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
import pyarrow as pa

from jobs.demo.world import World, hashed_id, json_time

Event = dict[str, Any]
KINDS = {
    "cinema": "CinemaPayment",
    "restaurant": "RestaurantPayment",
    "bar": "BarPayment",
    "northwind": "NorthwindPayment",
    "alder": "AlderPayment",
    "fjord": "FjordPayment",
    "online": "OnlinePayment",
    "grocery": "GroceryPayment",
}
ZONES = {"shelf": "ShelfReading", "counter": "CounterReading", "exit": "ExitReading"}


def events_of(worlds: Iterable[World]) -> list[Event]:
    """All events of these worlds, duplicates left in."""
    frames = {table.name: _frame(table.rows) for world in worlds for table in world.tables}
    found: list[Event] = []
    for name, frame in frames.items():
        if name in _READERS:
            found += _READERS[name](frame, frames)
    return found


def as_table(events: list[Event]) -> pa.Table:
    """The events as cep_core.mine takes them: one column per attribute."""
    fixed = {
        "event_id": pa.array([e["event_id"] for e in events], pa.string()),
        "source": pa.array([e["source"] for e in events], pa.string()),
        "event_class": pa.array([e["event_class"] for e in events], pa.string()),
        "start_ts": pa.array([e["start_ts"] for e in events], pa.int64()),
        "end_ts": pa.array([e["end_ts"] for e in events], pa.int64()),
        "tie": pa.array([e.get("tie") for e in events], pa.int64()),
    }
    names = sorted({name for event in events for name in event["attributes"]})
    return pa.table(fixed | {name: pa.array([e["attributes"].get(name) for e in events]) for name in names})


def _frame(table: pa.Table) -> pd.DataFrame:
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    for name in times:
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.int64()))
    return table.to_pandas()


def _event(event_class: str, event_id: str, source: str, at: int, end: int | None = None, tie: int | None = None,
           **attributes: Any) -> Event:  # fmt: skip
    return {
        "event_class": event_class,
        "event_id": event_id,
        "source": source,
        "start_ts": int(at),
        "end_ts": int(at if end is None else end),
        "tie": tie,
        "attributes": attributes,
    }


def _readings(frame: pd.DataFrame, _: object) -> list[Event]:
    seen = frame[frame.zone.isin(list(ZONES)) & frame.tag_id.notna()]
    return [
        _event(ZONES[r.zone], r.reading_id, r.tag_id, r.read_at, product=r.product, category=r.category,
               reader=r.reader, **({"shelf": int(r.shelf_no)} if r.zone == "shelf" else {}))
        for r in seen.itertuples()
    ]  # fmt: skip


def _payments(frame: pd.DataFrame, frames: dict[str, pd.DataFrame]) -> list[Event]:
    joined = frame.merge(frames["merchants"], on="merchant_id")
    kinds = joined.brand.fillna(joined.category)
    return [
        _event(KINDS[kind], p.payment_id, p.card_no, p.paid_at, amount=float(p.amount), merchant=p.merchant)
        for p, kind in zip(joined.itertuples(), kinds, strict=True)
        if kind in KINDS
    ]


def _intakes(frame: pd.DataFrame, _: object) -> list[Event]:
    return [
        _event("MedicineTaken", hashed_id("MedicineTaken", t.patient, t.medicine, json_time(t.taken_at)), t.patient,
               t.taken_at, medicine=t.medicine, dose=int(t.dose_mg))
        for t in frame.itertuples()
    ]  # fmt: skip


def _prescriptions(frame: pd.DataFrame, _: object) -> list[Event]:
    return [
        _event("Prescribed", p.prescription_id, p.patient, p.issued_at, medicine=p.medicine) for p in frame.itertuples()
    ]


def _packets(frame: pd.DataFrame, _: object) -> list[Event]:
    classes = {"SYN": "Syn", "ACK": "Ack"}
    return [
        _event(classes[p.flag], p.packet_id, p.server, p.captured_at, connection=p.connection, client=p.client,
               port=int(p.port))
        for p in frame[frame.flag.isin(list(classes))].itertuples()
    ]  # fmt: skip


def _traffic(frame: pd.DataFrame, _: object) -> list[Event]:
    found = []
    for at, nodes in frame.groupby("measured_at"):
        total = nodes.bytes_in + nodes.bytes_out
        stamp = pd.Timestamp(at, unit="us").strftime("%Y%m%dT%H%M")
        for level, event_class, members in (
            ("idle", "MostlyIdle", int((total < 125_000 * 60).sum())),
            ("active", "MostlyActive", int((total > 500_000 * 60).sum())),
        ):
            if members * 2 > len(nodes):
                found.append(_event(event_class, f"{level}-{stamp}", "network", at, members=members, nodes=len(nodes)))
    return found


def _releases(frame: pd.DataFrame, _: object) -> list[Event]:
    return [
        _event("ProductRelease", f"release:{r.model}", r.model, r.released_at, model=r.model, maker=r.maker)
        for r in frame.itertuples()
    ]


def _reviews(frame: pd.DataFrame, _: object) -> list[Event]:
    return [
        _event("ProductReview", r.review_id, r.model, r.posted_at, model=r.model, rating=float(r.rating))
        for r in frame.itertuples()
    ]


def _log(frame: pd.DataFrame, _: object) -> list[Event]:
    classes = {"send": "Send", "receive": "Receive"}
    return [
        _event(classes[m.kind], f"line-{m.line_no}", m.process, m.logged_at, tie=int(m.line_no), process=m.process,
               message=m.message)
        for m in frame.itertuples()
    ]  # fmt: skip


def _runs(frame: pd.DataFrame, _: object) -> list[Event]:
    return [
        _event("JobRun", r.run_id, r.host, r.started_at, end=r.finished_at, job=r.job, status=r.status)
        for r in frame.itertuples()
    ]


def _detections(frame: pd.DataFrame, _: object) -> list[Event]:
    return [
        _event("PersonDetected", hashed_id("PersonDetected", int(d.camera), d.person_id, json_time(d.seen_at)),
               d.person_id, d.seen_at, camera=int(d.camera), x=float(d.loc_x), y=float(d.loc_y))
        for d in frame.itertuples()
    ]  # fmt: skip


_READERS = {
    "rfid_readings": _readings,
    "card_payments": _payments,
    "medicine_intakes": _intakes,
    "prescriptions": _prescriptions,
    "packets": _packets,
    "node_traffic": _traffic,
    "product_releases": _releases,
    "product_reviews": _reviews,
    "process_log": _log,
    "job_runs": _runs,
    "person_detections": _detections,
}
