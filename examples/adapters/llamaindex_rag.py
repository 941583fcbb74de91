"""A LlamaIndex retriever and a node postprocessor, for `cbench adapt`.

pip install llama-index-core wordllama
"""

import re

from embedder import embed
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.postprocessor import SentenceEmbeddingOptimizer
from llama_index.core.schema import BaseNode


class WordLlamaEmbedding(BaseEmbedding):
    """The embedder as LlamaIndex wants it."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)


def build(nodes: list[BaseNode]) -> BaseRetriever:
    """Make a retriever over the passages of one example."""
    index = VectorStoreIndex(nodes, embed_model=WordLlamaEmbedding())
    return index.as_retriever(similarity_top_k=5)


postprocessor = SentenceEmbeddingOptimizer(
    embed_model=WordLlamaEmbedding(),
    percentile_cutoff=0.5,
    context_before=0,
    context_after=0,
    tokenizer_fn=lambda text: re.split(r"(?<=[.!?])\s+", text),
)
