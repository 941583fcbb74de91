"""Readers, proxies, judges and likelihoods with a small real model, beside the scripted servers.

One server is shared by the file. The model takes about a second of CPU for a hundred tokens, so
that examples are short; what a busy machine makes of it is given ten minutes.
"""

import json
import math
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from cbench_server import evaluate
from cbench_server.evaluators import AnswerLikelihood, AnswerQuality, LLMJudge
from cbench_server.models.likelihood import TokenClient, scorer_for
from cbench_server.models.local import LocalModel
from cbench_server.models.local_files import WEIGHTS
from cbench_server.results import ANSWER_CUT, PROMPT_CUT
from cbench_server.systems import BUILTINS
from cbench_server.systems.openai_proxy import OpenAIProxy
from tests.fixtures import preloaded
from tests.fixtures.local_model import require_model
from tests.fixtures.waiting import wait_until

pytestmark = pytest.mark.timeout(900)
PATIENCE = 600.0
CITY = {
    "id": "city",
    "context": "Mira lives in Oslo.",
    "question": "In which city does Mira live?",
    "answer": "Oslo",
}
JUDGED = (
    "Question: {question}\nReference answer: {answer}\nResponse: {response}\n"
    "Is the response right? Say YES or NO."
)
COLOUR = {
    "id": "colour",
    "context": "The old gate is green.",
    "question": "Which colour has the old gate?",
    "answer": "green",
}


class Other:
    """Leaves a text that has nothing to do with the question."""

    name = "other"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "context": "Bread costs two crowns."}


def proxy(model: LocalModel, max_tokens: int = 4, **settings: Any) -> OpenAIProxy:
    body = {"max_tokens": max_tokens, "temperature": 0}
    given = {"timeout": PATIENCE, "extra_body": body, "api_key": "", **settings}
    return OpenAIProxy(model.url, model.model, **given)


def post(model: LocalModel, path: str, body: dict[str, Any]) -> Any:
    return httpx.post(model.url + path, json=body, timeout=PATIENCE).raise_for_status().json()


async def test_a_likelihood_is_what_the_whole_distribution_gives(local_model: LocalModel) -> None:
    asked, answer = [{"role": "user", "content": "Name a capital."}], "Oslo, Norway"
    client = TokenClient(local_model.url, "", timeout=PATIENCE)
    scorer = await scorer_for(client)
    found = await scorer.likelihood(asked, answer, 64)
    again = await scorer.likelihood(asked, answer, 64)
    await client.close_connections()
    prompt = post(local_model, "/apply-template", {"messages": asked})["prompt"]
    ids = post(local_model, "/tokenize", {"content": prompt, "parse_special": True})["tokens"]
    tokens = post(local_model, "/tokenize", {"content": answer})["tokens"]
    total = 0.0
    for place, token in enumerate(tokens):
        # No grammar: the probability of every token there is, and of them the one that comes.
        body = {"prompt": ids + tokens[:place], "n_predict": 1, "n_probs": 49152}
        said = post(local_model, "/completion", {**body, "temperature": 0, "cache_prompt": False})
        every = {
            each["id"]: each["logprob"]
            for each in said["completion_probabilities"][0]["top_logprobs"]
        }
        assert sum(map(math.exp, every.values())) == pytest.approx(1.0, abs=0.01)
        total += every[token]
    assert found == again
    assert found.tokens == len(tokens) > 1
    # The weights are of 4 bits: tokens read together are rounded otherwise than one by one.
    assert found.log_probability == pytest.approx(total, abs=0.15 * len(tokens))


def test_the_text_with_the_answer_makes_it_likelier_than_another(local_model: LocalModel) -> None:
    result = evaluate(
        [BUILTINS["identity"](), Other()],
        [CITY, COLOUR],
        [AnswerLikelihood(local_model.url, local_model.model, "", timeout=PATIENCE)],
        progress=False,
        asked_again=0,
    )
    gains = {(row.system, row.example_id): row.scores["answer_gain"] for row in result.rows}
    for example in (CITY, COLOUR):
        assert gains["identity", example["id"]] > 0.0
        assert gains["identity", example["id"]] > gains["other", example["id"]] + 0.5
    rooms = {row.example_id: row.scores["answer_room"] for row in result.rows}
    assert rooms == {each["id"]: gains["identity", each["id"]] for each in (CITY, COLOUR)}


def test_a_reader_and_a_proxy_answer_are_counted_and_cut(local_model: LocalModel) -> None:
    result = evaluate(
        [BUILTINS["identity"](), proxy(local_model, name="proxy")],
        [CITY],
        [AnswerQuality()],
        progress=False,
        timeout=PATIENCE,
        reader=proxy(local_model),
        anchors=False,
        asked_again=0,
    )
    read, own = result.rows
    assert (read.system, own.system) == ("identity", "proxy")
    # The same prompt of the same dataset, at temperature 0: read by one, answered by the other.
    assert read.processed is not None
    assert own.processed is not None
    assert read.processed["response"] == own.processed["response"] != ""
    assert read.finish_reason == own.finish_reason == "length"
    assert ANSWER_CUT in read.marks
    assert ANSWER_CUT in own.marks
    for usage in (read.reader_usage, own.usage):
        assert usage["completion_tokens"] == 4
        assert 40 < usage["prompt_tokens"] < 160
        assert not usage.get("cached_prompt_tokens")


def test_a_prompt_that_does_not_fit_is_the_readers_affair(local_model: LocalModel) -> None:
    long = {**CITY, "context": "Mira lives in Oslo. " * 150}
    result = evaluate(
        [BUILTINS["identity"](), Other()],
        [long],
        [AnswerQuality()],
        progress=False,
        timeout=PATIENCE,
        reader=proxy(local_model),
        anchors=False,
        asked_again=0,
    )
    whole, other = result.rows
    assert whole.failure is not None
    assert (whole.failure.origin, whole.failure.reason) == ("reader", "CONTEXT_OVERFLOW")
    assert PROMPT_CUT in whole.marks
    assert other.failure is None


def test_a_budget_stops_before_the_row_that_it_does_not_cover(local_model: LocalModel) -> None:
    # A cent for each token: one row takes about a dollar, and two would take more than 1.8.
    priced = proxy(local_model, name="priced", price=(10_000.0, 10_000.0))
    result = evaluate(
        [priced],
        [CITY, COLOUR],
        [AnswerQuality()],
        progress=False,
        timeout=PATIENCE,
        budget_usd=1.8,
        asked_again=0,
    )
    (row,) = result.rows
    tokens = row.usage["prompt_tokens"] + row.usage["completion_tokens"]
    assert row.cost_usd["system"] == pytest.approx(tokens / 100)
    assert row.cost_usd["system"] < 1.8
    assert result.config["failure"]["reason"] == "BUDGET_SPENT"


def test_so_small_a_model_fails_its_controls_as_a_judge(local_model: LocalModel) -> None:
    # A prompt as short as it can be: what is long costs seconds, and helps it no more.
    judge = LLMJudge(
        local_model.url,
        local_model.model,
        "",
        timeout=PATIENCE,
        max_retries=0,
        pack="strict",
        prompts={"": JUDGED},
        extra_body={"max_tokens": 4},
    )
    identity = BUILTINS["identity"]()
    with pytest.warns(UserWarning, match="did not pass its controls: accepts"):
        result = evaluate([identity], [CITY, COLOUR], [judge], progress=False, asked_again=0)
    (record,) = result.config["judges"]
    assert record["qualified"] is False
    assert record["kinds"]["right"]["asked"] == record["kinds"]["specific-wrong"]["asked"] == 2
    assert not any(kind["without_verdict"] for kind in record["kinds"].values())


def test_a_run_serves_the_model_for_as_long_as_it_takes(tmp_path: Path) -> None:
    require_model()
    data = tmp_path / "qa.jsonl"
    data.write_text(json.dumps(CITY) + "\n")
    command = [preloaded.CBENCH, "run", "--builtin", "identity", "--dataset", data, "--max-tokens"]
    command += ["4", "--reader", "local", "--likelihood", "local", "--no-anchors"]
    command += ["--timeout", "10m", "--ask-again", "0", "--output", "json"]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    labels = told["run"]["spec"]["labels"] if "run" in told else told["spec"]["labels"]
    assert labels["local_model"] == "SmolLM2-135M-Instruct.Q4_1"
    assert labels["local_model_sha256"] == WEIGHTS.sha256
    for part in ("threads=1", "slots=1", "temperature=0.0", "seed=1", "prompt_cache=False"):
        assert part in labels["local_model_settings"]
    assert not served_below(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_never_outlives_its_command(tmp_path: Path, number: signal.Signals) -> None:
    require_model()
    process = preloaded.Popen(
        [str(preloaded.CBENCH), "model", "serve", "--context", "64"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    listed = httpx.get(f"{url}/v1/models", timeout=PATIENCE).json()
    assert listed["data"][0]["id"] == "SmolLM2-135M-Instruct.Q4_1"
    assert served_below(tmp_path)
    process.send_signal(number)
    process.wait(PATIENCE)
    process.stdout.close()
    wait_until(lambda: not served_below(tmp_path), 120.0)


def served_below(folder: Path) -> list[int]:
    """Return the servers of local models that were started in a folder, by process id."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = os.readlink(path / "cwd") == str(folder)
            command = (path / "cmdline").read_text()
        except OSError:
            continue
        if is_ours and "local_server.py" in command:
            found.append(int(path.name))
    return found


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "CBENCH_HOME": str(folder / "home"), "NO_COLOR": "1"}


def run(command: list[Any], folder: Path) -> "subprocess.CompletedProcess[str]":
    return preloaded.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=folder,
        env=environment(folder),
        check=False,
    )
