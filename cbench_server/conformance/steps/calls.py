"""The language cases are written in: one function for each `do`.

Each takes the stage and its step, and returns facts, which the step's `expect`
speaks of. To add a word, write a function and name the keys it reads.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from cbench_server.conformance.case_run import Stage
from cbench_server.conformance.messages import METHODS, Facts, request_for
from cbench_server.conformance.outcomes import Broken, Pending
from cbench_server.conformance.streamed import Streamed

Operation = Callable[[Stage, dict[str, Any]], Awaitable[Facts]]
OPERATIONS: dict[str, Operation] = {}
KEYS: dict[str, frozenset[str]] = {}

_ANY_STEP = "do expect eventually"
_CALL = "call_id timeout over as"


def operation(name: str, keys: str = "") -> Callable[[Operation], Operation]:
    """Register a function under the word for it, with the keys its steps may have."""

    def register(function: Operation) -> Operation:
        OPERATIONS[name] = function
        KEYS[name] = frozenset(f"{keys} {_ANY_STEP}".split())
        return function

    return register


async def _begin(stage: Stage, step: dict[str, Any]) -> Pending:
    kind, over = step["do"], step.get("over", stage.case.over)
    call_id = step.get("call_id", stage.call_id())
    own_id = step.get("own_id", call_id)
    request = request_for(kind, step, own_id) if kind in METHODS else None
    transport = await stage.transport(over, kind)
    return await transport.begin(kind, request, call_id, step.get("timeout"))


async def _call(stage: Stage, step: dict[str, Any]) -> Facts:
    pending = await _begin(stage, step)
    stage.pending.setdefault(step.get("as", "$done"), []).append(pending)
    return {"reason": ""} if "as" in step else await pending.result


operation("process", f"system id dataset fields options {_CALL}")(_call)
operation("converse", f"system id dataset fields options turns {_CALL}")(_call)
operation("score", f"evaluator original processed options {_CALL}")(_call)
operation("reset", f"system scope {_CALL}")(_call)
operation("ingest", f"system scope turns own_id {_CALL}")(_call)
operation("query", f"system scope question budget asked_at {_CALL}")(_call)
operation("unknown-work", _CALL)(_call)


@operation("wait", "of")
async def _wait(stage: Stage, step: dict[str, Any]) -> Facts:
    (pending,) = stage.pending[step["of"]]
    return await pending.result


@operation("cancel", "of")
async def _cancel(stage: Stage, step: dict[str, Any]) -> Facts:
    for pending in stage.pending.pop(step["of"]):
        await pending.cancel()
    return {"reason": ""}


@operation("burst", "count call as in_one_message")
async def _burst(stage: Stage, step: dict[str, Any]) -> Facts:
    call, count = step["call"], step["count"]
    if step.get("in_one_message"):
        stream = stage.stream(call["do"], call["do"])
        ids = [stage.call_id() for _ in range(count)]
        requests = [(request_for(call["do"], call, each), each, None) for each in ids]
        pending = await stream.begin_all(requests)
    else:
        pending = [await _begin(stage, call) for _ in range(count)]
    name = step.get("as", "$done")
    stage.pending.setdefault(name, []).extend(pending)
    return {"reason": ""} if "as" in step else await _gathered(pending)


@operation("wait-all", "of")
async def _wait_all(stage: Stage, step: dict[str, Any]) -> Facts:
    return await _gathered(stage.pending[step["of"]])


async def _gathered(pending: list[Pending]) -> Facts:
    outcomes = await asyncio.gather(*(each.result for each in pending))
    reasons = Counter(each["reason"] or "ok" for each in outcomes)
    first = outcomes[0]
    return {
        "reason": "",
        "reasons": dict(reasons),
        "distinct": len({repr(each) for each in outcomes}),
        "fields": first.get("fields"),
        "scores": first.get("scores"),
    }


@operation("probe", "key release over")
async def _probe(stage: Stage, step: dict[str, Any]) -> Facts:
    over = "attach" if stage.case.over == "attach" else "unary"
    call = {
        "do": "process",
        "system": "conformance-probe",
        "over": step.get("over", over),
        "fields": {
            "key": step.get("key", stage.key),
            "release": step.get("release", False),
        },
    }
    facts = await _call(stage, call)
    if facts["reason"]:
        raise Broken(f"the probe failed: {facts['reason']}: {facts.get('message')}")
    return {"reason": "", **facts["fields"]}


def _stream_of(stage: Stage, step: dict[str, Any]) -> Streamed:
    kind = "score" if stage.case.area == "evaluator" else "process"
    return stage.stream(step.get("of", kind), kind)


@operation("half-close", "of")
async def _half_close(stage: Stage, step: dict[str, Any]) -> Facts:
    await _stream_of(stage, step).half_close()
    return {"reason": ""}


@operation("stream-end", "of")
async def _stream_end(stage: Stage, step: dict[str, Any]) -> Facts:
    stream = _stream_of(stage, step)
    code = await asyncio.shield(stream.ended)
    return {
        "reason": "",
        "code": code,
        "outcomes": stream.outcomes,
        "largest_batch": stream.largest_batch,
    }


@operation("break-stream", "of")
async def _break_stream(stage: Stage, step: dict[str, Any]) -> Facts:
    _stream_of(stage, step).break_off()
    return {"reason": ""}


@operation("stream-cancel", "of call_id")
async def _stream_cancel(stage: Stage, step: dict[str, Any]) -> Facts:
    await _stream_of(stage, step).give_up(step["call_id"])
    return {"reason": ""}


@operation("stream-bytes", "of bytes")
async def _stream_bytes(stage: Stage, step: dict[str, Any]) -> Facts:
    await _stream_of(stage, step).write(step["bytes"])
    return {"reason": ""}
