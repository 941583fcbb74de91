"""Datasets of a run: which examples were asked for, and how they are read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, Protocol

from cbench_server.datasets.conversations import questions, transcripts
from cbench_server.datasets.mapping import mapped
from cbench_server.datasets.protocol import DatasetProtocol
from cbench_server.datasets.published import (
    as_examples,
    benchmark_followed,
    benchmark_of_file,
    protocol_of_file,
)
from cbench_server.datasets.record import DatasetRecord
from cbench_server.datasets.shuffle import shuffled
from cbench_server.datasets.withheld import MADE_OF_A_SOURCE, OF_ANY_FILE, Withheld, of_evaluators
from cbench_server.errors import BadDataset, InvalidSpec
from cbench_server.runs.spool import FIRST_ROWS, choose, prepare
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.wiring import UNKNOWN_PROTOCOL
from cbench_server.spec import DatasetRef, Run, RunSpec
from cbench_server.tokens import Tokenizer, get_tokenizer
from cbench_server.types import Example

Opening = Callable[[int], Iterator[SpooledExample]]
"""Opens a dataset, given the ordinal of its first example."""


class Uploads(Protocol):
    """Examples clients have sent, by digest."""

    def iterate(self, digest: str) -> Iterator[Example]:
        """Yield the examples of an upload."""
        ...

    def count(self, digest: str) -> int:
        """Return how many examples an upload has, or raise NotFound."""
        ...


@dataclass(frozen=True)
class ResolvedDataset:
    """A dataset of a run, ready to be read."""

    ref: DatasetRef
    record: DatasetRecord | None
    """None for an upload."""
    uploads: Uploads
    seed: int = 0
    data_dir: str = ""
    is_memory: bool = False
    question_types: tuple[str, ...] = ()
    recorded_benchmark: str | None = None
    """What a run says of an upload that it has read; None before it is."""

    def as_recorded(self, config: Mapping[str, Any]) -> "ResolvedDataset":
        """Return it as a run has read it: an upload may have been deleted since."""
        described = {each.get("label"): each for each in config.get("datasets", ())}
        protocol = described.get(self.ref.label, {}).get("protocol") or {}
        return replace(self, recorded_benchmark=benchmark_followed(protocol.get("follows", "")))

    def open(
        self,
        first_ordinal: int,
        tokenizer: Tokenizer,
        text_fields: frozenset[str] | None,
        *,
        recorded: Mapping[str, Any] | None = None,
    ) -> Iterator[SpooledExample]:
        """Read it from its start; in a memory run, question by question.

        An upload is read twice: what is wrong at its end is found before anything is called.
        Files elsewhere must be those that a run has `recorded`.
        """
        if recorded is not None:
            self._check_files(recorded)
        if self.record is None and self.uploads.count(self.ref.upload) > FIRST_ROWS:
            for _ in choose(self._asked(), **self._choice()):
                pass
        yield from prepare(
            self._asked(),
            first_ordinal=first_ordinal,
            tokenizer=tokenizer,
            text_fields=text_fields,
            **self._choice(),
        )

    def _check_files(self, recorded: Mapping[str, Any]) -> None:
        known = recorded.get("files")
        if known and self.record is not None and self.record.provenance is not None:
            files = self.record.provenance()["files"]
            names = sorted({*known, *files})
            if changed := [name for name in names if known.get(name) != files.get(name)]:
                raise BadDataset(
                    f'dataset "{self.ref.label}" has changed since the run began: {changed[0]} is '
                    "another file. Start a new run."
                )

    def _asked(self) -> Iterator[Example]:
        return self.originals() if self.is_memory else self.examples()

    def _choice(self) -> dict[str, Any]:
        """Return what is chosen of the examples; questions are chosen already."""
        if self.is_memory:
            return {"label": self.ref.label}
        ref = self.ref
        return {"label": ref.label, "where": ref.where, "max_examples": ref.max_examples}

    def originals(self) -> Iterator[Example]:
        """Iterate what the rows will be about, unchecked: the examples or questions chosen."""
        if self.is_memory:
            return questions(
                self.examples(),
                label=self.ref.label,
                where=self.ref.where,
                question_types=self.question_types,
                max_conversations=self.ref.max_examples,
                read_again=self.examples,
            )
        where = self.ref.where.items()
        chosen = (
            example
            for example in self.examples()
            if all(str(example.get(name)) == value for name, value in where)
        )
        return islice(chosen, self.ref.max_examples)

    def examples(self) -> Iterator[Example]:
        """Iterate the examples in the order of the run, before filters and the cap."""
        if self.record is None:
            examples = as_examples(self.uploads.iterate(self.ref.upload))
        else:
            options: dict[str, Any] = self._options()
            if self.record.hub is not None:
                options["skip_bad_lines"] = self.ref.skip_bad_lines
            examples = self.record.examples(self.ref.config, **options)
        if self.ref.mapping:
            examples = mapped(examples, self.ref.mapping, self.ref.label)
        if self.ref.as_transcript:
            examples = transcripts(examples, label=self.ref.label)
        return shuffled(examples, self.seed) if self.ref.shuffle else examples

    def _options(self) -> dict[str, str]:
        asked = {"split": self.ref.split, "revision": self.ref.revision}
        mirror = {} if self.record is None else self.record.mirror_option(self.data_dir)
        if self.record is not None and self.record.hub is not None:
            return asked | mirror
        for name, value in asked.items():
            if value:
                raise InvalidSpec(
                    f'dataset "{self.ref.label}" has no {name}; leave out {name} "{value}".',
                    field=name,
                )
        return mirror

    @cached_property
    def protocol(self) -> DatasetProtocol:
        """What its config measures, or the benchmark whose file was uploaded as it is."""
        if self.record is not None:
            return self.record.protocol_of(self.ref.config)
        return protocol_of_file(self._benchmark) or UNKNOWN_PROTOCOL

    @property
    def worded_as(self) -> tuple[str, str]:
        """The dataset and config whose prompt it has; a file that is only called like one has
        that of any."""
        if self.record is not None:
            return self.record.name, self.record.config_of(self.ref.config)
        return self._benchmark, ""

    @property
    def _benchmark(self) -> str:
        """The benchmark in whose form an upload is, if any."""
        if self.recorded_benchmark is not None:
            return self.recorded_benchmark
        return "" if self.ref.mapping else benchmark_of_file(self._first)

    @cached_property
    def _first(self) -> Example:
        return next(self.uploads.iterate(self.ref.upload), {})

    def unshuffled(self) -> Iterator[Example]:
        """Iterate the examples in the order of their source."""
        return replace(self, ref=replace(self.ref, shuffle=False)).examples()

    @property
    def holds_conversations(self) -> bool:
        """Whether it is an upload of conversations, with questions about each."""
        if self.record is not None or self.ref.mapping:
            return False
        first = next(as_examples(iter([self._first])), {})
        return "turns" in first and "qa_pairs" in first

    def describe(self) -> dict[str, Any]:
        """Record what is needed to read the same examples again; asks the hub where it is read."""
        ref, record = self.ref, self.record
        described: dict[str, Any] = {
            "label": ref.label,
            "upload": ref.upload,
            "split": ref.split or self.protocol.split,
            "shuffle": ref.shuffle,
            "where": dict(ref.where),
            "max_examples": ref.max_examples,
            **({"mapping": dict(ref.mapping)} if ref.mapping else {}),
            **({"as_transcript": True} if ref.as_transcript else {}),
            **({"question_types": [*self.question_types]} if self.question_types else {}),
        }
        if record is None or record.hub is None:
            files = record.provenance() if record is not None and record.provenance else {}
            if record is not None:
                files |= record.own_files(ref.config, self.data_dir)
            return {**described, "revision": self.protocol.revision, **files}
        config = record.config_of(ref.config)
        return described | record.hub.provenance(config, **self._options())

    def reference_fields(self, spec: RunSpec) -> frozenset[str]:
        """The fields kept from systems."""
        if spec.expose_reference_fields:
            return frozenset()
        declared = self.record.reference_fields if self.record else OF_ANY_FILE
        own = MADE_OF_A_SOURCE if self.ref.as_transcript or self.ref.mapping else ()
        scored_by = of_evaluators(ref.name for ref in spec.evaluators)
        return Withheld((*declared, *own, *scored_by, *spec.reference_fields))


def sources_of(run: Run, datasets: Sequence[ResolvedDataset]) -> dict[str, Opening]:
    """Return how the datasets of a run are read, by their labels."""
    spec = run.spec
    known = {each.get("label"): each for each in run.config.get("datasets", ())}
    return {
        dataset.ref.label: partial(
            dataset.open,
            tokenizer=get_tokenizer(spec.tokenizer or None),
            text_fields=frozenset(spec.text_fields) or None,
            recorded=known.get(dataset.ref.label),
        )
        for dataset in datasets
    }
