"""Many documents, one of which answers the question, at a given place among them."""

from functools import cache

from cbench_server.datasets.embedded.sets import LONG_NOTES, MINI_QA
from cbench_server.datasets.generated.fitting import fitted
from cbench_server.datasets.generated.made import Made, Wanted
from cbench_server.errors import BadDataset
from cbench_server.types import Example


@cache
def _passages() -> tuple[Example, ...]:
    """Return the rows of mini-qa whose answer stands in their passage and in no other."""
    rows = [*MINI_QA.examples()]
    texts = [str(row["context"]) for row in rows]
    return tuple(
        row
        for row in rows
        if sum(str(row["answer"]).lower() in text.lower() for text in (*texts, *_paragraphs())) == 1
    )


@cache
def _paragraphs() -> tuple[str, ...]:
    texts = (str(example["context"]) for example in LONG_NOTES.examples())
    return tuple(part for text in texts for part in text.split("\n\n") if len(part) > 80)


def multi_document(wanted: Wanted) -> Made:
    """Put one passage that answers a question among others that do not."""
    draws = wanted.draws
    row = draws.pick(_passages())
    right = str(row["context"])
    others = [str(each["context"]) for each in _passages() if each is not row]
    distractors = draws.shuffled(others) + draws.shuffled(_paragraphs())
    (depth,) = wanted.depths(1)

    def build(count: int) -> str:
        if count > len(distractors):
            raise BadDataset(
                f'dataset "multi-document": the texts that come with the package are too few for '
                f"{wanted.length:,} tokens; ask for 30,000 at most"
            )
        place = count * depth // 100
        documents = [*distractors[:place], right, *distractors[place:count]]
        return "\n\n".join(f"Document {n}: {text}" for n, text in enumerate(documents, 1))

    context = fitted(build, wanted.length)
    return Made(context, str(row["question"]), [str(row["answer"])], [right], depth)
