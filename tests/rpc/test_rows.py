"""Every field of a row crosses every boundary, or is listed there as left out."""

import csv
import io
import pickle
from dataclasses import asdict, fields, replace
from typing import Any

import pyarrow.parquet
from hypothesis import given
from hypothesis import strategies as st

from cbench_client import row_to_dict as client_dict
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.events import RowScored, Stored
from cbench_server.reports import csv_report, parquet
from cbench_server.results import EvalRow, Failure, row_to_dict
from cbench_server.rpc import rows
from cbench_server.rpc.pages import encode_page
from cbench_server.rpc.runs import event_to_proto
from cbench_server.storage import codec

# A row in which no field has its default value.
FULL = EvalRow(
    system="s",
    example_id=7,
    scores={"f1": 0.5},
    input_tokens=3,
    output_tokens=2,
    metadata={"note": "n"},
    latency=0.25,
    dataset="d",
    index=4,
    ordinal=5,
    repeat=1,
    failure=Failure("system", "EXCEPTION", "m", 2, True, "trace"),
    primary_score="f1",
    context_tokens_in=9,
    context_tokens_out=8,
    usage={"prompt_tokens": 1},
    attempts=2,
    queue_time=0.5,
    scoring_time=0.125,
    reader_time=0.75,
    reader_usage={"total_tokens": 4},
    reused=True,
    group="g",
    details={"e": {"why": "because"}},
    evaluator_failures={"e": Failure("evaluator", "X", "y")},
    processed={"context": "c"},
    ingest_time=1.5,
    stored_bytes=10,
    carried=("question",),
    context_only=True,
    not_applicable=("f1",),
    handler_seconds=0.25,
    calls_in_flight=3,
    alone=True,
    finish_reason="length",
    marks=("ANSWER_CUT",),
    cost_usd={"reader": 0.5},
    groups={"subject": "law"},
    traceparent=f"00-{1:032x}-{2:016x}-01",
    replica="localhost:50061",
)
NAMES = {field.name for field in fields(EvalRow)}


def lacking(found: Any, left_out: tuple[str, ...] = ()) -> set[str]:
    return NAMES - set(found) - set(left_out)


def test_the_example_has_no_default() -> None:
    plain = EvalRow("", "", {}, 0, 0)
    assert [name for name in NAMES if getattr(FULL, name) == getattr(plain, name)] == []


def test_messages_hold_every_field() -> None:
    message = bench_pb2.EvalRow()
    rows.row_to_proto(FULL, message, processed=True)
    again = rows.row_from_proto(message)
    for name in lacking((), rows.LEFT_OUT):
        assert getattr(again, name) == getattr(FULL, name), name


def test_the_store_holds_every_field() -> None:
    encoded = codec.encode_event(RowScored(FULL))
    again = codec.decode_row(encoded.head, encoded.body)
    assert again == FULL


def test_json_and_the_clients_dicts_hold_every_field() -> None:
    assert lacking(row_to_dict(FULL), ("carried",)) == set()
    message = bench_pb2.EvalRow()
    rows.row_to_proto(FULL, message, processed=True)
    given = client_dict(message)
    # Details and failures of evaluators are notes there.
    notes = ("details", "evaluator_failures")
    assert lacking(given, ("carried", *notes)) == set()
    assert given["evaluator_notes"]


def test_tables_hold_every_field_or_say_which_they_leave_out() -> None:
    (header, _) = csv.reader(io.StringIO("".join(csv_report.to_csv(lambda: [FULL]))))
    assert lacking(header, csv_report.LEFT_OUT) == set()
    data = io.BytesIO(b"".join(parquet.to_parquet(lambda: [FULL])))
    columns = pyarrow.parquet.read_schema(data).names
    assert lacking(columns, parquet.LEFT_OUT) == set()


def test_a_row_is_what_it_was_for_users() -> None:
    assert EvalRow(**asdict(replace(FULL, failure=None, evaluator_failures={}))) == replace(
        FULL, failure=None, evaluator_failures={}
    )
    assert replace(FULL, index=9).index == 9
    assert pickle.loads(pickle.dumps(FULL)) == FULL
    assert repr(FULL).startswith("EvalRow(system='s', example_id=7, ")
    assert [field.name for field in fields(FULL)][:3] == ["system", "example_id", "scores"]


plain_rows = st.builds(
    EvalRow,
    system=st.sampled_from(["a", "b"]),
    example_id=st.text(max_size=3) | st.integers(-5, 5),
    scores=st.dictionaries(st.sampled_from(["f1", "x"]), st.floats(0, 1)),
    input_tokens=st.integers(0, 9),
    output_tokens=st.integers(0, 9),
    latency=st.floats(0, 3),
    dataset=st.sampled_from(["d", "e"]),
    index=st.integers(0, 9),
    ordinal=st.integers(0, 9),
    repeat=st.integers(0, 1),
    primary_score=st.sampled_from(["f1", ""]),
    context_tokens_in=st.none() | st.integers(0, 5),
    context_tokens_out=st.none() | st.integers(0, 5),
    queue_time=st.floats(0, 3),
    scoring_time=st.floats(0, 3),
    group=st.sampled_from(["", "g"]),
    attempts=st.integers(1, 2),
    metadata=st.sampled_from([{}, {"k": 1}]),
    reused=st.booleans(),
    handler_seconds=st.none() | st.floats(0, 3),
    calls_in_flight=st.integers(0, 9),
    alone=st.booleans(),
)


@given(st.lists(plain_rows | st.just(FULL), max_size=6), st.booleans())
def test_a_page_is_its_events_one_by_one(made: list[EvalRow], processed: bool) -> None:
    page = [Stored(seq, 1.5 + seq // 3, RowScored(row)) for seq, row in enumerate(made, 1)]
    expected = bench_pb2.WatchRunResponse()
    for entry in page:
        event_to_proto(entry, expected.events.add(), processed=processed)
    encoded = encode_page(page, processed=processed, max_bytes=2**20)
    assert bench_pb2.WatchRunResponse.FromString(encoded) == expected
    assert bench_pb2.EvaluateResponse.FromString(encoded).events == expected.events
