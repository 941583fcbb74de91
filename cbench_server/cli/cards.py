"""Cards of datasets: where one comes from, what a config of it measures, and what differs."""

from typing import TYPE_CHECKING, TypedDict

from cbench_server.errors import CbenchError, NotFound
from cbench_server.texts.grid import printable

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
    protocol = _protocol_of(info, config)
    about = {
        "Dataset": info.name,
        "Tests": info.description,
        "Family": info.family,
        "Examples": _examples(info, config),
        "Configs": ", ".join(info.configs),
        "Suites": _suites(info.name),
        "Licence": info.licence,
        "Cite": info.citation,
        "Place": place_of(info, "comes with cbench-server", "on the hub")
        if here is None
        else _found(here, protocol),
    }
    if protocol is None:
        about |= {"Evaluators": ", ".join(info.evaluators), "Score": info.primary_score}
        return _lines(about)
    told = _told(info.name, config or protocol.configs[0], protocol)
    facts = _facts(protocol) | _own_files(info.name, config)
    return f"{_lines(about)}\n\n{_lines(told | facts)}"


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
    from cbench_server.registry import registry

    try:
        found = suites_of(registry.dataset(name))
    except NotFound:
        return ""
    return ", ".join(f"{suite} ({count} configs)" for suite, count in found.items())


def _told(name: str, config: str, protocol: "bench_pb2.DatasetProtocol") -> dict[str, str]:
    """Say what models are told besides an example, unless a run says otherwise."""
    from cbench_server.datasets.prompts.library import prompt_for

    prompt = prompt_for(name, config)
    limits = [f"at most {prompt.max_tokens:,} tokens"] if prompt.max_tokens else []
    limits += [f"until {stop!r}" for stop in prompt.stop]
    limits += [f"after {prompt.few_shot} examples"] if prompt.few_shot else []
    has_question = not protocol.shown or "question" in protocol.shown
    return {
        "Told": " ".join(prompt.told.split()),
        "Responses": ", ".join(limits),
        "Compressed": prompt.compressible + ("" if has_question else " (no question beside it)"),
    }


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


def _facts(protocol: "bench_pb2.DatasetProtocol") -> dict[str, str]:
    pinned = f" at {protocol.revision}" if protocol.revision else ""
    split = f", split {protocol.split}" if protocol.split else ""
    return {
        "Source": f"{protocol.source}{pinned}{split}",
        "Follows": protocol.follows,
        "Shown": ", ".join(protocol.shown),
        "Withheld": ", ".join(protocol.withheld),
        "Answer": protocol.extraction,
        "Evaluators": ", ".join(map(_evaluator, protocol.evaluators)),
        "Score": protocol.primary_score or "none can be computed here",
        "At worst": f"{protocol.worst:g}" if protocol.HasField("worst") else "not known",
        "Groups": ", ".join(protocol.groups),
        "Figure": protocol.aggregate,
        **(_compared(protocol) if protocol.follows else {}),
    }


def _compared(protocol: "bench_pb2.DatasetProtocol") -> dict[str, str]:
    found = {}
    for name in _AXES:
        axis = protocol.axes[name]
        found[name.capitalize()] = f"{axis.status}. {axis.why}".rstrip(". ") + "."
    return found


def _evaluator(ref: "bench_pb2.EvaluatorRef") -> str:
    from cbench_client.messages.convert import value_from_proto

    options = [f"{key}={value_from_proto(ref.options[key])}" for key in sorted(ref.options)]
    return f"{ref.name} ({', '.join(options)})" if options else ref.name


def _lines(facts: dict[str, str]) -> str:
    return "\n".join(_line(name, text) for name, text in facts.items() if text)


def _line(name: str, text: str) -> str:
    return f"{name + ':':<{_WIDTH}}{printable(text)}"
