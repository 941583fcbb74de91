"""The reader: one model that answers for systems which only change a context."""

import asyncio
import time
from dataclasses import replace

from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems.caller import Caller, Reply, SystemDescription
from cbench_server.systems.chat import ChatClient
from cbench_server.systems.chat_answer import ChatReply
from cbench_server.systems.openai_proxy import messages_for
from cbench_server.types import Example


class ReaderCaller:
    """Calls a system and, where it returned a `context` and no `response`, has the model answer.

    The question is the original's, so that every system is read with the same
    one, and the messages are those OpenAIProxy sends: `identity` with a reader
    answers as the model itself does. The reader's time and usage are kept
    apart; `latency` stays the system's. The client belongs to the caller's
    maker, who may share it between systems and closes it.
    """

    def __init__(self, caller: Caller, client: ChatClient, *, system_prompt: str = "") -> None:
        self._caller = caller
        self._client = client
        self._system_prompt = system_prompt

    @property
    def description(self) -> SystemDescription:
        return self._caller.description

    async def call(self, example: Example, *, call_id: str, timeout: float) -> Reply:
        """Make one attempt; system and reader have `timeout` seconds each."""
        reply = await self._caller.call(example, call_id=call_id, timeout=timeout)
        processed = reply.processed
        if "response" in processed or not isinstance(processed.get("context"), str):
            return reply
        started = time.perf_counter()
        answer = await read_context(
            self._client,
            self._system_prompt,
            processed["context"],
            example.get("question"),
            timeout,
        )
        return replace(
            reply,
            processed={**processed, "response": answer.content},
            reader_time=time.perf_counter() - started,
            reader_usage=answer.usage,
        )

    async def wait_connected(self, timeout: float) -> bool:
        """Wait for the system; a reader that is away shows when it is asked."""
        return await self._caller.wait_connected(timeout)

    async def close(self) -> None:
        """Let go of the system."""
        await self._caller.close()


async def read_context(
    client: ChatClient, system_prompt: str, context: str, question: object, timeout: float
) -> ChatReply:
    """Have a model answer a question from a context; raise CallFailed with the reader to blame."""
    asked = {"context": context, "question": question}
    try:
        async with asyncio.timeout(timeout):
            return await client.complete(messages_for(asked, system_prompt))
    except TimeoutError:
        message = f"the reader did not answer within {timeout:g}s"
        raise CallFailed(Failure("reader", "DEADLINE_EXCEEDED", message)) from None
    except CallFailed as error:
        failure = replace(error.failure, origin="reader")
        raise CallFailed(failure, error.retry_delay) from None
