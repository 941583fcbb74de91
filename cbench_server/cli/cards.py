"""Cards of datasets: where one comes from, what a config of it measures, and what differs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from cbench_server.cli.components import message_to_dict
from cbench_server.errors import CbenchError, NotFound
from cbench_server.texts.grid import Grid, printable, to_text

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1 import bench_pb2

_AXES = ("data", "prompt", "metric", "aggregation")
_WIDTH = 14


class Here(TypedDict):
    """What a mirror has of a config."""

    split: str
    examples: int


def card(info: "bench_pb2.DatasetInfo", config: str, here: Here | None = None) -> str:
    """Render a dataset and the protocol of one of its configs, the default one when empty."""
    from cbench_server.datasets.cards import facts
    from cbench_server.datasets.prompts.library import prompt_for

    protocol = _protocol_of(info, config)
    about = _about(info) | {
        "Examples": _examples(info, config),
        "Place": place_of(info, "comes with cbench-server", "on the hub")
        if here is None
        else _found(here, protocol),
    }
    if protocol is None:
        about |= {"Evaluators": ", ".join(info.evaluators), "Score": info.primary_score}
        return _lines(about)
    prompt = prompt_for(info.name, config or protocol.configs[0])
    lines = facts(_described(protocol), prompt) | _own_files(info.name, config)
    return f"{_lines(about)}\n\n{_lines(lines)}"


def suite_card(info: "bench_pb2.DatasetInfo", suite: str, configs: Sequence[str]) -> str:
    """Render a suite: how its figure is made, and a line for each of its parts."""
    parts = suite_parts(info, configs)
    sizes = [part["examples"] for part in parts]
    total = f"{sum(sizes):,}" if None not in sizes else ""
    about = _about(info) | {
        "Configs": f"{len(parts)}, as below",
        "Suite": suite,
        "Suites": "",
        "Examples": total,
        "Figure": "; ".join(dict.fromkeys(_figure(part) for part in parts)),
    }
    header = ("Config", "Examples", "Score", "Evaluators", "Counts in", *map(str.capitalize, _AXES))
    rows = tuple(
        (
            part["config"],
            "?" if part["examples"] is None else f"{part['examples']:,}",
            part["primary_score"],
            part["evaluators"],
            part["category"],
            *(part["axes"][name]["status"] for name in _AXES),
        )
        for part in parts
    )
    kept = [place for place, _ in enumerate(header) if any(row[place] for row in rows)]
    grid = Grid(
        tuple(header[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in rows),
        frozenset({0, *range(2, len(kept))}),
    )
    said = "\n".join(filter(None, (_differences(parts, name) for name in _AXES)))
    more = f"The prompt and all else of a part: cbench datasets show {info.name}:{configs[0]}"
    return "\n\n".join(filter(None, (_lines(about), to_text(grid), said, more)))


def suite_parts(info: "bench_pb2.DatasetInfo", configs: Sequence[str]) -> list[dict[str, Any]]:
    """Give the parts of a suite as plain data."""
    from cbench_server.datasets.cards import evaluator
    from cbench_server.registry import registry

    record = registry.dataset(info.name)
    parts = []
    for config in configs:
        found = _protocol_of(info, config)
        assert found is not None
        protocol = _described(found)
        parts.append(
            {
                "config": config,
                "examples": record.size_of(config),
                "primary_score": protocol["primary_score"],
                "evaluators": ", ".join(map(evaluator, protocol["evaluators"][1:])),
                "category": record.protocol_of(config).aggregate.category,
                "aggregate": protocol["aggregate"],
                "axes": protocol["axes"],
            }
        )
    return parts


def _figure(part: dict[str, Any]) -> str:
    """Say how the figure is made, whichever category a part is in."""
    whole: str = part["aggregate"]
    return whole.replace(f", this one in {part['category']}", "") if part["category"] else whole


def _differences(parts: Sequence[dict[str, Any]], name: str) -> str:
    """Say each difference of an axis once."""
    sentences = dict.fromkeys(part["axes"][name]["why"] for part in parts)
    said = " ".join(filter(None, sentences))
    return _line(name.capitalize(), said) if said else ""


def _described(protocol: "bench_pb2.DatasetProtocol") -> dict[str, Any]:
    """Give a protocol as plain data, as its record describes it."""
    from cbench_client.messages.convert import value_from_proto

    evaluators = [
        {
            "name": ref.name,
            "options": {key: value_from_proto(value) for key, value in ref.options.items()},
        }
        for ref in protocol.evaluators
    ]
    return message_to_dict(protocol) | {"evaluators": evaluators}


def _about(info: "bench_pb2.DatasetInfo") -> dict[str, str]:
    return {
        "Dataset": info.name,
        "Tests": info.description,
        "Family": info.family,
        "Examples": "",
        "Configs": ", ".join(info.configs),
        "Suites": _suites(info.name),
        "Licence": info.licence,
        "Cite": info.citation,
        "Place": "",
    }


def _own_files(name: str, config: str) -> dict[str, str]:
    """Say which of the user's files a config names, with its digest, if it is here."""
    from cbench_server.registry import registry

    try:
        files = registry.dataset(name).own_files(config, registry.data_dir)
    except CbenchError:
        return {}
    return {"Haystack": f"{files['haystack']}, {files['haystack_digest']}"} if files else {}


def _examples(info: "bench_pb2.DatasetInfo", config: str) -> str:
    """Say how many examples are published: of a config that was named, else of the default one."""
    from cbench_server.registry import registry

    try:
        size = registry.dataset(info.name).size_of(config) if config else None
    except NotFound:
        size = None
    if size is not None:
        return f"{size:,}"
    return f"{info.size:,} by default" if info.HasField("size") else ""


def _suites(name: str) -> str:
    """Name the suites of a dataset, as far as it is registered here."""
    from cbench_server.datasets.suites import suites_of
    from cbench_server.registry import registry, split_name

    try:
        record = registry.dataset(name)
    except NotFound:
        return ""
    said = []
    for suite, count in suites_of(record).items():
        is_config = split_name(suite)[1] in record.configs
        parts = (
            f"one config, or the {count} others named one by one"
            if is_config
            else f"{count} configs"
        )
        said.append(f"{suite} ({parts})")
    return ", ".join(said)


def _found(here: Here, protocol: "bench_pb2.DatasetProtocol | None") -> str:
    is_usual = protocol is None or here["split"] == protocol.split
    split = "" if is_usual else f" of the split {here['split']}, in place of the usual one"
    return f"here: {here['examples']:,} examples{split}"


def place_of(info: "bench_pb2.DatasetInfo", embedded: str, elsewhere: str) -> str:
    """Say where a dataset is, and which split of it where that is not the usual one."""
    if info.embedded:
        return embedded
    if not info.available:
        return elsewhere
    usual = info.protocols[0].split if info.protocols else ""
    is_other = info.split_here and info.split_here != usual
    return f"here, only {info.split_here}" if is_other else "here"


def _protocol_of(info: "bench_pb2.DatasetInfo", config: str) -> "bench_pb2.DatasetProtocol | None":
    wanted = config.replace("_", "-")
    for protocol in info.protocols:
        # Configs with parameters begin with their task.
        names = [each.replace("_", "-") for each in protocol.configs]
        if not config or wanted in names or wanted.partition(",")[0] in names:
            return protocol
    return info.protocols[0] if info.protocols else None


def _lines(facts: dict[str, str]) -> str:
    return "\n".join(_line(name, text) for name, text in facts.items() if text)


def _line(name: str, text: str) -> str:
    return f"{name + ':':<{_WIDTH}}{printable(text)}"
