"""Whatever a system, a model or a dataset says stays text."""

import re
from dataclasses import replace

import pytest

from cbench_server.reports.page import to_html
from cbench_server.reports.report import Report
from cbench_server.results import EvalRow, Failure
from tests.reports.browsing import Page
from tests.reports.stories import Example, story

ATTACKS = (
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "<!--<script>",
    "]]><svg onload=window.pwned=1>",
    "javascript:window.pwned=1",
    '"><iframe src="https://example.com/"></iframe>',
    "<style>@import url(https://example.com/x.css)</style>",
    "{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1}",
    "\u2028\u202e\x00\x1b[31m",
)
ATTACK = "\n".join(ATTACKS)


def hostile() -> Report:
    """Put the attacks everywhere that a name or a text can stand."""

    def change(row: EvalRow) -> None:
        row.example_id = f"{row.example_id}{ATTACK}"
        row.dataset = f"{row.dataset}{ATTACK}"
        row.scores = {**row.scores, ATTACK: 0.5}
        row.details = {ATTACK: {ATTACK: ATTACK, "list": [ATTACK]}}
        row.metadata = {ATTACK: ATTACK, "__proto__": ATTACK, "constructor": ATTACK}
        row.group = ATTACK
        if row.failure:
            row.failure = Failure(ATTACK, ATTACK, ATTACK, stack_trace=ATTACK)
        row.evaluator_failures = {ATTACK: Failure("evaluator", ATTACK, ATTACK)}

    def answer(row: EvalRow, original: Example) -> Example:
        return {"context": ATTACK, "response": ATTACK, ATTACK: ATTACK, "__proto__": {"x": ATTACK}}

    names = (f"one{ATTACK}", f"two{ATTACK}")
    report = story(14, names, context=lambda number: ATTACK * 2, answer=answer, change=change)
    spec = replace(report.run.spec, labels={ATTACK: ATTACK})
    run = replace(report.run, run_id=ATTACK, spec=spec, parent_run_id=ATTACK)
    return replace(report, run=run)


def test_nothing_that_was_said_becomes_markup() -> None:
    document = "".join(to_html(hostile()))
    for opening in re.findall(
        r"<(?:script|img|iframe|svg|style|!--)[^>]*>", _without_ours(document)
    ):
        assert re.fullmatch(r'<script type="application/(gzip|json)" id="[a-z0-9-]+">', opening)


def _without_ours(document: str) -> str:
    before, _, rest = document.partition("<style>")
    _, _, rest = rest.partition("</style>")
    middle, _, _ = rest.rpartition("<script>")
    return before + middle


def test_hostile_text_is_shown_as_it_is_and_does_nothing(page: Page) -> None:
    page.open(hostile())
    page.one(".pairs summary").click()
    for row in (1, 3):
        page.open_row(row)
        assert ATTACKS[0] in page.one("dialog").get_attribute("textContent")
        page.one("dialog [aria-label=Close]").click()
        page.until_true("!document.querySelector('dialog')")
    assert page.run("return typeof window.pwned") == "undefined"
    assert page.all("img, iframe, object, embed, a[href], link, form") == []
    assert [url for url in page.requests() if not url.startswith("file:")] == []
    assert page.complaints() == []


def test_the_policy_stops_a_script_that_got_in_all_the_same(page: Page) -> None:
    page.open(story(2))
    page.run(
        "const script = document.createElement('script');"
        "script.textContent = 'window.pwned = 1'; document.body.append(script);"
        "document.body.insertAdjacentHTML('beforeend',"
        ' \'<img src="https://example.com/x.png" onerror="window.pwned = 1">\')'
    )
    page.until_true("performance.now() > 0 && document.querySelector('img').complete")
    assert page.run("return typeof window.pwned") == "undefined"
    refusals = page.complaints()
    assert any("script-src" in text for text in refusals)
    assert any("default-src" in text or "img-src" in text for text in refusals)
    assert [url for url in page.requests() if url.startswith("http")] == []


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_names_do_not_break_the_layout(page: Page, width: int) -> None:
    page.open(hostile(), width=width)
    visible = page.run("return document.documentElement.clientWidth")
    assert page.run("return document.documentElement.scrollWidth") == visible


def test_half_a_character_does_not_stop_a_report(page: Page) -> None:
    def answer(row: EvalRow, original: Example) -> Example:
        return {"response": "half \ud83d of a face"}

    report = story(2, answer=answer)
    page.open(report)
    page.open_row()
    assert "half ? of a face" in page.one("dialog").text
