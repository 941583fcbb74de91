"""Worker program: scores pairs that come on standard input, until that closes.

Started by workers.py; `python -m cbench_server.scoring.worker` is of no use by hand.
"""

import faulthandler
import os
import queue
import signal
import sys
import threading
import traceback
from functools import lru_cache
from typing import BinaryIO

import msgspec

from cbench_server.errors import CbenchError
from cbench_server.scoring.assessment import assess_now
from cbench_server.scoring.messages import Reply, Request
from cbench_server.scoring.programs import HEADER_BYTES, body_length, frame
from cbench_server.scoring.recipe import Recipe, build
from cbench_server.types import Evaluator


def main() -> None:
    """Answer requests, one at a time and in order."""
    # Whatever an evaluator or its children print or read must not reach the pipes.
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, inbox), daemon=True).start()
    while True:
        body = msgspec.msgpack.encode(_answer(inbox.get()))
        replies.write(frame(body))
        replies.flush()


def _read(requests: BinaryIO, inbox: "queue.SimpleQueue[bytes]") -> None:
    # A thread of its own notices at once that nobody is left to answer, even
    # while an evaluator is at work.
    while header := requests.read(HEADER_BYTES):
        inbox.put(requests.read(body_length(header)))
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _answer(body: bytes) -> Reply:
    request = msgspec.msgpack.decode(body, type=Request)
    # Ends the process even where an evaluator never lets go of the
    # interpreter, as a runaway regular expression does.
    faulthandler.dump_traceback_later(request.timeout, exit=True, file=2)
    built = False
    try:
        evaluator = _evaluator(request.recipe)
        built = True
        assessment = assess_now(evaluator, request.original, request.processed)
        reply = Reply(assessment.scores, assessment.details)
        msgspec.msgpack.encode(reply)
    except Exception as error:
        return Reply(error=_sentence(error), stack_trace=traceback.format_exc(), built=built)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return reply


@lru_cache(maxsize=64)
def _evaluator(recipe: Recipe) -> Evaluator:
    return build(recipe)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, CbenchError) else f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
