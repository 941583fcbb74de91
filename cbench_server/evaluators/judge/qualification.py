"""Qualification of a judge: what it says of controls, and whether that is good enough."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cbench_server.errors import CbenchError, ComponentAway, EvaluatorBroken
from cbench_server.evaluators.judge.controls import MAIN_KINDS, RIGHT, VAGUE, WRONG, Control
from cbench_server.evaluators.judge.judge import NoVerdict
from cbench_server.evaluators.judge.packs import JudgePack

LEAST_RIGHT, MOST_WRONG, MOST_VAGUE = 0.90, 0.15, 0.30
LEAST_AUC = 0.9
_ACCEPTED_FROM = {"yes-no": 0.5, "rating": 0.75, "pairwise": 0.5}
_MOST_UNANSWERED = 0.1
_FEW = 100

Assess = Callable[[Control], Awaitable[float | None]]
"""Returns a control's score from 0 to 1; None where the judge gave no verdict."""


@dataclass
class Tally:
    """What a judge said of the controls of one kind."""

    scores: list[float] = field(default_factory=list)
    without_verdict: int = 0

    @property
    def asked(self) -> int:
        """How many there were."""
        return len(self.scores) + self.without_verdict

    def describe(self, accepted_from: float) -> dict[str, Any]:
        """Return how many were accepted, of those asked, with Wilson's interval.

        One without a verdict was not accepted.
        """
        import numpy as np

        from cbench_server.metrics.stats.intervals import mean_of

        accepted = sum(score >= accepted_from for score in self.scores)
        flags = np.array([1.0] * accepted + [0.0] * (self.asked - accepted))
        share = mean_of(flags)
        return {
            "asked": self.asked,
            "accepted": accepted,
            "without_verdict": self.without_verdict,
            "rate": share.value,
            "low": share.low,
            "high": share.high,
        }


async def qualify(pack: JudgePack, controls: Sequence[Control], assess: Assess) -> dict[str, Any]:
    """Ask about the controls, and say whether the judge qualifies; plain data, to be stored.

    Raises EvaluatorBroken if it cannot be asked.
    """
    record: dict[str, Any] = {
        "kind": pack.kind,
        "kinds": {},
        "qualified": False,
        "few": sum(control.kind == RIGHT for control in controls) < _FEW,
    }
    if not pack.shows_reference:
        return record | {"why": f'the pack "{pack.name}" judges without a reference'}
    if pack.kind == "pairwise":
        # Against the reference itself, what is right cannot win.
        controls = [control for control in controls if control.kind != RIGHT]
    if not controls:
        return record | {"why": "the dataset has no references to make controls from"}
    tallies = await _ask(controls, assess)
    accepted_from = _ACCEPTED_FROM[pack.kind]
    record["kinds"] = {
        kind: tallies[kind].describe(accepted_from)
        for kind in (*MAIN_KINDS, *(other for other in tallies if other not in MAIN_KINDS))
        if kind in tallies
    }
    return record | _decide(pack, record["kinds"], tallies)


async def _ask(controls: Sequence[Control], assess: Assess) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    unanswered: list[CbenchError] = []

    async def one(control: Control) -> None:
        tally = tallies.setdefault(control.kind, Tally())
        try:
            score = await assess(control)
        except NoVerdict:
            score = None
        except ComponentAway:
            raise
        except CbenchError as error:
            unanswered.append(error)
            if len(unanswered) > max(2, _MOST_UNANSWERED * len(controls)):
                raise EvaluatorBroken(f"its controls cannot be judged: {error}") from error
            return
        if score is None:
            tally.without_verdict += 1
        else:
            tally.scores.append(score)

    try:
        async with asyncio.TaskGroup() as group:
            for control in controls:
                group.create_task(one(control))
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    if unanswered and not any(tally.scores for tally in tallies.values()):
        raise EvaluatorBroken(f"its controls cannot be judged: {unanswered[0]}")
    return tallies


def _decide(
    pack: JudgePack, kinds: dict[str, dict[str, Any]], tallies: dict[str, Tally]
) -> dict[str, Any]:
    if pack.kind == "yes-no":
        return _by_rates(kinds)
    # What is vague is wrong, too: a judge that goes by the topic alone must not pass.
    wrong = Tally()
    for tally in (tallies[kind] for kind in (WRONG, VAGUE) if kind in tallies):
        wrong.scores += tally.scores
        wrong.without_verdict += tally.without_verdict
    if pack.kind == "rating":
        right = tallies.get(RIGHT, Tally())
        found = auc(right.scores, wrong.scores)
        # A pair without both grades is not one that was told apart.
        graded = len(right.scores) * len(wrong.scores)
        share = graded / max(1, right.asked * wrong.asked)
        is_good = found is not None and found * share >= LEAST_AUC
        why = "" if is_good else f"AUC of right against wrong {_number(found)}, must be 0.9"
        if not is_good and share < 1:
            why += f"; without a grade: {right.without_verdict + wrong.without_verdict}"
        return {"auc": found, "qualified": is_good, "why": why}
    # It lost in both orders: the reference won twice.
    won = sum(score == 0.0 for score in wrong.scores) / max(1, wrong.asked)
    is_good = won >= LEAST_RIGHT
    why = "" if is_good else f"right won in both orders on {won:.0%}, must be 90%"
    return {"wins_both": won, "qualified": is_good, "why": why}


def _by_rates(kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    limits = ((RIGHT, LEAST_RIGHT, True), (WRONG, MOST_WRONG, False), (VAGUE, MOST_VAGUE, False))
    complaints = []
    for kind, limit, at_least in limits:
        known = kinds.get(kind)
        if known is None:
            # Datasets of nothing but unanswerable questions have no vague answers.
            if kind != VAGUE:
                complaints.append(f"nothing {kind} was asked")
            continue
        rate, said = known["rate"], f"accepts {known['rate']:.0%} of {kind} answers"
        if not at_least and (silent := known["without_verdict"]):
            # Silence about wrong answers would leave the right ones to be counted.
            rate += silent / known["asked"]
            said += f" and gives no verdict on {silent / known['asked']:.0%}"
        if (rate < limit) if at_least else (rate > limit):
            must = "at least" if at_least else "at most"
            complaints.append(f"{said}, must be {must} {limit:.0%}")
    return {"qualified": not complaints, "why": "; ".join(complaints)}


def auc(right: Sequence[float], wrong: Sequence[float]) -> float | None:
    """Return how often a right answer scores above a wrong one, ties as one half."""
    if not right or not wrong:
        return None
    wins = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong)
    return wins / (len(right) * len(wrong))


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
