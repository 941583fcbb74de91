"""What a memory system answered, as rows."""

import asyncio
from typing import Any, Protocol

from cbench_server.datasets.memory import transcript
from cbench_server.lane import COUNTING, LONG_TEXT, Hub, Item
from cbench_server.results import EvalRow, Failure
from cbench_server.row_parts import carried, text_size, usage_metadata
from cbench_server.runstore import SpooledExample
from cbench_server.systems.memory_caller import QueryReply
from cbench_server.types import Example


class Asked(Protocol):
    """The conversation a row asks about."""

    head: SpooledExample
    tokens: int
    ingest_time: float
    stored_bytes: int | None


class MemoryRows:
    """Makes the rows of one memory system."""

    def __init__(self, runner: Hub, system: str) -> None:
        self._runner = runner
        self._system = system
        self._last_counted = ("", 0)

    async def measure(self, conversation: Asked) -> None:
        """Count the conversation as it would read if all of it were handed to a model."""
        conversation.tokens = await self._count(transcript(conversation.head.example["turns"]))

    def failed(self, conversation: Asked, item: Item, failure: Failure) -> EvalRow:
        """Make the row of a question that got no answer."""
        seconds = self._runner.clock() - item.called_at
        return self._row(
            conversation,
            item,
            seconds,
            scores={},
            input_tokens=conversation.tokens,
            output_tokens=0,
            failure=failure,
            attempts=failure.attempts,
        )

    async def scored(
        self, conversation: Asked, item: Item, reply: QueryReply, attempts: int
    ) -> EvalRow:
        """Count and score an answer, and make its row."""
        replied_at = self._runner.clock()
        example = item.spooled.example
        processed = _processed(example, reply)
        size = text_size(processed)
        self._runner.budget.hold(size)
        item.size += size
        tokens_out = reply.context_tokens
        if reply.context is not None:
            tokens_out = await self._count_context(reply.context)
        plan = self._runner.plan.datasets[item.spooled.dataset]
        scored = await self._runner.scoring.score_row(plan.evaluators, example, processed)
        return self._row(
            conversation,
            item,
            reply.latency,
            reply,
            scores=scored.scores,
            # What a model had to read: the context handed to it, else all there was.
            input_tokens=conversation.tokens if tokens_out is None else tokens_out,
            output_tokens=await self._count(reply.response or ""),
            primary_score=plan.score_name(scored.scores),
            context_tokens_in=None if tokens_out is None else conversation.tokens,
            context_tokens_out=tokens_out,
            usage=reply.usage,
            attempts=attempts,
            scoring_time=self._runner.clock() - replied_at,
            reader_time=reply.reader_time,
            reader_usage=reply.reader_usage,
            details=scored.details,
            evaluator_failures=scored.failures,
            processed=processed,
            carried=carried(processed, example),
        )

    def _row(
        self,
        conversation: Asked,
        item: Item,
        latency: float,
        reply: QueryReply | None = None,
        **rest: Any,
    ) -> EvalRow:
        spooled = item.spooled
        stored = conversation.stored_bytes
        if reply is not None and reply.stored_bytes is not None:
            stored = reply.stored_bytes
        return EvalRow(
            system=self._system,
            example_id=spooled.example["id"],
            dataset=spooled.dataset,
            index=spooled.index,
            ordinal=spooled.ordinal,
            repeat=item.repeat,
            queue_time=item.called_at - item.ready_at,
            group=spooled.example["group"],
            latency=latency,
            ingest_time=conversation.ingest_time,
            stored_bytes=stored,
            metadata=_metadata(conversation, spooled.example, latency, reply),
            **rest,
        )

    async def _count_context(self, context: str) -> int:
        """Count a context; many systems return the same one to every question."""
        if context != self._last_counted[0]:
            self._last_counted = (context, await self._count(context))
        return self._last_counted[1]

    async def _count(self, text: str) -> int:
        tokenizer = self._runner.plan.tokenizer
        if len(text) <= LONG_TEXT:
            return tokenizer(text)
        return await asyncio.get_running_loop().run_in_executor(COUNTING, tokenizer, text)


def _processed(example: Example, reply: QueryReply) -> Example:
    processed: Example = {"id": example["id"], "question": example["question"]}
    if reply.response is not None:
        processed["response"] = reply.response
    if reply.context is not None:
        processed["context"] = reply.context
    return processed


def _metadata(
    conversation: Asked, example: Example, latency: float, reply: QueryReply | None
) -> dict[str, Any]:
    metadata = {
        "qa_type": example["question_type"],
        "conversation_id": example["group"],
        "turn_count": example["turn_count"],
        "ingest_latency": conversation.ingest_time,
        "query_latency": latency,
    }
    if reply is None:
        return metadata
    if reply.retrieval_time is not None:
        metadata["retrieval_latency"] = reply.retrieval_time
    if reply.context_tokens is not None:
        metadata["reported_context_tokens"] = reply.context_tokens
    # Ours last: what a system says of itself must not pose as what was measured.
    return {**reply.metadata, **usage_metadata(reply.usage), **metadata}
