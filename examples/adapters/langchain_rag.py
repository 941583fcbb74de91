"""A LangChain retriever and a document compressor, for `cbench adapt`.

pip install langchain-core langchain-classic wordllama
"""

from embedder import embed
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore


class WordLlamaEmbeddings(Embeddings):
    """The embedder as LangChain wants it."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


def build(documents: list[Document]) -> BaseRetriever:
    """Make a retriever over the passages of one example."""
    store = InMemoryVectorStore.from_documents(documents, WordLlamaEmbeddings())
    return store.as_retriever(search_kwargs={"k": 5})


class Similarity(BaseCrossEncoder):
    """Scores pairs of question and passage by their vectors."""

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [
            sum(a * b for a, b in zip(embed(question), embed(passage), strict=True))
            for question, passage in text_pairs
        ]


compressor = CrossEncoderReranker(model=Similarity(), top_n=5)
