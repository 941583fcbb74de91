"""The language of a text, as langdetect sees it, and the same every time.

langdetect draws at random unless it has a seed, keeps one detector for the
process that two threads may see half loaded, and reads its profiles in the
order the file system lists them. A factory of our own settles all three.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from cbench_server.errors import EvaluatorBroken

_SEED = 0


def detect_language(text: str) -> str | None:
    """Return langdetect's code of the language; None if the text has nothing to go by."""
    factory = _factory()
    from langdetect import LangDetectException

    detector = factory.create()
    detector.append(text)
    try:
        return str(detector.detect())
    except LangDetectException:
        return None


@cache
def _factory() -> Any:
    try:
        from langdetect import DetectorFactory

        folder = files("langdetect") / "profiles"
        profiles = sorted(folder.iterdir(), key=lambda profile: profile.name)
        factory = DetectorFactory()
        factory.load_json_profile([profile.read_text("utf-8") for profile in profiles])
    except Exception as error:  # what an incomplete installation raises
        raise EvaluatorBroken(f"langdetect cannot be used: {error}") from error
    factory.set_seed(_SEED)
    return factory
