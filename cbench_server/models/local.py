"""The local model: a GGUF file behind an OpenAI-compatible server on the loopback."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from cbench_server.errors import CbenchError
from cbench_server.models.local_fetch import server_version
from cbench_server.models.local_files import known_digest, model_file, server_folder

NAME = "local"
"""What stands in the place of a URL: `local`, or `local:FILE.gguf`."""
DEFAULT_CONTEXT = 4096
_START_SECONDS = 300.0
_END_SECONDS = 5.0
_LAST_BYTES = 600
_PROGRAM = Path(__file__).with_name("local_server.py")


class LocalModelFailed(CbenchError):
    """The server of a local model did not start."""

    reason = "LOCAL_MODEL_FAILED"


@dataclass(frozen=True)
class LocalSettings:
    """How a local model is served: figures repeat, whatever else the machine does."""

    context: int = DEFAULT_CONTEXT
    """Tokens that fit in, prompt and answer together."""
    threads: int = 1
    slots: int = 1
    temperature: float = 0.0
    seed: int = 1
    prompt_cache: bool = False
    """Whether a request may build on what another left, which changes the last digits."""


class NamedModel:
    """A local model, and where it is served or would be."""

    def __init__(self, file: Path, settings: LocalSettings, url: str) -> None:
        self.file = file
        self.settings = settings
        self.url = url
        """The root of its endpoint."""

    @property
    def model(self) -> str:
        """What the model is called in requests and runs."""
        return self.file.name.removesuffix(".gguf")


class LocalModel(NamedModel):
    """A local model that is served, until it is closed or this process ends in any way."""

    def __init__(self, file: Path, settings: LocalSettings, url: str, process: "_Process") -> None:
        super().__init__(file, settings, url)
        self._process = process

    def labels(self) -> dict[str, str]:
        """Tell what a run needs so that it can be repeated."""
        told = {"server": f"xllamacpp {server_version()}", **asdict(self.settings)}
        return {
            "local_model": self.model,
            "local_model_sha256": known_digest(self.file),
            "local_model_settings": ", ".join(f"{name}={told[name]}" for name in told),
        }

    @property
    def is_alive(self) -> bool:
        """Whether it is still served."""
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait until it ends by itself."""
        return self._process.wait()

    def close(self) -> None:
        """End it."""
        _end(self._process)


_Process = subprocess.Popen[bytes]


def path_in(text: str) -> str | None:
    """Return the file in `local` or `local:FILE`, empty for the fetched one; None for a URL."""
    if text == NAME:
        return ""
    prefix = f"{NAME}:"
    return text.removeprefix(prefix) if text.startswith(prefix) else None


@contextmanager
def serving(
    path: str = "", settings: LocalSettings | None = None, port: int = 0
) -> Iterator[LocalModel]:
    """Serve a GGUF file, or the fetched model, on a port of the loopback; a free one for 0."""
    model = start(path, settings, port)
    try:
        yield model
    finally:
        model.close()


def start(path: str = "", settings: LocalSettings | None = None, port: int = 0) -> LocalModel:
    """Start to serve; whoever calls closes it."""
    chosen = settings or LocalSettings()
    file, folder = model_file(path), server_folder()
    given = {**asdict(chosen), "path": str(file), "model": file.name.removesuffix(".gguf")}
    environment = dict(os.environ)
    if folder is not None:
        paths = [str(folder), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    with tempfile.TemporaryFile() as errors:
        # A session of its own: Ctrl-C is for the run, which ends the server after it.
        process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), json.dumps({**given, "port": port})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
        try:
            url = _address(process)
            if url is None:
                raise LocalModelFailed(_why(process, file, errors))
        except BaseException:
            _end(process)
            raise
    return LocalModel(file, chosen, url, process)


def _address(process: _Process) -> str | None:
    """Wait for the line that says where it listens; None if it ends, or takes too long."""
    assert process.stdout is not None
    timer = threading.Timer(_START_SECONDS, process.kill)
    timer.daemon = True
    timer.start()
    try:
        said = process.stdout.readline()
    finally:
        timer.cancel()
    with suppress(ValueError, KeyError):
        return str(json.loads(said)["url"])
    return None


def _why(process: _Process, file: Path, errors: IO[bytes]) -> str:
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip()[-_LAST_BYTES:].splitlines()
    last = f": {lines[-1].strip()}" if lines else ""
    return f"the server of {file.name} ended with code {process.returncode}{last}"


def _end(process: _Process) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
