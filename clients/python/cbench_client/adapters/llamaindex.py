"""LlamaIndex retrievers and node postprocessors as systems."""

from collections.abc import Callable
from typing import Any

from cbench_client.adapters.library import library
from cbench_client.adapters.passages import PLACE, joined, passages_of, question_of

_PACKAGE = "llama-index-core"


class LlamaIndexRetriever:
    """Keeps the passages that a retriever finds for the question.

    Args:
        given: A function that makes a retriever of a list of nodes, called for every example
            with its passages; or a retriever over nodes of its own.
    """

    name = "llamaindex-retriever"

    def __init__(self, given: Any) -> None:
        self._schema = library("llama_index.core.schema", _PACKAGE)
        base = library("llama_index.core.base.base_retriever", _PACKAGE).BaseRetriever
        self._build: Callable[[list[Any]], Any] | None = None
        self._retriever = given if isinstance(given, base) else None
        if self._retriever is None:
            self._build = given

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Replace the context by what is found."""
        retriever = self._retriever
        if self._build is not None:
            retriever = self._build(nodes_of(self._schema, example["context"]))
        assert retriever is not None
        return {**example, "context": _kept(retriever.retrieve(question_of(example)))}


class LlamaIndexPostprocessor:
    """Keeps what a node postprocessor leaves of the passages."""

    name = "llamaindex-postprocessor"

    def __init__(self, given: Any) -> None:
        self._schema = library("llama_index.core.schema", _PACKAGE)
        self._postprocessor = given

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Replace the context by what is left of it."""
        nodes = [
            self._schema.NodeWithScore(node=node)
            for node in nodes_of(self._schema, example["context"])
        ]
        question = question_of(example)
        left = self._postprocessor.postprocess_nodes(nodes, query_str=question)
        return {**example, "context": _kept(left)}


def nodes_of(schema: Any, context: str) -> list[Any]:
    """Return the passages of a context as nodes, whose places no embedder or model reads."""
    hidden = {"excluded_embed_metadata_keys": [PLACE], "excluded_llm_metadata_keys": [PLACE]}
    return [
        schema.TextNode(text=text, id_=str(place), metadata={PLACE: place}, **hidden)
        for place, text in enumerate(passages_of(context))
    ]


def _kept(found: list[Any]) -> str:
    return joined((each.node.metadata, each.node.get_content()) for each in found)
