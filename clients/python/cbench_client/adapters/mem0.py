"""mem0 as a memory: turns are stored as they are, without inference and telemetry."""

import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cbench_client.adapters.library import library

_PACKAGE = "mem0ai"
_TOP = 8


def mem0_memory(given: Any) -> type:
    """Return a class of memories, one object for each conversation, all in one mem0 Memory.

    Args:
        given: A function that makes the Memory, or the Memory itself.
    """
    without_telemetry()
    library("mem0", _PACKAGE)
    # It tells of every turn that is stored, where a library has turned logging on.
    logging.getLogger("mem0").setLevel(logging.WARNING)
    shared = given() if callable(given) else given

    class Mem0Memory(_Mem0Memory):
        memory = shared

    return Mem0Memory


class _Mem0Memory:
    name = "mem0"
    memory: Any = None

    def __init__(self) -> None:
        self._owner = f"cbench-{id(self)}-{os.urandom(4).hex()}"

    def reset(self) -> None:
        """Forget this conversation."""
        self.memory.delete_all(user_id=self._owner)

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        """Store each turn by itself."""
        for turn in turns:
            said = (
                f"{turn['speaker']}: {turn['content']}" if turn.get("speaker") else turn["content"]
            )
            when = f"[{turn['time']}] " if turn.get("time") else ""
            role = "assistant" if turn.get("role") == "assistant" else "user"
            message = {"role": role, "content": f"{when}{said}"}
            self.memory.add([message], user_id=self._owner, infer=False)

    def query(self, question: str) -> dict[str, Any]:
        """Return the nearest turns; a reader, if the run has one, answers from them."""
        owner = {"user_id": self._owner}
        found = self.memory.search(question, filters=owner, top_k=_TOP)["results"]
        return {"context": "\n".join(each["memory"] for each in found)}


def local_memory(embed: Callable[[str], Sequence[float]], dimensions: int, folder: str = "") -> Any:
    """Return a mem0 Memory that needs no network: qdrant in a folder, and your own embedder."""
    without_telemetry()
    mem0 = library("mem0", _PACKAGE)
    home = Path(folder or tempfile.mkdtemp(prefix="cbench-mem0-"))
    # Neither is asked: turns are stored as they are, and the embedder is replaced below.
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    store = {"path": str(home / "vectors"), "embedding_model_dims": dimensions}
    memory = mem0.Memory.from_config(
        {
            "llm": unused,
            "embedder": unused,
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(home / "history.db"),
        }
    )
    memory.embedding_model = _Embedder(embed)
    return memory


def without_telemetry() -> None:
    """Have mem0 tell nobody, and keep its own files out of the home folder.

    It reads both when it is imported, so this comes before that.
    """
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ.setdefault("MEM0_DIR", tempfile.mkdtemp(prefix="cbench-mem0-"))


class _Embedder:
    def __init__(self, embed: Callable[[str], Sequence[float]]) -> None:
        self._embed = embed

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return [float(each) for each in self._embed(text)]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[Any]:
        return [self.embed(text) for text in texts]
