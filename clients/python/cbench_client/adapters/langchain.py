"""LangChain retrievers and document compressors as systems."""

from collections.abc import Callable
from typing import Any

from cbench_client.adapters.library import library
from cbench_client.adapters.passages import PLACE, joined, passages_of, question_of

_PACKAGE = "langchain-core"


class LangChainRetriever:
    """Keeps the passages that a retriever finds for the question.

    Args:
        given: A function that makes a retriever of a list of documents, called for every
            example with its passages; or a retriever over documents of its own.
    """

    name = "langchain-retriever"

    def __init__(self, given: Any) -> None:
        self._documents = library("langchain_core.documents", _PACKAGE)
        self._build: Callable[[list[Any]], Any] | None = None
        base = library("langchain_core.retrievers", _PACKAGE).BaseRetriever
        self._retriever = given if isinstance(given, base) else None
        if self._retriever is None:
            self._build = given

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Replace the context by what is found."""
        retriever = self._retriever
        if self._build is not None:
            retriever = self._build(documents_of(self._documents, example["context"]))
        assert retriever is not None
        found = retriever.invoke(question_of(example))
        return {**example, "context": joined((each.metadata, each.page_content) for each in found)}


class LangChainCompressor:
    """Keeps what a document compressor leaves of the passages."""

    name = "langchain-compressor"

    def __init__(self, given: Any) -> None:
        self._documents = library("langchain_core.documents", _PACKAGE)
        self._compressor = given

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Replace the context by what is left of it."""
        passages = documents_of(self._documents, example["context"])
        left = self._compressor.compress_documents(passages, question_of(example))
        return {**example, "context": joined((each.metadata, each.page_content) for each in left)}


def documents_of(documents: Any, context: str) -> list[Any]:
    """Return the passages of a context as LangChain documents."""
    return [
        documents.Document(page_content=text, metadata={PLACE: place}, id=str(place))
        for place, text in enumerate(passages_of(context))
    ]
