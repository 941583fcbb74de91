"""Notes on judges: what a reader of judged scores has to know, from all verdicts of a run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.metrics.stats.raters import (
    agreement,
    corrected_rate,
    prediction_powered,
    rank_correlation,
    weighted,
)
from cbench_server.runs.judging import SELF_GRADED, UNQUALIFIED, models_under_test
from cbench_server.runs.labels import Labels
from cbench_server.runs.verdicts import Verdicts, over_datasets
from cbench_server.spec import RunNote, RunSpec

_LENGTH_MATTERS = 0.3
_FAMILIES = [
    "gpt",
    "claude",
    "gemini",
    "gemma",
    "llama",
    "mistral",
    "mixtral",
    "qwen",
    "deepseek",
    "phi",
    "smollm",
    "command",
    "grok",
    "nova",
    "glm",
]


@dataclass
class Findings:
    """What is known of the judges of a run."""

    notes: list[RunNote] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """As plain data, for JSON and the report."""
    values: dict[str, dict[str, float | None]] = field(default_factory=dict)
    """Further metrics of each system."""

    def note(self, code: str, text: str, dataset: str = "", system: str = "") -> None:
        """Add a sentence."""
        self.notes.append(RunNote(code, text, system, dataset))


def explain(judges: Sequence[Verdicts], spec: RunSpec, labels: Labels | None) -> Findings:
    """Say all there is to say of the judges of a run."""
    found = Findings()
    by_dataset = {str(verdicts.record["dataset"]) for verdicts in judges}
    for verdicts in judges:
        where = f" on {verdicts.record['dataset']}" if len(by_dataset) > 1 else ""
        _controls(found, verdicts, where)
        _standing(found, verdicts, where)
    wholes = over_datasets(judges)
    for verdicts in wholes:
        _family(found, verdicts, spec)
        _effort(found, verdicts)
        _position(found, verdicts)
        parts = [each for each in judges if each.score == verdicts.score]
        for system in _systems(wholes):
            _length(found, verdicts, system)
            _corrected(found, parts, system)
            _averaged(found, verdicts, system)
            if labels is not None:
                _labelled(found, verdicts, system, labels)
    _ranges(found, wholes)
    for a, b in _pairs_of_raters(wholes):
        _agreement(found, a, b)
    if labels is not None:
        for verdicts in wholes:
            _agreement_with_people(found, verdicts, labels)
    if wholes:
        found.facts["denominators"] = {
            verdicts.record["evaluator"]: verdicts.denominators() for verdicts in wholes
        }
        for verdicts in wholes:
            _denominators(found, verdicts)
    return found


def _systems(judges: Sequence[Verdicts]) -> list[str]:
    return list(dict.fromkeys(each.key[1] for verdicts in judges for each in verdicts.all))


def _controls(found: Findings, verdicts: Verdicts, where: str) -> None:
    record = verdicts.record
    parts = [
        f"{kind} {_share(rates['rate'])} [{_share(rates['low'])}, {_share(rates['high'])}] "
        f"of {rates['asked']}"
        for kind, rates in record["kinds"].items()
        if rates["asked"]
    ]
    if not parts:
        return
    text = f"Judge {verdicts.name} accepted of its controls{where}: {', '.join(parts)}."
    if record.get("auc") is not None:
        text += f" AUC of right against wrong: {record['auc']:.2f}."
    if record.get("wins_both") is not None:
        text += f" Right won in both orders on {record['wins_both']:.0%}."
    if record.get("prompts") not in (None, "own"):
        words = "the official ones" if record["prompts"] == "official" else record["prompts"]
        text += f" Its prompts are {words}."
    if record.get("few"):
        text += " So few controls decide little."
    found.note("JUDGE_CONTROLS", text, record["dataset"])


def _standing(found: Findings, verdicts: Verdicts, where: str) -> None:
    record = verdicts.record
    if not record["qualified"]:
        text = f"† Judge {verdicts.name} did not pass its controls{where}: {record['why']}."
        found.note(UNQUALIFIED, text, record["dataset"])
    if record.get("self_graded"):
        text = (
            f"{verdicts.score} is self-graded: the judge's model {record['model']} is the model "
            "under test, or was not named with --judge-model."
        )
        found.note(SELF_GRADED, text, record["dataset"])


def _family(found: Findings, verdicts: Verdicts, spec: RunSpec) -> None:
    if verdicts.record.get("self_graded"):
        return
    own = _family_of(verdicts.record["model"])
    kin = [model for model in models_under_test(spec) if own and _family_of(model) == own]
    if kin:
        text = (
            f"Judge {verdicts.record['model']} is of the same family as {', '.join(kin)}; "
            "judges favour their own style."
        )
        found.note("JUDGE_SAME_FAMILY", text, verdicts.record["dataset"])


def _family_of(model: str) -> str:
    name = model.lower()
    return next((family for family in _FAMILIES if family in name), "")


def _effort(found: Findings, verdicts: Verdicts) -> None:
    effort = {name: count for name, count in verdicts.effort.items() if count}
    if not effort:
        return
    found.facts.setdefault("effort", {})[verdicts.record["evaluator"]] = effort
    trouble = [
        f"{effort[name]:,} {said}"
        for name, said in (
            ("retries", "retries"),
            ("abandoned", "abandoned at their deadline"),
            ("asked_again", "replies without a verdict asked about again"),
        )
        if name in effort
    ]
    if trouble:
        text = f"Judge {verdicts.name}: {effort['requests']:,} requests, {', '.join(trouble)}."
        found.note("JUDGE_EFFORT", text, verdicts.record["dataset"])


def _position(found: Findings, verdicts: Verdicts) -> None:
    if not verdicts.compared:
        return
    share = verdicts.flips / verdicts.compared
    found.facts.setdefault("flips", {})[verdicts.record["evaluator"]] = share
    text = (
        f"Judge {verdicts.name}{verdicts.mark} went by the order of the two responses on "
        f"{share:.0%} of {verdicts.compared:,} comparisons; those count as one half."
    )
    found.note("JUDGE_POSITION", text, verdicts.record["dataset"])


def _length(found: Findings, verdicts: Verdicts, system: str) -> None:
    judged = verdicts.judged(system)
    estimate = rank_correlation([s for _, s in judged], [float(v.length) for v, _ in judged])
    if estimate.value is None:
        return
    known = found.facts.setdefault("length_correlation", {})
    known.setdefault(verdicts.record["evaluator"], {})[system] = {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "rows": len(judged),
    }
    if abs(estimate.value) >= _LENGTH_MATTERS and (estimate.low or 0) * (estimate.high or 0) > 0:
        text = (
            f"{verdicts.score}{verdicts.mark} of {system} goes with the length of its responses: "
            f"rank correlation {estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]."
        )
        found.note("JUDGE_LENGTH", text, verdicts.record["dataset"], system)


def _corrected(found: Findings, parts: Sequence[Verdicts], system: str) -> None:
    """The rate corrected by the controls: for the report only, since their errors are made up.

    Each dataset has controls of its own, so each part is corrected by itself.
    """
    estimates: list[tuple[int, Estimate]] = []
    for verdicts in parts:
        kinds = verdicts.record["kinds"]
        judged = verdicts.judged(system)
        if not judged:
            continue
        if verdicts.record["kind"] != "yes-no" or "right" not in kinds:
            return
        right, wrong = kinds["right"], kinds.get("specific-wrong", {"rate": None})
        if right["rate"] is None or wrong["rate"] is None:
            return
        share = sum(score for _, score in judged) / len(judged)
        known = ((right["rate"], right["asked"]), (wrong["rate"], wrong["asked"]))
        estimates.append((len(judged), corrected_rate(share, len(judged), *known)))
    estimate = weighted(estimates)
    if estimate.value is not None:
        rates = found.facts.setdefault("corrected", {})
        rates.setdefault(parts[0].record["evaluator"], {})[system] = {
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
        }


def _averaged(found: Findings, verdicts: Verdicts, system: str) -> None:
    """The mean of the means by type of question, where the benchmark publishes it."""
    if not verdicts.record.get("averages_types"):
        return
    by_type: dict[str, list[float]] = {}
    for each, score in verdicts.judged(system):
        by_type.setdefault(each.category, []).append(score)
    if len(by_type) > 1:
        means = [sum(scores) / len(scores) for scores in by_type.values()]
        average = sum(means) / len(means)
        found.values.setdefault(system, {})[f"task_averaged:{verdicts.score}"] = average


# Several judges.


def _ranges(found: Findings, judges: Sequence[Verdicts]) -> None:
    """The scores that different packs give, side by side."""
    groups: dict[tuple[str, str, str], list[Verdicts]] = {}
    for verdicts in judges:
        record = verdicts.record
        key = (record["dataset"], record["model"], record["evaluator"].partition(":")[0])
        groups.setdefault(key, []).append(verdicts)
    raters = {(model, evaluator) for _, model, evaluator in groups}
    for (dataset, model, _), group in groups.items():
        if len(group) < 2:
            continue
        who = f" by {model}" if len(raters) > 1 else ""
        for system in _systems(group):
            means = {
                verdicts.record["pack"]: mean
                for verdicts in group
                if (mean := verdicts.mean(system)) is not None
            }
            if len(means) < 2:
                continue
            low, high = min(means.values()), max(means.values())
            marks = {verdicts.record["pack"]: verdicts.mark for verdicts in group}
            known = found.facts.setdefault("ranges", {}).setdefault(system, {})
            known[f"{dataset}@{model}" if dataset else model] = {
                "low": low,
                "high": high,
                "by": means,
                "marks": {pack: mark for pack, mark in marks.items() if mark},
            }
            by = ", ".join(f"{pack} {mean:.2f}{marks[pack]}" for pack, mean in means.items())
            mark = max(marks.values())
            text = f"{system}: {low:.2f}-{high:.2f}{mark}{who} by what the judge is asked ({by})."
            found.note("JUDGE_RANGE", text, dataset, system)


def _pairs_of_raters(judges: Sequence[Verdicts]) -> Iterator[tuple[Verdicts, Verdicts]]:
    for a, b in combinations(judges, 2):
        same = all(a.record[name] == b.record[name] for name in ("dataset", "pack"))
        if same and (a.record["model"], a.record["url"]) != (b.record["model"], b.record["url"]):
            yield a, b


def _agreement(found: Findings, a: Verdicts, b: Verdicts) -> None:
    others = {each.key: score for each, score in b.judged()}
    pairs = [
        (each.category, score, others[each.key]) for each, score in a.judged() if each.key in others
    ]
    _say_agreement(
        found, f"Judges {a.name}{a.mark} and {b.name}{b.mark}", a.record["dataset"], pairs
    )
    systems = _systems([a, b])
    for one, two in combinations(systems, 2):
        means = [judge.mean(system) for judge in (a, b) for system in (one, two)]
        if None in means:
            continue
        first, second = means[0] - means[1], means[2] - means[3]  # type: ignore[operator]
        if first * second < 0:
            better = one if first > 0 else two
            text = (
                f"The judges disagree on {one} and {two}: {a.name} prefers {better}, {b.name} the "
                "other; neither may be called better."
            )
            found.note("JUDGES_DISAGREE", text, a.record["dataset"])
            found.facts.setdefault("disagreements", []).append([one, two])


def _say_agreement(
    found: Findings, who: str, dataset: str, pairs: Sequence[tuple[str, float, float]]
) -> None:
    share, kappa = agreement([x for _, x, _ in pairs], [y for _, _, y in pairs])
    if share is None:
        return
    by_category: dict[str, dict[str, Any]] = {}
    for category in dict.fromkeys(name for name, _, _ in pairs if name):
        part = [(x, y) for name, x, y in pairs if name == category]
        of, own = agreement([x for x, _ in part], [y for _, y in part])
        by_category[category] = {"agreement": of, "kappa": own, "rows": len(part)}
    fact = {"who": who, "agreement": share, "kappa": kappa, "rows": len(pairs)}
    found.facts.setdefault("agreement", []).append({**fact, "by_category": by_category})
    text = f"{who} agree on {share:.0%} of {len(pairs):,} rows, Cohen's kappa {_plain(kappa)}"
    if len(by_category) > 1:
        parts = [f"{name} {_plain(each['kappa'])}" for name, each in by_category.items()]
        text += f" ({', '.join(parts)})"
    found.note("JUDGE_AGREEMENT", f"{text}.", dataset)


# People.


def _labelled(found: Findings, verdicts: Verdicts, system: str, labels: Labels) -> None:
    judged = verdicts.judged(system)
    pairs = [(label, score) for each, score in judged if (label := labels.of(each.key)) is not None]
    estimate = prediction_powered([score for _, score in judged], pairs)
    if estimate.value is None:
        return
    is_plain = ":" not in verdicts.record["evaluator"]
    key = "labelled_rate" if is_plain else f"labelled_rate:{verdicts.score}"
    found.values.setdefault(system, {}).update(
        {key: estimate.value, f"{key}_ci_low": estimate.low, f"{key}_ci_high": estimate.high}
    )
    text = (
        f"{system}: with {len(pairs):,} labels of people, the true rate behind {verdicts.score}"
        f"{verdicts.mark} is estimated at {estimate.value:.3f} "
        f"[{estimate.low:.3f}, {estimate.high:.3f}]."
    )
    found.note("LABELLED_RATE", text, verdicts.record["dataset"], system)


def _agreement_with_people(found: Findings, verdicts: Verdicts, labels: Labels) -> None:
    pairs = [
        (each.category, score, label)
        for each, score in verdicts.judged()
        if (label := labels.of(each.key)) is not None
    ]
    who = f"Judge {verdicts.name}{verdicts.mark} and people"
    _say_agreement(found, who, str(verdicts.record["dataset"]), pairs)


def _denominators(found: Findings, verdicts: Verdicts) -> None:
    """Say on how many rows a judged score stands, where that is not all of them."""
    for system, by_category in verdicts.denominators().items():
        counts: Mapping[str, int] = by_category[""]
        if counts.get("judged", 0) == counts["asked"]:
            continue
        others = [
            f"{counts[name]:,} {name}"
            for name in ("failed", "not answered", "without verdict", "broken", "excluded")
            if counts.get(name)
        ]
        text = (
            f"{verdicts.score} of {system}: {counts['asked']:,} asked, "
            f"{counts.get('judged', 0):,} judged, {', '.join(others)}."
        )
        found.note("JUDGE_DENOMINATOR", text, verdicts.record["dataset"], system)


def _share(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:.0%}"


def _plain(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
