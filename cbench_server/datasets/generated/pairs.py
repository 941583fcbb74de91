"""Keys and values in one JSON object, as lost-in-the-middle and InfiniteBench ask for them."""

from cbench_server.datasets.generated.fitting import fitted
from cbench_server.datasets.generated.made import Made, Wanted


def key_value(wanted: Wanted) -> Made:
    """Ask for the value of one key among random ones."""
    draws = wanted.draws
    key, value = draws.uuid(), draws.uuid()
    (depth,) = wanted.depths(1)
    line = f'"{key}": "{value}"'
    lines: list[str] = []

    def build(count: int) -> str:
        while len(lines) < count:
            lines.append(f'"{draws.uuid()}": "{draws.uuid()}"')
        place = count * depth // 100
        return "{" + ",\n ".join([*lines[:place], line, *lines[place:count]]) + "}"

    context = fitted(build, wanted.length)
    question = f'Which value does the JSON object have for the key "{key}"?'
    return Made(context, question, [value], [line], depth)
