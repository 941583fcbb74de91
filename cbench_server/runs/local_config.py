"""The record of a local evaluation: of what, on what, how it was scored, and by which versions."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.contract import info_of
from cbench_server.datasets.prompts.prompt import Asking
from cbench_server.results import EvalRow
from cbench_server.runs.departures import followed
from cbench_server.runs.environment import describe_environment
from cbench_server.runs.local_data import Source
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.prompting import axis_of
from cbench_server.runs.shortfalls import compared, without_sizes
from cbench_server.runs.store import SpooledExample


class LocalRecord:
    """What is known of a local evaluation before it begins."""

    def __init__(
        self,
        systems: Mapping[str, Any],
        sources: Sequence[Source],
        examples: Sequence[SpooledExample],
        plans: Mapping[str, DatasetPlan],
        prompts: Mapping[str, Asking],
        settings: Mapping[str, Any],
        limits: Mapping[str, Any],
    ) -> None:
        """`limits` say which part of each dataset was asked for, if not all of it."""
        self._systems = systems
        self._examples = examples
        self._plans = plans
        self._prompts = prompts
        self._settings = settings
        self._origins = {
            source.label: _limited(source.loaded.describe(), limits)
            for source in sources
            if source.loaded
        }
        self._loaded = {source.label: source.loaded for source in sources if source.loaded}

    @property
    def datasets(self) -> list[dict[str, Any]]:
        """What is known of the examples of each tag, all of them."""
        return [self._dataset(tag, self._examples) for tag in self._plans]

    def describe(self, rows: Sequence[EvalRow]) -> dict[str, Any]:
        """Record how rows were made: all of them, or a part."""
        chosen = {row.ordinal for row in rows} if rows else set()
        used = [entry for entry in self._examples if entry.ordinal in chosen]
        present = {row.system for row in rows}
        systems = {name: each for name, each in self._systems.items() if name in present}
        tags = [tag for tag in self._plans if any(entry.dataset == tag for entry in used)]
        evaluators = {each.name: each for tag in tags for each in self._plans[tag].evaluators}
        return {
            "systems": [*systems],
            "evaluators": [*evaluators],
            "num_examples": len(used),
            **self._settings,
            "datasets": [self._dataset(tag, used) for tag in tags],
            "system_versions": {name: info_of(each).version for name, each in systems.items()},
            "evaluator_versions": {
                name: info_of(each).version for name, each in evaluators.items()
            },
            **describe_environment(),
        }

    def describe_memory(self, rows: Sequence[EvalRow]) -> dict[str, Any]:
        """Likewise, for rows of which each is about a question, not a conversation."""
        described = self.describe(rows)
        talks = {(row.dataset, row.metadata.get("conversation_id")) for row in rows}
        return {
            **described,
            "num_examples": len(talks),
            "num_questions": described["num_examples"],
        }

    def _dataset(self, tag: str, used: Sequence[SpooledExample]) -> dict[str, Any]:
        examples = [entry for entry in used if entry.dataset == tag]
        origin = self._origins.get(tag, {"split": "", "revision": "", "max_examples": None})
        described = {
            "label": tag,
            **origin,
            "num_examples": len(examples),
            "digest": _digest(examples),
            **self._plans[tag].describe(),
            **self._compared(tag, origin),
        }
        return compared(described, len(examples))

    def _compared(self, tag: str, origin: Mapping[str, Any]) -> dict[str, Any]:
        """Say how far the official protocol was followed."""
        loaded = self._loaded.get(tag)
        if loaded is None or loaded.protocol is None:
            return {"protocol": None, "is_official_metric": False}
        protocol = followed(
            loaded.protocol,
            origin,
            self._plans[tag],
            revision=str(origin.get("asked_revision", "")),
            prompt=axis_of(self._prompts[tag].prompt),
        )
        return {
            "protocol": protocol.describe() if protocol.follows else None,
            "is_official_metric": loaded.record is not None and protocol.metric.status == "same",
        }


def _limited(described: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Say which part was asked for: what is left out of it is then not missing."""
    asked = {name: value for name, value in limits.items() if value}
    kept = without_sizes(described) if asked else dict(described)
    counts = [each["max_examples"] for each in (described, asked) if each.get("max_examples")]
    return kept | asked | ({"max_examples": min(counts)} if counts else {})


def _digest(examples: Sequence[SpooledExample]) -> str:
    """Digest all examples in their order; empty if one of them holds what has no digest."""
    if not all(entry.digest for entry in examples):
        return ""
    return hashlib.sha256("\n".join(entry.digest for entry in examples).encode()).hexdigest()
