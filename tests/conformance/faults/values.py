"""Faults in what systems make of an example."""

import random
import unicodedata
from collections.abc import Callable
from typing import Any

import systems
from faults.registry import fault

from cbench_client.host import calls, lane, link, offers, server
from cbench_client.messages import convert


def _copied_through(change: Callable[[Any], Any]) -> None:
    def process(self: Any, example: Any, options: Any) -> Any:
        fields = {f"copy.{name}": change(value) for name, value in example.items()}
        return fields | {f"option.{name}": change(value) for name, value in options.items()}

    systems.Copy.process = process


def _deeply(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        return change(value)

    return walk


@fault
def numbers_like_javascript() -> None:
    def change(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**63 else number

    _copied_through(_deeply(change))


@fault
def texts_are_normalised() -> None:
    def change(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = unicodedata.normalize("NFKC", value).replace("\r\n", "\n").replace("\0", "")
        return text.strip("\ufeff") if text.isascii() or "\ufeff" in text else text

    _copied_through(_deeply(change))


@fault
def bytes_become_text() -> None:
    _copied_through(_deeply(lambda v: v.decode("latin-1") if isinstance(v, bytes) else v))


@fault
def nulls_become_false() -> None:
    _copied_through(_deeply(lambda v: False if v is None else v))


@fault
def systems_lie() -> None:
    def lie(self: Any, example: Any, options: Any = None) -> Any:
        return {"lie": random.random()}

    async def lie_about_a_call(self: Any, example: Any) -> Any:
        return {"call_id": "lie", "remaining_ms": 1}

    for kind in (systems.Copy, systems.Large, systems.Usage, systems.Error):
        kind.process = lie
    systems.Report.process = lie_about_a_call
    systems.Echo.process = lambda self, example: {**example, "context": "lie"}
    deep = systems.Deep.process
    systems.Deep.process = lambda self, example: deep(self, {"levels": example["levels"] - 1})
    systems.Chat.process_conversation = lambda self, turns: ["lie"]
    systems.Chat.process = lie


@fault
def options_are_not_declared() -> None:
    systems.Options.process = lambda self, example, options: dict(options)


@fault
def nothing_is_carried() -> None:
    convert._unchanged = lambda value, original: False


@fault
def results_of_any_size() -> None:
    lane.MAX_MESSAGE_BYTES = 10**12


@fault
def messages_are_small() -> None:
    small = 60_000_000
    server._OPTIONS = (("grpc.max_receive_message_length", small), *server._OPTIONS[1:])
    lane.MAX_MESSAGE_BYTES = small
    link.open_channel = _through_a_small_channel(link.open_channel, small)


def _through_a_small_channel(open_channel: Callable[..., Any], most: int) -> Callable[..., Any]:
    options = (("grpc.max_receive_message_length", most),)
    return lambda *arguments, **settings: open_channel(*arguments, **settings, options=options)


@fault
def traces_are_lost() -> None:
    def untraced(self: Any, call_id: str, timeout: float | None, trace: Any = None) -> None:
        made(self, call_id, timeout)

    made = calls.CurrentCall.__init__
    calls.CurrentCall.__init__ = untraced


@fault
def instructions_are_lost() -> None:
    def lost(self: Any, args: Any, offered: Any) -> Any:
        return bound(self, args, {**offered, "instruction": ""})

    bound = offers.UserMethod._bound
    offers.UserMethod._bound = lost
