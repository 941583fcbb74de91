"""Names of fields that systems may not see, however a file writes them."""

from collections.abc import Iterable

from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS

# Of files that are not ours: what nearly always holds or explains the outcome, and whole
# conversations with their answers.
_OF_ANY_FILE = (
    "answer_key",
    "expected_answer",
    "expected_answers",
    "expected_output",
    "explanation",
    "final_answer",
    "gold_answer",
    "gold_answers",
    "is_abstention",
    "qa_pairs",
    "rationale",
    "reference_answer",
    "reference_answers",
    "targets",
)
OF_ANY_FILE = (*DEFAULT_REFERENCE_FIELDS, *_OF_ANY_FILE)
"""What is withheld of examples that are no known dataset's."""
MADE_OF_A_SOURCE = ("evidence", "is_abstention", "qa_pairs", "question_id", "question_type")
"""Fields of conversations, and of mappings, that tell where or whether an answer is."""
_READ_OF_ORIGINALS = {"evidence-recall": ("evidence",)}
# Mark the turns that hold the answer, in LongMemEval and in files made after it.
_OF_TURNS = ("has_answer", "is_evidence")


def of_evaluators(names: Iterable[str]) -> tuple[str, ...]:
    """Return what is withheld, whatever the dataset, because an evaluator scores by it."""
    return tuple(field for name in names for field in _READ_OF_ORIGINALS.get(name, ()))


class Withheld(frozenset[str]):
    """A set of names that also holds their other spellings: `Answer`, `answerKey`, `GOLD-LABEL`."""

    __slots__ = ("_known",)
    _known: dict[object, bool]

    def __new__(cls, names: Iterable[str] = ()) -> "Withheld":
        """Take the names as they are usually written."""
        made = super().__new__(cls, names)
        made._known = {}
        return made

    def __contains__(self, name: object) -> bool:
        """Whether a field of that name is withheld; asked for every field of every row."""
        known = self._known.get(name)
        return self._judge(name) if known is None else known

    def _judge(self, name: object) -> bool:
        is_one = super().__contains__(name)
        if not is_one and isinstance(name, str):
            plain = _plain(name)
            is_one = any(_plain(each) == plain for each in self)
        # Fields have few names; a file in which each has its own is not remembered.
        if len(self._known) < _REMEMBERED:
            self._known[name] = is_one
        return is_one

    @classmethod
    def of_turns(cls, names: Iterable[str]) -> "Withheld":
        """Return what a memory system may not see of turns, where `names` are kept from others."""
        return cls((*names, *_OF_TURNS))


_REMEMBERED = 1_000


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
