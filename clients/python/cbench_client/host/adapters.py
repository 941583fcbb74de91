"""Systems and evaluators of a user, made to answer requests."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cbench_client._gen.cbench.v1 import evaluator_pb2, example_pb2, system_pb2
from cbench_client.errors import RemoteFailure, Unencodable
from cbench_client.host.offers import (
    ASYNC_CONCURRENCY,
    SYNC_CONCURRENCY,
    UserMethod,
    bad_return,
    described,
    evaluator_name,
    note_time,
    offers,
    part,
    stated_limit,
    system_name,
)
from cbench_client.host.threads import ThreadPool
from cbench_client.messages import convert
from cbench_client.messages.options import DeclaredOptions, joined, options_to_proto

ThreadedCall = tuple[Callable[[], Any], Callable[[Any], None]]
"""What to run in a thread, and what to do with its result, back on the event loop."""


class SystemAdapter:
    """A user's system."""

    origin = "system"

    def __init__(self, system: Any, max_concurrency: int | None) -> None:
        self.name = system_name(system)
        stated = stated_limit(system, max_concurrency)
        pool = ThreadPool(stated or SYNC_CONCURRENCY, self.name)
        self.close = pool.close
        self._process = UserMethod(system, "process", pool)
        self._converse = None
        if offers(system, "process_conversation"):
            self._converse = UserMethod(system, "process_conversation", pool)
        self.limit = stated or (ASYNC_CONCURRENCY if self._process.is_async else SYNC_CONCURRENCY)
        self.info = system_pb2.SystemInfo(
            name=self.name,
            version=str(getattr(system, "version", None) or ""),
            description=described(system),
            capabilities=[system_pb2.CAPABILITY_STREAM],
            max_concurrency=stated,
        )
        methods = [self._process]
        if self._converse is not None:
            self.info.capabilities.append(system_pb2.CAPABILITY_CONVERSATION)
            methods.append(self._converse)
        declare_options(self.info, methods)
        self.answers = {"process": self.process, "converse": self.converse}
        self.threaded: Mapping[str, tuple[Any, Any]] = (
            {} if self._process.is_async else {"process": (self.begin, pool.start)}
        )

    async def process(
        self, request: system_pb2.ProcessRequest, reply: system_pb2.ProcessResponse
    ) -> None:
        """Transform one example."""
        example, arguments = self._asked(request)
        # User code may change its dict in place; what is carried over is
        # judged by what was sent.
        processed = await self._process.timed(
            reply, dict(example), arguments=arguments, instruction=request.instruction
        )
        _fill(reply, processed, example)

    def begin(
        self, request: system_pb2.ProcessRequest, reply: system_pb2.ProcessResponse
    ) -> ThreadedCall:
        """Do the same in a thread, and without a task."""
        example, arguments = self._asked(request)

        def end(returned: tuple[Any, int]) -> None:
            processed, taken = returned
            note_time(reply, taken)
            _fill(reply, processed, example)

        work = self._process.in_thread(
            dict(example), arguments=arguments, instruction=request.instruction
        )
        return work, end

    def _asked(self, request: system_pb2.ProcessRequest) -> tuple[dict[str, Any], dict[str, Any]]:
        example = decoded_example(request.example)
        arguments = self._process.options.arguments(
            decoded_options(request.options), f'system "{self.name}"', strict=not self._converse
        )
        return example, arguments

    async def converse(
        self,
        request: system_pb2.ProcessConversationRequest,
        reply: system_pb2.ProcessConversationResponse,
    ) -> None:
        """Answer every user turn of a conversation."""
        if self._converse is None:
            raise RemoteFailure(
                f'system "{self.name}" has no process_conversation', reason="UNIMPLEMENTED"
            )
        with Decoding():
            turns = convert.turns_from_proto(request.turns)
        example = decoded_example(request.example)
        arguments = self._converse.options.arguments(
            decoded_options(request.options), f'system "{self.name}"', strict=False
        )
        replies = await self._converse.timed(
            reply, turns, arguments=arguments, example=example, instruction=request.instruction
        )
        if not isinstance(replies, list | tuple):
            bad_return("process_conversation()", replies, "a list of turns")
        with Encoding("process_conversation()"):
            for turn in replies:
                if isinstance(turn, str):
                    turn = {"role": "assistant", "content": turn}
                elif not isinstance(turn, Mapping):
                    bad_return("process_conversation()", turn, "a list of dicts")
                convert.turn_to_proto({"role": "assistant", **turn}, reply.replies.add())


def _fill(reply: system_pb2.ProcessResponse, processed: Any, example: dict[str, Any]) -> None:
    if not isinstance(processed, Mapping):
        bad_return("process()", processed, "a dict")
    with Encoding("process()"):
        convert.processed_to_proto(processed, example, reply)


class EvaluatorAdapter:
    """A user's evaluator."""

    origin = "evaluator"
    threaded: Mapping[str, tuple[Any, Any]] = {}

    def __init__(self, evaluator: Any, max_concurrency: int | None) -> None:
        self.name = evaluator_name(evaluator)
        stated = stated_limit(evaluator, max_concurrency)
        pool = ThreadPool(stated or SYNC_CONCURRENCY, self.name)
        self.close = pool.close
        method = "assess" if callable(getattr(evaluator, "assess", None)) else "score"
        self._score = UserMethod(evaluator, method, pool)
        self._method = f"{method}()"
        self.limit = stated or (ASYNC_CONCURRENCY if self._score.is_async else SYNC_CONCURRENCY)
        lower = frozenset(getattr(evaluator, "lower_is_better", None) or ())
        worst = getattr(evaluator, "worst", None) or {}
        named = getattr(evaluator, "scores", None) or ()
        texts = named if isinstance(named, Mapping) else dict.fromkeys(named, "")
        self.info = evaluator_pb2.EvaluatorInfo(
            name=self.name,
            version=str(getattr(evaluator, "version", None) or ""),
            description=described(evaluator),
            scores=[
                evaluator_pb2.ScoreInfo(
                    name=name,
                    description=text,
                    higher_is_better=name not in lower,
                    direction=evaluator_pb2.SCORE_DIRECTION_LOWER_IS_BETTER
                    if name in lower
                    else evaluator_pb2.SCORE_DIRECTION_HIGHER_IS_BETTER,
                    worst=worst.get(name),
                )
                for name, text in texts.items()
            ],
            required_fields=getattr(evaluator, "required_fields", None) or (),
            max_concurrency=stated,
        )
        declare_options(self.info, [self._score])
        self.answers = {"score": self.score}

    async def score(
        self, request: evaluator_pb2.ScoreRequest, reply: evaluator_pb2.ScoreResponse
    ) -> None:
        """Score one pair."""
        original = decoded_example(request.original)
        processed = decoded_example(request.processed)
        options = decoded_options(request.options)
        declared = self._score.options.declared
        if options and declared == DeclaredOptions():
            raise RemoteFailure(
                f'evaluator "{self.name}" takes no options, and got: {", ".join(options)}',
                origin=self.origin,
                reason="INVALID_ARGUMENT",
            )
        who = f'evaluator "{self.name}"'
        arguments = self._score.options.arguments(options, who, strict=True)
        returned = await self._score(original, processed, arguments=arguments)
        # An assessment has scores; a plain dict may have a score of that name, too.
        plain = isinstance(returned, Mapping) and not isinstance(returned.get("scores"), Mapping)
        scores = returned if plain else part(returned, "scores")
        if not isinstance(scores, Mapping):
            bad_return(self._method, returned, "a dict of scores", self.origin)
        with Encoding(self._method, self.origin):
            for name, value in scores.items():
                if value is None:
                    continue
                if not isinstance(value, int | float):
                    bad_return(f'{self._method}["{name}"]', value, "a number", self.origin)
                reply.scores[name] = value
            if not plain:
                reply.explanation = part(returned, "explanation") or ""
                convert.fields_to_proto(part(returned, "details") or {}, reply.details)


class Decoding:
    """Turn a request that cannot be read into a refusal."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, Unencodable):
            raise RemoteFailure(str(error), reason="INVALID_ARGUMENT") from error


class Encoding:
    """Turn what cannot be sent back into a failure."""

    def __init__(self, method: str, origin: str = "system") -> None:
        self._method = method
        self._origin = origin

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, ValueError | TypeError | OverflowError):
            raise RemoteFailure(
                f"what {self._method} returned cannot be sent: {error}",
                origin=self._origin,
                reason="UNENCODABLE_VALUE",
            ) from error


def decoded_example(message: example_pb2.Example) -> dict[str, Any]:
    """Decode an example, or refuse the request."""
    try:
        return convert.example_from_proto(message)
    except Unencodable as error:
        raise RemoteFailure(str(error), reason="INVALID_ARGUMENT") from error


def declare_options(info: Any, methods: Iterable[UserMethod]) -> None:
    """Announce the options that the methods of a component take."""
    declared = joined(method.options.declared for method in methods)
    options_to_proto(declared, info.declared_options)


def decoded_options(options: Mapping[str, example_pb2.Value]) -> dict[str, Any]:
    """Decode options, or refuse the request."""
    if not options:
        return {}
    with Decoding():
        return convert.fields_from_proto(options, "options.")
