"""The spec of a local evaluation: what was asked for, checked as the daemon checks it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cbench_server.contract import info_of
from cbench_server.errors import InvalidInput, InvalidSpec
from cbench_server.runs.anchors import check_anchor_names, check_anchors
from cbench_server.runs.asked_again import check_asked_again
from cbench_server.runs.conclusions import check_arms, with_arms
from cbench_server.runs.local_arguments import check_names
from cbench_server.runs.local_systems import (
    Given,
    Kind,
    Sweep,
    check_reader,
    given_systems,
    model_ref,
    with_objects,
)
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.prices import check_prices
from cbench_server.spec import DatasetRef, EvaluatorRef, PromptRef, RunSpec
from cbench_server.systems.openai_proxy import OpenAIProxy

_CONTROLS = ("matched", "none")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was asked for beside systems and data."""

    kind: Kind
    sweep: Sweep | None
    direct: OpenAIProxy | None
    reader: OpenAIProxy | None
    anchors: bool | None
    controls: str | None
    budget_usd: float | None
    prompt: PromptRef | None = None

    def spec_of(
        self, systems: Any, settings: Mapping[str, Any]
    ) -> tuple[RunSpec, dict[str, Given]]:
        """Return the spec, as yet without data, and its systems by name."""
        check_reader(self.reader)
        given = given_systems(systems, self.kind, self.sweep, self.direct)
        spec = RunSpec(
            systems=tuple(each.ref for each in given),
            datasets=(),
            kind=self.kind,
            reader=None if self.reader is None else model_ref(self.reader),
            anchors=self.anchors,
            matched_controls=self._wants_controls,
            budget_usd=self._checked_budget,
            prompt=self.prompt,
            **settings,
        )
        spec = with_arms(spec)
        check_names([ref.name or ref.builtin for ref in spec.systems])
        check_arms(spec)
        check_anchors(spec)
        check_prices(spec)
        check_asked_again(spec)
        named = with_objects(given, spec)
        check_anchor_names(spec, named)
        return spec, named

    @property
    def _wants_controls(self) -> bool:
        if self.controls not in (None, *_CONTROLS):
            raise InvalidSpec(
                f'controls must be "matched" or "none", not {self.controls!r}; a sweep has matched '
                "ones unless it is told otherwise."
            )
        usual = "matched" if self.sweep and self.kind != "memory" else "none"
        return (self.controls or usual) == "matched"

    @property
    def _checked_budget(self) -> float | None:
        budget = self.budget_usd
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | float)):
            raise InvalidInput(f"budget_usd must be US dollars, not {budget!r:.60}.")
        return budget


def with_data(spec: RunSpec, refs: Sequence[DatasetRef], plans: Iterable[DatasetPlan]) -> RunSpec:
    """Add what is read, and what scores it."""
    evaluators = {each.name: each for plan in plans for each in plan.evaluators}
    return replace(
        spec,
        datasets=tuple(refs),
        evaluators=tuple(
            EvaluatorRef(name, options=dict(info_of(each).options or {}))
            for name, each in evaluators.items()
        ),
    )
