"""FRAMES: questions over several articles of Wikipedia, without them or with all of them."""

import ast
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from cbench_server.datasets.catalog.fields import as_text
from cbench_server.datasets.hub.sources import Access, Part, Row
from cbench_server.datasets.protocol import DatasetProtocol, differs, external
from cbench_server.datasets.record import hub_dataset
from cbench_server.errors import BadDataset
from cbench_server.types import Example

_REPOSITORY = "google/frames-benchmark"
# The articles are not part of the source: whoever has them puts them there.
_PAGES = Part(
    repository=_REPOSITORY, config="pages", split="pages", file="pages.jsonl", is_optional=True
)


def _frames(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    pages = _pages(access) if access.config == "oracle" else {}
    for index, row in enumerate(rows):
        prompt, number, links = row["Prompt"], row.get("Unnamed: 0"), _links(row)
        example: Example = {
            "id": index if number is None else number,
            "context": prompt,
            **({"question": prompt} if access.config == "oracle" else {}),
            "answer": row["Answer"],
            "reasoning_types": as_text(row.get("reasoning_types")),
            "wiki_links": links,
        }
        if access.config == "oracle":
            found = [pages[name] for link in links if (name := _title(link)) in pages]
            example["context"] = "\n\n".join(dict.fromkeys(found))
            example["missing_pages"] = [link for link in links if _title(link) not in pages]
        yield example


def _pages(access: Access) -> dict[str, str]:
    """Read the articles by their titles."""
    pages = {}
    for row in access.rows(_PAGES):
        title = _title(as_text(row.get("url") or row.get("title")))
        pages[title] = f"{title}\n{as_text(row.get('text')).strip()}"
    if not pages:
        raise BadDataset(
            'dataset "frames:oracle" needs the articles that its questions are about, which its '
            f"source has not: put them at DIR/{_REPOSITORY}/pages.jsonl with --data-dir DIR, an "
            "object with url and text on each line."
        )
    return pages


def _title(link: str) -> str:
    """Name an article, by its address or its title."""
    path = urlsplit(link).path if "://" in link else link
    return unquote(path.rpartition("/wiki/")[2]).replace("_", " ").strip()


def _links(row: Row) -> list[str]:
    given = row.get("wiki_links")
    if isinstance(given, str):
        try:
            given = ast.literal_eval(given)
        except (SyntaxError, ValueError):
            given = None
    if isinstance(given, list) and given:
        return [*map(str, given)]
    numbered = [
        (int(number), as_text(value))
        for name, value in row.items()
        if name.startswith("wikipedia_link_") and (number := _digits(name)) and value
    ]
    return [link for _, link in sorted(numbered)]


def _digits(text: str) -> str:
    return "".join(filter(str.isdecimal, text))


def _protocol(config: str) -> DatasetProtocol:
    naive = differs("Only the naive setting is here: no article is given.")
    oracle = differs("Articles are those that the mirror has, as they were when it was made.")
    return DatasetProtocol(
        follows="Krishna et al. 2024, figure 6",
        shown=("context", "question") if config == "oracle" else ("context",),
        withheld=("answer", "reasoning_types", "wiki_links", "missing_pages"),
        extraction="A judge says whether the response has the answer; f1 only overlaps with it.",
        groups=("reasoning_types",),
        metric=external("The official figure is accuracy by a judge; without one f1 is counted."),
        data=oracle if config == "oracle" else naive,
    )


FRAMES = hub_dataset(
    "frames",
    {"": (Part(repository=_REPOSITORY),), "oracle": (Part(repository=_REPOSITORY),)},
    _frames,
    companions=(_PAGES,),
    family="question-answering",
    protocol=_protocol,
    description="Questions over several Wikipedia articles; `oracle` gives them from a mirror.",
    size=824,
    licence="Apache-2.0",
    citation="Krishna et al. 2024, arXiv:2409.12941",
)

RECORDS = (FRAMES,)
