"""Typed usage, checked by `make lint` and never run: each ignored error has to be one."""

from typing import Any

from cbench_client import BenchClient, EvaluatorRef, Refused, RunSpec, attach, row_to_dict, serve


class Same:
    """A system."""

    name = "same"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Change nothing."""
        return example


def shorten(example: dict[str, Any]) -> dict[str, Any]:
    """Be a system of one function."""
    return example


def serving() -> None:
    """Serve what can be served, and nothing else."""
    serve(Same())
    serve([Same(), shorten])
    attach(Same(), server="127.0.0.1:50051")
    serve(3)  # type: ignore[arg-type]
    serve("same")  # type: ignore[arg-type]
    serve([Same(), None])  # type: ignore[list-item]


def driving(client: BenchClient) -> None:
    """Describe a run by a dict whose keys and values are known."""
    spec: RunSpec = {
        "systems": [{"builtin": "identity", "options": {"ratio": 0.5}}],
        "datasets": [{"name": "mini-qa", "max_examples": 3}],
        "kind": "process",
        "row_timeout": 2.5,
    }
    client.start(spec)
    evaluators: list[EvaluatorRef] = [{"name": "answer-quality"}]
    client.rescore("r", evaluators)
    misspelt: RunSpec = {"systems": [], "datasets": [], "bultin": "x"}  # type: ignore[typeddict-unknown-key]
    of_no_kind: RunSpec = {"systems": [], "datasets": [], "kind": "race"}  # type: ignore[typeddict-item]
    half: RunSpec = {"systems": []}  # type: ignore[typeddict-item]
    for each in (misspelt, of_no_kind, half):
        client.start(each)


def reading(client: BenchClient) -> list[str]:
    """Read rows whose keys are known, and what a daemon blames."""
    names: list[str] = []
    try:
        for row in map(row_to_dict, client.rows("r")):
            names.append(row["system"])
            names.append(row["systm"])  # type: ignore[typeddict-item]
            row["latency"] + 1  # type: ignore[operator]
    except Refused as error:
        names += [violation.field for violation in error.violations]
    return names
