"""Evaluators and models that die: `python peers.py WHAT PORT [GATE]`.

With a gate they answer for the first twenty examples, and for the others when that file is there.
"""

import json
import os
import re
import sys
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cbench_client import serve

ANSWERED = 20
GATE = sys.argv[3] if len(sys.argv) > 3 else ""


def keep_back(number: int) -> None:
    """Wait, if the example is one of the others, for the gate."""
    while GATE and number >= ANSWERED and not os.path.exists(GATE):
        time.sleep(0.02)


class Counts:
    """An evaluator that takes its time."""

    name = "counts"
    version = "1"
    scores = ("counts",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        keep_back(int(original["id"][1:]))
        return {"counts": 1.0}


class Dies(Counts):
    """One that a single example ends, every time."""

    name = "dies"
    scores = ("counts",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        if original["id"] == "e5":
            os._exit(1)
        return super().score(original, processed)


class Model(BaseHTTPRequestHandler):
    """A chat model that finds everything right."""

    protocol_version = "HTTP/1.1"

    lives_for = 1 << 30
    # How often its prompt has to name an example for it to be about that.
    named = 1
    # What it answers to everything, from the twenty-first example on until the gate is there.
    refusal = 0
    refuses = False

    def do_POST(self) -> None:
        Model.lives_for -= 1
        if Model.lives_for < 0:
            os._exit(1)
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        named = Counter(int(number) for number in re.findall(r"Paris (\d+)", asked))
        number = max((each for each, times in named.items() if times >= Model.named), default=0)
        if Model.refusal:
            Model.refuses |= number >= ANSWERED
        else:
            keep_back(number)
        self._reply({"choices": [{"message": {"content": "YES"}}]})

    def do_GET(self) -> None:
        self._reply({"data": []})

    def _reply(self, document: Any) -> None:
        content = json.dumps(document).encode()
        is_refused = Model.refuses and not os.path.exists(GATE)
        self.send_response(Model.refusal if is_refused else 200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Models(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


if __name__ == "__main__":
    what, port = sys.argv[1], int(sys.argv[2])
    if what == "dying-model":
        Model.lives_for = 1
    if what == "judging-model":
        # The tests of a judge take questions from the dataset; a row has it as its answer, too.
        Model.named = 2
    if what.startswith("refusing-"):
        Model.refusal = int(what.split("-")[1])
    if what.endswith("model"):
        server = Models(("127.0.0.1", port), Model)
        print(f"cbench|1|tcp|127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever(0.05)
    else:
        os.environ["CBENCH_HANDSHAKE"] = "1"
        serve({"counts": Counts, "dies": Dies}[what](), f"127.0.0.1:{port}")
