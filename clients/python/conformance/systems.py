"""The systems that PROGRAM.md describes."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from probe import conformance_panic, counters, hold

from cbench_client import Option, RemoteFailure, current_call

Fields = dict[str, Any]


class Echo:
    """Returns the example with a response."""

    name, version = "conformance-echo", "1.0"

    def process(self, example: Fields) -> Fields:
        return {**example, "response": "echo"}


class Copy:
    """Copies every field."""

    name, version = "conformance-copy", "1.0"

    def process(self, example: Fields, options: Fields) -> Fields:
        copied = {f"copy.{name}": value for name, value in example.items()}
        return copied | {f"option.{name}": value for name, value in options.items()}


class Report:
    """Reports what it knows of the call."""

    name, version = "conformance-report", "1.0"

    def process(self, example: Fields, instruction: str) -> Fields:
        call = current_call()
        remaining = None if call.remaining is None else round(call.remaining * 1e3)
        trace = {"traceparent": call.traceparent, "tracestate": call.tracestate}
        known = {"call_id": call.call_id, "remaining_ms": remaining}
        return known | trace | {"instruction": instruction}


class Hold:
    """Waits to be released."""

    name, version, max_concurrency = "conformance-hold", "1.0", 64

    async def process(self, example: Fields) -> Fields:
        key = example["key"]
        return {"response": await hold(key, example.get("milliseconds", 60_000)), "key": key}


class Limited(Hold):
    """Waits to be released, two at a time."""

    name, max_concurrency = "conformance-limited", 2


class Probe:
    """Tells what happened under a key."""

    name, version = "conformance-probe", "1.0"

    async def process(self, example: Fields) -> Fields:
        seen = counters[example["key"]]
        if example.get("release"):
            seen.released.set()
        return {
            "started": seen.started,
            "running": seen.running,
            "most": seen.most,
            "ended": seen.ended,
            "cancelled": seen.cancelled,
        }


class Fail:
    """Fails as it is told."""

    name, version = "conformance-fail", "1.0"

    def process(self, example: Fields) -> Fields:
        delay = example.get("retry_delay_ms")
        raise RemoteFailure(
            example["message"],
            reason=example["reason"],
            retryable=example.get("retryable", False),
            retry_delay=None if delay is None else delay / 1e3,
        )


class Error:
    """Raises an ordinary error."""

    name, version = "conformance-error", "1.0"

    def process(self, example: Fields) -> Fields:
        raise ValueError(example["message"])


class Panic:
    """Panics."""

    name, version = "conformance-panic", "1.0"

    def process(self, example: Fields) -> Fields:
        conformance_panic(example["message"])
        return {}


class Deep:
    """Nests lists."""

    name, version = "conformance-deep", "1.0"

    def process(self, example: Fields) -> Fields:
        deep: list[Any] = []
        for _ in range(example["levels"] - 1):
            deep = [deep]
        return {"deep": deep}


class Large:
    """Returns a large text."""

    name, version = "conformance-large", "1.0"

    def process(self, example: Fields) -> Fields:
        return {"context": "x" * example["size"]}


class Usage:
    """Reports usage."""

    name, version = "conformance-usage", "1.0"

    def process(self, example: Fields) -> Fields:
        usage = {
            "prompt_tokens": 9007199254740993,
            "completion_tokens": 0,
            "cached_prompt_tokens": 7,
            "requests": 3,
            "abandoned_requests": 1,
            "cost_usd": 0.25,
            "compute_seconds": 1.5,
        }
        return {"response": "used", "api_usage": usage}


@dataclass
class Settings:
    """What `Options` takes."""

    k: int
    ratio: Annotated[float, Option("The share to keep.", minimum=0, maximum=1)] = 0.5
    mode: Literal["fast", "good"] = "good"
    limit: int | None = 3


class Options:
    """Takes the options that it declares."""

    name, version = "conformance-options", "1.0"

    def process(self, example: Fields, options: Settings) -> Fields:
        return asdict(options)


class Chat:
    """Answers conversations."""

    name, version = "conformance-chat", "1.0"

    def process(self, example: Fields) -> Fields:
        return {"response": "process"}

    def process_conversation(self, turns: list[Fields], instruction: str) -> list[Fields]:
        told = {"instruction": instruction} if instruction else {}
        return [
            {
                **_without_times(turn),
                "role": "assistant",
                "content": f"{number}: {turn['content']}",
                **told,
            }
            for number, turn in enumerate(turns, 1)
        ]


def _without_times(turn: Fields) -> Fields:
    return {name: value for name, value in turn.items() if name not in ("time", "session")}


SYSTEMS = [
    kind()
    for kind in (
        *(Echo, Copy, Report, Hold, Limited, Probe, Fail),
        *(Error, Panic, Deep, Large, Usage, Options, Chat),
    )
]
