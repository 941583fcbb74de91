"""Runs that ask a model: proxies under test, and a reader for compressors."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from tests.fixtures.model_server import serving
from tests.fixtures.ports import held_port

from .following import run
from .processes import examples, start_system


class Model(ThreadingHTTPServer):
    """Answers every chat with one word it finds before the question, else `unknown`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", held_port()), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests: list[dict[str, Any]] = []
        self.fail_every = 0
        self.before_answering: Callable[[], None] = lambda: None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Model

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.before_answering()
        every = self.server.fail_every
        status = 503 if every and len(self.server.requests) % every == 0 else 200
        context = body["messages"][-1]["content"].split("\nParis ")[0]
        word = "Paris" if "Paris" in context else "unknown"
        reply = {
            "choices": [{"message": {"content": word}}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 1, "total_tokens": 12},
        }
        answer = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving_model() -> Iterator[Model]:
    server = Model()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def model() -> Iterator[Model]:
    with serving_model() as server:
        yield server


def test_a_proxy_is_a_system_like_any_other(client: BenchClient, model: Model) -> None:
    spec = {"systems": [{"name": "gpt", "proxy": {"base_url": model.url, "model": "gpt-4"}}]}
    seen = run(client, spec, examples(20))
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert {row.scores["exact_match"] for row in seen.rows} == {1.0}
    assert {row.usage.total_tokens for row in seen.rows} == {12}
    assert {request["model"] for request in model.requests} == {"gpt-4"}
    # Gold answers stay home: the model saw the prompt, the context and the question only.
    (texts,) = {len(request["messages"]) for request in model.requests}
    assert texts == 1
    assert {row.usage.requests for row in seen.rows} == {1}


def test_a_model_that_stumbles_is_asked_again(client: BenchClient, model: Model) -> None:
    model.fail_every = 4
    seen = run(client, {"systems": [{"proxy": {"base_url": model.url}}]}, examples(20))
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert max(row.attempts for row in seen.rows) > 1


def test_a_reader_answers_for_compressors_and_its_cost_is_kept_apart(
    client: BenchClient, model: Model
) -> None:
    with start_system("shortener") as shortener, start_system("echo") as echo:
        spec = {
            "systems": [
                {"target": shortener.address},
                {"target": echo.address},
                {"builtin": "identity"},
            ],
            "reader": {"base_url": model.url, "model": "reader-1"},
            "anchors": False,
        }
        seen = run(client, spec, examples(10))
    by_system = {
        name: [row for row in seen.rows if row.system == name]
        for name in ("shortener", "echo", "identity")
    }
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    # Half of the context no longer names Paris; all of it does.
    assert {row.scores["exact_match"] for row in by_system["shortener"]} == {0.0}
    assert {row.scores["exact_match"] for row in by_system["identity"]} == {1.0}
    assert {row.reader_usage.total_tokens for row in by_system["identity"]} == {12}
    assert all(row.HasField("reader_time") for row in by_system["shortener"])
    # The echo answered by itself, so the reader was not asked.
    assert not any(row.HasField("reader_time") for row in by_system["echo"])
    assert len(model.requests) == 20


def test_a_reader_that_never_answers_is_given_up_as_one_that_is_away(
    client: BenchClient,
) -> None:
    with serving() as server:
        server.hang()
        spec = {
            "systems": [{"builtin": "identity"}],
            "reader": {"base_url": server.url, "model": "reader-1"},
            "row_timeout": 0.1,
            "wait_timeout": 2,
            "anchors": False,
        }
        seen = run(client, spec, examples(200))
    failure = seen.finished.failure
    assert (seen.state, failure.reason) == ("FAILED", "EVALUATOR_GONE")
    assert failure.field == "spec.reader"
    assert "the reader has answered none of" in failure.message
    assert 0 < len(seen.rows) < 150


def test_a_reader_that_gives_no_answers_is_the_readers_failure(
    client: BenchClient, model: Model
) -> None:
    model.fail_every = 1
    reader = {"base_url": model.url}
    spec = {"systems": [{"builtin": "identity"}], "reader": reader, "row_timeout": 1.0}
    seen = run(client, spec, examples(2))
    assert {row.failure.origin for row in seen.rows} == {6}
    # The reader was asked for a second; `identity` needs none of it.
    assert max(row.latency.ToTimedelta().total_seconds() for row in seen.rows) < 0.5


WHO_ASKS = pytest.mark.parametrize(
    ("what", "spec"),
    [
        ("proxy", {"systems": [{"proxy": {"base_url": "URL"}}]}),
        ("reader", {"systems": [{"builtin": "identity"}], "reader": {"base_url": "URL"}}),
        (
            "judge",
            {
                "systems": [{"builtin": "identity"}],
                "evaluators": [{"name": "llm-judge", "options": {"base_url": "URL"}}],
            },
        ),
    ],
    ids=["proxy", "reader", "judge"],
)


@WHO_ASKS
def test_a_model_that_is_not_there_is_found_before_the_first_row(
    client: BenchClient, what: str, spec: dict[str, Any]
) -> None:
    url = f"http://127.0.0.1:{held_port()}/v1"
    spec = json.loads(json.dumps(spec).replace("URL", url))
    with pytest.raises(Refused) as caught:
        run(client, spec, examples(2))
    assert caught.value.reason == "SYSTEM_UNREACHABLE"
    assert str(caught.value) == (
        f"the {what} at {url}/models cannot be reached: Connection refused. Check its URL."
    )
    assert list(client.list()) == []


@WHO_ASKS
def test_a_server_without_models_is_found_before_the_first_row(
    client: BenchClient, what: str, spec: dict[str, Any]
) -> None:
    """An address where something else answers 404, or a web site's page, to everything."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{site.server_address[1]}"
        spec = json.loads(json.dumps(spec).replace("URL", url))
        try:
            with pytest.raises(Refused) as caught:
                run(client, spec, examples(2))
        finally:
            site.shutdown()
            thread.join()
    assert caught.value.reason == "SYSTEM_UNREACHABLE"
    told = str(caught.value)
    assert told.startswith(f"the {what} at {url}/v1/chat/completions answered 404 Not Found")
    assert told.endswith("Check its URL and model.")
    assert list(client.list()) == []
