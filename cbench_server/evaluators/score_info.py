"""What an evaluator says of its scores, for listings and reports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScoreInfo:
    """One kind of score."""

    name: str
    description: str
    higher_is_better: bool = True
