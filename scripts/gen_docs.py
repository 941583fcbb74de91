"""Generator of the parts of docs/ that list what the code has.

Each part is between `<!-- generated: NAME -->` and `<!-- end -->`. With
`--check` nothing is written, and a difference is an error.
"""

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import cbench_client
import cbench_server
from cbench_client.adapters.catalog import ADAPTERS
from cbench_client.messages.parts import MAX_MESSAGE_PARTS
from cbench_client.messages.room import MAX_ANSWER_VALUES
from cbench_server import errors
from cbench_server.cli.run_files.schema import TABLES
from cbench_server.conformance.cases import asked_of, load_cases
from cbench_server.daemon.settings import Settings
from cbench_server.datasets import RECORDS
from cbench_server.datasets.cards import facts, told
from cbench_server.datasets.prompts.library import prompt_for
from cbench_server.datasets.protocol import DatasetProtocol
from cbench_server.evaluators import EVALUATORS
from cbench_server.limits import LIMITS, Limit
from cbench_server.metrics import METRICS
from cbench_server.rpc.status import code_of
from cbench_server.runs.lifecycle import requests_table, states_table
from cbench_server.sandbox import limits as sandbox
from cbench_server.telemetry.reasons import FAILURE_REASONS

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.S)


def limits() -> str:
    """Every limit that is no setting."""
    lines = ["| Limit | Value | Beyond it | Shown by |", "|---|---|---|---|"]
    for each in (*LIMITS, *_limits_elsewhere()):
        value = f"{each.value:,.15g} {each.unit}".strip()
        lines.append(f"| {each.name} | {value} | {each.beyond} | `{each.test}` |")
    return "\n".join(lines)


def _limits_elsewhere() -> Iterator[Limit]:
    """Those of rooms that import nothing of ours."""
    reach, tests = "tests/sandbox/test_reach.py::test_", "tests/sandbox/test_isolation.py::test_"
    ended, refused = "the program is ended", "refused"
    never = f"{reach}no_program_may_be_given_forever"
    yield Limit("`timeout` of code-execution", sandbox.MAX_TIMEOUT_S, "s", refused, never)
    crowd = f"{reach}a_crowd_of_threads_is_ended"
    yield Limit("threads of a program", sandbox.MAX_THREADS, "", ended, crowd)
    much = f"{tests}what_is_too_much_is_refused"
    yield Limit("memory of a program", sandbox.MEMORY_MB, "MB", ended, much)
    yield Limit("files that a program writes", sandbox.DISK_MB, "MB", ended, much)
    yield Limit(
        "values in the answer of a system",
        MAX_ANSWER_VALUES,
        "",
        "the row fails",
        "tests/fuzzing/test_limits.py::test_an_answer_holds_only_so_many_values",
    )
    yield Limit(
        "parts of a message over 64 KiB from a system",
        MAX_MESSAGE_PARTS,
        "",
        "its rows fail, without being parsed",
        "tests/fuzzing/test_limits.py::test_a_message_of_too_many_parts_is_not_parsed",
    )


def settings() -> str:
    """Every setting of the daemon."""
    lines = ["| Setting | Default | Meaning |", "|---|---|---|"]
    for each in fields(Settings):
        default = each.default_factory() if callable(each.default_factory) else each.default
        shown = "" if default in ("", [], {}) else f"`{str(default).lower()}`"
        if isinstance(default, str) and default:
            shown = f"`{default}`"
        lines.append(f"| `{each.name}` | {shown} | {each.metadata['help']} |")
    return "\n".join(lines)


def statuses() -> str:
    """Every error that ends a call, with its status."""
    lines = ["| Reason | Status | Meaning |", "|---|---|---|"]
    for kind in _error_classes(errors.CbenchError):
        meaning = (kind.__doc__ or "").partition("\n")[0]
        if kind is errors.CbenchError:
            meaning = "A defect of the daemon; its log has more."
        if kind is errors.UnknownName:
            names = ("DATASET", "EVALUATOR", "METRIC", "SYSTEM")
            reason = ", ".join(f"`UNKNOWN_{name}`" for name in names)
        else:
            reason = f"`{kind.reason}`"
        lines.append(f"| {reason} | {code_of(kind.__new__(kind)).name} | {meaning} |")
    return "\n".join(lines)


def _error_classes(kind: Any) -> Iterator[Any]:
    # Those with a Failure belong to rows and runs, not to calls.
    if kind.__module__ == errors.__name__ and kind not in (errors.RunFailed, errors.CallFailed):
        yield kind
        for child in kind.__subclasses__():
            yield from _error_classes(child)


def failure_reasons() -> str:
    """Every reason a failed row may give."""
    found = {
        reason
        for folder in (Path(cbench_server.__path__[0]), Path(cbench_client.__path__[0]))
        for path in folder.rglob("*.py")
        for reason in _reasons_in(ast.parse(path.read_text()))
    }
    if found != FAILURE_REASONS.keys():
        differing = sorted(found ^ FAILURE_REASONS.keys())
        sys.exit(f"FAILURE_REASONS in {Path(__file__).name} and the code differ on {differing}")
    lines = ["| Reason | Meaning |", "|---|---|"]
    lines += [f"| `{reason}` | {meaning} |" for reason, meaning in FAILURE_REASONS.items()]
    return "\n".join(lines)


def _reasons_in(tree: ast.AST) -> Iterator[str]:
    """Yield what `Failure(origin, "REASON", ...)` and `RemoteFailure(reason=...)` are given."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        if name not in ("Failure", "RemoteFailure"):
            continue
        given = [each.value for each in node.keywords if each.arg == "reason"]
        given += node.args[1:2] if name == "Failure" else []
        for value in given:
            for each in ast.walk(value):
                text = str(each.value) if isinstance(each, ast.Constant) else ""
                if re.fullmatch("[A-Z_]{3,}[A-Z]", text):
                    yield text


def api() -> str:
    """Every public name with the first line of its docstring."""
    modules: dict[str, list[Any]] = {
        "cbench_server": [name for name in cbench_server.__all__ if name != "__version__"],
        "cbench_server.types": ["System", "Evaluator", "Metric", "MemorySystem", "Assessment"],
        "cbench_server.evaluators": sorted(each.__name__ for each in EVALUATORS.values()),
        "cbench_server.comparison": [
            "compare",
            "compare_two",
            "Comparison",
            "PairedDifference",
            "CostChange",
            "Flip",
            "Front",
            "FrontPoint",
            "Estimate",
        ],
        "cbench_server.metrics": sorted(each.__name__ for each in METRICS.values()),
        "cbench_server.metrics.quality": ["f1_score", "exact_match", "recall_score"],
        "cbench_server.registry": ["registry", *sorted(_functions_of("cbench_server.registry"))],
        "cbench_client": cbench_client.__all__,
    }
    lines = []
    for module, names in modules.items():
        lines += [f"## {module}", "", "| Name | What it is |", "|---|---|"]
        for name in names:
            value = getattr(importlib.import_module(module), name)
            lines.append(f"| `{name}` | {(inspect.getdoc(value) or '').partition(chr(10))[0]} |")
        lines.append("")
    return "\n".join(lines[:-1])


def _functions_of(module: str) -> Iterator[str]:
    for name, value in vars(importlib.import_module(module)).items():
        is_own = inspect.isfunction(value) and value.__module__ == module
        if is_own and not name.startswith("_") and name != "shipped_and_installed":
            yield name


def embedded_datasets() -> str:
    """The datasets that come with the package."""
    lines = [
        "| Name | Examples | Evaluators | Primary score | What it is |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{record.name}` | {record.size} | {', '.join(record.evaluators)} "
        f"| {record.primary_score} | {record.description} |"
        for record in RECORDS
        if record.embedded
    ]
    return "\n".join(lines)


def generated_datasets() -> str:
    """The datasets that are made from a seed."""
    lines = ["| Name | Tasks | By default | What it is | After |", "|---|---|---|---|---|"]
    lines += [
        f"| `{record.name}` | {', '.join(f'`{task}`' for task in record.configs)} "
        f"| `{record.default_config}` | {record.description} | {record.citation} |"
        for record in RECORDS
        if record.family == "generated"
    ]
    return "\n".join(lines)


def hub_datasets() -> str:
    """The datasets that come from a mirror or the hub."""
    lines = [
        "| Name | Family | Examples | Evaluators | Primary score | What it is | Licence |",
        "|---|---|---|---|---|---|---|",
    ]
    for record in RECORDS:
        if record.hub:
            size = "" if record.size is None else f"{record.size:,}"
            score = (record.protocol_of().figure or "none") + ("" if record.official else "*")
            lines.append(
                f"| `{record.name}` | {record.family} | {size} | {', '.join(record.evaluators)} "
                f"| {score} | {record.description} | {record.licence} |"
            )
    return "\n".join(lines)


def dataset_axes() -> str:
    """How far each dataset is run as its authors run it, by its default config."""
    lines = ["| Name | Data | Prompt | Metric | Aggregation |", "|---|---|---|---|---|"]
    for record in RECORDS:
        protocol = record.protocol_of()
        if record.hub or protocol.follows:
            axes = " | ".join(axis.status for axis in protocol.axes.values())
            lines.append(f"| [`{record.name}`](#{record.name}) | {axes} |")
    return "\n".join(lines)


def dataset_cards() -> str:
    """The card of every dataset, with one part for each protocol that its configs have."""
    parts = []
    for record in RECORDS:
        if record.protocol is not None:
            parts += [f"### {record.name}", "", record.description, ""]
            for protocol, configs in record.protocols():
                parts += [*_card(record.name, protocol, configs), ""]
    return "\n".join(parts[:-1])


def _card(name: str, protocol: DatasetProtocol, configs: list[str]) -> list[str]:
    names = ", ".join(f"`{config}`" for config in configs if config)
    prompts = {config: prompt_for(name, config) for config in configs}
    lines = {"Configs": names} | facts(protocol.describe(), prompts[configs[0]])
    different = {prompt.digest for prompt in prompts.values()}
    if len(different) > 1:
        lines |= {"Told": "see below", "Template": "", "Responses": ""}
    rows = [f"| {title} | {_cell(text)} |" for title, text in lines.items() if text]
    card = ["| | |", "|---|---|", *rows]
    if len(different) > 1:
        card += ["", "| Config | Told | Responses |", "|---|---|---|"]
        for config, prompt in prompts.items():
            said = told(prompt, has_question=True)
            card.append(f"| `{config}` | {_cell(said['Told'])} | {said['Responses']} |")
    return card


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def dataset_sources() -> str:
    """Where each dataset comes from, and where a mirror has it."""
    lines = ["| Name | In a mirror | Configs | Cite |", "|---|---|---|---|"]
    for record in RECORDS:
        if record.hub:
            part = record.hub.parts[record.default_config][0]
            places = [part.path] if part.path else [f"{stem}.jsonl" for stem in part.stems]
            shown = "<br>".join(f"`{place}`" for place in places)
            many = f"{', '.join(record.configs[:3])}, ... ({len(record.configs)})"
            configs = many if len(record.configs) > 6 else ", ".join(record.configs)
            lines.append(f"| `{record.name}` | {shown} | {configs} | {record.citation} |")
    return "\n".join(lines)


def bare_cases() -> str:
    """What `cbench conformance --profile bare` asks."""
    cases = asked_of("bare", load_cases())
    rows = [f"| `{case.name}` | {case.says} |" for case in cases]
    return "\n".join(["| Case | What must hold |", "|---|---|", *rows])


def _shown(path: str, language: str) -> Callable[[], str]:
    """A file of the repository as a block of code."""
    return lambda: f"```{language}\n{(ROOT / path).read_text()}```"


def adapters() -> str:
    """Every adapter."""
    lines = ["| Adapter | Kind | Library | Made from | What it does |", "|---|---|---|---|---|"]
    for each in ADAPTERS:
        package = f"`{each.library}`" if each.library else ""
        lines.append(f"| `{each.name}` | {each.kind} | {package} | {each.takes} | {each.about} |")
    return "\n".join(lines)


def run_file() -> str:
    """Every table and key of a run file."""
    parts = []
    for each in TABLES:
        name = f"[[{each.name}]]" if each.is_list else f"[{each.name}]"
        parts.append(f"### {f'`{name}`' if each.name else 'At the top'}\n\n{each.about}\n")
        parts.append("| Key | Value | Meaning |\n|---|---|---|")
        for key in each.keys:
            value = " or ".join(f"`{choice}`" for choice in key.choices) or _VALUES[key.kind]
            parts.append(f"| `{key.name}` | {value} | {key.about} |")
        parts.append("")
    return "\n".join(parts).rstrip()


_VALUES = {
    "text": "text",
    "path": "file",
    "flag": "true or false",
    "count": "1, 2, ...",
    "natural": "0, 1, ...",
    "whole": "whole number",
    "number": "number",
    "numbers": "list of numbers",
    "dollars": "number above 0",
    "seconds": "seconds, or text such as `2m`",
    "share": "number, or text such as `5%`",
    "texts": "text, or list of texts",
    "pairs": "table of texts",
    "options": "table",
    "owned": "table of tables",
    "price": "price",
    "prices": "price, or list of them",
}
PARTS: dict[str, Callable[[], str]] = {
    "adapters": adapters,
    "adapter-embedder": _shown("examples/adapters/embedder.py", "python"),
    "adapter-langchain": _shown("examples/adapters/langchain_rag.py", "python"),
    "adapter-llamaindex": _shown("examples/adapters/llamaindex_rag.py", "python"),
    "adapter-mem0": _shown("examples/adapters/mem0_notes.py", "python"),
    "adapter-mcp": _shown("examples/adapters/mcp_notes.py", "python"),
    "adapter-mcp-server": _shown("examples/adapters/mcp_notes_server.py", "python"),
    "adapter-memories": _shown("examples/adapters/memories.toml", "toml"),
    "adapter-compressors": _shown("examples/adapters/compressors.toml", "toml"),
    "api": api,
    "bare-cases": bare_cases,
    "dataset-axes": dataset_axes,
    "dataset-cards": dataset_cards,
    "dataset-sources": dataset_sources,
    "example-cpp": _shown("examples/cpp/mine.cpp", "cpp"),
    "example-cpp-makefile": _shown("examples/cpp/Makefile", "make"),
    "example-java": _shown("examples/java/src/main/java/Mine.java", "java"),
    "embedded-datasets": embedded_datasets,
    "generated-datasets": generated_datasets,
    "hub-datasets": hub_datasets,
    "limits": limits,
    "settings": settings,
    "statuses": statuses,
    "failure-reasons": failure_reasons,
    "run-file": run_file,
    "run-states": states_table,
    "run-requests": requests_table,
}


def rewritten(text: str) -> str:
    """Return a page with its generated parts as they should be."""
    return PART.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}\n{found[3]}", text)


def main(check: bool) -> int:
    """Rewrite or check every page; return the exit code."""
    code = 0
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = path.read_text()
        if (new := rewritten(text)) == text:
            continue
        if check:
            print(f"{path.relative_to(ROOT)} is not what the code says. Run: make docs")
            code = 1
        else:
            path.write_text(new)
            print(f"{path.relative_to(ROOT)} rewritten")
    return code


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
