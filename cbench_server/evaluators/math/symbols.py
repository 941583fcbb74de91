"""Symbolic comparison with math-verify: a program that is told two answers and says if they agree.

It is started by program.py, never imported by the process that scores: what
it reads may keep it busy without end, exhaust its memory or crash it. Requests
and replies are JSON. Beyond its limit of processor time the kernel ends it.
"""

import json
import logging
import os
import re
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sympy
from math_verify import LatexExtractionConfig, parse, verify
from sympy.core.cache import clear_cache

from cbench_server.scoring.programs import serve, take_pipes

_MEMORY = 2 * 1024**3
_RECURSION = 2_000
_PLACES = 6
_DECIMALS = re.compile(r"\d*\.\d+")
_DECIMAL = re.compile(r"-?\d*\.\d+")
# Its list of units has m and s, so that 3m would be 3; those of ours are gone by now.
_LATEX = LatexExtractionConfig(
    boxed_match_priority=-1,
    normalization_config=replace(LatexExtractionConfig().normalization_config, units=False),
)


def main() -> None:
    """Compare until standard input closes."""
    # What the libraries have to say of hostile answers is of no use.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    pipes = take_pipes()
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, _MEMORY)
    sys.setrecursionlimit(_RECURSION)
    sys.set_int_max_str_digits(20_000)
    logging.disable()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # The first formula builds the parser's tables, before any time is counted.
    _equal("x^2", "\\frac{1}{2}")
    serve(pipes, _answer)


def _answer(body: bytes) -> bytes:
    gold, given, seconds, is_response = json.loads(body)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        equal = _found_equal(gold, given) if is_response else _equal(gold, given)
        reply = {"equal": equal, "reason": ""}
    except Exception as error:
        reply = {"equal": False, "reason": type(error).__name__}
    signal.setitimer(signal.ITIMER_PROF, 0)
    # What was compared before must make no difference to the time this takes.
    clear_cache()
    return json.dumps(reply).encode()


def _limit(what: int, soft: int) -> None:
    # Not every kernel knows every limit; the one on time is what counts.
    with suppress(ValueError, OSError):
        resource.setrlimit(what, (soft, resource.getrlimit(what)[1]))


def _equal(gold: str, given: str) -> bool:
    expected, found = _parsed(gold), _parsed(given)
    if expected is None or found is None:
        return False
    if _verified(expected, found) or _rounds_to(found, gold) or _rounds_to(expected, given):
        return True
    if (places := _places(gold, given)) and _verified(expected, found, places):
        return True
    complex_ones = _with_imaginary_unit(expected), _with_imaginary_unit(found)
    return complex_ones != (expected, found) and _verified(*complex_ones)


def _found_equal(gold: str, response: str) -> bool:
    """Compare as math-verify does by itself, with what it finds in a text.

    Its readers evaluate Python only where a text is digits and operators.
    """
    expected = parse(f"${gold}$", parsing_timeout=None)
    return bool(verify(expected, parse(response, parsing_timeout=None), timeout_seconds=None))


def _verified(expected: Any, found: Any, places: int = _PLACES) -> bool:
    return bool(
        verify(
            expected,
            found,
            float_rounding=places,
            allow_set_relation_comp=True,
            timeout_seconds=None,  # Theirs is an alarm signal; ours covers this.
        )
    )


def _places(*answers: str) -> int:
    """Count the places of the longest decimal; 0 if none has five digits, or six places will do."""
    decimals = [decimal for answer in answers for decimal in _DECIMALS.findall(answer)]
    if not any(len(decimal.replace(".", "").lstrip("0")) >= 5 for decimal in decimals):
        return 0
    places = max(len(decimal.partition(".")[2]) for decimal in decimals)
    return places if places < _PLACES else 0


def _with_imaginary_unit(expression: Any) -> Any:
    """Take i for the imaginary unit; math-verify takes it for a variable."""
    symbols = {symbol.name: symbol for symbol in getattr(expression, "free_symbols", ())}
    if "i" not in symbols:
        return expression
    replaced = {symbol: sympy.Symbol(name, real=True) for name, symbol in symbols.items()}
    return expression.subs(replaced | {symbols["i"]: sympy.I})


def _parsed(latex: str) -> Any:
    """Read LaTeX, and nothing else: math-verify's other readers evaluate Python."""
    found = parse(f"\\[{latex}\\]", [_LATEX], fallback_mode="no_fallback", parsing_timeout=None)
    return found[0] if found else None


def _rounds_to(exact: Any, decimal: str) -> bool:
    """Whether a value, rounded or cut off, is a decimal of five digits or more."""
    if not _DECIMAL.fullmatch(decimal) or not getattr(exact, "is_number", False):
        return False
    value = exact.evalf(30)
    if not value.is_real or not value.is_finite:
        return False
    scale = 10 ** len(decimal.partition(".")[2])
    shown, actual = Fraction(decimal) * scale, Fraction(str(value)) * scale
    return bool(abs(shown) >= 10_000 and abs(shown - actual) < 1)


if __name__ == "__main__":
    main()
