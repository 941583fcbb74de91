"""The reader: one model that answers for systems which only change a context."""

import asyncio
from dataclasses import replace

from cbench_server.errors import CallFailed
from cbench_server.models.chat import ChatClient
from cbench_server.models.chat_answer import ChatReply
from cbench_server.models.messages import messages_for
from cbench_server.results import Failure
from cbench_server.types import Example


class Reader:
    """Answers questions from contexts that systems left.

    The question is the original's, so that every system is read with the same
    one, and the messages are those OpenAIProxy sends: `identity` with a reader
    answers as the model itself does.
    """

    def __init__(self, client: ChatClient, system_prompt: str = "") -> None:
        self._client = client
        self._system_prompt = system_prompt

    @staticmethod
    def is_needed(processed: Example) -> bool:
        """Whether a system left answering to others."""
        return "response" not in processed and isinstance(processed.get("context"), str)

    async def read(self, context: str, question: object, timeout: float) -> ChatReply:
        """Make one attempt; raise CallFailed with the reader to blame."""
        asked = {"context": context, "question": question}
        try:
            async with asyncio.timeout(timeout):
                return await self._client.complete(messages_for(asked, self._system_prompt))
        except TimeoutError:
            message = f"the reader did not answer within {timeout:g}s"
            raise CallFailed(Failure("reader", "DEADLINE_EXCEEDED", message)) from None
        except CallFailed as error:
            failure = replace(error.failure, origin="reader")
            raise CallFailed(failure, error.retry_delay) from None

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close_connections()
