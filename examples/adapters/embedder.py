"""An embedder whose weights come inside a wheel: pip install wordllama."""

from pathlib import Path

import wordllama

DIMENSIONS = 256
# Its files are in the wheel, and are not looked for on the network.
_MODEL = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def embed(text: str) -> list[float]:
    """Return the vector of a text."""
    vector: list[float] = _MODEL.embed([text], norm=True)[0].tolist()
    return vector
