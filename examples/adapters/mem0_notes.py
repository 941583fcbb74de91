"""A mem0 memory that needs no network, for `cbench adapt`.

pip install mem0ai wordllama
"""

from typing import Any

from embedder import DIMENSIONS, embed

from cbench_client.adapters.mem0 import local_memory


def build() -> Any:
    """Make the Memory that all conversations share, each under a user of its own."""
    return local_memory(embed, DIMENSIONS)
