"""Verdicts of a run's judges, as far as what is said about them needs them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cbench_server.results import EvalRow

Key = tuple[str, str, str, int]
"""Dataset, system, example id as text, repeat."""


def category_of(row: EvalRow) -> str:
    """Name the type of question that a row is of; empty where it has none."""
    return str(row.metadata.get("qa_type") or row.groups.get("category") or "")


@dataclass(frozen=True)
class Verdict:
    """What became of one row with one judge."""

    key: Key
    category: str
    outcome: str
    """judged, without verdict, broken, failed, excluded or not answered."""
    score: float | None
    length: int
    """Words of the response."""


@dataclass
class Verdicts:
    """All verdicts of one judge, on one dataset or on several."""

    record: Mapping[str, Any]
    all: list[Verdict] = field(default_factory=list)
    effort: Counter[str] = field(default_factory=Counter)
    flips: int = 0
    compared: int = 0

    @property
    def score(self) -> str:
        """The name of the score that counts."""
        return str(self.record["scores"][0])

    @property
    def mark(self) -> str:
        """What every figure of it carries."""
        return "" if self.record["qualified"] else "†"

    @property
    def name(self) -> str:
        """What a reader knows it by."""
        return f"{self.record['model']} with pack {self.record['pack']}"

    def of(self, system: str) -> list[Verdict]:
        """Return the verdicts on one system."""
        return [each for each in self.all if each.key[1] == system]

    def judged(self, system: str = "") -> list[tuple[Verdict, float]]:
        """Return the verdicts that have a score, with it."""
        return [
            (each, each.score)
            for each in self.all
            if each.score is not None and system in ("", each.key[1])
        ]

    def mean(self, system: str) -> float | None:
        """Return the mean score of one system."""
        scores = [score for _, score in self.judged(system)]
        return sum(scores) / len(scores) if scores else None

    def take(self, row: EvalRow) -> None:
        """Add what became of a row of the dataset."""
        evaluator = str(self.record["evaluator"])
        details = row.details.get(evaluator, {})
        response = str((row.processed or {}).get("response") or "")
        score = None if self.score in row.not_applicable else row.scores.get(self.score)
        self.all.append(
            Verdict(
                (row.dataset, row.system, str(row.example_id), row.repeat),
                category_of(row),
                self._outcome(row, evaluator, score),
                score,
                len(response.split()),
            )
        )
        for name in ("requests", "retries", "abandoned", "asked_again", "prompts_cut"):
            self.effort[name] += int(details.get(name) or 0)
        usage = details.get("usage") or {}
        for name in ("prompt_tokens", "completion_tokens", "cached_prompt_tokens"):
            value = usage.get(name)
            self.effort[name] += value if isinstance(value, int) else 0
        flip = row.scores.get(self.score.replace("judge_score", "judge_flip", 1))
        if flip is not None and self.record["kind"] == "pairwise":
            self.compared += 1
            self.flips += int(flip)

    def _outcome(self, row: EvalRow, evaluator: str, score: float | None) -> str:
        if row.failure is not None:
            return "failed"
        if self.score in row.not_applicable:
            return "excluded"
        if score is not None:
            return "judged"
        failure = row.evaluator_failures.get(evaluator)
        if failure is None:
            return "not answered"
        return "without verdict" if failure.reason == "NO_VERDICT" else "broken"

    def denominators(self) -> dict[str, dict[str, dict[str, int]]]:
        """Count what became of the rows, by system and category; "" is all of them."""
        counted: dict[str, dict[str, Counter[str]]] = {}
        for each in self.all:
            by_category = counted.setdefault(each.key[1], {})
            for category in dict.fromkeys(("", each.category)):
                counts = by_category.setdefault(category, Counter())
                counts["asked"] += 1
                counts[each.outcome] += 1
                counts["answered"] += each.outcome not in ("failed", "not answered")
        return {
            system: {category: dict(counts) for category, counts in by_category.items()}
            for system, by_category in counted.items()
        }


def by_judge(records: Sequence[Mapping[str, Any]], rows: Iterator[EvalRow]) -> list[Verdicts]:
    """Read rows once, and give each judge its verdicts."""
    found = [Verdicts(record) for record in records]
    for row in rows:
        for verdicts in found:
            if verdicts.record["dataset"] == row.dataset:
                verdicts.take(row)
    return found


def over_datasets(judges: Sequence[Verdicts]) -> list[Verdicts]:
    """Return what each judge said of all datasets, as its score in the table is of all.

    Such a record names no dataset, and is qualified only if the judge is on all of them.
    """
    found: dict[str, list[Verdicts]] = {}
    for verdicts in judges:
        found.setdefault(str(verdicts.record["evaluator"]), []).append(verdicts)
    return [parts[0] if len(parts) == 1 else _merged(parts) for parts in found.values()]


def _merged(parts: Sequence[Verdicts]) -> Verdicts:
    is_qualified = all(part.record["qualified"] for part in parts)
    merged = Verdicts({**parts[0].record, "dataset": "", "qualified": is_qualified})
    for part in parts:
        merged.all += part.all
        merged.effort += part.effort
        merged.flips += part.flips
        merged.compared += part.compared
    return merged
