"""A hub of the tests' own, and a model."""

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.model_server import server

from .hub_server import HubServer, serving

__all__ = ["hub", "server"]

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubServer]:
    """A hub with four repositories, each in its publisher's layout."""
    folder = tmp_path / "hub"
    gsm8k = folder / "openai/gsm8k"
    gsm8k.mkdir(parents=True)
    shutil.copy(FIXTURES / "openai/gsm8k/main/test.jsonl", gsm8k / "test.jsonl")
    (gsm8k / "README.md").write_text(
        "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n"
        "    path: test.jsonl\n---\n"
    )
    scrolls = folder / "tau/scrolls"
    scrolls.mkdir(parents=True)
    with zipfile.ZipFile(scrolls / "qmsum.zip", "w") as archive:
        archive.write(FIXTURES / "tau/scrolls/qmsum/validation.jsonl", "qmsum/validation.jsonl")
    for name in ("amodaresi/NoLiMa", "xiaowu0162/longmemeval-cleaned"):
        shutil.copytree(FIXTURES / name, folder / name)
    scripted = folder / "google/IFEval"
    scripted.mkdir(parents=True)
    (scripted / "IFEval.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    with serving(folder) as server:
        yield server
