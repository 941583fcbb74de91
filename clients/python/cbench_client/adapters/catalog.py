"""The adapters by name: what each is made from, and how it is served."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Adapter:
    """One way to make a system of something that another library has."""

    name: str
    kind: str
    """`system`, or `memory`."""
    library: str
    """The package to install; empty where none is needed."""
    takes: str
    about: str
    place: str = ""
    """MODULE:CLASS; empty for what needs no adapter."""
    methods: tuple[str, ...] = ()
    """What an object has that it is made from."""
    from_function: bool = False
    """Whether it is also made from a function that makes such an object."""
    first: str = ""
    """MODULE:FUNCTION to call before the library is imported, also by the module of the user."""

    def prepare(self) -> None:
        """Do what must be done before the library is imported."""
        if self.first:
            _found(self.first)()

    def takes_such(self, given: Any) -> bool:
        """Whether it can be made from an object."""
        if self.from_function and callable(given):
            return True
        return not isinstance(given, type) and all(hasattr(given, each) for each in self.methods)

    def make(self, given: Any) -> Any:
        """Return what is to be served."""
        return _found(self.place)(given)

    @property
    def command(self) -> str:
        """What a person types."""
        if not self.place:
            return "cbench run --proxy URL"
        run = "cbench memory run" if self.kind == "memory" else "cbench run"
        return f'{run} --launch "cbench adapt {self.name} MODULE:NAME"'


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return vars(import_module(module))[name]


_HERE = "cbench_client.adapters"
ADAPTERS = (
    Adapter(
        "langchain-retriever",
        "system",
        "langchain-core",
        "a function from documents to a retriever, or a retriever",
        "keeps the passages of a context that a LangChain retriever finds for the question",
        f"{_HERE}.langchain:LangChainRetriever",
        methods=("invoke",),
        from_function=True,
    ),
    Adapter(
        "langchain-compressor",
        "system",
        "langchain-core",
        "a document compressor",
        "keeps what a LangChain document compressor leaves of the passages",
        f"{_HERE}.langchain:LangChainCompressor",
        methods=("compress_documents",),
    ),
    Adapter(
        "llamaindex-retriever",
        "system",
        "llama-index-core",
        "a function from nodes to a retriever, or a retriever",
        "keeps the passages of a context that a LlamaIndex retriever finds for the question",
        f"{_HERE}.llamaindex:LlamaIndexRetriever",
        methods=("retrieve",),
        from_function=True,
    ),
    Adapter(
        "llamaindex-postprocessor",
        "system",
        "llama-index-core",
        "a node postprocessor",
        "keeps what a LlamaIndex node postprocessor leaves of the passages",
        f"{_HERE}.llamaindex:LlamaIndexPostprocessor",
        methods=("postprocess_nodes",),
    ),
    Adapter(
        "mem0",
        "memory",
        "mem0ai",
        "a function that returns a mem0 Memory",
        "remembers turns in mem0 as they are, without inference and telemetry",
        f"{_HERE}.mem0:mem0_memory",
        methods=("add", "search", "delete_all"),
        from_function=True,
        first=f"{_HERE}.mem0:without_telemetry",
    ),
    Adapter(
        "mcp-memory",
        "memory",
        "mcp",
        "a McpServer: its command, and the names of its tools",
        "remembers turns by a tool of an MCP server over stdio, and asks by another",
        f"{_HERE}.mcp:mcp_memory",
        methods=("add_tool", "search_tool"),
    ),
    Adapter(
        "openai-proxy",
        "system",
        "",
        "the address of any OpenAI-compatible endpoint",
        "asks the model behind a proxy that changes what it reads; it needs no adapter",
    ),
)


def adapter(name: str) -> Adapter:
    """Return an adapter by its name; KeyError if there is none."""
    return {each.name: each for each in ADAPTERS}[name]
