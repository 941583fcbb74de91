"""Worker program: scores pairs that come on standard input, until that closes.

Started by workers.py; `python -m cbench_server.scoring.worker` is of no use by hand.
"""

import faulthandler
import resource
import traceback
from functools import lru_cache

import msgspec

from cbench_server.errors import said, storable
from cbench_server.scoring.assessment import assess_now
from cbench_server.scoring.messages import Reply, Request
from cbench_server.scoring.programs import serve, take_pipes
from cbench_server.scoring.recipe import Recipe, build
from cbench_server.types import Evaluator

# Room for a model of its own, but not for all that the machine has.
_MEMORY = 8 << 30


def main() -> None:
    """Score until standard input closes."""
    _limit_memory()
    serve(take_pipes(), lambda body: msgspec.msgpack.encode(_answer(body)))


def _answer(body: bytes) -> Reply:
    request = msgspec.msgpack.decode(body, type=Request)
    # Ends the process even where an evaluator never lets go of the
    # interpreter, as a runaway regular expression does.
    faulthandler.dump_traceback_later(request.timeout, exit=True, file=2)
    built = False
    try:
        evaluator = built_once(request.recipe)
        built = True
        assessment = assess_now(evaluator, request.original, request.processed)
        reply = Reply(assessment.scores, assessment.details)
        msgspec.msgpack.encode(reply)
    except Exception as error:
        return failed(error, built=built)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return reply


def _limit_memory() -> None:
    """Have an evaluator that wants too much fail, before the machine kills another process."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _MEMORY if most == resource.RLIM_INFINITY else min(_MEMORY, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


@lru_cache(maxsize=64)
def built_once(recipe: Recipe) -> Evaluator:
    """Make an evaluator, or return the one that was made."""
    return build(recipe)


def failed(error: Exception, *, built: bool) -> Reply:
    """Say what was raised; to be called where it is handled."""
    return Reply(error=said(error), stack_trace=storable(traceback.format_exc()), built=built)


if __name__ == "__main__":
    main()
