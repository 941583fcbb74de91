"""Another compressor: keep a few words around each rare word of the question.

Start it with: python examples/python/keyword_windows.py 127.0.0.1:50062
"""

import re
import sys
from collections import Counter
from typing import Any

from cbench_client import serve

WINDOW = 12


class KeywordWindows:
    """Keeps a window of words around each of the question's keywords."""

    name = "keyword-windows"
    version = "1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        text = example["context"].split()
        keys = [re.sub(r"\W", "", word).lower() for word in text]
        common = {word for word, count in Counter(keys).items() if count > 4 or len(word) < 3}
        asked = set(re.findall(r"\w+", example.get("question", "").lower())) - common
        hits = [place for place, key in enumerate(keys) if key in asked]
        kept = {near for hit in hits for near in range(hit - WINDOW, hit + WINDOW + 1)}
        return {**example, "context": " ".join(text[i] for i in sorted(kept) if 0 <= i < len(text))}


if __name__ == "__main__":
    serve(KeywordWindows(), *sys.argv[1:])
