"""The two vocabularies we carry, and the check that they are the official ones."""

import base64
import hashlib
import lzma
from dataclasses import dataclass
from pathlib import Path

from cbench_server.errors import CbenchError

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Vocabulary:
    """What defines an encoding: the ranks of its tokens and how text is split into pieces."""

    name: str
    sha256: str  # of the uncompressed .tiktoken file, as tiktoken itself expects it
    pattern: str

    @property
    def file_name(self) -> str:
        return f"{self.name}.tiktoken.xz"


CL100K_BASE = Vocabulary(
    name="cl100k_base",
    sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    pattern=(
        r"'(?i:[sdmt]|ll|ve|re)"
        r"|[^\r\n\p{L}\p{N}]?+\p{L}++"
        r"|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$"
        r"|\s*[\r\n]"
        r"|\s+(?!\S)"
        r"|\s"
    ),
)

O200K_BASE = Vocabulary(
    name="o200k_base",
    sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    pattern=(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
        r"|\s*[\r\n]+"
        r"|\s+(?!\S)"
        r"|\s+"
    ),
)

VOCABULARIES = {vocabulary.name: vocabulary for vocabulary in (CL100K_BASE, O200K_BASE)}


def read_vocabulary(vocabulary: Vocabulary, folder: Path = DATA) -> bytes:
    """Return the official .tiktoken file, or refuse a file that is not it, byte for byte."""
    path = folder / vocabulary.file_name
    try:
        content = lzma.decompress(path.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise _unusable(path, str(error)) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != vocabulary.sha256:
        raise _unusable(path, f"its sha256 is {digest}, not {vocabulary.sha256}")
    return content


def parse_ranks(content: bytes) -> dict[bytes, int]:
    """Map each token to its rank."""
    lines = (line.split() for line in content.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _unusable(path: Path, why: str) -> CbenchError:
    return CbenchError(
        f'the token vocabulary "{path}" cannot be used: {why}. Reinstall cbench-server.'
    )
