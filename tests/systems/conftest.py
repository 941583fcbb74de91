"""A real chat server on the loopback that can be told to misbehave."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Step = Callable[["Handler"], None]


class ModelServer(ThreadingHTTPServer):
    """Answers requests by a script; once it is used up, its last step repeats."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.steps: list[Step] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.connections = 0
        self.released = threading.Event()
        self.lock = threading.Lock()

    def say(self, content: str | None, **usage: Any) -> None:
        """Answer with a completion."""
        document: dict[str, Any] = {"choices": [{"message": {"content": content}}]}
        if usage:
            document["usage"] = usage
        self.answer(200, json.dumps(document))

    def echo_messages(self) -> None:
        """Answer with the messages of the request, as JSON."""

        def step(handler: "Handler") -> None:
            content = json.dumps(handler.request_body["messages"])
            handler.reply(200, json.dumps({"choices": [{"message": {"content": content}}]}))

        self.steps.append(step)

    def answer(self, status: int, body: str | bytes = "", **headers: str) -> None:
        """Answer with anything; header names have `_` for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.steps.append(lambda handler: handler.reply(status, body, named))

    def drop(self) -> None:
        """Close the connection without a word."""
        self.steps.append(lambda handler: handler.hang_up())

    def break_off(self) -> None:
        """Close the connection in the middle of the answer."""
        self.steps.append(lambda handler: handler.break_off())

    def hang(self) -> None:
        """Answer nothing until the test is over."""

        def step(handler: "Handler") -> None:
            self.released.wait(60)
            handler.hang_up()

        self.steps.append(step)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that has heard enough hangs up; that is not worth a traceback.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def next_step(self) -> Step:
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer
    request_body: dict[str, Any]

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.request_body = json.loads(self.rfile.read(length))
        with self.server.lock:
            self.server.requests.append(self.request_body)
            self.server.headers.append({k.lower(): v for k, v in self.headers.items()})
            self.server.paths.append(self.path)
            step = self.server.next_step()
        step(self)

    def reply(self, status: int, body: str | bytes, headers: dict[str, str] | None = None) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def break_off(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        self.wfile.write(b'{"choices"')
        self.hang_up()

    def hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as model_server:
        thread = threading.Thread(target=model_server.serve_forever, args=(0.01,))
        thread.start()
        yield model_server
        model_server.released.set()
        model_server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's key and HTTP proxy out of the tests."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
