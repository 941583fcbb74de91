"""Chains of variables that pass one value on, RULER's `vt`."""

from itertools import pairwise

from cbench_server.datasets.generated.fitting import fitted
from cbench_server.datasets.generated.haystacks import NOISE, with_needles
from cbench_server.datasets.generated.made import Made, Wanted

_HOPS = 4


def variable_chain(wanted: Wanted) -> Made:
    """Assign a value to one variable, that to the next, and so on, and ask for all of them."""
    draws = wanted.draws
    names: dict[str, None] = {}
    while len(names) <= _HOPS:
        names.setdefault(draws.letters(5, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    variables, value = list(names), draws.digits(5)
    steps = [f"VAR {variables[0]} = {value}"]
    steps += [f"VAR {new} = VAR {old}" for old, new in pairwise(variables)]
    # An assignment comes after the one it takes its value from.
    depths = wanted.depths(len(steps))
    noise = " ".join(NOISE)
    context = fitted(
        lambda count: with_needles([noise] * count, steps, depths, "\n"), wanted.length, least=2
    )
    question = f"Which variables hold the value {value}, directly or through other variables?"
    return Made(context, question, variables, steps)
