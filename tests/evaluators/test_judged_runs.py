"""Judged runs as a person sees them: controls first, marks on what deserves none, notes below."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.evaluators import MemoryJudge
from cbench_server.reports.report import report_of
from cbench_server.reports.table import RowFacts, to_table
from tests.fixtures import preloaded
from tests.fixtures import scripted_judges as scripted
from tests.fixtures.model_server import ModelServer

CBENCH = str(Path(sys.executable).parent / "cbench")
WORDS = ["harbour", "lantern", "mountain", "violin", "orchard"]
WORDS += ["glacier", "carpet", "thunder", "pepper", "saddle"]
EXAMPLES = [
    {
        "id": f"q{n}",
        "context": "-",
        "question": f"Which word is number {n}00?",
        "answer": word,
        "group": "odd" if n % 2 else "even",
    }
    for n, word in enumerate(WORDS * 2, 1)
]
# The first system gets three in four right.
ANSWERS = {
    str(each["question"]): str(each["answer"]) if n % 4 else "nothing of the kind"
    for n, each in enumerate(EXAMPLES)
}

Cbench = Callable[..., Any]


@pytest.fixture
def cbench(tmp_path: Path, server: ModelServer) -> Cbench:
    """Runs the command line in a home of its own; `judged` adds a proxy and a dataset."""
    file = tmp_path / "words.jsonl"
    file.write_text("\n".join(map(json.dumps, EXAMPLES)))
    environment = {**os.environ, "CBENCH_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": "sk-x"}

    def run(*words: str, judged: bool = True, quiet: bool = True) -> Any:
        usual = ["run", "--proxy", server.url, "--model", "m", "--dataset", str(file)]
        usual += ["--quiet"] if quiet else []
        command = [CBENCH, *(usual if judged else []), *words]
        return preloaded.run(command, capture_output=True, text=True, env=environment, check=False)

    return run


def judge(server: ModelServer, *more: str) -> list[str]:
    return ["--judge-url", server.url, "--judge-model", "judge", *more]


def test_a_judge_that_fails_its_controls_stops_the_run_before_a_system_is_called(
    cbench: Cbench, server: ModelServer
) -> None:
    scripted.script(server, scripted.always("YES"), answers=ANSWERS)
    done = cbench(*judge(server, "--pack", "strict"))
    assert done.returncode == 1
    assert "no judge passed its controls" in done.stdout + done.stderr
    assert "specific-wrong" in done.stdout + done.stderr
    assert "--judge-unqualified" in done.stdout + done.stderr
    # A slow judge takes minutes for them, in which there is no row to show.
    shown = cbench(*judge(server, "--pack", "strict"), quiet=False).stderr
    assert "judges are asked about controls first" in shown
    # Nothing was there to be scored, and nothing would change if it went on.
    assert "scored no row" not in done.stdout
    assert "cbench resume" not in done.stdout
    assert {request["model"] for request in server.requests} == {"judge"}


@pytest.mark.parametrize("pack", ["correctness", "strict"])
def test_what_a_judge_was_asked_in_vain_is_counted(
    cbench: Cbench, server: ModelServer, pack: str
) -> None:
    scripted.script(server, scripted.always("no idea"), answers=ANSWERS)
    done = cbench(*judge(server, "--pack", pack, "--judge-unqualified", "--judge-price", "1,2"))
    assert done.returncode == 0, done.stderr
    document = json.loads(cbench("export", "last", "--format", "json", judged=False).stdout)
    said = [row["details"]["llm-judge"] for row in document["rows"]]
    assert [each["requests"] for each in said] == [2] * len(EXAMPLES)
    [values] = document["summary"].values()
    assert values["judge_prompt_tokens"] == 20.0 * len(EXAMPLES)
    assert "40 requests, 20 replies without a verdict asked about again" in done.stdout
    # A judge that gave no figure leaves no mark on a row.
    assert not any("JUDGE_UNQUALIFIED" in row.get("marks", []) for row in document["rows"])


def test_every_figure_of_an_unqualified_judge_is_marked_everywhere(
    cbench: Cbench, server: ModelServer, tmp_path: Path
) -> None:
    scripted.script(server, scripted.always("YES"), answers=ANSWERS)
    flags = judge(server, "--pack", "strict", "--judge-unqualified", "--judge-price", "1,2")
    done = cbench(*flags, "--score-field", "judge_score")
    assert done.returncode == 0, done.stderr
    assert "judge_score†" in done.stdout
    assert "† Judge judge with pack strict did not pass its controls" in done.stdout
    shown = cbench("export", "last", "--format", "json", judged=False)
    document = json.loads(shown.stdout)
    assert document["marks"]["judge_score"] == "†"
    assert document["config"]["judges"][0]["qualified"] is False
    assert all("JUDGE_UNQUALIFIED" in row["marks"] for row in document["rows"])
    assert all(row["details"]["llm-judge"]["unqualified"] for row in document["rows"])
    assert document["rows"][0]["cost_usd"] == {"llm-judge": pytest.approx(12 / 1e6)}
    gate = cbench("gate", "last", "--policy", "judge_score at least 0.5", judged=False)
    assert "† " in gate.stdout
    assert "did not pass its controls" in gate.stdout
    rows = cbench("show", "last", "--rows", "2", judged=False)
    assert rows.stdout.count("judge_score† ") == 2, rows.stdout
    example = str(document["rows"][0]["example_id"])
    one = cbench("show", "last", "--example", example, judged=False)
    assert "judge_score† = " in one.stdout
    assert "did not pass its controls" in one.stdout
    page = tmp_path / "page.html"
    cbench("report", "last", "-o", str(page), judged=False)
    assert "judge_score†" in page.read_text() or "judge_score\\u2020" in page.read_text()


def test_the_mark_follows_a_figure_into_lists_groups_exports_and_comparisons(
    cbench: Cbench, server: ModelServer
) -> None:
    models = {"generous": scripted.always("YES")}
    scripted.script(server, scripted.exact, models=models, answers=ANSWERS)
    usual = ["--score-field", "judge_score", "--pack", "strict", "--group-by", "group"]
    good = cbench("--judge-url", server.url, "--judge-model", "judge", *usual)
    assert good.returncode == 0, good.stderr
    generous = ["--judge-url", server.url, "--judge-model", "generous", "--judge-unqualified"]
    bad = cbench("rescore", "last", *generous, "--pack", "strict", judged=False)
    assert "Score by group†" in bad.stdout, bad.stdout + bad.stderr
    listed = json.loads(cbench("runs", "--output", "json", judged=False).stdout)
    ids = [each["run_id"] for each in listed]
    assert listed[1]["marks"] == {}
    marked = {"judge_agreement", "judge_score", "mean_score", "pass_rate", "group:group=even"}
    assert listed[0]["marks"].keys() >= marked
    assert "num_scored" not in listed[0]["marks"]
    lines = cbench("runs", judged=False).stdout.splitlines()
    assert ["judge_score†" in line for line in lines[2:4]] == [True, False]
    # Whichever of the two is named first.
    for order in (ids, ids[::-1]):
        compared = cbench("compare", *order, "--group-by", "group", judged=False).stdout
        assert "on judge_score†" in compared
        assert compared.count("A - B†") == 2
        assert "Score†" in compared
        assert "did not pass its controls" in compared
    policy = ["--policy", "score not worse than baseline"]
    gate = cbench("gate", ids[1], "--baseline", ids[0], *policy, judged=False)
    assert "† " in gate.stdout
    gate = cbench("gate", ids[1], "--policy", "score at least 0.1", judged=False)
    assert "†" not in gate.stdout
    exported = cbench("export", ids[0], "--format", "markdown", judged=False).stdout
    assert "| mean_score† |" in exported
    assert "| num_scored |" in exported
    assert "Score by group†" in exported
    log = json.loads(cbench("export", ids[0], "--format", "inspect", judged=False).stdout)
    assert log["samples"][0]["scores"]["judge_score"]["metadata"]["mark"] == "†"
    assert log["results"]["scores"][0]["metrics"]["pass_rate"]["metadata"]["mark"] == "†"
    exported = cbench("export", ids[0], "--format", "junit", judged=False).stdout
    assert exported.count("† A judge of this row did not pass its controls.") == len(EXAMPLES)


def test_a_judge_that_passes_is_not_marked_and_its_controls_are_cached(
    cbench: Cbench, server: ModelServer
) -> None:
    scripted.script(server, scripted.exact, answers=ANSWERS)
    done = cbench(*judge(server, "--pack", "strict", "--score-field", "judge_score"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "†" not in done.stdout
    assert "self-graded" not in done.stdout
    assert "accepted of its controls: right 100%" in done.stdout
    assert "decide little" in done.stdout
    first = len(server.requests)
    assert cbench(*judge(server, "--pack", "strict", "--ask-again", "0")).returncode == 0
    # Twenty answers, twenty verdicts, and no controls.
    assert len(server.requests) - first == 40


@pytest.mark.parametrize("model", [[], ["--judge-model", "provider/M"]], ids=["unnamed", "same"])
def test_a_judge_that_may_be_the_model_under_test_is_said_to_grade_itself(
    cbench: Cbench, server: ModelServer, model: list[str]
) -> None:
    scripted.script(server, scripted.exact, answers=ANSWERS)
    done = cbench("--judge-url", server.url, *model, "--pack", "strict")
    assert "judge_score is self-graded" in done.stdout, done.stdout + done.stderr
    gate = cbench("gate", "last", "--policy", "judge_score at least 0.5", judged=False)
    assert "self-graded" in gate.stdout
    document = json.loads(cbench("export", "last", "--format", "json", judged=False).stdout)
    assert document["config"]["judges"][0]["self_graded"] is True
    assert "SELF_GRADED" in [note["code"] for note in document["notes"]]
    assert "SELF_GRADED" in document["rows"][0]["marks"]


def test_two_packs_give_a_range_and_one_that_qualifies_is_enough(
    cbench: Cbench, server: ModelServer
) -> None:
    def by_pack(sections: dict[str, str]) -> str:
        return scripted.exact(sections) if "REFERENCE" in sections else "4"

    scripted.script(server, by_pack, answers=ANSWERS)
    done = cbench(*judge(server, "--pack", "strict", "--pack", "helpfulness"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "† Judge judge with pack helpfulness did not pass" in done.stdout
    scripted.script(server, scripted.exact, answers=ANSWERS)
    done = cbench(*judge(server, "--pack", "strict", "--pack", "lenient"))
    assert "0.75-0.75 by what the judge is asked (strict 0.75, lenient 0.75)" in done.stdout


def test_two_raters_are_compared_and_forbid_better_where_they_disagree(
    cbench: Cbench, server: ModelServer
) -> None:
    def contrary(sections: dict[str, str]) -> str:
        # It passes its controls, and sees the systems' answers the other way round.
        if "nothing of the kind" in sections["RESPONSE"]:
            return "YES"
        return "NO" if "surely" in sections["RESPONSE"] else scripted.exact(sections)

    answers = {asked: text + " surely" for asked, text in ANSWERS.items()}
    for asked, text in ANSWERS.items():
        if text == "nothing of the kind":
            answers[asked] = text
    models = {"other": contrary}
    scripted.script(server, scripted.exact, models=models, answers=answers)
    flags = ["--judge-url", server.url, "--judge-url", server.url]
    flags += ["--judge-model", "judge", "--judge-model", "other", "--pack", "strict"]
    # A second system that is wrong throughout.
    flags += ["--builtin", "wrong-words", "--import", "tests.fixtures.wrong_words"]
    done = cbench(*flags, "--score-field", "judge_score")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "neither may be called better" in done.stdout
    assert "Cohen's kappa -" in done.stdout
    compared = cbench("compare", "last", judged=False)
    assert "neither is called better" in compared.stdout
    assert "judge_score†" not in compared.stdout
    assert "is better than" not in compared.stdout


def test_two_raters_that_disagree_forbid_better_in_python_too(server: ModelServer) -> None:
    class Echo:
        name = "echo"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {**example, "response": f"{example['answer']} surely"}

    class Wrong(Echo):
        name = "wrong"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {**example, "response": "nothing of the kind"}

    def contrary(sections: dict[str, str]) -> str:
        if "nothing of the kind" in sections["RESPONSE"]:
            return "YES"
        return "NO" if "surely" in sections["RESPONSE"] else scripted.exact(sections)

    scripted.script(server, scripted.exact, models={"other": contrary})
    examples = [{**each, "group": ""} for each in EXAMPLES]
    judges = [MemoryJudge(server.url, "judge"), MemoryJudge(server.url, "other", label="two")]
    result = evaluate([Echo(), Wrong()], examples, judges, progress=False)
    found = result.compare("echo", "wrong")
    assert found.disputed
    assert "neither is called better" in found.sentence
    alone = evaluate([Echo(), Wrong()], examples, judges[:1], progress=False)
    assert "echo is better than wrong" in alone.compare("echo", "wrong").sentence


def test_labels_of_people_give_an_estimate_that_may_be_gated(
    cbench: Cbench, server: ModelServer, tmp_path: Path
) -> None:
    scripted.script(server, scripted.exact, answers=ANSWERS)
    labels = tmp_path / "labels.jsonl"
    # People accept two answers in ten that the judge did not.
    lines = [
        {"example_id": each["id"], "verdict": "yes" if n % 4 or n < 6 else "no"}
        for n, each in enumerate(EXAMPLES[:10])
    ]
    labels.write_text("\n".join(map(json.dumps, lines)))
    done = cbench(*judge(server, "--pack", "strict"), "--labels", str(labels))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the true rate behind judge_score is estimated at 0.950" in done.stdout
    gate = cbench("gate", "last", "--policy", "labelled rate at least 0.5", judged=False)
    assert gate.returncode == 0, gate.stdout + gate.stderr
    asked = len(server.requests)
    for line, said in (
        ({"example_id": "nowhere", "verdict": 1}, 'about no row, such as "nowhere"'),
        ({"example_id": "q1", "verdict": 1, "system": "other"}, '"q1" of system "other"'),
    ):
        labels.write_text(json.dumps(line))
        done = cbench(*judge(server, "--pack", "strict"), "--labels", str(labels))
        assert done.returncode == 1
        assert said in done.stdout + done.stderr
    done = cbench("--labels", str(labels))
    assert done.returncode == 2
    assert "the run has none" in done.stdout + done.stderr
    # Neither the judge nor the system was asked for that.
    assert len(server.requests) == asked


def test_errata_show_both_scores_the_ceiling_and_what_is_above_it(
    cbench: Cbench, server: ModelServer, tmp_path: Path
) -> None:
    scripted.script(server, scripted.exact, answers=ANSWERS)
    errata = tmp_path / "errata.jsonl"
    lines = [
        {"example_id": "q1", "action": "replace", "answers": ["nothing of the kind"]},
        {"example_id": "q5", "action": "accept_also", "answers": ["nothing of the kind"]},
        {"example_id": "q9", "action": "exclude", "reason": "no such word"},
        *({"example_id": f"q{n}", "exclude": True} for n in (2, 3, 4, 6, 7)),
    ]
    errata.write_text("\n".join(map(json.dumps, lines)))
    done = cbench("--errata", str(errata), "--score-field", "exact_match")
    assert done.returncode == 0, done.stdout + done.stderr
    # 15 of 20 as published; six are left out, five of them right, and two more are right.
    assert "0.750 as published, 0.857 with errata" in done.stdout
    assert "1 replace" in done.stdout
    assert "6 exclude" in done.stdout
    assert "above the ceiling of 0.650" in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"example_id": "q99", "action": "exclude"}, 'the errata correct "q99" of any dataset'),
        ({"example_id": "q1", "action": "exclude", "source_digest": "abc"}, "for the source abc"),
        ({"example_id": "q1", "action": "drop"}, "one action of: exclude, replace"),
        ({"example_id": "q1", "action": "replace"}, "has no answers to replace"),
    ],
)
def test_errata_that_match_nothing_are_refused_before_anything_is_spent(
    cbench: Cbench, server: ModelServer, tmp_path: Path, line: dict[str, str], said: str
) -> None:
    scripted.script(server, scripted.exact, answers=ANSWERS)
    errata = tmp_path / "errata.jsonl"
    errata.write_text(json.dumps(line))
    done = cbench("--errata", str(errata))
    assert done.returncode == 1
    assert said in done.stdout + done.stderr
    assert server.requests == []


def test_judge_check_runs_the_controls_alone(cbench: Cbench, server: ModelServer) -> None:
    scripted.script(server, scripted.exact)
    flags = ["judge", "check", "--dataset", "mini-qa", *judge(server)]
    done = cbench(*flags, "--pack", "strict", judged=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "specific-wrong" in done.stdout
    scripted.script(server, scripted.always("NO"))
    done = cbench(*flags, "--pack", "lenient", "--output", "json", judged=False)
    assert done.returncode == 1
    [record] = json.loads(done.stdout)
    assert record["kinds"]["right"]["accepted"] == 0


def test_evaluate_marks_what_an_unqualified_judge_says(server: ModelServer) -> None:
    class Echo:
        name = "echo"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {**example, "response": example["answer"]}

    class Silent(Echo):
        name = "silent"

    scripted.script(server, scripted.always("YES"))
    judges = [MemoryJudge(server.url, "judge")]
    with pytest.warns(UserWarning, match="did not pass its controls"):
        result = evaluate([Echo(), Silent()], EXAMPLES, judges, progress=False)
    assert result.compare("echo", "silent", "memory_judge").score == "memory_judge†"
    assert result.config["judges"][0]["qualified"] is False
    assert all("JUDGE_UNQUALIFIED" in row.marks for row in result.rows)
    assert result.rows[0].scores["memory_judge"] == 1.0
    assert "JUDGE_UNQUALIFIED" in [note["code"] for note in result.config["notes"]]
    table = "".join(map(str, to_table(report_of(result).run, RowFacts())))
    assert "† Judge judge with pack memory-qa did not pass" in table


@pytest.mark.parametrize(
    ("name", "text", "pack", "prompts"),
    [
        (
            "judge_prompts.jsonl",
            "\n".join(
                json.dumps(
                    {"name": name, "type": kind, "system_prompt": "S", "prompt_template": said}
                )
                for name, kind, said in (
                    ("single-v1", "single", "Rate {question} {answer}"),
                    (
                        "single-v1-multi-turn",
                        "single",
                        "{question_1}{answer_1}{question_2}{answer_2}",
                    ),
                    ("pair-v2", "pairwise", "x"),
                )
            ),
            "mt-bench",
            ["single-v1", "single-v1-multi-turn"],
        ),
        ("clf.txt", "{instruction} {output_1} {output_2}", "alpaca-eval", [""]),
    ],
)
def test_a_file_with_a_benchmarks_prompts_is_a_pack(
    cbench: Cbench,
    server: ModelServer,
    tmp_path: Path,
    name: str,
    text: str,
    pack: str,
    prompts: list[str],
) -> None:
    file = tmp_path / name
    file.write_text(text)
    scripted.script(server, scripted.always("[[5]]"), answers=ANSWERS)
    done = cbench(*judge(server, "--pack", str(file), "--judge-unqualified"), "-n", "2")
    assert done.returncode == 0, done.stderr
    shown = json.loads(cbench("export", "last", "--format", "json", judged=False).stdout)
    (record,) = shown["config"]["judges"]
    assert (record["pack"], record["prompts"]) == (pack, "from a file")
    used = shown["config"]["datasets"][0]["evaluators"]
    (asked,) = [each for each in used if each["name"] == "llm-judge"]
    assert sorted(asked["options"]["prompts"]) == prompts
    file.write_text("{}")
    if file.suffix == ".jsonl":
        assert (
            "does not hold MT-Bench's prompts" in cbench(*judge(server, "--pack", str(file))).stderr
        )
