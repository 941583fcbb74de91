"""Mistakes in run files: each is told with its line, its key and what was meant."""

import pytest

from cbench_server.cli.run_files.reading import BadFile, parse_document

GOOD = '[[systems]]\nbuiltin = "identity"\n\n[[datasets]]\nname = "mini-qa"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[limts]\n", 'f:6: limts is not a key or a table of a run file. Did you mean "limits"?'),
        (
            "[run]\nseed = 1\nseeed = 2\n",
            'f:8: run.seeed is not a key of run. Did you mean "seed"?',
        ),
        ("[run]\nseed = 'a'\n", 'f:7: run.seed is "a", and should be a whole number.'),
        ("[limits]\ntimeout = '5 days'\n", 'f:7: limits.timeout is wrong: "5 days" is not a time'),
        ("[limits]\nmax_workers = 0\n", "f:7: limits.max_workers is 0, and should be at least 1."),
        ("[run]\ncontrols = 'match'\n", 'f:7: run.controls cannot be "match". Did you mean "match'),
        (
            "[[systems]]\nbuiltin = 'identity'\nmode = 'once'\n",
            "f:8: systems[1].mode is for `exec`, and this system has `builtin`.",
        ),
        (
            "[[systems]]\nexec = 'a'\nconcurrency = 2\nbatch = 3\n",
            "f:9: systems[1].batch is for `http`, and this system has `exec`.",
        ),
        (
            "[[systems]]\ntarget = 'h:1'\nreplicas = 2\n",
            "f:8: systems[1].replicas is for `launch`, and this system has `target`.",
        ),
        ("[run.labels]\na = 1\n", "f:7: run.labels.a is 1, and should be text in quotes."),
        ("[[systems]]\nname = 'x'\n", "f:6: systems[1] does not say where it is; give exactly one"),
        ("[[systems]]\nhttp = 'a'\nexec = 'b'\n", "f:6: systems[1] has exec and http; give exact"),
        ("[[systems]]\nproxy = 'http://u:p@h'\n", "f:7: systems[1].proxy has a password"),
        ("[reader]\napi_key = 'k'\n", "f:7: reader.api_key would be a secret"),
        (
            "[reader]\noptions = { a = 1, extra = [\n { token = 'k' } ] }\n",
            "f:8: reader.options.extra[0].token would be a secret",
        ),
        ("[judge]\nurl = ['a',\n  3]\n", "f:8: judge.url[1] is 3, and should be text."),
        ("reader = 3\n", "reader is a table; write it as [reader]."),
        ("[run]\nseed = \n", "f:7: not TOML: invalid value."),
        ("[options]\nday = 2020-01-01\n", "f:7: options.day is a date; write dates and times"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(BadFile) as caught:
        parse_document(text + GOOD if text.startswith("reader =") else GOOD + text, "f")
    assert told in str(caught.value)


def test_every_mistake_is_told_in_the_order_of_lines() -> None:
    with pytest.raises(BadFile) as caught:
        parse_document('[run]\nsed = 1\n[limits]\nwait = true\n[[datasets]]\nmap = ""\n', "f")
    assert [each.partition(" ")[0] for each in caught.value.problems] == [
        "f:2:",
        "f:4:",
        *["f:5:", "f:6:"],
    ]


def test_keys_of_another_kind_of_run_are_refused() -> None:
    with pytest.raises(BadFile, match=r"memory.budget is for `cbench memory run` only"):
        parse_document('kind = "process"\n[memory]\nbudget = 4\n')
