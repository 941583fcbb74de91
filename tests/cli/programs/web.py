"""A web server that answers requests of a bridge: python web.py PORT MANNER."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lines import shortened

PORT, MANNER = int(sys.argv[1]), sys.argv[2]
seen: set[str] = set()


class Handler(BaseHTTPRequestHandler):
    """Answers a POST."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        status, answer = respond(json.loads(body), self.headers.get("authorization"))
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        if status == 307:
            self.send_header("location", f"{self.path}/")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def respond(sent: Any, key: str | None) -> tuple[int, Any]:
    """Return a status and what to answer."""
    if isinstance(sent, list):
        # In another order, as a batch may be answered.
        return 200, [shortened(each) for each in reversed(sent)]
    which = sent["example"]["id"]
    if MANNER == "busy" and which not in seen:
        seen.add(which)
        return 503, b"try again"
    if MANNER == "broken":
        return 500, b"out of order"
    if MANNER == "locked" and key != "Bearer sesame":
        return 401, b"who are you?"
    if MANNER == "moved":
        return 307, b""
    if MANNER == "page":
        return 200, b"<html>hello</html>"
    return 200, shortened(sent)


server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
print(f"cbench|1|tcp|127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
