"""The reader for memory systems that retrieve and do not answer."""

import time
from dataclasses import replace

from cbench_server.systems.caller import SystemDescription
from cbench_server.systems.chat import ChatClient
from cbench_server.systems.memory_caller import MemoryCaller, QueryReply, Question
from cbench_server.systems.reader import read_context


class MemoryReaderCaller:
    """Asks a memory system and, where it gave a `context` and no response, has a model answer.

    The model is told when the question was asked, without which "last week"
    means nothing. Its time and usage are kept apart; `latency` stays the system's.
    """

    def __init__(
        self, caller: MemoryCaller, client: ChatClient, *, system_prompt: str = ""
    ) -> None:
        self._caller = caller
        self._client = client
        self._system_prompt = system_prompt
        self.reset = caller.reset
        self.ingest = caller.ingest
        self.wait_connected = caller.wait_connected
        self.close = caller.close

    @property
    def description(self) -> SystemDescription:
        return self._caller.description

    @property
    def era(self) -> str:
        return self._caller.era

    async def query(
        self, scope: str, question: Question, *, call_id: str, timeout: float
    ) -> QueryReply:
        """Make one attempt; system and reader have `timeout` seconds each."""
        reply = await self._caller.query(scope, question, call_id=call_id, timeout=timeout)
        if reply.response is not None or reply.context is None:
            return reply
        asked = question.text
        if question.asked_at:
            asked = f"(Asked at {question.asked_at}) {asked}"
        started = time.perf_counter()
        answer = await read_context(
            self._client, self._system_prompt, reply.context, asked, timeout
        )
        return replace(
            reply,
            response=answer.content,
            reader_time=time.perf_counter() - started,
            reader_usage=answer.usage,
        )
