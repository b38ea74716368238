"""SASE: Query 1's walk-through (section 3.1, figure 1) and the queries of section 2.3."""

import pytest

from tests.harness import EVALUATORS, SECOND, case, check

pytestmark = [pytest.mark.core, pytest.mark.parametrize("evaluator", EVALUATORS)]
HOUR = 3600 * SECOND

# The figure itself is not in the text that we have; this stream is ours, made to give every count that the text names:
# seven sequences of which d9 completes three, a1 and a4 on the stack before b6, three left by selection, two by the
# window, one by negation.
STREAM = (
    "A1{attr1=1,attr2=1,attr3=one,attr4=1} C2{attr1=1,attr2=1} B3{attr1=1,attr2=1} "
    "A4{attr1=2,attr2=1,attr3=one,attr4=5} D5{attr1=1,attr2=1,attr4=9} B6{attr1=2,attr2=1} "
    "D7{attr1=1,attr2=1,attr4=9} C8{attr1=2,attr2=1} D9{attr1=2,attr2=1,attr4=9}"
)
WHERE = "WHERE [attr1, attr2] AND x1.attr3 = 'one' AND x1.attr4 < x4.attr4"
# The paper wants the span *less than* T = 6; WITHIN includes its end, so over whole seconds that is WITHIN 5 s.
WINDOW = "WITHIN 5 s"


def test_query_1_sequence_scan_and_construction(evaluator: str) -> None:
    """Seven event sequences of the sub-sequence type (A, B, D)."""
    expected = ["x1=A1 x2=B3 x4=D5"]
    expected += [f"x1={a} x2={b} x4={d}" for d in ("D7", "D9") for a, b in (("A1", "B3"), ("A1", "B6"), ("A4", "B6"))]
    assert len(expected) == 7
    check(evaluator, case("SSC", STREAM, "PATTERN SEQ(A x1, B x2, D x4) WITHIN 1 hour", *expected))


def test_query_1_selection_window_and_negation(evaluator: str) -> None:
    """Three of the seven pass the selection, the window drops the second of them, negation the second that is left."""
    positive, whole = "PATTERN SEQ(A x1, B x2, D x4)", "PATTERN SEQ(A x1, B x2, !C x3, D x4)"
    first, second, third = "x1=A1 x2=B3 x4=D5", "x1=A1 x2=B3 x4=D7", "x1=A4 x2=B6 x4=D9"
    check(evaluator, case("selection", STREAM, f"{positive} {WHERE} WITHIN 1 hour", first, second, third))
    check(evaluator, case("window", STREAM, f"{positive} {WHERE} {WINDOW}", first, third))
    check(evaluator, case("negation", STREAM, f"{whole} {WHERE} {WINDOW}", first))
    other_c = STREAM.replace("C8{attr1=2", "C8{attr1=1")
    check(evaluator, case("a c of another attr1", other_c, f"{whole} {WHERE} {WINDOW}", first, third))
    check(evaluator, case("attr3", STREAM.replace("=one", "=two"), f"{whole} {WHERE} {WINDOW}"))
    check(evaluator, case("attr4", STREAM.replace("attr4=9", "attr4=1"), f"{whole} {WHERE} {WINDOW}"))


def test_shoplifting(evaluator: str) -> None:
    """Item 1 leaves unpaid, item 2 is paid, item 3 takes longer than three hours."""
    events = (
        "Shelf1{id=1} Shelf1.1{id=2} Shelf1.2{id=3} Counter2{id=2} Exit3{id=1} Exit3.1{id=2} Exit4.5{id=3} "
        "Counter3.5{id=1} Shelf5{id=2} Exit6{id=2}"
    )
    query = "PATTERN SEQ(Shelf s, !Counter c, Exit x) WHERE [id] WITHIN 3 hours"
    expected = ("s=Shelf1 x=Exit3 @ 3", "s=Shelf5 x=Exit6 @ 6")
    check(evaluator, case("shoplifting", events, query, *expected, unit=HOUR))
    chained = "PATTERN SEQ(Shelf s, !Counter c, Exit x) WHERE s.id = c.id AND s.id = x.id WITHIN 3 hours"
    check(evaluator, case("as parameterized predicates", events, chained, *expected, unit=HOUR))


def test_misplaced_inventory(evaluator: str) -> None:
    """Postponed by the window; a counter reading declares no shelf_id, so it negates whatever shelf it is."""
    query = (
        "PATTERN SEQ(Shelf a, Shelf b, !ANY(Counter, Shelf) c) WHERE [id] AND a.shelf_id != b.shelf_id "
        "AND a.shelf_id = c.shelf_id WITHIN 1 hour"
    )
    schema = {"Shelf": {"id": "int", "shelf_id": "int"}, "Counter": {"id": "int"}}
    events = (
        "Shelf0{id=1,shelf_id=7} Shelf0.1{id=1,shelf_id=8} "  # item 1 stays on the wrong shelf
        "Shelf0.2{id=2,shelf_id=7} Shelf0.3{id=2,shelf_id=8} Counter0.9{id=2} "  # item 2 is bought
        "Shelf0.4{id=3,shelf_id=7} Shelf0.5{id=3,shelf_id=8} Shelf0.8{id=3,shelf_id=7} "  # item 3 is put back
        "Shelf2{id=4,shelf_id=7} Shelf2.2{id=4,shelf_id=8} Counter3.5{id=4}"  # item 4 is bought too late
    )
    expected = ("a=Shelf0 b=Shelf0.1 @ 1", "a=Shelf2 b=Shelf2.2 @ 3", "a=Shelf0.5 b=Shelf0.8 @ 1.5")
    check(evaluator, case("misplaced", events, query, *expected, schema=schema, unit=HOUR))


def test_overdose(evaluator: str) -> None:
    query = (
        "PATTERN SEQ(MedicineTaken a, MedicineTaken b) WHERE [name = 'John'] AND [medicine = 'Antibiotics'] "
        "AND a.amount + b.amount > 1000 WITHIN 4 hours"
    )
    john, mary = "name=John,medicine=Antibiotics,amount=", "name=Mary,medicine=Antibiotics,amount="
    events = (
        f"MedicineTaken1{{{john}500}} MedicineTaken2{{{john}600}} MedicineTaken3{{{mary}900}} "
        f"MedicineTaken4{{{mary}900}} "
        f"MedicineTaken5{{{john}500}} MedicineTaken5.5{{name=John,medicine=Aspirin,amount=900}} "
        f"MedicineTaken7{{{john}501}}"
    )
    expected = (
        "a=MedicineTaken1 b=MedicineTaken2",
        "a=MedicineTaken2 b=MedicineTaken5",
        "a=MedicineTaken5 b=MedicineTaken7",
    )
    check(evaluator, case("overdose", events, query, *expected, unit=HOUR))
