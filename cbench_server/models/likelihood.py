"""Likelihoods of given texts: what a model's server is asked, by the kind of server it is.

No endpoint of the chat protocol tells how likely a given answer is. llama.cpp, vLLM and
completion endpoints with `echo` do, each in its own way.
"""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from cbench_server.limits import MAX_TOKEN_VALUES
from cbench_server.models.chat import ChatClient, ChatFailed
from cbench_server.models.chat_answer import Trouble, document_of
from cbench_server.models.messages import Message

Api = Literal["auto", "llama.cpp", "vllm", "echo"]
APIS: tuple[Api, ...] = ("auto", "llama.cpp", "vllm", "echo")
LEAST = -100.0
"""In nats; what a server calls impossible counts as this unlikely."""
_KEPT_ANSWERS = 4096


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How likely a text is to a model: the sum over its tokens, in nats."""

    log_probability: float
    tokens: int
    is_cut: bool = False
    """Whether only its first tokens were asked about."""

    @property
    def per_token(self) -> float:
        """The mean over its tokens."""
        return self.log_probability / self.tokens


class TokenClient(ChatClient):
    """Asks the endpoints beside the chat, with the connections and retries of a chat client."""

    @property
    def root(self) -> str:
        """The address without `/v1`."""
        return self.endpoint.removesuffix("/v1/chat/completions")

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON object that an endpoint answers; raise ChatFailed if there is none."""
        url, attempt = self.root + path, 0
        encoded = json.dumps(body, ensure_ascii=False).encode()
        while True:
            attempt += 1
            try:
                return _document(await self._post(encoded, url=url))
            except Trouble as trouble:
                wait = self._wait(trouble, attempt)
                if wait is None:
                    raise self._failed(trouble, attempt, url) from None
            await asyncio.sleep(wait)

    async def look(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path; an empty one if there is none."""
        try:
            status, answer = await self._ask_once("GET", self.root + path)
            return _document(answer) if status == 200 else {}
        except Trouble as trouble:
            if trouble.reason == "BAD_RESPONSE":
                return {}
            raise self._failed(trouble, 1, self.root + path) from None

    def unusable(self, path: str, why: str) -> ChatFailed:
        """Make the failure of an answer that does not tell what was asked."""
        return self._failed(Trouble("BAD_RESPONSE", why), 1, self.root + path)


class Scorer(Protocol):
    """Asks one kind of server."""

    width: int
    """How many requests it works on at once."""

    async def likelihood(
        self, messages: Sequence[Message], answer: str, most_tokens: int
    ) -> Likelihood:
        """Tell how likely an answer is after a prompt; raise ChatFailed if it cannot be told."""
        ...


async def scorer_for(client: TokenClient, api: Api = "auto") -> Scorer:
    """Find out what a server is, unless that is given."""
    if api in ("auto", "llama.cpp"):
        props = await client.look("/props")
        if "default_generation_settings" in props or api == "llama.cpp":
            return LlamaCpp(client, int(props.get("total_slots") or 1))
    if api == "vllm" or (api == "auto" and "version" in await client.look("/version")):
        return Vllm(client)
    return Echo(client)


class LlamaCpp:
    """A grammar leaves the server no other token than the next one of the answer.

    The log-probabilities that it reports are those before sampling, so that the grammar has no
    part in them. The prompt is read once for all tokens.
    """

    def __init__(self, client: TokenClient, slots: int) -> None:
        self._client = client
        self.width = slots
        self._tokens: dict[str, list[int]] = {}

    async def likelihood(
        self, messages: Sequence[Message], answer: str, most_tokens: int
    ) -> Likelihood:
        templated = await self._client.post("/apply-template", {"messages": list(messages)})
        tokens = await self._tokenized(answer)
        asked = tokens[:most_tokens]
        said = await self._client.post(
            "/completion",
            {
                "prompt": templated.get("prompt"),
                "grammar": f"root ::= {' '.join(f'<[{token}]>' for token in asked)}",
                "n_predict": len(asked),
                "n_probs": 1,
                "temperature": 0,
                "cache_prompt": False,
            },
        )
        found = said.get("completion_probabilities")
        parts = found if isinstance(found, list) else []
        if [_of(part, "id") for part in parts] != asked:
            raise self._client.unusable(
                "/completion",
                "did not keep to the tokens of a grammar. It takes a llama.cpp that knows grammars "
                "of tokens, of 2026 or newer.",
            )
        values = [_of(part, "logprob") for part in parts]
        return _summed(self._client, "/completion", values, is_cut=len(tokens) > len(asked))

    async def _tokenized(self, answer: str) -> list[int]:
        if answer not in self._tokens:
            if len(self._tokens) >= _KEPT_ANSWERS:
                self._tokens.clear()
            said = await self._client.post("/tokenize", {"content": answer, "add_special": False})
            self._tokens[answer] = _ids(self._client, said)
        return self._tokens[answer]


class Vllm:
    """The server tokenizes with its chat template, and tells of every token of a prompt."""

    width = 8

    def __init__(self, client: TokenClient) -> None:
        self._client = client

    async def likelihood(
        self, messages: Sequence[Message], answer: str, most_tokens: int
    ) -> Likelihood:
        asked = {"messages": list(messages), "add_generation_prompt": True}
        prompt = await self._tokenized(asked)
        tokens = await self._tokenized({"prompt": answer, "add_special_tokens": False})
        scored = tokens[:most_tokens]
        body = {"prompt": prompt + scored, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        said = await self._client.post("/v1/completions", {"model": self._client.model, **body})
        told = _of(_first(said), "prompt_logprobs")
        parts = told[-len(scored) :] if isinstance(told, list) else []
        if not isinstance(told, list) or len(told) != len(prompt) + len(scored):
            raise self._client.unusable("/v1/completions", "told nothing of the prompt's tokens")
        pairs = zip(parts, scored, strict=True)
        values = [_of(_of(part, str(token)), "logprob") for part, token in pairs]
        is_cut = len(tokens) > len(scored)
        return _summed(self._client, "/v1/completions", values, is_cut=is_cut)

    async def _tokenized(self, body: Mapping[str, Any]) -> list[int]:
        said = await self._client.post("/tokenize", {"model": self._client.model, **body})
        return _ids(self._client, said)


class Echo:
    """A completion endpoint that gives the prompt back, with the likelihood of its tokens.

    It takes no messages: the texts stand below each other, and the answer after "Answer:".
    """

    width = 8

    def __init__(self, client: TokenClient) -> None:
        self._client = client

    async def likelihood(
        self, messages: Sequence[Message], answer: str, most_tokens: int
    ) -> Likelihood:
        texts = [str(message.get("content") or "") for message in messages]
        prompt = "\n\n".join([*texts, "Answer:"])
        whole = f"{prompt} {answer}"
        body = {"prompt": whole, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        said = await self._client.post("/v1/completions", {"model": self._client.model, **body})
        told = _of(_first(said), "logprobs")
        values, starts = _of(told, "token_logprobs"), _of(told, "text_offset")
        if not isinstance(values, list) or not isinstance(starts, list) or 0 not in starts:
            raise self._client.unusable(
                "/v1/completions",
                "does not tell how likely given tokens are: it takes llama.cpp, vLLM, or "
                'completions with "echo" and "logprobs"',
            )
        ends = [*starts[1:], len(whole)]
        # Those that reach into the answer, and none of what was generated after it.
        chosen = [
            value
            for value, start, end in zip(values, starts, ends, strict=False)
            if end > len(prompt) and start < len(whole)
        ]
        scored = chosen[:most_tokens]
        is_cut = len(chosen) > len(scored)
        return _summed(self._client, "/v1/completions", scored, is_cut=is_cut)


def _summed(client: TokenClient, path: str, values: Sequence[Any], *, is_cut: bool) -> Likelihood:
    numbers = [
        max(float(value), LEAST)
        for value in values
        if isinstance(value, int | float) and not math.isnan(value)
    ]
    if not numbers or len(numbers) != len(values):
        raise client.unusable(path, "left out the log-probability of a token")
    return Likelihood(sum(numbers), len(numbers), is_cut)


def _ids(client: TokenClient, said: Mapping[str, Any]) -> list[int]:
    tokens = said.get("tokens")
    if not isinstance(tokens, list) or not tokens or not all(type(each) is int for each in tokens):
        raise client.unusable("/tokenize", "gave no tokens")
    return tokens


def _first(said: Mapping[str, Any]) -> Any:
    choices = said.get("choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _document(answer: bytes) -> dict[str, Any]:
    document = document_of(answer, MAX_TOKEN_VALUES)
    if not isinstance(document, dict):
        raise Trouble("BAD_RESPONSE", "answered with JSON that is no object")
    return document
