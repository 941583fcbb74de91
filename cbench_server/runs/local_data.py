"""Data of a local evaluation: what was given as a dataset, as checked examples with their tags."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from typing import Any

from cbench_server.datasets.loaded import LoadedDataset
from cbench_server.errors import InvalidInput, InvalidSpec, Unencodable
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.spool import prepare
from cbench_server.runs.store import SpooledExample
from cbench_server.tokens import Tokenizer
from cbench_server.types import Example

Named = str | PathLike[str]
Given = Named | Iterable[Example] | Sequence[Named | LoadedDataset]
"""A dataset as users give it: a name, a file, examples, or several names and files."""
Load = Callable[[Named], Iterable[Example]]


@dataclass(frozen=True)
class Source:
    """One dataset that was given."""

    examples: Iterable[Example]
    label: str | None = None
    """The tag of its rows; None where each example carries its own, if any."""
    loaded: LoadedDataset | None = None
    """What is known of it; None for examples of the user's own making."""


def sources_of(dataset: Given, load: Load) -> list[Source]:
    """Return the datasets that were given; `load` finds one by its name or file."""
    if _is_named(dataset):
        return [_source(dataset, load)]
    if isinstance(dataset, Mapping):
        raise InvalidInput("the dataset is a dict, which is one example; write [example].")
    if not isinstance(dataset, Iterable):
        raise InvalidInput(
            f"the dataset is of type {type(dataset).__name__}; give a name, a file, or examples."
        )
    if isinstance(dataset, list | tuple) and dataset and all(map(_is_named, dataset)):
        found = [_source(each, load) for each in dataset]
        labels = [str(each.label) for each in found]
        if len(set(labels)) < len(labels):
            raise InvalidSpec(
                f"each dataset can be named once; got {', '.join(labels)}. Give a file another "
                'name: load_dataset(FILE, tag="...")'
            )
        return found
    return [Source(_checked(dataset))]


def _is_named(given: object) -> bool:
    return isinstance(given, str | PathLike | LoadedDataset)


def _source(given: Any, load: Load) -> Source:
    loaded = given if isinstance(given, LoadedDataset) else load(given)
    if isinstance(loaded, LoadedDataset):
        return Source(loaded, loaded.label, loaded)
    # A registered function, known by its name only.
    return Source(_checked(loaded), str(given))


def _checked(examples: Iterable[Any]) -> Iterator[Example]:
    for position, example in enumerate(examples):
        if not isinstance(example, Mapping):
            raise InvalidInput(
                f"the dataset has a {type(example).__name__} at position {position}, "
                f"{example!r:.60}; each example is a dict."
            )
        yield dict(example)


def load(
    sources: Sequence[Source],
    max_examples: int | None,
    tokenizer: Tokenizer,
    text_fields: Sequence[str] | None,
) -> list[SpooledExample]:
    """Read the datasets whole, each example under its tag; `max_examples` is of each dataset."""
    fields = frozenset(text_fields) if text_fields is not None else None
    prepared: list[SpooledExample] = []
    for source in sources:
        first = len(prepared)
        by_tag: dict[str, list[tuple[int, Example]]] = {}
        for position, example in enumerate(islice(source.examples, max_examples)):
            tag = str(example.get("dataset", "")) if source.label is None else source.label
            by_tag.setdefault(tag, []).append((position, example))
        for tag, entries in by_tag.items():
            # An example without an id gets its position in the whole dataset.
            given = ({"id": position, **example} for position, example in entries)
            spooled = prepare(
                given,
                label=tag,
                first_ordinal=0,
                tokenizer=tokenizer,
                text_fields=fields,
                digest=_digest_if_any,
            )
            for (position, example), entry in zip(entries, spooled, strict=True):
                prepared.append(_as_given(replace(entry, ordinal=first + position), example))
    return sorted(prepared, key=lambda entry: entry.ordinal)


def check_asked(examples: Iterable[SpooledExample]) -> None:
    """Refuse conversations where nobody would be asked about them."""
    for entry in examples:
        if "turns" in entry.example and "qa_pairs" in entry.example:
            named = f'dataset "{entry.dataset}"' if entry.dataset else "the dataset"
            raise InvalidSpec(
                f"{named} holds conversations and questions about them. Give it to "
                "evaluate_memory(), or load it by load_dataset(NAME, as_transcript=True), which "
                "gives each question with the whole conversation as context."
            )


def _as_given(entry: SpooledExample, example: Example) -> SpooledExample:
    """Take away what was not in the example: systems get it as it was given."""
    whole, tokens = dict(entry.example), dict(entry.field_tokens)
    if "dataset" not in example:
        del whole["dataset"]
        tokens.pop("dataset", None)
    if "id" not in example:
        tokens.pop("id", None)
    return replace(entry, example=whole, field_tokens=tokens)


def _digest_if_any(example: Example) -> str:
    """Digest an example; one that holds objects has none, and is never cached."""
    try:
        return canonical_digest(example)
    except Unencodable:
        return ""
