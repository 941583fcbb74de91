"""The registry: names, near misses, options, and what installed packages add."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_server.datasets import DatasetRecord
from cbench_server.errors import InvalidInput, NotFound, UnknownName
from cbench_server.evaluators import AnswerQuality, ContextRetention
from cbench_server.metrics import MeanScore, PassRate
from cbench_server.registry import (
    Registry,
    get_metric,
    load_dataset,
    register_dataset,
    register_evaluator,
    register_metric,
    register_system,
    registry,
    shipped_and_installed,
)


@pytest.fixture
def fresh() -> Registry:
    return Registry(shipped_and_installed)


@pytest.fixture(autouse=True)
def _forget_what_tests_register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def some_examples(n: int = 3) -> Iterator[dict[str, Any]]:
    """Some examples."""
    return ({"id": index, "context": "c"} for index in range(n))


class Wordy:
    name = "wordy"

    def __init__(self, limit: int, *, unit: str = "words") -> None:
        if limit < 1:
            raise ValueError("limit must be at least 1")
        self.limit = limit

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        return {}


def test_a_registered_loader_is_called_with_its_options() -> None:
    registry.register("dataset", "my-data", some_examples)
    assert len([*load_dataset("my-data", n=100)]) == 100
    register_dataset("my-data", lambda n: [{"id": n}])
    assert load_dataset("my-data", n=7) == [{"id": 7}]
    assert "my-data" in registry.list("dataset")


def test_a_built_in_dataset_is_capped_by_n() -> None:
    assert len([*load_dataset("mini-qa", n=2)]) == 2


def test_a_name_may_carry_a_config() -> None:
    with pytest.raises(NotFound, match='dataset "mgsm" has no config "xx"; it has: bn, de'):
        load_dataset("mgsm:xx")


def test_a_plain_loader_gets_a_record(fresh: Registry) -> None:
    fresh.register("dataset", "my-data", some_examples)
    record = fresh.dataset("my-data")
    assert record.description == "Some examples."
    assert [example["id"] for example in record.examples()] == [0, 1, 2]


def test_a_record_is_given_as_it_is(fresh: Registry) -> None:
    record = DatasetRecord(name="x", load=lambda config: iter([]), description="x")
    fresh.register("dataset", "x", record)
    assert fresh.dataset("x") is record


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("evaluator", "answer-qualty", 'no evaluator "answer-qualty"; did you mean "answer-qual'),
        ("dataset", "mini-qu", 'did you mean "mini-qa"? List them with: cbench datasets'),
        ("metric", "zzz", "Known: compression-ratio, conduct"),
        ("gizmo", "x", 'no gizmo "x". Known: none'),
    ],
)
def test_an_unknown_name_is_answered_with_its_neighbours(
    fresh: Registry, kind: str, name: str, message: str
) -> None:
    with pytest.raises(UnknownName) as caught:
        fresh.get(kind, name)
    assert message in str(caught.value)
    assert caught.value.reason == f"UNKNOWN_{kind.upper()}"


def test_underscores_are_accepted_for_dashes(fresh: Registry) -> None:
    fresh.register("metric", "my_metric", MeanScore)
    assert fresh.get("evaluator", "answer_quality") is AnswerQuality
    assert fresh.get("metric", "my-metric") is MeanScore


def test_registering_replaces_and_keeps_the_order() -> None:
    mine = Registry()
    for name in ("b", "a", "b"):
        mine.register("metric", name, name)
    assert mine.list("metric") == ["b", "a"]
    assert mine.list("dataset") == []


def test_what_a_user_registers_outranks_a_built_in() -> None:
    register_metric("mean_score", PassRate)
    register_metric("mean-score", PassRate)
    assert get_metric("mean-score") is PassRate


def test_components_of_every_kind_can_be_registered() -> None:
    register_evaluator("wordy", Wordy)
    register_system("system", lambda: Wordy(1))  # type: ignore[arg-type,return-value] # any object will do here
    assert isinstance(registry.create_evaluator("wordy", {"limit": 2}), Wordy)
    assert isinstance(registry.create_system("system", {}), Wordy)


def test_options_reach_the_constructor(fresh: Registry) -> None:
    metric = fresh.create_metric("pass-rate", {"threshold": 0.5})
    assert isinstance(metric, PassRate)
    assert metric.threshold == 0.5
    assert isinstance(fresh.create_evaluator("context-retention", {}), ContextRetention)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wordy", {"limit": 1, "size": 2}, 'has no option "size"; it accepts limit, unit'),
        ("wordy", {}, 'evaluator "wordy" needs the option "limit"'),
        ("wordy", {"limit": 0}, "refuses its options: limit must be at least 1"),
        ("wordy", {"limit": "many"}, "refuses its options"),
        ("context-retention", {"x": 1}, 'has no option "x"; it accepts none'),
        ("object", {"x": 1}, 'evaluator "object" has no option "x"; it accepts none'),
    ],
    ids=["unknown", "missing", "value", "type", "none", "object"],
)
def test_bad_options_are_refused_by_name(
    fresh: Registry, name: str, options: dict[str, Any], message: str
) -> None:
    fresh.register("evaluator", "wordy", Wordy)
    fresh.register("evaluator", "object", Wordy(1))
    with pytest.raises(InvalidInput) as caught:
        fresh.create_evaluator(name, options)
    assert message in str(caught.value)


def test_an_object_is_used_as_it_is(fresh: Registry) -> None:
    evaluator = Wordy(1)
    fresh.register("evaluator", "wordy", evaluator)
    assert fresh.create_evaluator("wordy", {}) is evaluator


def test_installed_packages_add_components_and_broken_ones_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    package = tmp_path / "addon-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: addon\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[cbench_server.metrics]\n"
        "added = cbench_server.metrics:MeanScore\n"
        "broken = no_such_module:Metric\n"
        "latency = cbench_server.metrics:MeanScore\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    found = shipped_and_installed("metric")

    assert found["added"] is MeanScore
    assert "broken" not in found
    assert found["latency"] is not MeanScore
    assert 'metric "broken" (entry point no_such_module:Metric) cannot be loaded' in caplog.text
    assert 'offers metric "latency", but the built-in one is used' in caplog.text


def test_importing_the_registry_loads_no_component() -> None:
    code = (
        "import sys, cbench_server.registry as r\n"
        "heavy = ('datasets', 'evaluators', 'metrics', 'systems')\n"
        "loaded = [h for h in heavy if 'cbench_server.' + h in sys.modules]\n"
        "assert not loaded, loaded\n"
        "assert 'importlib.metadata' not in sys.modules\n"
        "assert 'answer-quality' in r.registry.list('evaluator')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["dataset", "evaluator", "metric", "system", "memory_system"])
def test_a_built_in_component_is_listed_under_its_own_name(fresh: Registry, kind: str) -> None:
    for name in fresh.list(kind):
        assert fresh.get(kind, name).name == name
