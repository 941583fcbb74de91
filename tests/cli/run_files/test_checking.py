"""All that is wrong with a run file is told at once, with its line, and nothing is started."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from cbench_server.cli.commands import memory, run
from cbench_server.cli.exits import UsageError
from cbench_server.cli.run_files.checking import check_file

GOOD = '[[systems]]\nbuiltin = "identity"\n[[datasets]]\nname = "mini-qa"\n'


def told(text: str, folder: Path) -> list[str]:
    """Return what a check says of a file, each line without the name of the file."""
    path = folder / "f"
    path.write_text(text, "utf-8")

    def make(document: dict[str, Any]) -> argparse.ArgumentParser:
        made = argparse.ArgumentParser()
        (memory if document.get("kind") == "memory" else run).add_flags(made)
        return made

    try:
        check_file(str(path), make)
    except UsageError as error:
        return str(error).replace(str(path), "f").splitlines()
    return []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[gate]\npolicies = ["f1 at leest 3"]\n', "f:6: gate.policies[0] is wrong: cannot read"),
        ("[memory]\nbudget = 3\n", "f:6: memory.budget is for `cbench memory run` only"),
        ('[limits]\nmax_failures = "120%"\n', "f:6: limits.max_failures is wrong:"),
        ('[scoring]\ntokenizer = "gpt9"\n', "f:6: scoring.tokenizer is wrong: no tokenizer"),
        ('[output]\nformat = "pdf"\n', 'f:6: output.format is wrong: no reporter "pdf"'),
        ('[daemon]\nserver = "x"\n', 'f:6: daemon.server is wrong: "x" is not a valid target'),
        ('[reader]\nurl = "nonsense"\n', 'f:6: reader.url is wrong: "nonsense" is not a base URL'),
        ('[judge]\nurl = "http://h"\npack = "no"\n', "f:5: judge is wrong: no judge pack"),
        ('[[systems]]\nlaunch = "a \'b"\n', "f:6: systems[1].launch is wrong: cannot launch"),
        ('[[systems]]\nexec = "a \'b"\n', "f:6: systems[1].exec is wrong: cannot launch"),
        ('[[systems]]\nhttp = "ftp://x"\n', "f:6: systems[1].http is wrong:"),
        ('[[systems]]\ntarget = "nowhere"\n', "f:6: systems[1].target is wrong:"),
        ('[[systems]]\nbuiltin = "identity"\n', 'f:5: systems[1] is named "identity" as another'),
        ('[reader]\nmodel = "m"\n', "f: reader.model needs reader.url"),
        (
            '[judge]\nurl = ["http://a", "http://b"]\nmodel = ["x", "y", "z"]\n',
            "f: there are 3 judge.model for 2 judge.url",
        ),
    ],
)
def test_a_check_names_the_key_and_its_line(text: str, line: str, tmp_path: Path) -> None:
    (found,) = told(GOOD + text, tmp_path)
    assert found.startswith(line)


def test_mistakes_of_every_sort_are_told_together(tmp_path: Path) -> None:
    text = (
        '[[systems]]\nbuiltin = "truncate-hed"\n[[systems]]\nbuiltin = 3\n'
        '[[datasets]]\nfile = "none.jsonl"\nmax_examples = 0\n'
        '[[evaluators]]\noptions = { a = 1 }\n[[metrics]]\nname = "mean-scor"\n'
        '[gate]\npolicies = ["?"]\n'
    )
    places = [line.split(" ")[0] + line.split(" ")[1] for line in told(text, tmp_path)]
    assert places == [
        "f:2:systems[0].builtin",
        "f:4:systems[1].builtin",
        "f:6:datasets[0].file",
        "f:7:datasets[0].max_examples",
        "f:8:evaluators[0]",
        "f:11:metrics[0].name",
        "f:13:gate.policies[0]",
    ]


def test_an_empty_file_is_told_what_it_lacks(tmp_path: Path) -> None:
    assert told("", tmp_path) == [
        'f: names no systems; add one as [[systems]] and builtin = "NAME".'
    ]


def test_a_file_of_a_windows_editor_is_read(tmp_path: Path) -> None:
    assert told("\ufeff" + GOOD.replace("\n", "\r\n"), tmp_path) == []
