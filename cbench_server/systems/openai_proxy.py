"""A model behind an OpenAI-compatible endpoint, as a system under test."""

import copy
import json
import os
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from numbers import Real
from typing import Any, Self

from cbench_server.datasets.prompts.prompt import turn_message, turn_messages
from cbench_server.errors import InvalidInput
from cbench_server.models.blocking import run_blocking
from cbench_server.models.chat import ChatClient
from cbench_server.models.chat_answer import add_usage
from cbench_server.models.messages import Message, opening
from cbench_server.models.price import checked_price
from cbench_server.spec import PriceRef
from cbench_server.types import Example


def _checked(price: Any) -> PriceRef:
    is_price = isinstance(price, Sequence) and len(price) in (2, 3)
    if not is_price or not all(isinstance(each, Real) for each in price):
        raise InvalidInput(f"price must be (IN, OUT) or (IN, OUT, CACHED), not {price!r:.60}.")
    return checked_price(PriceRef(*price), "a proxy")


class OpenAIProxy:
    """Sends each example to a chat endpoint and adds the answer as `response`.

    Failures raise ChatFailed, which is a RuntimeError and carries the row's
    `failure`. The synchronous methods also work inside a running event loop,
    such as a notebook's.

    Args:
        base_url: The root; what is missing of `/v1/chat/completions` is added.
        api_key: None means `OPENAI_API_KEY` from the environment, "" means no key.
        build_messages: Makes the messages of an example, in place of all else.
        timeout: Seconds for one attempt.
        extra_body: Further keys of the request, which may override all others.
        max_retries: Attempts after the first.
        retry_base_delay: Seconds; doubled with every attempt, then jittered.
        price: US dollars for a million tokens of prompt and of answer, and of prompt that the
            model had in its cache (as much as other prompt, if left out); rows say what they cost.
    """

    description = "Asks a model behind an OpenAI-compatible endpoint."

    def __init__(
        self,
        base_url: str,
        model: str = "gpt-3.5-turbo",
        name: str | None = None,
        api_key: str | None = None,
        system_prompt: str | None = None,
        build_messages: Callable[[Example], list[Message]] | None = None,
        timeout: float = 30.0,
        extra_body: Mapping[str, Any] | None = None,
        max_retries: int = 3,
        retry_base_delay: float = 1.0,
        price: tuple[float, float] | tuple[float, float, float] | None = None,
    ) -> None:
        self.price = None if price is None else _checked(price)
        self.client = ChatClient(
            base_url,
            model,
            api_key=os.environ.get("OPENAI_API_KEY") if api_key is None else api_key,
            timeout=timeout,
            extra_body=extra_body,
            max_retries=max_retries,
            retry_base_delay=retry_base_delay,
        )
        self.name = name or f"openai_proxy_{self.client.host}"
        self.system_prompt = system_prompt
        self._build_messages = build_messages

    @property
    def builds_messages(self) -> bool:
        """Whether it sends what its user's function makes of an example."""
        return self._build_messages is not None

    def with_body(self, name: str, **extra: Any) -> Self:
        """Return the same under another name, with further keys of the request."""
        twin = copy.copy(self)
        twin.name = name
        twin.client = self.client.with_body(extra)
        return twin

    @property
    def version(self) -> str:
        """What decides the answers, in short; empty where `build_messages` does, unknowably."""
        if self._build_messages is not None:
            return ""
        client = self.client
        settings = [client.endpoint, client.model, self.system_prompt, client.extra_body]
        text = json.dumps(settings, sort_keys=True, default=repr)
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def process(self, example: Example) -> Example:
        """Return the example with `response`, and `api_usage` where the server reports it."""
        return run_blocking(self.aprocess(example))

    async def aprocess(self, example: Example) -> Example:
        """Do what `process` does, without blocking."""
        if self._build_messages is not None:
            messages = self._build_messages(example)
        else:
            messages = messages_for(example, self.system_prompt)
        reply = await self.client.complete(messages)
        processed = {**example, "response": reply.content}
        if reply.usage:
            processed["api_usage"] = reply.usage
        return processed

    def process_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Answer the user turns one after another, each knowing what came before.

        The last reply carries the usage of the whole conversation as `api_usage`.
        """
        return run_blocking(self.aprocess_conversation(turns))

    async def aprocess_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Do what `process_conversation` does, without blocking."""
        history = opening(self.system_prompt)
        replies: list[Message] = []
        usage: dict[str, Any] = {}
        for turn in turns:
            history.append(turn_message(turn))
            if turn.get("role") != "user":
                continue
            reply = await self.client.complete(history)
            history.append({"role": "assistant", "content": reply.content})
            replies.append({"role": "assistant", "content": reply.content})
            usage = add_usage(usage, reply.usage or {})
        if usage:
            replies[-1]["api_usage"] = usage
        return replies

    def close(self) -> None:
        """Close the connections of the synchronous methods; a later call opens new ones."""
        run_blocking(self.client.close_connections())

    async def probe(self) -> None:
        """Make sure that the model's server is there; raise ChatFailed if not."""
        await self.client.probe()

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        await self.client.close_connections()


def messages_for(example: Example, system_prompt: str | None = None) -> list[Message]:
    """Make the messages for an example without a prompt: turns, else context and question.

    A question that is the context is sent once.
    """
    messages = opening(system_prompt)
    if "turns" in example:
        return [*messages, *turn_messages(example)]
    context = _text(example.get("context"))
    question = example.get("question")
    if question is None or (question and _text(question) == context):
        return [*messages, {"role": "user", "content": context}]
    return [
        *messages,
        {"role": "system", "content": context},
        {"role": "user", "content": _text(question)},
    ]


def _text(value: object) -> str:
    return "" if value is None else str(value)
