"""Structured logs: one JSON object per line and nothing else, or plain text, on stderr."""

import json
import logging
import os
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TextIO

from cbench_server.runs.run_owner import WORKED_ON

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LONGEST_LINE = 16 * 1024
_LAST_LINES_S = 1.0
_STDERR = 2


@dataclass
class _Own:
    """What takes the place of stderr."""

    stream: TextIO | None = None
    thread: threading.Thread | None = None


_own = _Own()


class _JsonFormatter(logging.Formatter):
    """Time, level, logger, message, and what `extra` held."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update({key: value for key, value in vars(record).items() if key not in _STANDARD})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines for as long as somebody takes them: a reader may go, or a disk be full."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging has it
        """Drop a line that cannot be written; what would be said of it on stderr comes back here.

        Every line of it would become one that cannot be written either, until nothing moves.
        """
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)


def _name_the_run(record: logging.LogRecord) -> bool:
    """Say of a line from the midst of a run's work to which run it belongs."""
    run_id = WORKED_ON.get()
    if run_id and "run_id" not in vars(record):
        record.run_id = run_id
    return True


def set_up_logs(level: str, style: str) -> None:
    """Send our logs to stderr in the wanted style."""
    is_json = style == "json"
    stream = _own_stderr() if is_json else sys.stderr
    handler = _Handler(stream)
    plain = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler.setFormatter(_JsonFormatter() if is_json else plain)
    handler.addFilter(_name_the_run)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    logging.getLogger("cbench_server").setLevel(level.upper())
    # Who changed what is told at every level.
    logging.getLogger("cbench_server.audit").setLevel(logging.INFO)


def end_logs() -> None:
    """Hand on what others have written to stderr until now, and let them have it again."""
    if _own.stream is None or _own.thread is None:
        return
    os.dup2(_own.stream.fileno(), _STDERR)
    # A program that was started may hold the other end for longer.
    _own.thread.join(_LAST_LINES_S)
    _own.stream, _own.thread = None, None


def _own_stderr() -> TextIO:
    """Take stderr for our lines; what others write to it becomes the message of such a line.

    gRPC's core, libraries in C and programs that we start write to the descriptor itself, which
    no setting of Python's logging reaches.
    """
    own = os.fdopen(os.dup(_STDERR), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    thread = threading.Thread(target=_pass_on, args=(reading,), name="cbench-stderr", daemon=True)
    thread.start()
    _own.stream, _own.thread = own, thread
    sys.excepthook = _log_death
    return own


def _log_death(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    logging.getLogger("cbench_server.daemon").critical("died", exc_info=(kind, error, trace))


def _pass_on(reading: int) -> None:
    log = logging.getLogger("stderr")
    with os.fdopen(reading, "r", encoding="utf-8", errors="backslashreplace") as lines:
        while line := lines.readline(_LONGEST_LINE):
            if text := line.rstrip():
                log.warning("%s", text)
