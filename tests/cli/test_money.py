"""Prices and budgets by flag: what tables say of money, and how a run ends that has spent it."""

import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cbench
from tests.fixtures.model_server import clean_environment
from tests.fixtures.priced_model import FLAG, PricedModel, priced_model

__all__ = ["clean_environment"]

ROWS = [
    {"id": n, "context": f"Box {n} holds {n} red balls. " * 9, "question": "Box?", "answer": str(n)}
    for n in range(1, 9)
]


@pytest.fixture
def model() -> Iterator[PricedModel]:
    with priced_model() as served:
        yield served


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "balls.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def flags_for(model: PricedModel, rows: Path, *more: object) -> list[object]:
    return [
        *("--builtin", "identity", "--proxy", model.url, "--name", "whole", "--name", "asked"),
        *("--reader", model.url, "--model", "m", "--dataset", rows, "--max-tokens", 9),
        *("--no-anchors", *more),
    ]


def priced(model: PricedModel, rows: Path, *more: object) -> list[object]:
    return flags_for(model, rows, "--reader-price", FLAG, "--proxy-price", FLAG, *more)


def only_run(cbench: Cbench) -> str:
    return json.loads(cbench("runs", "--output", "json").stdout)[0]["run_id"]


def test_every_place_has_the_same_sums_and_they_are_what_the_server_charged(
    cbench: Cbench, model: PricedModel, rows: Path, tmp_path: Path
) -> None:
    model.cached = 7
    done = cbench("run", *priced(model, rows))
    assert done.returncode == 0, done.stderr
    assert "US$ (each)" in done.stdout
    assert "Prompt (sum)" in done.stdout
    bill = float(model.bill)
    assert re.search(rf"This run cost \${bill:.6g}: reader \$\S+, system \$\S+\.", done.stdout)
    run = only_run(cbench)
    shown = json.loads(cbench("show", run, "--output", "json", "--rows", "99").stdout)
    each = [math.fsum(row["cost_usd"].values()) for row in shown["rows"]]
    assert len(each) == 16
    assert {who for row in shown["rows"] for who in row["cost_usd"]} == {"reader", "system"}
    summary = shown["run"]["summary"]
    whole = math.fsum(values["cost_usd"] for values in summary.values())
    assert shown["run"]["config"]["cost"]["usd"] == pytest.approx(bill, rel=1e-12)
    assert math.fsum(each) == pytest.approx(bill, rel=1e-12)
    assert whole == pytest.approx(bill, rel=1e-12)
    assert summary["whole"]["reader_cost_usd"] == summary["whole"]["cost_usd"]
    assert summary["asked"]["system_cost_usd"] == summary["asked"]["cost_usd"]
    words = summary["whole"]["total_prompt_tokens"] + summary["asked"]["total_prompt_tokens"]
    assert words == sum(
        len(request["messages"][-1]["content"].split()) for request in model.requests
    )
    assert summary["asked"]["mean_completion_tokens"] == 1.0
    # And in the other formats.
    exported = cbench("export", run, "--format", "csv", "-o", tmp_path / "rows.csv")
    assert exported.returncode == 0, exported.stderr
    lines = list(csv.DictReader((tmp_path / "rows.csv").open()))
    assert math.fsum(float(line["cost_usd"]) for line in lines) == pytest.approx(bill, rel=1e-12)
    assert sum(float(line["cost_usd:reader"] or 0) for line in lines) > 0
    assert {line["completion_tokens"] for line in lines} == {"1"}
    markdown = cbench("export", run, "--format", "markdown").stdout
    assert "cost_usd" in markdown
    assert "total_prompt_tokens" in markdown
    assert "Cost" in cbench("show", run, "--rows", "3").stdout.splitlines()[0]
    assert re.search(r"cost: system \$0\.000", cbench("show", run, "--example", "1").stdout)


def test_without_prices_nothing_is_said_of_money(
    cbench: Cbench, model: PricedModel, rows: Path
) -> None:
    done = cbench("run", *flags_for(model, rows))
    assert done.returncode == 0, done.stderr
    assert "US$" not in done.stdout
    assert "cost $" not in done.stdout
    assert "Prompt (sum)" in done.stdout


def test_usage_that_is_not_reported_is_unknown_and_never_nothing(
    cbench: Cbench, rows: Path, tmp_path: Path
) -> None:
    with priced_model(reports=False) as model:
        done = cbench("run", *priced(model, rows))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("unknown") >= 2
    assert "What 16 rows cost is not known in full" in done.stdout
    assert "This run cost at least $" in done.stdout
    run = only_run(cbench)
    shown = json.loads(cbench("show", run, "--output", "json", "--rows", "99").stdout)
    assert all("COST_UNKNOWN" in row["marks"] for row in shown["rows"])
    assert not any("cost_usd" in row for row in shown["rows"])
    assert {values["num_cost_unknown"] for values in shown["run"]["summary"].values()} == {8.0}
    assert {values["cost_usd"] for values in shown["run"]["summary"].values()} == {None}
    cbench("export", run, "--format", "csv", "-o", tmp_path / "rows.csv")
    lines = list(csv.DictReader((tmp_path / "rows.csv").open()))
    assert {line["cost_usd"] for line in lines} == {""}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--reader-price", "cheap"], '"cheap" is not a price'),
        (["--reader-price", "1"], "IN,OUT or IN,OUT,CACHED"),
        (["--reader-price", "1,2,3,4"], '"1,2,3,4" is not a price'),
        (["--reader-price", "1,x"], '"x" is not a number'),
        (["--reader-price", "1,nan"], '"nan" is not a number'),
        (["--reader-price", "1,-2"], '"-2" in "1,-2" is below 0'),
        (["--reader-price", "1,2"], "--reader-price needs --reader URL"),
        (["--proxy-price", "1,2"], "--proxy-price needs --proxy URL"),
        (["--budget-usd", "0"], '"0" is not more than 0'),
        (["--budget-usd", "much"], '"much" is not a number'),
        (["--budget-usd", "1"], "no model of this run has a price"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_value(
    cbench: Cbench, flags: list[str], said: str
) -> None:
    done = cbench("run", "--builtin", "identity", "--dataset", "mini-qa", *flags)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_model_that_could_cost_anything_is_refused_by_name(
    cbench: Cbench, model: PricedModel, rows: Path
) -> None:
    base = ["run", "--builtin", "identity", "--dataset", rows, "--budget-usd", "1", "--model", "m"]
    reader = ["--reader", model.url, "--reader-price", "1,2"]
    unlimited = ["--reader-option", "max_tokens=null"]
    judge = ["--judge-url", model.url, "--judge-model", "j", "--judge-unqualified"]
    cases = {
        'the proxy "p" has no price': [*reader, "--proxy", model.url, "--name", "a", "--name", "p"],
        'nothing limits the answers of the reader "m"': [*reader, *unlimited],
        'the judge "llm-judge" has no price': [*reader, "--max-tokens", 9, *judge],
        'the judge "llm-judge" has no limit of tokens': [
            *(*reader, "--max-tokens", 9, *judge, "--judge-price", "1,2"),
            *("--judge-option", "max_tokens=null"),
        ],
    }
    for said, flags in cases.items():
        done = cbench(*base, *flags)
        assert done.returncode == 2
        assert said in done.stderr
    assert model.requests == []
    two = ["--proxy", model.url, "--proxy", model.url, *["--proxy-price", "1,2"] * 3]
    done = cbench(*base, *reader, *two, "--name", "a", "--name", "b", "--name", "c")
    assert "there are 3 --proxy-price for 2 models" in done.stderr


def test_a_run_stops_at_its_budget_as_a_paired_sample_and_goes_on_with_more(
    cbench: Cbench, model: PricedModel, rows: Path
) -> None:
    budget = 0.0018
    done = cbench("run", *priced(model, rows, "--budget-usd", budget))
    assert done.returncode == 1
    assert 0 < model.bill <= budget
    said = re.search(r"the figures cover (\d) of 8 examples", done.stdout)
    assert said is not None
    count = int(said[1])
    assert 0 < count < 8
    run = only_run(cbench)
    assert f"Run {run} stopped in" in done.stdout
    assert "stopped: budget. $" in done.stdout
    assert f"cbench resume {run} --budget-usd MORE" in done.stdout
    shown = json.loads(cbench("show", run, "--output", "json", "--rows", "99").stdout)
    by_system: dict[str, set[Any]] = {}
    for row in shown["rows"]:
        by_system.setdefault(row["system"], set()).add(row["example_id"])
    assert by_system["whole"] == by_system["asked"]
    assert len(by_system["whole"]) == count
    assert shown["run"]["state"] == "failed"
    assert shown["run"]["failure"]["reason"] == "BUDGET_SPENT"
    # Gates refuse it, comparisons say it.
    gate = cbench("gate", run, "--system", "whole", "--policy", "failures at most 0")
    assert gate.returncode == 1
    assert f"a gate wants the whole run, and {run} is a part" in gate.stdout
    assert f"the figures cover {count} of 8 examples" in cbench("compare", run).stdout
    # It goes on only with more.
    again = cbench("resume", run)
    assert again.returncode == 1
    assert f"Go on with more: cbench resume {run} --budget-usd MORE" in again.stderr
    less = cbench("resume", run, "--budget-usd", "0.0001")
    assert less.returncode == 2
    assert "give more than that, not 0.0001" in less.stderr
    asked = len(model.requests)
    more = cbench("resume", run, "--budget-usd", "1")
    assert more.returncode == 0, more.stderr
    assert "the figures cover" not in more.stdout
    # No row was made twice.
    assert len(model.requests) == 16
    assert asked == 2 * count
    gate = cbench("gate", run, "--system", "whole", "--policy", "failures at most 0")
    assert gate.returncode == 0, gate.stdout


def test_prices_of_the_configuration_hold_for_models_by_their_names(
    cbench: Cbench, model: PricedModel, rows: Path, tmp_path: Path
) -> None:
    config = tmp_path / "cbench.toml"
    config.write_text(
        '[prices."org/m"]\ninput_usd = 2.5\noutput_usd = 10\ncached_input_usd = 1.25\n'
    )
    flags = flags_for(model, rows, "-n", "2")
    flags[flags.index("m")] = "org/m"
    judge = ["--judge-url", model.url, "--judge-model", "org/m", "--pack", "strict"]
    done = cbench("run", *flags, *judge, "--judge-unqualified", CBENCH_CONFIG=str(config))
    assert done.returncode == 0, done.stderr
    assert f"This run cost ${float(model.bill):.6g}: " in done.stdout
    assert "judge controls $" in done.stdout
    config.write_text('[prices."org/m"]\ninput_usd = "a lot"\noutput_usd = 1\n')
    refused = cbench("run", *flags, CBENCH_CONFIG=str(config))
    assert refused.returncode != 0
    assert "input_usd of \"org/m\" must be a number, not 'a lot'" in refused.stderr
