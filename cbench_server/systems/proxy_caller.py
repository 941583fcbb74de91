"""A proxy under test, as a run calls it: each example is one request with the dataset's prompt."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.errors import CallFailed
from cbench_server.models.chat import ModelAway
from cbench_server.models.chat_answer import add_usage
from cbench_server.models.messages import Message
from cbench_server.models.model import Model, is_cut
from cbench_server.models.prompt_counts import PromptCounts
from cbench_server.models.tracing import TRACE
from cbench_server.results import ANSWER_CUT, PROMPT_CUT
from cbench_server.systems.caller import (
    Answer,
    Answered,
    Call,
    CallTasks,
    Failed,
    Process,
    SystemDescription,
    texts_carried,
)
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.tokens import count_tokens
from cbench_server.types import Example

_ASK_AGAIN_S = 0.2


class ProxyCaller:
    """Asks a model for the answer to each example; the run decides how many at once.

    `max_concurrency` is what the user allows, and `timeout` the most seconds
    for one request, None for the time of a row.
    """

    era = ""
    ahead = 0
    replicas = None
    capacity: int | None = None
    """Connections are opened as they are needed."""

    def __init__(
        self,
        proxy: OpenAIProxy,
        model: Model,
        *,
        name: str = "",
        location: str = "",
        max_concurrency: int | None = None,
        timeout: float | None = None,
    ) -> None:
        self.description = SystemDescription(
            name=name or proxy.name,
            version=proxy.version,
            description=proxy.description,
            max_concurrency=max_concurrency,
            location=location,
        )
        self.model = self._model = model
        self._timeout = timeout
        self._tasks = CallTasks()
        self._requests: dict[str, list[int]] = {}
        self._counts = PromptCounts()

    def start_many(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> None:
        """See Caller."""
        most = min(timeout, self._timeout or timeout)
        for call in calls:
            self._tasks.start(call, self._answer(call, most), answered, failed)

    async def _answer(self, call: Call, timeout: float) -> Answer:
        work = call.work
        assert isinstance(work, Process)
        # A task of its own: what it asks for belongs to this call.
        TRACE.set(call.span)
        visible = work.visible
        prompt = work.asking.prompt
        settings = self._model.settings(prompt.max_tokens, prompt.stop)
        history = await asyncio.to_thread(work.asking.messages, visible)
        said = Saying()
        if visible.get("multi_turn") and isinstance(visible.get("turns"), list):
            await self._converse(call, history, settings, timeout, said)
        else:
            await self._ask(call, history, settings, timeout, said)
        processed: Example = {**visible, "response": said.replies[-1] if said.replies else ""}
        if visible.get("multi_turn"):
            processed["turn_responses"] = said.replies
        marks = self._model.marks_of_size(said.sent_tokens, settings)
        if said.is_prompt_cut:
            marks = (*marks, PROMPT_CUT)
        if said.is_cut:
            marks = (*marks, ANSWER_CUT)
        requests, abandoned = self._requests.pop(call.call_id)
        usage = {**said.usage, "requests": requests}
        if abandoned:
            usage["abandoned_requests"] = abandoned
        return Answer(
            call,
            processed,
            said.seconds,
            usage,
            texts_carried(processed, work.example),
            finish_reason=said.finish_reason,
            marks=marks,
        )

    async def _converse(
        self,
        call: Call,
        turns: Sequence[Message],
        settings: Mapping[str, Any],
        timeout: float,
        said: "Saying",
    ) -> None:
        """Answer the user's turns one after another, each knowing what came before."""
        history: list[Message] = []
        for turn in turns:
            history.append(turn)
            if turn["role"] == "user":
                left = timeout - said.seconds - said.lost_seconds
                await self._ask(call, history, settings, left, said)
                history.append({"role": "assistant", "content": said.replies[-1]})

    async def _ask(
        self,
        call: Call,
        messages: Sequence[Message],
        settings: Mapping[str, Any],
        timeout: float,
        said: "Saying",
    ) -> None:
        counts = self._requests.setdefault(call.call_id, [0, 0])
        counts[0] += 1
        try:
            reply, seconds = await self._model.ask(messages, settings, timeout, call.account)
        except CallFailed as error:
            counts[1] += error.failure.reason == "DEADLINE_EXCEEDED"
            if isinstance(error, ModelAway):
                # It is waited for, as any system is.
                raise CallFailed(replace(error.failure, origin="transport")) from error
            raise
        said.replies.append(reply.content)
        said.seconds += seconds
        said.usage = add_usage(said.usage, reply.usage or {})
        said.finish_reason = reply.finish_reason
        said.is_cut = said.is_cut or is_cut(reply)
        text = "\n".join(str(message.get("content")) for message in self._model.whole(messages))
        said.sent_tokens = await asyncio.to_thread(count_tokens, text)
        reported = (reply.usage or {}).get("prompt_tokens")
        said.is_prompt_cut |= self._counts.is_cut(text, said.sent_tokens, reported)

    def widen(self, calls: int) -> None:
        """Do nothing: it queues no calls by itself."""

    def give_up(self, call: Call) -> None:
        """See Caller."""
        self._tasks.give_up(call)

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until a server is there."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    await self._model.client.probe()
                    if not await self._model.client.is_silent():
                        return True
                await asyncio.sleep(min(_ASK_AGAIN_S, max(0.0, deadline - time.monotonic())))
            except TimeoutError:
                return False
            except CallFailed:
                await asyncio.sleep(min(_ASK_AGAIN_S, max(0.0, deadline - time.monotonic())))

    async def close(self) -> None:
        """Close the connections."""
        self._tasks.close()
        await self._model.close()


class Saying:
    """What a model has said so far in one call."""

    def __init__(self) -> None:
        self.replies: list[str] = []
        self.seconds = 0.0
        self.lost_seconds = 0.0
        """In attempts that failed and the pauses after them."""
        self.usage: dict[str, Any] = {}
        self.finish_reason = ""
        self.is_cut = False
        self.is_prompt_cut = False
        self.sent_tokens = 0
        """Of its last and longest request, by our own count."""
