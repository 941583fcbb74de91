"""Rows of a run: the only place that builds an EvalRow for a call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec.structs import replace

from cbench_server.datasets.catalog.memory import transcript
from cbench_server.errors import Unencodable
from cbench_server.metrics.groups import groups_of
from cbench_server.results import (
    ANCHOR,
    INGESTED_ALONE,
    JUDGE_PROMPT_CUT,
    OVER_BUDGET,
    RETRIEVAL_POINTERS,
    EvalRow,
    Failure,
)
from cbench_server.runs.context_tokens import tells_context
from cbench_server.runs.plan import DatasetPlan, Plan
from cbench_server.runs.store import SpooledExample
from cbench_server.scoring.assessment import Overflowed, is_context_only
from cbench_server.scoring.placement import ScoredRow
from cbench_server.systems.caller import Answer, Call, Recall
from cbench_server.texts.pointers import count_pointers
from cbench_server.tokens import count_fields_like
from cbench_server.types import Example

NO_RECALL = Recall()


@dataclass(slots=True, eq=False)
class Talk:
    """What the rows about one conversation have in common."""

    head: SpooledExample
    tokens: int = 0
    """Of the conversation as it would read if all of it were handed to a model."""
    ingest_time: float = 0.0
    ingested_alone: bool = False
    """Whether nothing else was called meanwhile."""
    stored_bytes: int | None = None


@dataclass(slots=True, eq=False)
class Item(Call):
    """One row to make: the call for it, and what is known of it on the way."""

    spooled: SpooledExample
    repeat: int
    ready_at: float
    size: int
    """Bytes held for it in memory."""
    called_at: float = 0.0
    latency: float | None = None
    """What its call took, where it was answered and its row fails even so."""
    attempts: int = 1
    in_flight: int = 0
    """Calls of its system when it was sent, itself included."""
    is_alone: bool = False
    """Whether it was timed while nothing else was called."""
    has_company: bool = False
    """Whether other calls may have made it late."""
    marks: tuple[str, ...] = ()
    talk: Talk | None = None
    """The conversation it asks about, in a memory run."""

    def took(self, now: float) -> float:
        """Seconds its call took, until now unless it was answered; none if there was none."""
        if self.latency is not None:
            return self.latency
        return now - self.called_at if self.call_id else 0.0

    def sent_among(self, calls: int) -> None:
        """See Call."""
        self.in_flight = calls

    @property
    def may_move(self) -> bool:
        """Whether a replica that has not failed it can be asked."""
        return self.route is not None and self.route.may_move

    @property
    def moves(self) -> int:
        """How often a replica took it over from another, which is one more attempt each."""
        return 0 if self.route is None else self.route.moves

    @property
    def told(self) -> dict[str, str | int]:
        """Which row it makes."""
        return {
            "cbench.dataset": self.spooled.dataset,
            "cbench.ordinal": self.spooled.ordinal,
            "cbench.repeat": self.repeat,
        }


class Tokens(NamedTuple):
    """Token counts of a row, and whether its answer tells what became of the context."""

    input: int
    output: int
    context_in: int | None
    context_out: int | None
    tells_context: bool = True
    """What a memory returns is what it recalled."""


class RowBuilder:
    """Builds the rows of one system."""

    def __init__(self, system: str, plan: Plan) -> None:
        self._system = system
        self._plan = plan
        self._last_counted = ("", 0)
        self._marks = (ANCHOR,) if system in plan.anchors else ()

    def measure(self, talk: Talk) -> None:
        """Count a conversation as a whole."""
        talk.tokens = self._plan.tokenizer(transcript(talk.head.example["turns"]))

    def tokens(self, answer: Answer) -> Tokens:
        """Count what a system was given and what it made of it."""
        item: Item = answer.call
        plan, spooled = self._plan, item.spooled
        processed = answer.processed
        if item.talk is not None:
            return self._memory_tokens(item.talk, answer)
        known = spooled.field_tokens
        counts = count_fields_like(
            processed, spooled.example, known, plan.tokenizer, plan.text_fields
        )
        given = self._input_tokens(item)
        if not tells_context(processed, spooled.example, is_read=answer.reader_usage is not None):
            return Tokens(given, sum(counts.values()), None, None, tells_context=False)
        self._look_for_pointers(answer)
        return Tokens(given, sum(counts.values()), known.get("context"), counts.get("context"))

    def _look_for_pointers(self, answer: Answer) -> None:
        """Mark a context that the system changed and that points elsewhere."""
        text = answer.processed["context"]
        original = answer.call.spooled.example.get("context")
        is_changed = "context" not in answer.carried and isinstance(original, str)
        if is_changed and count_pointers(text, original):
            answer.marks = (*answer.marks, RETRIEVAL_POINTERS)

    def _input_tokens(self, item: Item) -> int:
        withheld = self._plan.datasets[item.spooled.dataset].reference_fields
        # There are fewer fields than names of references.
        total = 0
        for name, count in item.spooled.field_tokens.items():
            if name not in withheld:
                total += count
        return total

    def _memory_tokens(self, talk: Talk, answer: Answer) -> Tokens:
        context_out = (answer.recall or NO_RECALL).context_tokens
        context = answer.processed.get("context")
        if context is not None:
            # Many systems return the same context to every question.
            if context != self._last_counted[0]:
                self._last_counted = (context, self._plan.tokenizer(context))
            context_out = self._last_counted[1]
        budget = self._plan.query_budget
        if budget is not None and (context_out or 0) > budget:
            answer.marks = (*answer.marks, OVER_BUDGET)
        return Tokens(
            # What a model had to read: the context handed to it, else all there was.
            talk.tokens if context_out is None else context_out,
            self._plan.tokenizer(answer.processed.get("response") or ""),
            None if context_out is None else talk.tokens,
            context_out,
        )

    def scored(
        self, answer: Answer, scored: ScoredRow, tokens: Tokens, scoring_time: float
    ) -> EvalRow:
        """Make the row of a call that was answered and scored."""
        item: Item = answer.call
        spooled = item.spooled
        example = spooled.example
        talk = item.talk
        dataset = self._plan.datasets[spooled.dataset]
        headline = dataset.score_name(example)
        context_only = is_context_only(answer.processed)
        if headline not in scored.scores:
            charge_system(scored, headline, dataset)
        # By position, which takes half the time that 36 names do.
        marks = item.marks if talk is None else talk_marks(item, talk)
        marks += dataset.marks_of(headline, example, answer.processed, context_only=context_only)
        marks += self._marks + cut_marks(scored)
        row = EvalRow(
            self._system,
            example["id"],
            scored.scores,
            tokens.input,
            tokens.output,
            usage_metadata(answer.usage) if talk is None else talk_metadata(item, talk, answer),
            answer.latency,
            spooled.dataset,
            spooled.index,
            spooled.ordinal,
            item.repeat,
            None,
            headline,
            tokens.context_in,
            tokens.context_out,
            answer.usage,
            item.attempts + item.moves,
            item.called_at - item.ready_at,
            scoring_time,
            answer.reader_time,
            answer.reader_usage,
            False,
            str(example.get("group") or ""),
            scored.details,
            scored.failures,
            answer.processed,
            0.0 if talk is None else talk.ingest_time,
            None if talk is None else stored_bytes(talk, answer),
            tuple(answer.carried),
            context_only,
            not_applicable(dataset, example, scored, context_only=context_only),
            answer.handler_seconds,
            item.in_flight,
            item.is_alone,
            answer.finish_reason,
            marks + answer.marks if answer.marks else marks,
            groups=groups_of(example, dataset.groups) if dataset.groups else {},
            traceparent=item.kept_trace,
            replica=item.replica,
        )
        if self._plan.money is not None and item.account is not None:
            self._plan.money.charge(item, answer, self._system)
            item.account.settle(row)
        return row

    def failed(self, item: Item, failure: Failure, latency: float) -> EvalRow:
        """Make the row of a call that has no answer."""
        spooled, talk = item.spooled, item.talk
        row = EvalRow(
            system=self._system,
            example_id=spooled.example["id"],
            scores={},
            input_tokens=self._input_tokens(item) if talk is None else talk.tokens,
            output_tokens=0,
            metadata={} if talk is None else talk_metadata(item, talk, None, latency),
            latency=latency,
            dataset=spooled.dataset,
            index=spooled.index,
            ordinal=spooled.ordinal,
            repeat=item.repeat,
            failure=failure,
            attempts=failure.attempts + item.moves,
            queue_time=item.called_at - item.ready_at,
            group=str(spooled.example.get("group") or ""),
            ingest_time=0.0 if talk is None else talk.ingest_time,
            stored_bytes=None if talk is None else talk.stored_bytes,
            calls_in_flight=item.in_flight,
            alone=item.is_alone,
            marks=(item.marks if talk is None else talk_marks(item, talk)) + self._marks,
            groups=groups_of(spooled.example, self._plan.datasets[spooled.dataset].groups),
            traceparent=item.kept_trace,
            replica=item.replica,
        )
        set_headline(row, spooled.example, self._plan.datasets[spooled.dataset])
        if self._plan.money is not None and item.account is not None:
            self._plan.money.charge_failure(item, self._system)
            item.account.settle(row)
        return row


def unstorable_row(row: EvalRow, error: Unencodable) -> EvalRow:
    """Make the row of an answer that cannot be written down."""
    return replace(
        row,
        scores={},
        metadata={},
        usage=None,
        details={},
        evaluator_failures={},
        processed=None,
        primary_score="",
        failure=Failure("system", error.reason, str(error), attempts=row.attempts),
    )


def set_headline(row: EvalRow, example: Example, dataset: DatasetPlan) -> None:
    """Say what counts for a row without an answer; has to search the whole context."""
    row.primary_score = dataset.score_name(example)
    # What kind of system it is may show on other rows only.
    applicability = dataset.applicability
    row.not_applicable = (
        *applicability.missing(example),
        *applicability.missing_retention(example),
    )


def not_applicable(
    dataset: DatasetPlan, example: Example, scored: ScoredRow, *, context_only: bool
) -> tuple[str, ...]:
    """Name the scores that the example cannot have."""
    missing = dataset.applicability.missing(example)
    retention = dataset.applicability.retention
    if context_only and retention and retention[0] not in scored.scores:
        # It was asked, and had nothing to look for; unless it failed.
        owner = dataset.owner_of(retention[0])
        if owner not in scored.failures:
            missing += retention
    return missing


def charge_system(scored: ScoredRow, headline: str, dataset: DatasetPlan) -> None:
    """Give the worst value where what a system returned could not be scored."""
    failure = scored.failures.get(dataset.owner_of(headline))
    worst = dataset.worst_of(headline)
    if failure is not None and failure.origin == "system" and worst is not None:
        scored.scores[headline] = worst


def cut_marks(scored: ScoredRow) -> tuple[str, ...]:
    """Mark a row of which an evaluator's model read only a part, or nothing."""
    is_cut = any("prompts_cut" in each for each in scored.details.values())
    is_refused = any(each.reason == Overflowed.reason for each in scored.failures.values())
    return (JUDGE_PROMPT_CUT,) if is_cut or is_refused else ()


def stored_bytes(talk: Talk, answer: Answer) -> int | None:
    """What a conversation occupies, as the system said last."""
    said = (answer.recall or NO_RECALL).stored_bytes
    return talk.stored_bytes if said is None else said


def usage_metadata(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give reported usage under the names the model's rows have."""
    if not usage:
        return {}
    return {
        name: usage.get(name) or 0
        for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }


def talk_metadata(
    item: Item, talk: Talk, answer: Answer | None, latency: float = 0.0
) -> dict[str, Any]:
    """Say what kind of question it was, and what it took."""
    example = item.spooled.example
    metadata = {
        "qa_type": example["question_type"],
        "conversation_id": example["group"],
        "turn_count": example["turn_count"],
        "ingest_latency": talk.ingest_time,
        "query_latency": latency if answer is None else answer.latency,
    }
    if answer is None:
        return metadata
    recall = answer.recall or NO_RECALL
    if recall.retrieval_time is not None:
        metadata["retrieval_latency"] = recall.retrieval_time
    if recall.context_tokens is not None:
        metadata["reported_context_tokens"] = recall.context_tokens
    # Ours last: what a system says of itself must not pose as what was measured.
    return {**recall.metadata, **usage_metadata(answer.usage), **metadata}


def talk_marks(item: Item, talk: Talk) -> tuple[str, ...]:
    """Return the marks of a row about a conversation."""
    return (*item.marks, INGESTED_ALONE) if talk.ingested_alone else item.marks
