"""`cbench tokens`: what a person types to make, list and revoke tokens."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_server.cli import main
from cbench_server.rpc.grants import digest_of, parse_lines

Tell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tokens"
    monkeypatch.setenv("CBENCH_TOKEN_FILE", str(path))
    return path


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    def told(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(["tokens", *arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return told


def test_a_token_is_printed_once_and_kept_as_a_digest(file: Path, tell: Tell) -> None:
    code, printed, said = tell("create", "ci", "--role", "run", "--expires", "30d")
    token = printed.strip()
    assert code == 0
    assert "not shown again" in said
    assert token not in file.read_text()
    assert digest_of(token) in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    listed = json.loads(tell("list", "--output", "json")[1])
    assert [(each["name"], each["roles"], each["kind"]) for each in listed] == [
        ("ci", ["run"], "token")
    ]
    assert listed[0]["expires"].endswith("Z")


def test_lines_of_others_comments_and_modes_stay(file: Path, tell: Tell) -> None:
    file.write_text("# by hand\nold-token\n")
    file.chmod(0o640)
    tell("create", "lab", "--role", "attach", "--attach", "a b", "--attach", "c")
    tell("create", "alice", "--role", "run", "--cert", "alice.example")
    assert file.read_text().startswith("# by hand\nold-token\nlab attach sha256:")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    table = tell("list")[1]
    assert "a b, c" in table
    assert "certificate alice.example" in table
    assert "token in plain text" in table
    assert tell("revoke", "lab", "alice")[2].count("revoked") == 2
    assert file.read_text() == "# by hand\nold-token\n"
    assert tell("revoke", "admin")[0] == 0
    assert file.read_text() == "# by hand\n"


def test_a_name_is_renewed_by_another_token(file: Path, tell: Tell) -> None:
    tell("create", "ci", "--role", "run")
    code, _, said = tell("create", "ci", "--role", "run")
    assert (code, "--another" in said) == (2, True)
    assert tell("create", "ci", "--role", "run", "--another")[0] == 0
    first, second = parse_lines(file.read_text().splitlines())[0]
    assert tell("revoke", first.id)[0] == 0
    assert parse_lines(file.read_text().splitlines())[0] == [second]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "ci"], "--role read|score|run|attach|admin"),
        (["create", "ci", "--role", "ruin"], 'Did you mean "run"?'),
        (["create", "c i", "--role", "run"], '"c i" cannot name a token'),
        (["create", "ci", "--role", "attach"], "no names that it may attach"),
        (["create", "ci", "--role", "run", "--attach", "x"], "lacks the role attach"),
        (
            ["create", "ci", "--role", "run", "--expires", "soon"],
            '"soon" is not a valid time; write 30d',
        ),
        (["create", "ci", "--role", "run", "--expires", "2020-01-01"], "is in the past"),
        (["revoke", "cj"], 'no token "cj". Did you mean "ci"?'),
    ],
)
def test_a_mistake_is_named_with_the_way_out(
    file: Path, tell: Tell, arguments: list[str], said: str
) -> None:
    file.write_text("ci run cert:x\n")
    code, printed, complaint = tell(*arguments)
    assert (code, printed) == (2, "")
    assert said in complaint
    assert file.read_text() == "ci run cert:x\n"


def test_the_file_has_to_be_named(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CBENCH_TOKEN_FILE", raising=False)
    code, _, said = tell("list")
    assert (code, "--token-file" in said) == (2, True)


def test_a_link_stays_a_link(file: Path, tell: Tell, tmp_path: Path) -> None:
    kept = tmp_path / "elsewhere"
    kept.write_text("")
    file.symlink_to(kept)
    tell("create", "ci", "--role", "read")
    assert file.is_symlink()
    assert kept.read_text().startswith("ci read sha256:")
