"""The passkey family: one thing to find in a text of nothing, as InfiniteBench has it."""

from cbench_server.datasets.generated.fitting import fitted
from cbench_server.datasets.generated.haystacks import NOISE, with_needles
from cbench_server.datasets.generated.made import Made, Wanted

_QUANTITIES = ("largest", "second largest", "smallest", "second smallest", "median")


def passkey(wanted: Wanted) -> Made:
    """Hide a number of five digits."""
    return _hidden(wanted, wanted.draws.digits(5), "pass key")


def number_string(wanted: Wanted) -> Made:
    """Hide a sequence of ten digits, each of which comes several times in a row."""
    draws = wanted.draws
    digits = "".join(str(draws.below(10)) * (1 + draws.below(3)) for _ in range(10))
    return _hidden(wanted, digits, "sequence of digits")


def _hidden(wanted: Wanted, value: str, name: str) -> Made:
    (depth,) = wanted.depths(1)
    needle = f"The {name} is {value}. Keep it in mind: {value} is the {name}."
    noise = " ".join(NOISE)
    context = fitted(
        lambda count: with_needles([noise] * count, [needle], [depth], "\n"),
        wanted.length,
        least=2,
    )
    return Made(context, f"What is the {name} in the text?", [value], [needle], depth)


def math_find(wanted: Wanted) -> Made:
    """Ask for one number of a long list by its size."""
    draws = wanted.draws
    asked = _QUANTITIES[draws.below(len(_QUANTITIES))]
    numbers: list[int] = []

    def build(count: int) -> str:
        while len(numbers) < count:
            numbers.append(draws.below(100))
        return f"[{', '.join(map(str, numbers[:count]))}]"

    context = fitted(build, wanted.length, least=5)
    answer = str(_found([int(each) for each in context.strip("[]").split(", ")], asked))
    return Made(context, f"Which number of the list is the {asked}?", [answer], [answer])


def _found(numbers: list[int], asked: str) -> int:
    """Return the number asked for; the second one is the next that differs."""
    different = sorted(set(numbers))
    if asked == "median":
        # The lower of the two in the middle, so that it is a number of the list.
        return sorted(numbers)[(len(numbers) - 1) // 2]
    return {
        "largest": different[-1],
        "second largest": different[-2],
        "smallest": different[0],
        "second smallest": different[1],
    }[asked]
