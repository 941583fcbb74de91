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

    def make(self, given: Any) -> Any:
        """Return what is to be served."""
        module, _, name = self.place.partition(":")
        return vars(import_module(module))[name](given)

    @property
    def command(self) -> str:
        """What a person types."""
        if not self.place:
            return "cbench run --proxy URL"
        run = "cbench memory run" if self.kind == "memory" else "cbench run"
        return f'{run} --launch "cbench adapt {self.name} MODULE:NAME"'


_HERE = "cbench_client.adapters"
ADAPTERS = (
    Adapter(
        "langchain-retriever",
        "system",
        "langchain-core",
        "a function from documents to a retriever, or a retriever",
        "keeps the passages of a context that a LangChain retriever finds for the question",
        f"{_HERE}.langchain:LangChainRetriever",
    ),
    Adapter(
        "langchain-compressor",
        "system",
        "langchain-core",
        "a document compressor",
        "keeps what a LangChain document compressor leaves of the passages",
        f"{_HERE}.langchain:LangChainCompressor",
    ),
    Adapter(
        "llamaindex-retriever",
        "system",
        "llama-index-core",
        "a function from nodes to a retriever, or a retriever",
        "keeps the passages of a context that a LlamaIndex retriever finds for the question",
        f"{_HERE}.llamaindex:LlamaIndexRetriever",
    ),
    Adapter(
        "llamaindex-postprocessor",
        "system",
        "llama-index-core",
        "a node postprocessor",
        "keeps what a LlamaIndex node postprocessor leaves of the passages",
        f"{_HERE}.llamaindex:LlamaIndexPostprocessor",
    ),
    Adapter(
        "mem0",
        "memory",
        "mem0ai",
        "a function that returns a mem0 Memory",
        "remembers turns in mem0 as they are, without inference and telemetry",
        f"{_HERE}.mem0:mem0_memory",
    ),
    Adapter(
        "mcp-memory",
        "memory",
        "mcp",
        "a McpServer: its command, and the names of its tools",
        "remembers turns by a tool of an MCP server over stdio, and asks by another",
        f"{_HERE}.mcp:mcp_memory",
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
