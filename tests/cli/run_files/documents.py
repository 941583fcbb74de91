"""Random run files, drawn from the schema itself, and the spec that each asks for."""

from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.bench.spec import message_from_dict
from cbench_server.cli.commands.run import _dataset, _predictions
from cbench_server.cli.parser import Parser, build_parser
from cbench_server.cli.run_files.arguments import fill
from cbench_server.cli.run_files.reading import is_secret
from cbench_server.cli.run_files.schema import TABLES, WAYS, Key, Table
from cbench_server.cli.run_files.ways import ONLY_WITH
from cbench_server.cli.spec import build_spec
from cbench_server.rpc.specs import spec_from_proto
from cbench_server.spec import RunSpec

# What starts processes, reads files, belongs to the command and not the run, or is drawn by hand.
_LEFT_OUT = {
    "": {"kind", "system_options"},
    "systems": {"launch", "exec", "http", "predictions", "ca", "only", "folder", "mode", "batch"}
    | {"concurrency", "token_env", "name", *WAYS},
    "datasets": {"file", "upload", "name", "config"},
    "judge": {"labels", "errata", "pack", "url", "model", "price", "max_cost", "repeats", "rpm"}
    | {"options", "unset", "credential"},
    "prompt": {"file", "plain", "template"},
    "evaluators": {"name", "target", "attached"},
    "metrics": {"name"},
    "limits": {"launch_timeout"},
}
_NOT_RUN = ("sweep", "gate", "output", "daemon", "reader")
_WORDS = st.text("abcxyz-_.09", min_size=1, max_size=8)
_TEXTS = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), min_size=1, max_size=12
)
_LEAVES = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS
)
_KEYS = _TEXTS.filter(lambda name: not is_secret(name))
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)
_AMOUNTS = st.floats(0, 1e6, allow_nan=False)
_PRICES = st.fixed_dictionaries(
    {"input_usd": _AMOUNTS, "output_usd": _AMOUNTS}, optional={"cached_input_usd": _AMOUNTS}
)
_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "text": _TEXTS,
    "path": _WORDS,
    "flag": st.booleans(),
    "count": st.integers(1, 2**31 - 1),
    "natural": st.integers(0, 2**31 - 1),
    "whole": st.integers(-(2**63), 2**63 - 1),
    "number": st.floats(-1e9, 1e9, allow_nan=False),
    "dollars": st.floats(1e-6, 1e6),
    # Whole nanoseconds cross the wire, as of a Duration.
    "seconds": st.integers(1, 10**9).map(lambda ms: ms / 1000),
    "share": st.integers(0, 10**6).map(str) | st.integers(0, 100).map(lambda share: f"{share}%"),
    "texts": st.lists(_TEXTS, min_size=1, max_size=3),
    "pairs": st.dictionaries(_KEYS, _TEXTS, min_size=1, max_size=3),
    "options": st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=3),
    "price": _PRICES,
}


def documents() -> st.SearchStrategy[dict[str, Any]]:
    """Draw what a file of either kind may say of a run."""
    return st.sampled_from(["process", "memory"]).flatmap(_of_kind)


def _of_kind(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    systems = st.lists(_systems(kind), min_size=1, max_size=3, unique_by=lambda each: each["name"])
    required = {"kind": st.just(kind), "systems": systems}
    required["datasets"] = st.lists(_datasets(kind), min_size=1, max_size=2)
    optional: dict[str, st.SearchStrategy[Any]] = {
        "reader": _reader(),
        "options": _KINDS["options"],
        "model": _TEXTS,
    }
    for each in TABLES:
        if each.name in ("", "systems", "datasets", *_NOT_RUN):
            continue
        if each.is_list:
            named = st.tuples(_WORDS, _entry(each, kind))
            one = named.map(lambda pair: {**pair[1], "name": pair[0]})
            optional[each.name] = st.lists(one, min_size=1, max_size=2)
        else:
            optional[each.name] = _entry(each, kind).filter(bool)
    return st.fixed_dictionaries(required, optional=optional)


def _systems(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    ways = ["target", "builtin", "attached", *(["proxy", "upload"] if kind == "process" else [])]
    made = _table("systems")

    def suited(drawn: tuple[str, str, str, dict[str, Any]]) -> dict[str, Any]:
        way, where, name, entry = drawn
        kept = {key: value for key, value in entry.items() if way in ONLY_WITH.get(key, (way,))}
        return {**kept, way: where, "name": name}

    drawn = st.tuples(st.sampled_from(ways), _WORDS, _WORDS, _entry(made, kind))
    return drawn.map(suited)


def _datasets(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    names = st.fixed_dictionaries({"name": st.sampled_from(["mini-qa", "hf:org/name"])})
    uploads = st.fixed_dictionaries({"name": _WORDS, "upload": _WORDS})
    configs = st.fixed_dictionaries({}, optional={"config": st.text("abc=,4", min_size=1)})
    parts = st.tuples(names | uploads, configs, _entry(_table("datasets"), kind))
    return parts.map(lambda drawn: drawn[0] | drawn[1] | drawn[2])


def _reader() -> st.SearchStrategy[dict[str, Any]]:
    with_url = st.tuples(_WORDS, _entry(_table("reader"), "process"))
    return with_url.map(lambda drawn: {**drawn[1], "url": drawn[0]})


def _entry(made: Table, kind: str) -> st.SearchStrategy[dict[str, Any]]:
    left_out = _LEFT_OUT.get(made.name, set())
    keys = [key for key in made.keys if key.name not in left_out and key.only in ("", kind)]
    return st.fixed_dictionaries({}, optional={key.name: _value(key) for key in keys})


def _value(key: Key) -> st.SearchStrategy[Any]:
    return st.sampled_from(key.choices) if key.choices else _KINDS[key.kind]


def _table(name: str) -> Table:
    return next(each for each in TABLES if each.name == name)


@cache
def _parser(kind: str) -> Parser:
    return build_parser(["run"] if kind == "process" else ["memory", "run"])


def spec_of(document: dict[str, Any]) -> RunSpec:
    """Return what a file asks for, as the daemon receives it."""
    words = ["run"] if document["kind"] == "process" else ["memory", "run"]
    args = _parser(document["kind"]).parse_args(words)
    fill(args, document, Path("/nowhere"))
    client: Any = None  # Nothing is uploaded.
    datasets = [_dataset(client, args, place) for place in range(len(args.datasets))]
    predictions = _predictions(client, args)
    spec = build_spec(args, {}, predictions, datasets, None, {}, {})
    return spec_from_proto(message_from_dict(bench_pb2.RunSpec(), spec))
