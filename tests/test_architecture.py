"""Imports point one way: cli -> daemon -> {rpc, storage, conformance} -> domain."""

import ast
import functools
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "cbench_server"
CLIENT = ROOT / "clients" / "python" / "cbench_client"

# Which rooms the modules of a room may import from; "words" are the modules at the root.
ROOMS = {
    "words": (),
    "durable": (),
    "tokens": ("words",),
    "sandbox": (),
    "clocks": (),
    "texts": ("words",),
    "metrics": ("words", "texts"),
    "comparison": ("words", "texts", "metrics"),
    "reports": ("words", "durable", "texts", "metrics", "comparison"),
    "models": ("words", "durable", "clocks"),
    "systems": ("words", "clocks", "tokens", "models", "datasets"),
    "datasets": ("words", "durable", "texts", "tokens"),
    "scoring": ("words", "clocks", "texts"),
    "evaluators": (
        "words",
        "tokens",
        "texts",
        "metrics",
        "models",
        "datasets",
        "scoring",
        "sandbox",
    ),
    "runs": (
        "words",
        "durable",
        "texts",
        "tokens",
        "metrics",
        "comparison",
        "datasets",
        "scoring",
        "systems",
        "models",
    ),
    "storage": ("words", "durable", "texts", "runs"),
    "rpc": (
        "words",
        "runs",
        "scoring",
        "systems",
        "models",
        "metrics",
        "comparison",
        "reports",
    ),
    "conformance": ("texts", "cluster"),
    "bridges": ("cluster",),
    "telemetry": ("words",),
    "cluster": ("words", "scoring", "sandbox"),
    "daemon": (
        "words",
        "durable",
        "tokens",
        "metrics",
        "datasets",
        "models",
        "runs",
        "scoring",
        "rpc",
        "storage",
        "cluster",
        "telemetry",
    ),
    "cli": (
        "words",
        "durable",
        "tokens",
        "texts",
        "comparison",
        "reports",
        "datasets",
        "runs",
        "storage",
        "rpc",
        "conformance",
        "daemon",
        "bridges",
        "models",
        "sandbox",
        "cluster",
    ),
}
# The front door and the registry know the rooms; they are imported by no word.
DOORS = ("__init__", "__main__", "registry", "evaluation")
MAX_ROOT_MODULES = 12
MAX_LINES = 400
# Longer than a file should be; the list only shrinks.
TOO_LONG: set[str] = set()

ADAPTERS = ("rpc", "storage", "conformance", "bridges")
ENTRY_POINTS = ("daemon", "cli", "__main__")
# What the domain is written in; they import nothing of ours but each other.
VOCABULARY = ("types", "results", "events", "errors", "spec")

GRPC = ("grpc", "grpc_health", "grpc_reflection", "google")
SQL = ("sqlalchemy", "alembic", "sqlite3")
HTTP_SERVERS = (
    "http.server",
    "socketserver",
    "wsgiref",
    "aiohttp",
    "flask",
    "fastapi",
    "starlette",
    "uvicorn",
    "hypercorn",
    "tornado",
)


# Calls of getattr and hasattr outside contract.py, which alone asks a component for what it may
# or may not have. Each has a reason; the numbers only shrink.
READ_BY_NAME: dict[str, dict[str, int]] = {
    "fields of messages": {
        "conformance/messages.py": 1,
        "conformance/steps/server.py": 1,
        "conformance/streamed.py": 2,
        "conformance/subject.py": 2,
        "rpc/attached.py": 4,
        "rpc/attachments.py": 2,
        "rpc/bench_service.py": 3,
        "rpc/comparisons.py": 3,
        "rpc/memory_messages.py": 1,
        "rpc/rows.py": 1,
        "rpc/specs.py": 2,
        "rpc/times.py": 1,
    },
    "handlers, constants and names of modules": {
        "__init__.py": 1,
        "conformance/steps/gateway.py": 1,
        "conformance/steps/program.py": 1,
        "lazy_imports.py": 1,
        "rpc/status.py": 4,
        "scoring/recipe.py": 3,
    },
    "fields of our own records, flags and settings": {
        "spec.py": 1,
        "cli/commands/conformance.py": 1,
        "cli/connect.py": 1,
        "daemon/settings.py": 5,
        "evaluators/judge/settings.py": 1,
        "reports/row_columns.py": 1,
        "results.py": 2,
        "rpc/server.py": 1,
        "storage/codec.py": 1,
        "storage/import_checks.py": 1,
    },
    "objects of other libraries": {
        "evaluators/math/symbols.py": 2,
        "storage/connection.py": 1,
        "storage/database.py": 1,
    },
    "answers that may be anything": {
        "conformance/values.py": 1,
        "scoring/assessment.py": 2,
    },
    "objects of judged programs; the jail imports nothing of ours": {
        "sandbox/candidate.py": 8,
        "sandbox/client.py": 2,
        "sandbox/errors.py": 2,
        "sandbox/limits.py": 1,
        "sandbox/peer.py": 3,
        "sandbox/tester.py": 2,
        "sandbox/values.py": 4,
    },
    "methods that a system may have: to be read by contract.optional_method": {
        "systems/in_process.py": 3,
        "systems/in_process_memory.py": 9,
    },
}


class Import(NamedTuple):
    """One module that a file imports."""

    path: Path
    line: int
    module: str
    is_lazy: bool

    def __str__(self) -> str:
        source = self.path.read_text().splitlines()[self.line - 1].strip()
        return f"{self.path.relative_to(ROOT)}:{self.line}: {source}"


def imports_of(path: Path) -> Iterator[Import]:
    """Yield what a file imports, at its top or inside its functions."""
    tree = ast.parse(path.read_text())
    at_top = _run_on_import(tree)
    for node in ast.walk(tree):
        is_lazy = node not in at_top
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(path, node.lineno, alias.name, is_lazy)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}:{node.lineno}: a relative import"
            assert node.module is not None
            # `from package import name` may import a module or take a name from one.
            for alias in node.names:
                yield Import(path, node.lineno, f"{node.module}.{alias.name}", is_lazy)


def _run_on_import(tree: ast.Module) -> set[ast.AST]:
    found: set[ast.AST] = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        found.add(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        waiting.extend(ast.iter_child_nodes(node))
    return found


def part_of(path: Path) -> str:
    """Return the folder or file directly below cbench_server that a file belongs to."""
    return path.relative_to(SERVER).parts[0].removesuffix(".py")


def dotted(path: Path) -> str:
    """Return the name that a file is imported by."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def is_under(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def ours(module: str) -> str | None:
    """Return the part of cbench_server that a module belongs to, None for others' modules."""
    if not is_under(module, "cbench_server"):
        return None
    return module.split(".")[1] if "." in module else "__init__"


@functools.cache
def imports_below(package: Path) -> list[Import]:
    """Return what the files of a package import, but for generated ones."""
    paths = sorted(path for path in package.rglob("*.py") if "_gen" not in path.parts)
    return [each for path in paths for each in imports_of(path)]


def domain_imports() -> list[Import]:
    outside = (*ADAPTERS, *ENTRY_POINTS)
    return [each for each in imports_below(SERVER) if part_of(each.path) not in outside]


def assert_none(offenders: list[Import], rule: str) -> None:
    lines = "\n  ".join(sorted({str(each) for each in offenders}))
    assert not offenders, f"{rule}:\n  {lines}"


@pytest.mark.parametrize(
    ("forbidden", "what"),
    [(GRPC, "gRPC"), (SQL, "SQL"), (HTTP_SERVERS, "HTTP servers")],
    ids=["grpc", "sql", "http-servers"],
)
def test_the_domain_knows_no_transport_and_no_database(
    forbidden: tuple[str, ...], what: str
) -> None:
    offenders = [each for each in domain_imports() if is_under(each.module, *forbidden)]
    assert_none(offenders, f"the domain must not know {what}")


def test_the_domain_imports_no_adapter_and_no_entry_point() -> None:
    offenders = [
        each for each in domain_imports() if ours(each.module) in (*ADAPTERS, *ENTRY_POINTS)
    ]
    assert_none(offenders, "imports point from the adapters to the domain")


def test_the_domain_imports_the_client_only_lazily_and_for_its_public_names() -> None:
    offenders = [
        each
        for each in domain_imports()
        if is_under(each.module, "cbench_client")
        and not (each.path == SERVER / "__init__.py" and each.is_lazy)
    ]
    assert_none(offenders, "cbench_client is for rpc/, conformance/, bridges/ and cli")


def test_only_rpc_and_cli_import_grpc_or_the_client() -> None:
    offenders = [
        each
        for each in imports_below(SERVER)
        if part_of(each.path) in ("storage", "daemon")
        and is_under(each.module, *GRPC, "cbench_client")
    ]
    assert_none(offenders, "gRPC belongs to rpc/, conformance/ and cli")


def test_only_storage_speaks_sql() -> None:
    offenders = [
        each
        for each in imports_below(SERVER)
        if part_of(each.path) in ("rpc", "conformance", *ENTRY_POINTS)
        and is_under(each.module, *SQL)
    ]
    assert_none(offenders, "SQL belongs to storage/")


def test_nothing_but_the_store_knows_how_runs_are_owned() -> None:
    # The port is runs/ownership.py; leases in a database may stand behind it as well.
    offenders = [
        each
        for each in imports_below(SERVER)
        if part_of(each.path) != "storage"
        and (is_under(each.module, "fcntl") or "storage.locks" in each.module)
    ]
    assert_none(offenders, "claims are asked for by runs/ownership.py")
    naming = [
        path.name
        for path in (SERVER / "runs").glob("*.py")
        if "lock_run" in path.read_text() or "flock" in path.read_text()
    ]
    assert naming == []


def test_adapters_do_not_import_each_other_nor_what_connects_them() -> None:
    offenders = [
        each
        for each in imports_below(SERVER)
        if part_of(each.path) in ADAPTERS
        and ours(each.module) in (*ADAPTERS, *ENTRY_POINTS)
        and ours(each.module) != part_of(each.path)
    ]
    assert_none(offenders, "daemon/ introduces the adapters to each other")


def test_the_daemon_does_not_import_the_command_line() -> None:
    offenders = [
        each
        for each in imports_below(SERVER)
        if part_of(each.path) == "daemon" and ours(each.module) == "cli"
    ]
    assert_none(offenders, "cli imports the daemon, not the other way round")


def test_the_command_line_has_no_import_cycle_even_among_lazy_imports() -> None:
    modules = {dotted(path): path for path in sorted((SERVER / "cli").rglob("*.py"))}
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for module, path in modules.items():
        for each in imports_of(path):
            # A name taken from a module, or the module itself.
            for found in (each.module, each.module.rpartition(".")[0]):
                if found in modules:
                    graph[module].add(found)
                    break
    # The parser loads commands by name.
    graph["cbench_server.cli.parser"] |= {name for name in modules if ".cli.commands." in name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle in cli: {' <- '.join(error.args[1])}")


def test_the_vocabulary_imports_nothing_of_ours_but_itself() -> None:
    offenders = [
        each
        for each in imports_below(SERVER)
        if part_of(each.path) in VOCABULARY
        and (is_under(each.module, "cbench_client") or ours(each.module) not in (None, *VOCABULARY))
    ]
    assert_none(offenders, f"{', '.join(VOCABULARY)} import only each other")


def room_of(part: str | None) -> str | None:
    """Return the room that a part belongs to; None for a door and for others' modules."""
    if part is None or part in DOORS:
        return None
    return part if (SERVER / part).is_dir() else "words"


def test_every_room_is_known() -> None:
    folders = {path.name for path in SERVER.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == ROOMS.keys() - {"words"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_those_it_may(room: str) -> None:
    offenders = [
        each
        for each in imports_below(SERVER)
        if room_of(part_of(each.path)) == room
        and room_of(ours(each.module)) not in (None, room, *ROOMS[room])
    ]
    assert_none(offenders, f"{room} may import from {', '.join(ROOMS[room]) or 'no room'}")


def test_only_a_few_modules_lie_at_the_root() -> None:
    modules = sorted(path.name for path in SERVER.glob("*.py"))
    assert len(modules) <= MAX_ROOT_MODULES, modules


def test_no_file_is_longer_than_a_reader_likes() -> None:
    files = [*SERVER.rglob("*.py"), *CLIENT.rglob("*.py")]
    long = {
        str(path.relative_to(ROOT))
        for path in files
        if "_gen" not in path.parts and len(path.read_text().splitlines()) > MAX_LINES
    }
    assert long == TOO_LONG


def reads_by_name(path: Path) -> list[int]:
    """Return the lines of a file that call getattr or hasattr."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
    ]


def test_only_the_contract_asks_components_for_what_they_may_have() -> None:
    allowed = {name: count for files in READ_BY_NAME.values() for name, count in files.items()}
    allowed["contract.py"] = sys.maxsize
    found = {str(path.relative_to(SERVER)): reads_by_name(path) for path in SERVER.rglob("*.py")}
    offenders = {name: lines for name, lines in found.items() if len(lines) > allowed.get(name, 0)}
    assert not offenders, "read components by contract.py; getattr is for the listed rest"
    assert allowed.keys() <= found.keys(), "a listed file is gone"


def test_the_client_does_not_need_the_server() -> None:
    offenders = [each for each in imports_below(CLIENT) if is_under(each.module, "cbench_server")]
    assert_none(offenders, "cbench_client is a distribution of its own")


def test_the_client_needs_grpc_and_the_standard_library_only() -> None:
    allowed = {"cbench_client", *GRPC, *sys.stdlib_module_names}
    offenders = [each for each in imports_below(CLIENT) if each.module.split(".")[0] not in allowed]
    assert_none(offenders, "cbench_client needs grpcio, its health and reflection, and protobuf")


def test_an_offence_is_reported_with_its_line() -> None:
    path = SERVER / "types.py"
    line = next(each for each in imports_of(path) if each.module.startswith("typing"))
    with pytest.raises(AssertionError, match=r"types\.py:\d+: from typing import"):
        assert_none([line], "a rule")


def test_lazy_imports_are_told_from_those_at_the_top(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "import a\n"
        "try:\n    import b\nexcept ImportError:\n    pass\n"
        "if TYPE_CHECKING:\n    import c\n"
        "def f():\n    import d\n"
    )
    lazy = {each.module: each.is_lazy for each in imports_of(path)}
    assert lazy == {"a": False, "b": False, "c": True, "d": True}
