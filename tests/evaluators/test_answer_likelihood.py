"""Answer likelihood: three arms, of which two are shared, and nothing sampled."""

import asyncio
from collections.abc import Iterator

import pytest

from cbench_server import evaluate
from cbench_server.errors import CbenchError, ComponentAway, InvalidInput
from cbench_server.evaluators import AnswerLikelihood
from cbench_server.metrics import LikelihoodRetention
from cbench_server.scoring.assessment import GaveUp
from cbench_server.systems import BUILTINS
from tests.fixtures.likelihood_servers import LikelihoodServer, serving
from tests.fixtures.ports import held_port

ORIGINAL = {
    "id": 1,
    "dataset": "mini-qa",
    "context": "The ferry leaves from Tarn. Bread costs two crowns.",
    "question": "Where does it leave from?",
    "answer": "Tarn harbour",
}


@pytest.fixture
def server() -> Iterator[LikelihoodServer]:
    with serving("llama.cpp") as server:
        yield server


@pytest.mark.parametrize(
    ("left", "loglik", "gain"),
    [
        (ORIGINAL["context"], -3.0, 2.0),
        ("The ferry leaves from Tarn.", -3.0, 2.0),
        ("Bread costs two crowns.", -5.0, 0.0),
        ("", -5.0, 0.0),
        ("Tarn harbour", -1.0, 4.0),
    ],
    ids=["all", "the sentence", "another", "nothing", "more than there was"],
)
def test_what_is_left_is_set_against_all_and_nothing(
    server: LikelihoodServer, left: str, loglik: float, gain: float
) -> None:
    scores = AnswerLikelihood(server.url, api_key="").score(ORIGINAL, {"context": left})
    # Of "Tarn harbour" the whole context has one word of two.
    assert scores == {"answer_loglik": loglik, "answer_gain": gain, "answer_room": 2.0}


async def test_details_have_the_sums_and_tokens(server: LikelihoodServer) -> None:
    evaluator = AnswerLikelihood(server.url, "smol", "")
    found = await evaluator.assess(ORIGINAL, {"context": "Bread costs two crowns."})
    await evaluator.close_connections()
    assert found.details == {
        "reference": "Tarn harbour",
        "tokens": 2,
        "log_probability": -10.0,
        "log_probability_no_context": -10.0,
        "log_probability_whole_context": -6.0,
        "model": "smol",
    }


async def test_systems_share_what_does_not_depend_on_them(server: LikelihoodServer) -> None:
    evaluator = AnswerLikelihood(server.url, api_key="")
    left = [ORIGINAL["context"], "", "Tarn.", "Bread.", "Bread."]
    await asyncio.gather(*(evaluator.assess(ORIGINAL, {"context": each}) for each in left))
    await evaluator.close_connections()
    # The whole and nothing, which are also two of the systems', and two others.
    assert len(server.asked) == len(set(server.asked)) == 4
    assert server.most_in_flight == 1


async def test_the_reference_is_in_no_prompt_and_its_wording_is_the_datasets(
    server: LikelihoodServer,
) -> None:
    evaluator = AnswerLikelihood(server.url, api_key="")
    await evaluator.assess({**ORIGINAL, "answer": "zanzibar"}, {"context": "Bread."})
    await evaluator.close_connections()
    assert server.asked
    assert not any("zanzibar" in prompt for prompt in server.asked)
    assert all("Read the text and answer" in prompt for prompt in server.asked)


def test_of_several_references_the_first_is_compared_on_every_arm(
    server: LikelihoodServer,
) -> None:
    original = {**ORIGINAL, "answers": ["Orne", "Tarn", "Bread harbour"]}
    evaluator = AnswerLikelihood(server.url, api_key="")
    scores = evaluator.score(original, {"context": "Orne"})
    # "Tarn" and "Bread" stand in the whole context, and are not asked about.
    assert scores == {"answer_loglik": -1.0, "answer_gain": 4.0, "answer_room": 0.0}
    assert len(server.asked) == 3


def test_a_model_that_guesses_has_no_room_however_many_references_there_are(
    server: LikelihoodServer,
) -> None:
    server.guesses = True
    examples = [
        {
            "id": n,
            "context": f"Text {n}.",
            "question": f"What is {n}?",
            "answers": ["a", "b", "c", "d"],
        }
        for n in range(60)
    ]
    evaluator = AnswerLikelihood(server.url, api_key="")
    result = evaluate([BUILTINS["identity"]()], examples, [evaluator], [LikelihoodRetention()])
    found = result.summary["identity"]
    assert found["num_likelihood"] == 60
    assert found["likelihood_room_ci_low"] < 0 < found["likelihood_room_ci_high"]
    assert found["likelihood_retention"] is None


@pytest.mark.parametrize(
    ("original", "processed"),
    [
        ({**ORIGINAL, "context": " "}, {"context": "x"}),
        ({"context": "x", "question": "y"}, {"context": "x"}),
        (ORIGINAL, {"response": "Tarn"}),
    ],
    ids=["no context", "no reference", "no context left"],
)
def test_what_does_not_apply_has_no_score(
    server: LikelihoodServer, original: dict[str, object], processed: dict[str, object]
) -> None:
    assert AnswerLikelihood(server.url, api_key="").score(original, processed) == {}
    assert server.asked == []


async def test_a_server_that_cannot_tell_is_refused_before_the_first_row() -> None:
    with serving("echo") as server:
        server.lie = "no echo"
        evaluator = AnswerLikelihood(server.url, api_key="")
        with pytest.raises(CbenchError, match="does not tell how likely"):
            await evaluator.probe()
        with pytest.raises(GaveUp, match="does not tell how likely"):
            await evaluator.assess(ORIGINAL, {"context": "x"})
        await evaluator.close_connections()


async def test_a_server_that_is_away_is_waited_for() -> None:
    evaluator = AnswerLikelihood(f"http://127.0.0.1:{held_port()}", api_key="", api="echo")
    evaluator._client._max_retries = 0
    with pytest.raises(ComponentAway):
        await evaluator.assess(ORIGINAL, {"context": "x"})
    await evaluator.close_connections()


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"api": "openai"}, "openai"), ({"timeout": 0}, "timeout"), ({"max_concurrency": 0}, "1")],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        AnswerLikelihood("http://127.0.0.1:1", **settings)  # type: ignore[arg-type]


def _examples(answers: list[str]) -> list[dict[str, str]]:
    return [
        {"context": f"It is called {name}. It rains here.", "question": "Name?", "answer": name}
        for name in answers
    ]


def test_evaluate_gives_the_retention_of_each_system(server: LikelihoodServer) -> None:
    names = [f"name{number}" for number in range(12)]
    systems = [BUILTINS[name]() for name in ("identity", "no-context")]
    result = evaluate(
        systems,
        _examples(names),
        [AnswerLikelihood(server.url, api_key="")],
        progress=False,
        asked_again=0,
    )
    kept = {name: values["likelihood_retention"] for name, values in result.summary.items()}
    assert kept == {"identity": 1.0, "no-context": 0.0}
    assert {values["likelihood_room"] for values in result.summary.values()} == {4.0}
    assert any("0 is no context" in note["text"] for note in result.config["notes"])


def test_a_model_to_which_the_context_does_not_matter_cannot_tell(
    server: LikelihoodServer,
) -> None:
    # What is asked for stands in the question too.
    examples = [{**each, "question": each["answer"]} for each in _examples(["a1", "b2", "c3"])]
    result = evaluate(
        [BUILTINS["identity"]()],
        examples,
        [AnswerLikelihood(server.url, api_key="")],
        progress=False,
        asked_again=0,
    )
    assert result.summary["identity"]["likelihood_retention"] is None
    assert result.summary["identity"]["likelihood_room"] == 0.0
    told = [note["text"] for note in result.config["notes"]]
    assert any("this model cannot tell on this data" in text for text in told)
