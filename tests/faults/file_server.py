"""A web server of files that is away for a while: `file_server.py FOLDER PORT HOW PIECES GATE`.

It answers for so many pieces of files, and for the others when the gate, a file, is there.
"""

import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER, PORT, HOW, PIECES, GATE = sys.argv[1:]
asked: list[str] = []


class Files(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = Path(FOLDER) / self.path.strip("/")
        is_away = not os.path.exists(GATE) and len(asked) >= int(PIECES)
        if is_away:
            Path(GATE).with_suffix(".asked").touch()
        if is_away and HOW == "dies":
            os._exit(1)
        if is_away and HOW == "keeps-silent":
            time.sleep(3600)
        if is_away and HOW == "is-busy":
            self._send(503, b"later", {"Retry-After": "1"})
        elif is_away and HOW == "forbids":
            self._send(403, b"no", {})
        elif not path.is_file():
            self._send(404, b"none", {})
        else:
            self._file(path, is_broken_off=is_away)

    def _file(self, path: Path, *, is_broken_off: bool) -> None:
        body, found = path.read_bytes(), path.stat()
        headers = {"ETag": f'"{found.st_mtime_ns}-{found.st_size}"', "Accept-Ranges": "bytes"}
        status = 200
        if wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            asked.append(self.path)
            first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
            body, status = body[first : last + 1], 206
        self._send(status, body, headers, is_broken_off=is_broken_off)

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], *, is_broken_off: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[: len(body) // 2] if is_broken_off else body)
        self.close_connection = is_broken_off

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(PORT)), Files)
    print(f"cbench|1|tcp|127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever(0.05)
