"""Operations on calls and streams, and the register of all operations.

An operation takes the run of the case and the step, and may return facts, which
the step's `expect` is compared with. To add one, write a function and name the
keys it reads.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from cbench_server.conformance.case_run import CaseRun
from cbench_server.conformance.messages import METHODS, Facts, request_for
from cbench_server.conformance.outcomes import Broken, Pending
from cbench_server.conformance.streamed import Streamed

Operation = Callable[[CaseRun, dict[str, Any]], Awaitable[Facts | None]]
OPERATIONS: dict[str, Operation] = {}
KEYS: dict[str, frozenset[str]] = {}

_ANY_STEP = "do expect eventually"
_TRACE = ("traceparent", "tracestate")
_CALL = f"call_id timeout {' '.join(_TRACE)} over as"


def operation(name: str, keys: str = "") -> Callable[[Operation], Operation]:
    """Register a function as the operation `name`, with the keys its steps may have."""

    def register(function: Operation) -> Operation:
        OPERATIONS[name] = function
        KEYS[name] = frozenset(f"{keys} {_ANY_STEP}".split())
        return function

    return register


async def _begin(run: CaseRun, step: dict[str, Any]) -> Pending:
    kind, over = step["do"], step.get("over", run.case.over)
    call_id = step.get("call_id", run.call_id())
    own_id = step.get("own_id", call_id)
    request = request_for(kind, step, own_id) if kind in METHODS else None
    transport = await run.transport(over, kind)
    trace: dict[str, str] = {key: step[key] for key in _TRACE if key in step}
    return await transport.begin(kind, request, call_id, step.get("timeout"), trace)


async def _call(run: CaseRun, step: dict[str, Any]) -> Facts:
    pending = await _begin(run, step)
    run.pending.setdefault(step.get("as", "$done"), []).append(pending)
    return {} if "as" in step else await pending.result


operation("process", f"system id dataset fields options instruction {_CALL}")(_call)
operation("converse", f"system id dataset fields options turns instruction {_CALL}")(_call)
operation("score", f"evaluator original processed options {_CALL}")(_call)
operation("reset", f"system scope {_CALL}")(_call)
operation("ingest", f"system scope turns own_id {_CALL}")(_call)
operation("query", f"system scope question budget asked_at instruction {_CALL}")(_call)
operation("unknown-work", _CALL)(_call)


@operation("wait", "of")
async def _wait(run: CaseRun, step: dict[str, Any]) -> Facts:
    (pending,) = run.pending[step["of"]]
    return await pending.result


@operation("cancel", "of")
async def _cancel(run: CaseRun, step: dict[str, Any]) -> None:
    for pending in run.pending.pop(step["of"]):
        await pending.cancel()


@operation("burst", "count call as in_one_message")
async def _burst(run: CaseRun, step: dict[str, Any]) -> Facts:
    call, count = step["call"], step["count"]
    if step.get("in_one_message"):
        stream = run.stream(call["do"], call["do"])
        ids = [run.call_id() for _ in range(count)]
        requests = [(request_for(call["do"], call, each), each, None) for each in ids]
        pending = await stream.begin_all(requests)
    else:
        pending = [await _begin(run, call) for _ in range(count)]
    name = step.get("as", "$done")
    run.pending.setdefault(name, []).extend(pending)
    return {} if "as" in step else await _gathered(pending)


@operation("wait-all", "of")
async def _wait_all(run: CaseRun, step: dict[str, Any]) -> Facts:
    return await _gathered(run.pending[step["of"]])


async def _gathered(pending: list[Pending]) -> Facts:
    outcomes = await asyncio.gather(*(each.result for each in pending))
    reasons = Counter(each["reason"] or "ok" for each in outcomes)
    first = outcomes[0]
    return {
        "reasons": dict(reasons),
        "distinct": len({repr(_without_time(each)) for each in outcomes}),
        "fields": first.get("fields"),
        "scores": first.get("scores"),
    }


def _without_time(facts: Facts) -> Facts:
    """Leave out what depends on how long a call took."""
    return {name: fact for name, fact in facts.items() if name not in ("handler_seconds", "bytes")}


@operation("probe", "key release over")
async def _probe(run: CaseRun, step: dict[str, Any]) -> Facts:
    over = "attach" if run.case.over == "attach" else "unary"
    call = {
        "do": "process",
        "system": "conformance-probe",
        "over": step.get("over", over),
        "fields": {
            "key": step.get("key", run.key),
            "release": step.get("release", False),
        },
    }
    facts = await _call(run, call)
    if facts["reason"]:
        raise Broken(f"the probe failed: {facts['reason']}: {facts.get('message')}")
    return dict(facts["fields"])


def _stream_of(run: CaseRun, step: dict[str, Any]) -> Streamed:
    kind = "score" if run.case.area == "evaluator" else "process"
    return run.stream(step.get("of", kind), kind)


@operation("half-close", "of")
async def _half_close(run: CaseRun, step: dict[str, Any]) -> None:
    await _stream_of(run, step).half_close()


@operation("stream-end", "of")
async def _stream_end(run: CaseRun, step: dict[str, Any]) -> Facts:
    stream = _stream_of(run, step)
    code = await asyncio.shield(stream.ended)
    return {
        "code": code,
        "outcomes": stream.outcomes,
        "largest_batch": stream.largest_batch,
    }


@operation("break-stream", "of")
async def _break_stream(run: CaseRun, step: dict[str, Any]) -> None:
    _stream_of(run, step).break_off()


@operation("stream-cancel", "of call_id")
async def _stream_cancel(run: CaseRun, step: dict[str, Any]) -> None:
    await _stream_of(run, step).give_up(step["call_id"])


@operation("stream-bytes", "of bytes")
async def _stream_bytes(run: CaseRun, step: dict[str, Any]) -> None:
    await _stream_of(run, step).write(step["bytes"])
