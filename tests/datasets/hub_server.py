"""A small stand-in for the hub: just the routes `datasets` and `huggingface_hub` ask for.

It serves a folder of repositories, and can be told to misbehave on the path of a file.
"""

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# What `datasets` imports, two seconds of it; by itself it reads settings, which tests decide.
BEHIND_DATASETS = (
    "dill",
    "filelock",
    "fsspec",
    "httpcore2",
    "httpx2",
    "multiprocess.pool",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "requests",
    "tqdm.auto",
    "trio",
    "unittest.mock",
    "xml.dom.minidom",
    "xxhash",
    "yaml",
)
COMMIT = "c0ffee" + "0" * 34
_RESOLVE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/[^/]+/(.+)")
_REVISION = re.compile(r"/api/datasets/([^/]+/[^/]+)(?:/revision/[^/]+)?")
_TREE = re.compile(r"/api/datasets/([^/]+/[^/]+)/tree/[^/]+/?(.*)")
_PATHS = re.compile(r"/api/datasets/([^/]+/[^/]+)/paths-info/[^/]+")


class HubServer(ThreadingHTTPServer):
    """Serves `<folder>/<org>/<name>/...`; `drops` and `refusals` count down per file name."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.drops: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match = _PATHS.fullmatch(self.path.partition("?")[0])
        if match is None:
            return self._send(404, b"{}")
        wanted = json.loads(body)["paths"]
        home = self.server.folder / match[1]
        found = [self._entry(home, home / name) for name in wanted if (home / name).is_file()]
        return self._send(200, json.dumps(found).encode())

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0].replace("%2F", "/")
        self.server.asked.append(path)
        if match := _RESOLVE.fullmatch(path):
            self._file(self.server.folder / match[1] / match[2], with_body)
        elif match := _TREE.fullmatch(path):
            self._tree(self.server.folder / match[1], match[2])
        elif match := _REVISION.fullmatch(path):
            self._repository(match[1])
        else:
            self._send(404, b"{}")

    def _repository(self, name: str) -> None:
        home = self.server.folder / name
        if not home.is_dir():
            return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        names = [p.relative_to(home).as_posix() for p in sorted(home.rglob("*")) if p.is_file()]
        info = {
            "id": name,
            "_id": "1",
            "sha": COMMIT,
            "private": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "siblings": [{"rfilename": each} for each in names],
        }
        return self._send(200, json.dumps(info).encode())

    def _tree(self, home: Path, inside: str) -> None:
        folder = home / inside
        if not folder.is_dir():
            return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        walk = folder.rglob("*") if "recursive=true" in self.path.lower() else folder.iterdir()
        entries = [self._entry(home, path) for path in sorted(walk)]
        return self._send(200, json.dumps(entries).encode())

    def _entry(self, home: Path, path: Path) -> dict[str, object]:
        name = path.relative_to(home).as_posix()
        if path.is_dir():
            return {"type": "directory", "oid": "0" * 40, "size": 0, "path": name}
        return {"type": "file", "oid": _etag(path), "size": path.stat().st_size, "path": name}

    def _file(self, path: Path, with_body: bool) -> None:
        if not path.is_file():
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        if self.server.refusals[path.name] > 0:
            self.server.refusals[path.name] -= 1
            return self._send(429, b"slow down", {"Retry-After": "0", "RateLimit": '"api";r=0;t=0'})
        body = path.read_bytes()
        headers = {"ETag": f'"{_etag(path)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        status = 200
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(asked[1]), int(asked[2] or len(body) - 1)
            headers["Content-Range"] = f"bytes {first}-{min(last, len(body) - 1)}/{len(body)}"
            body, status = body[first : last + 1], 206
        if with_body and self.server.drops[path.name] > 0:
            self.server.drops[path.name] -= 1
            return self._drop(status, body, headers)
        return self._send(status, body, headers, with_body=with_body)

    def _drop(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Promise all of the body, send half of it, and hang up."""
        self._head(status, len(body), headers)
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        self.close_connection = True
        self.connection.close()

    def _send(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        *,
        with_body: bool = True,
    ) -> None:
        self._head(status, len(body), headers or {})
        if with_body and self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def _etag(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()


@contextmanager
def serving(folder: Path) -> Iterator[HubServer]:
    """Serve a folder while the context lasts."""
    with HubServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
