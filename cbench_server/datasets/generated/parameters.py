"""Parameters of a generated dataset, read from its config: `niah_single_2,length=8k,count=5`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cbench_server.errors import NotFound
from cbench_server.limits import MAX_GENERATED_COUNT, MAX_GENERATED_TOKENS

_NUMBER = re.compile(r"(\d{1,9})(k?)", re.IGNORECASE)
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_LEAST_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Parameters:
    """What to make: a task, contexts of so many tokens, so many examples of each kind, a seed."""

    task: str = ""
    lengths: tuple[int, ...] = (4_000,)
    depths: tuple[int, ...] = ()
    """Where the evidence is, in percent of the context; drawn where there are none."""
    count: int = 20
    """Examples for each length, and for each depth where those are given."""
    seed: int = 0
    haystack: str = ""
    """A text of the user's mirror, `haystacks/NAME.txt`, in place of the one that ships."""

    def __str__(self) -> str:
        parts = [self.task] if self.task else []
        parts.append(f"length={'+'.join(map(str, self.lengths))}")
        if self.depths:
            parts.append(f"depth={'+'.join(map(str, self.depths))}")
        parts += [f"count={self.count}", f"seed={self.seed}"]
        return ",".join([*parts, *([f"haystack={self.haystack}"] if self.haystack else [])])


def read_parameters(
    config: str, dataset: str, tasks: Mapping[str, object], default: Parameters
) -> Parameters:
    """Read a config, or raise NotFound with what it may say."""
    task, lengths, depths = default.task, default.lengths, default.depths
    count, seed, haystack = default.count, default.seed, default.haystack
    for part in filter(None, (each.strip() for each in config.split(","))):
        key, sign, value = part.partition("=")
        if not sign:
            task = _task(part, dataset, tasks)
        elif key in ("length", "lengths"):
            lengths = _numbers(value, part, dataset, _LEAST_LENGTH, MAX_GENERATED_TOKENS)
        elif key in ("depth", "depths", "position"):
            depths = _numbers(value, part, dataset, 0, 100)
        elif key == "count":
            (count,) = _numbers(value, part, dataset, 1, MAX_GENERATED_COUNT)[:1]
        elif key == "seed":
            (seed,) = _numbers(value, part, dataset, 0, 10**9)[:1]
        elif key == "haystack":
            haystack = _file(value, dataset)
        else:
            raise NotFound(
                f'dataset "{dataset}" has no parameter "{key}"; it has: length, depth, count, '
                "seed, haystack"
            )
    return Parameters(task, lengths, depths, count, seed, haystack)


def _file(value: str, dataset: str) -> str:
    """Read the name of a file, which leads nowhere but into the folder of haystacks."""
    name = value.strip().removesuffix(".txt")
    if not _FILE.fullmatch(name):
        raise NotFound(
            f'dataset "{dataset}": haystack is "{value}"; it is the name of a file, without its '
            "folder: haystack=novel reads haystacks/novel.txt below --data-dir"
        )
    return name


def _task(asked: str, dataset: str, tasks: Mapping[str, object]) -> str:
    for task in tasks:
        if task and task.replace("_", "-") == asked.replace("_", "-"):
            return task
    known = ", ".join(filter(None, tasks)) or "none, only parameters such as length=8k"
    raise NotFound(f'dataset "{dataset}" has no config "{asked}"; it has: {known}')


def _numbers(value: str, part: str, dataset: str, least: int, most: int) -> tuple[int, ...]:
    """Read numbers with `+` between them, where 8k is 8000."""
    numbers = []
    for text in value.split("+"):
        found = _NUMBER.fullmatch(text.strip())
        number = int(found[1]) * (1000 if found[2] else 1) if found else -1
        if not least <= number <= most:
            raise NotFound(
                f'dataset "{dataset}": "{part}" is not valid; each number is from {least:,} to '
                f"{most:,}, several have a + between them"
            )
        numbers.append(number)
    return tuple(dict.fromkeys(numbers))
