"""Records of datasets: where each comes from and how it is scored."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cbench_server.datasets.config_sizes import CONFIG_SIZES
from cbench_server.datasets.hub.sources import HubSource, Mapper, Part
from cbench_server.datasets.once import once
from cbench_server.datasets.protocol import SAME, DatasetProtocol, differs, uses
from cbench_server.errors import NotFound
from cbench_server.types import Example

# Fields that hold, or give away, the expected outcome. A leak is silent and
# flatters the result, a withheld input is noticed at once, so a name is listed
# if it nearly always means the outcome. Names that are as often an input
# (`code`, `output`, `summary`, `target`, `evidence`, `kwargs`) do not: loaders
# map them to `answer`, and a local file names them with --reference-field.
# `instruction_id_list` is the checker's form of what an IFEval prompt asks in
# words: a system that saw it could drop the words from the prompt unnoticed.
DEFAULT_REFERENCE_FIELDS = (
    "answer",
    "answers",
    "answer_aliases",
    "answer_index",
    "answer_number",
    "best_answer",
    "canonical_solution",
    "challenge_test_list",
    "correct_answer",
    "correct_answers",
    "correct_letter",
    "expected",
    "gold",
    "gold_label",
    "ground_truth",
    "instruction_id_list",
    "label",
    "patch",
    "possible_answers",
    "previous_answer",
    "question_decomposition",
    "reasoning",
    "reference",
    "references",
    "solution",
    "supporting_facts",
    "test",
    "test_imports",
    "test_list",
    "test_patch",
    "test_setup_code",
    "tests",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRecord:
    """One dataset: its name, how to load it, what to withhold and how to score it.

    `load(config, **options)` iterates the examples in the source's order and
    holds only a few of them at a time; call it through `examples`, which
    checks the config. `protocol` gives the protocol of each config; a record
    without one has the same for all, made of `evaluators`, `primary_score` and
    `official`, which says whether that score is the benchmark's own. Of a record
    with one, these three are what its default config has.
    `size` is the number of examples of the default config, None when unknown.
    `aliases` are other names for it.
    """

    name: str
    load: Callable[..., Iterator[Example]]
    description: str
    family: str = ""
    configs: tuple[str, ...] = ()
    default_config: str = ""
    reference_fields: tuple[str, ...] = DEFAULT_REFERENCE_FIELDS
    evaluators: tuple[str, ...] = ("answer-quality",)
    primary_score: str = "f1"
    official: bool = True
    embedded: bool = False
    size: int | None = None
    questions: int | None = None
    """How many questions each config asks about its conversations, where it has some."""
    licence: str = ""
    citation: str = ""
    source: str = ""
    split: str = ""
    revision: str = ""
    aliases: tuple[str, ...] = ()
    check_config: Callable[[str], str] | None = None
    """Set if configs carry parameters: returns the config in full, or raises NotFound."""
    hub: HubSource | None = None
    """Set if the examples come from a mirror or the hub: then `load` takes `split`, `revision`,
    `data_dir` and `skip_bad_lines`."""
    protocol: Callable[[str], DatasetProtocol] | None = None
    reads_mirror: bool = False
    """Set if the examples are made of rows of a mirror or the hub: then `load` takes `data_dir`."""
    provenance: Callable[[], dict[str, Any]] | None = None
    """Set if the examples come from files that can change: tells which, and what is in them."""
    made_from: Callable[[str, str], dict[str, Any]] | None = None
    """Set if a config may name a file of the user's: tells which, of a config and a mirror."""

    def mirror_option(self, data_dir: str) -> dict[str, str]:
        """Return the option that says where the mirror is, if a mirror is read at all."""
        return {"data_dir": data_dir} if self.hub is not None or self.reads_mirror else {}

    def own_files(self, config: str, data_dir: str) -> dict[str, Any]:
        """Return what a run records of the user's files that a config names."""
        return self.made_from(self.config_of(config), data_dir) if self.made_from else {}

    def size_of(self, config: str = "") -> int | None:
        """Return how many examples of a config are published; None where that is not known."""
        chosen = self.config_of(config)
        if chosen == self.default_config:
            return self.size
        return CONFIG_SIZES.get(self.name, {}).get(chosen)

    def protocol_of(self, config: str = "") -> DatasetProtocol:
        """Return what a config measures, the default one when empty."""
        config = self.config_of(config)
        if self.protocol is None:
            return DatasetProtocol(
                follows=self.citation,
                source=self.source,
                revision=self.revision,
                split=self.split,
                shown=(),
                withheld=self.reference_fields,
                evaluators=uses(*self.evaluators),
                primary_score=self.primary_score,
                metric=SAME if self.official else differs("It is not the official metric."),
            )
        found = self.protocol(config)
        if self.hub is None:
            return replace(found, source=self.source, revision=self.revision, split=self.split)
        part = self.hub.parts[config][0]
        return replace(
            found,
            source=part.repository,
            revision=part.revision,
            split=part.split,
            published=part.published,
        )

    def protocols(self) -> list[tuple[DatasetProtocol, list[str]]]:
        """Return the different protocols, each with the configs that have it.

        The first is that of the default config.
        """
        found: list[tuple[DatasetProtocol, list[str]]] = []
        for config in dict.fromkeys((self.default_config, *self.configs)):
            protocol = self.protocol_of(config)
            for known, configs in found:
                if known == protocol:
                    configs.append(config)
                    break
            else:
                found.append((protocol, [config]))
        return found

    def is_available(self, data_dir: str | Path | None = None) -> bool:
        """Whether the default config can be loaded without a network.

        A dataset that a program registers is assumed to be available.
        """
        return self.hub is None or self.hub.is_mirrored(self.default_config, data_dir)

    def examples(self, config: str = "", **options: object) -> Iterator[Example]:
        """Iterate the examples of `config`, or of the default config when empty."""
        return map(once, self.load(self.config_of(config), **options))

    def config_of(self, asked: str) -> str:
        """Return the config asked for, or the default one; NotFound lists the known ones.

        As in names, `_` is accepted for `-`, and here the other way round as well.
        """
        if self.check_config is not None:
            return self.check_config(asked)
        if not asked or asked in self.configs:
            return asked or self.default_config
        for config in self.configs:
            if config.replace("_", "-") == asked.replace("_", "-"):
                return config
        raise NotFound(_unknown_config(self, asked))


def published(record: DatasetRecord, config: str, *, asks: bool) -> dict[str, int]:
    """Record how many examples a config has, or questions where each `asks` one; nothing where
    that is not known."""
    size = record.questions if asks else record.size_of(config)
    return {} if size is None else {"published_questions" if asks else "published_examples": size}


def hub_dataset(
    name: str,
    parts: Part | Mapping[str, tuple[Part, ...]],
    mapping: Mapper,
    *,
    default_config: str = "",
    companions: tuple[Part, ...] = (),
    text_folders: tuple[str, ...] = (),
    protocol: DatasetProtocol | Callable[[str], DatasetProtocol] | None = None,
    **about: Any,
) -> DatasetRecord:
    """Describe a dataset of the hub: one part, or the parts of each config.

    The protocol is one for all configs, or a function that gives a config's.
    """
    by_name = {default_config: (parts,)} if isinstance(parts, Part) else parts
    source = HubSource(name, by_name, mapping, companions, text_folders)
    first = by_name[default_config][0]
    if protocol is not None:
        about |= described_by(protocol, by_name, default_config)
    return DatasetRecord(
        name=name,
        load=source.load,
        hub=source,
        configs=tuple(config for config in by_name if config),
        default_config=default_config,
        source=first.repository,
        split=first.split,
        revision=first.revision,
        **about,
    )


def described_by(
    protocol: DatasetProtocol | Callable[[str], DatasetProtocol],
    configs: Iterable[str],
    default_config: str = "",
) -> dict[str, Any]:
    """Return the fields of a record that its protocol decides."""
    of = (lambda config: protocol) if isinstance(protocol, DatasetProtocol) else protocol
    withheld = [field for config in configs for field in of(config).withheld]
    usual = of(default_config)
    return {
        "protocol": of,
        "evaluators": usual.evaluator_names,
        "primary_score": usual.primary_score,
        "official": usual.metric.status == "same",
        "reference_fields": (*dict.fromkeys((*DEFAULT_REFERENCE_FIELDS, *withheld)),),
    }


def _unknown_config(record: DatasetRecord, config: str) -> str:
    if not record.configs:
        return f'dataset "{record.name}" has no configs; leave out ":{config}"'
    known = ", ".join(record.configs)
    return f'dataset "{record.name}" has no config "{config}"; it has: {known}'
