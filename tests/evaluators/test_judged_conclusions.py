"""What a run concludes from judged scores: no more than its judges are worth."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.evaluators import LLMJudge
from cbench_server.systems.openai_proxy import OpenAIProxy
from tests.fixtures import preloaded
from tests.fixtures import scripted_judges as scripted
from tests.fixtures.model_server import ModelServer

CBENCH = str(Path(sys.executable).parent / "cbench")
EXAMPLES = [
    {
        "id": f"q{n}",
        "context": f"In house {n} the word is {word}. " + "It rains there all the year. " * 3,
        "question": f"Which word belongs to house {n}?",
        "answer": word,
        "street": "left" if n % 2 else "right",
    }
    for n, word in enumerate(
        ["harbour", "lantern", "mountain", "violin", "orchard", "glacier", "carpet", "thunder"] * 3
    )
]
# The reader knows what the context tells it.
ANSWERS = {
    f"the word is {word}": f"{word} surely" for word in {str(each["answer"]) for each in EXAMPLES}
}
CONCLUSIONS = {"SWEEP", "MATCHED_CONTROLS", "NOISE_FLOOR", "GUESSABLE"}


def contrary(sections: dict[str, str]) -> str:
    """Passes its controls, and sees the reader's answers the other way round."""
    if "do not know" in sections["RESPONSE"]:
        return "YES"
    return "NO" if "surely" in sections["RESPONSE"] else scripted.exact(sections)


class KeepsTheFirst:
    name = "keeps-the-first"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "context": example["context"].split(". ")[0]}


def concluded(server: ModelServer, *judges: LLMJudge) -> dict[str, str]:
    scripted.script(
        server,
        scripted.exact,
        models={"other": contrary, "generous": scripted.always("YES")},
        answers=ANSWERS,
    )
    result = evaluate(
        [KeepsTheFirst()],
        EXAMPLES,
        judges,
        controls="matched",
        reader=OpenAIProxy(server.url, "reader"),
        score_field="judge_score",
        progress=False,
    )
    return {note["code"]: note["text"] for note in result.config["notes"]}


def test_no_more_is_claimed_of_controls_than_all_judges_see(server: ModelServer) -> None:
    judge = LLMJudge(server.url, "judge", pack="strict")
    alone = concluded(server, judge)
    assert alone["MATCHED_CONTROLS"].startswith("keeps-the-first is better than truncating")
    assert not any("†" in alone[code] for code in CONCLUSIONS & alone.keys())
    both = concluded(server, judge, LLMJudge(server.url, "other", pack="strict", label="two"))
    assert "is not shown to be better" in both["MATCHED_CONTROLS"]
    with pytest.warns(UserWarning, match="did not pass its controls"):
        failed = concluded(server, LLMJudge(server.url, "generous", pack="strict"))
    assert {code for code, text in failed.items() if text.startswith("† ")} == {
        *(CONCLUSIONS - {"SWEEP"}),
        "JUDGE_UNQUALIFIED",
    }


def test_all_that_stands_on_a_judge_that_did_not_pass_is_marked_in_notes_and_on_the_page(
    server: ModelServer, tmp_path: Path
) -> None:
    scripted.script(server, scripted.always("YES"), answers=ANSWERS)
    file, page = tmp_path / "words.jsonl", tmp_path / "page.html"
    file.write_text("\n".join(map(json.dumps, EXAMPLES)))
    environment = {**os.environ, "CBENCH_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": "sk-x"}

    def cbench(*words: str) -> str:
        done = preloaded.run(
            [CBENCH, *words], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    cbench(
        *("run", "--builtin", "truncate-tail", "--sweep", "truncate-tail.ratio=0.3,0.6"),
        *("--reader", server.url, "--reader-model", "reader", "--dataset", str(file)),
        *("--judge-url", server.url, "--judge-model", "judge", "--pack", "strict"),
        *("--judge-unqualified", "--score-field", "judge_score", "--group-by", "street"),
    )
    document = json.loads(cbench("export", "last", "--format", "json"))
    said = [note for note in document["notes"] if note["code"] in CONCLUSIONS]
    assert {note["code"] for note in said} == CONCLUSIONS
    assert [note["text"] for note in said if not note["text"].startswith("† ")] == []

    cbench("report", "last", "-o", str(page))
    found = re.search(
        r'<script type="application/json" id="report">(.*?)</script>', page.read_text()
    )
    assert found is not None
    head = json.loads(found[1])
    assert "judge_score†" in head["scores"]["titles"]
    assert "f1" in head["scores"]["titles"]
    assert head["groups"][0]["titles"][0] == "street†"
    assert head["sweep"]["score"] == "judge_score†"
    assert "judge_score†" in head["sweep"]["table"]["titles"]
    assert "judge_score†" in [each["score"] for each in head["distributions"]]
