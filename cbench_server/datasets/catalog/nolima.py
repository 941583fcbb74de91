"""NoLiMa: a needle in a book that shares no words with the question about it."""

from collections.abc import Iterator
from typing import Any

from cbench_server.datasets.generated.draws import Draws
from cbench_server.datasets.hub.sources import Access, Part, Row
from cbench_server.datasets.protocol import EVIDENCE, Aggregation, DatasetProtocol, differs, use
from cbench_server.datasets.record import hub_dataset
from cbench_server.tokens import Tokenizer, get_tokenizer
from cbench_server.types import Example

_REPOSITORY = "amodaresi/NoLiMa"
_HAYSTACKS = ("haystack/rand_shuffle", "haystack")
_SETS = {"": "needle_set", "hard-": "needle_set_hard", "direct-": "needle_set_ONLYDirect"}
_LENGTHS = {
    "250": 250,
    "500": 500,
    "1k": 1_000,
    "2k": 2_000,
    "4k": 4_000,
    "8k": 8_000,
    "16k": 16_000,
    "32k": 32_000,
}
_OF_LENGTHS = "A length alone has a mean; a run on all of them has the effective length as well."
_DEPTHS = tuple(range(0, 101, 4))
_BOOKS = 5


def _nolima(rows: Iterator[Row], access: Access) -> Iterator[Example]:
    tokenizer, books = get_tokenizer(None), list[list[str]]()
    length = _LENGTHS.get(access.config.rpartition("-")[2], 0)
    for needle in rows:
        books = books or [*_books(access, length, tokenizer)]
        for test_id, test in needle["tests"].items():
            for hop, asked in needle["questions"].items():
                base = f"{needle['id']}_{test_id}_{hop}"
                for place, (book, depth) in _places(base, len(books), is_grid=bool(length)):
                    made = _example(f"{base}{place}", needle, test, (hop, asked))
                    yield _hidden(made, books[book], depth, length)


def _books(access: Access, length: int, tokenizer: Tokenizer) -> Iterator[list[str]]:
    """Yield the lines of each book, as far as the length goes; of the first alone without one."""
    for number, (_, path) in enumerate(access.text_files(_REPOSITORY, _HAYSTACKS)):
        if number >= (_BOOKS if length else 1):
            return
        lines = path.read_text(encoding="utf-8").splitlines()
        yield _cut(lines, length, tokenizer) if length else lines


def _cut(lines: list[str], length: int, tokenizer: Tokenizer) -> list[str]:
    kept: list[str] = []
    left = length
    for line in lines:
        left -= tokenizer(line) + 1
        if left < 0:
            break
        kept.append(line)
    return kept


def _places(base: str, books: int, *, is_grid: bool) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield where the needle goes: at every depth of every book, or at one that is drawn."""
    if not is_grid:
        yield "", (0, Draws(0, "nolima", base).below(101))
        return
    for book in range(books):
        for depth in _DEPTHS:
            yield f"_b{book + 1}_d{depth}", (book, depth)


def _example(example_id: str, needle: Row, test: Row, question: tuple[str, str]) -> Example:
    named = needle.get("character_set") or ["Alice"]
    character = Draws(0, "nolima", example_id).pick(named)
    arguments = test.get("input_args") or []
    hop, asked = question
    text = _filled(needle["needle"], character, arguments)
    # Who was drawn is the answer, whatever else is listed; a needle without a place for him has it.
    given = [] if "{CHAR}" in needle["needle"] else test.get("gold_answers") or []
    gold = [given] if isinstance(given, str) else [*map(str, given)] or [character]
    return {
        "id": example_id,
        "question": _filled(asked, character, arguments),
        "answer": gold[0],
        "answers": gold,
        "evidence": [text],
        "hop": hop,
    }


def _hidden(example: Example, lines: list[str], depth: int, length: int) -> Example:
    """Put the needle into a book."""
    at = len(lines) * depth // 100
    context = "\n".join([*lines[:at], *example["evidence"], *lines[at:]])
    measured = {"length": length} if length else {}
    return {**example, "context": context, "depth": depth, **measured}


def _filled(template: str, character: str, arguments: list[Any]) -> str:
    text = template.replace("{CHAR}", character)
    for number, argument in enumerate(arguments, start=1):
        text = text.replace(f"{{{number}}}", str(argument))
    return text


def _protocol(config: str) -> DatasetProtocol:
    cut = "Contexts are cut between lines, by cl100k_base instead of each model's own tokens."
    whole = "One drawn place in one whole book; lengths such as nolima:8k have the published grid."
    is_whole = config.startswith("needle_set")
    return DatasetProtocol(
        follows="adobe-research/NoLiMa, evaluation (contains)",
        shown=("context", "question", "hop", *(() if is_whole else ("length",))),
        withheld=("answer", "answers", "evidence", "depth"),
        extraction="The response has to contain the name, in its own spelling.",
        evaluators=use("string-match", mode="part", case_sensitive=True) + EVIDENCE,
        primary_score="string_match",
        groups=("length", "depth", "hop"),
        aggregate=Aggregation() if is_whole else Aggregation("effective-length"),
        data=differs(whole if is_whole else cut),
        aggregation=differs(_OF_LENGTHS),
    )


NOLIMA = hub_dataset(
    "nolima",
    {
        **{
            f"{prefix}{length}": (
                Part(repository=_REPOSITORY, config=name, file=f"needlesets/{name}.json"),
            )
            for prefix, name in _SETS.items()
            for length in _LENGTHS
        },
        **{
            name: (Part(repository=_REPOSITORY, config=name, file=f"needlesets/{name}.json"),)
            for name in _SETS.values()
        },
    },
    _nolima,
    text_folders=_HAYSTACKS,
    default_config="8k",
    family="long-context",
    protocol=_protocol,
    description="A needle in a book that shares no words with the question, by length and depth.",
    licence="Adobe Research License",
    citation="Modarressi et al. 2025, arXiv:2502.05167",
)

RECORDS = (NOLIMA,)
