"""The report in a real Chromium: it opens, sorts, filters, drills down, and asks nobody."""

from dataclasses import replace

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.support.select import Select

from tests.reports.browsing import Page
from tests.reports.stories import SYSTEMS, story

_SECTIONS = [
    "Summary",
    "Which is better",
    "Quality against cost",
    "Every score",
    "By dataset",
    "By group",
    "Scores",
    "Time",
    "Failures",
    "Rows",
]


def test_it_opens_with_every_section_and_without_any_request(page: Page) -> None:
    page.open(story())
    assert page.texts("main > section > h2") == _SECTIONS
    page.open_row()
    page.until("#front svg circle")
    page.until("#distributions svg rect")
    page.until("#times svg path")
    assert [url for url in page.requests() if not url.startswith("file:")] == []
    assert page.complaints() == []


def test_the_summary_shows_intervals_and_sorts(page: Page) -> None:
    page.open(story())
    assert page.texts("#summary tbody .name") == list(SYSTEMS)
    assert " to " in page.texts("#summary tbody .interval")[0]
    titles = page.texts("#summary thead th")
    place = titles.index("Passed") + 1
    passed = next(b for b in page.all("#summary thead button") if b.text == "Passed")
    passed.click()
    figures = page.texts(f"#summary td:nth-child({place}) .figure")
    shares = [float(figure.split("%")[0]) for figure in figures]
    assert shares == sorted(shares, reverse=True)
    passed.click()
    assert page.texts(f"#summary td:nth-child({place}) .figure")[0] == f"{min(shares):.1f}%"


def test_a_comparison_is_a_sentence_that_unfolds_into_examples(page: Page) -> None:
    page.open(story())
    sentences = page.texts(".pairs summary span")
    assert any(text.startswith("keyword-windows is better than identity") for text in sentences)
    page.one(".pairs summary").click()
    flip = page.until(".flips button")
    example = flip.text.split()[0]
    flip.click()
    page.until("dialog .content")
    assert page.one("#example-title").text == example


def test_rows_are_searched_filtered_and_sorted(page: Page) -> None:
    page.open(story())
    assert page.one(".count").text == "120 rows"
    page.search("box example-00007")
    page.until_true("document.querySelector('.count').textContent === '3 of 120 rows'")
    assert set(page.texts(".list .example span")) == {"example-00007"}
    page.search("")
    page.until_true("document.querySelector('.count').textContent === '120 rows'")
    page.one(".titles .score button").click()
    scores = [float(text) for text in page.texts(".list .verdict")]
    assert scores == sorted(scores, reverse=True)
    for label, value in (("System", "identity"), ("Dataset", "mini-qa"), ("Outcome", "missed")):
        Select(page.one(f"select[aria-label={label}]")).select_by_visible_text(value)
    assert set(page.texts(".list .row .name")) == {"identity"}
    assert set(page.texts(".list .row .system small")) == {"mini-qa"}
    assert all(float(text) < 0.7 for text in page.texts(".list .verdict"))


def test_a_reason_of_failure_leads_to_its_rows(page: Page) -> None:
    page.open(story())
    reason = page.one("#failures .link")
    name = reason.text
    reason.click()
    page.until(".chip")
    assert set(page.texts(".list .failure")) == {name}
    page.open_row()
    assert "within 60s." in page.one("dialog .problem").text


def test_an_example_shows_all_there_is_about_it(page: Page) -> None:
    page.open(story())
    page.open_row()
    shown = page.one("dialog").text
    for words in (
        "Where was box number 0 kept?",
        "It was kept in the harbour.",  # the response
        "the ledger",  # the reference
        "llm-judge",
        "On 0: it names the place.",
        "queue",
        "scoring",
        "context tokens",
    ):
        assert words in shown
    assert "primary" in page.one("dialog .scores li").get_attribute("class")
    assert page.one("dialog .diff ins").text == "(shortened)"
    page.all("dialog .views button")[1].click()
    assert page.texts("dialog mark")[0] in ("ledger", "the ledger")
    page.all("dialog .siblings button")[2].click()
    page.until_true("document.querySelector('dialog .aside')")
    assert "left as it was" in page.one("dialog .aside").text


def test_it_is_usable_by_keyboard_alone(page: Page) -> None:
    page.open(story())
    window = page.one(".window")
    window.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER)
    page.until("dialog .content")
    assert page.run("return location.hash") == "#row-40"  # the second system on the first example
    page.one("#example-title").send_keys("j")
    page.until_true("location.hash === '#row-80'")
    page.one("#example-title").send_keys(Keys.ESCAPE)
    page.until_true("!document.querySelector('dialog')")
    assert page.run("return document.activeElement.className") == "window"
    window.send_keys(Keys.END)
    page.until_true("document.querySelector('.row.active[aria-rowindex=\"121\"]')")


def test_a_link_to_a_row_opens_it(page: Page) -> None:
    page.open(story(), fragment="#row-41")
    page.until("dialog .content")
    assert page.one("#example-title").text == "example-00001"


def test_dark_and_light_follow_the_reader(page: Page) -> None:
    report = story(4)
    background = "return getComputedStyle(document.body).backgroundColor"
    light = page.open(report).run(background)
    dark = page.open(report, dark=True).run(background)
    assert _brightness(light) > 200 > 60 > _brightness(dark)
    page.one(".theme").click()
    page.until_true(f"getComputedStyle(document.body).backgroundColor === '{light}'")


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_the_contrast_that_reading_needs(page: Page, dark: bool) -> None:
    page.open(story(4), dark=dark)
    paper = _luminance(
        page.run("return getComputedStyle(document.getElementById('rows')).backgroundColor")
    )
    for name in ("text", "muted", "accent", "good", "bad", *(f"s{n}" for n in range(8))):
        page.run(f"document.querySelector('footer').style.color = 'var(--{name})'")
        ink = _luminance(
            page.run("return getComputedStyle(document.querySelector('footer')).color")
        )
        ratio = (max(paper, ink) + 0.05) / (min(paper, ink) + 0.05)
        assert ratio >= 4.5, f"{name}: {ratio:.2f}"


def test_a_phone_needs_no_sideways_scrolling(page: Page) -> None:
    names = ("a-system-with-a-name-that-goes-on-and-on-and-on-without-any-end", "b")
    page.open(story(12, names), width=390)
    assert page.run("return document.documentElement.scrollWidth") == 390
    page.open_row()
    assert page.run("return document.querySelector('dialog').scrollWidth") <= 390


def test_twenty_thousand_rows_stay_usable(page: Page) -> None:
    # Comparing so many is another test's business.
    page.open(replace(story(6700), compare=lambda: None))
    assert page.one(".count").text == "19,998 rows"
    assert "holds 19,998 of 20,100 rows, the first of each system" in page.one("#rows").text
    assert len(page.all(".list .row")) < 60
    page.search("example-06665")
    page.until_true("document.querySelector('.count').textContent === '3 of 19,998 rows'")
    page.open_row()
    assert "box number 6665" in page.one("dialog .asked").text
    page.one("dialog [aria-label=Close]").click()
    page.search("")
    page.until_true("document.querySelector('.count').textContent === '19,998 rows'")
    page.one(".titles .latency button").click()
    page.one(".window").send_keys(Keys.END)
    page.until_true("document.querySelector('.row.active[aria-rowindex=\"19999\"]')")
    assert len(page.all(".list .row")) < 60


def test_long_texts_are_cut_and_say_so(page: Page) -> None:
    page.open(story(2, context=lambda number: "word " * 5000))
    assert "long texts are cut after 20,000 characters" in page.one("#rows").text
    page.open_row()
    assert page.one("dialog .cut").text == "5,000 more characters are not in this page."


def _rgb(colour: str) -> list[float]:
    return [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]


def _brightness(colour: str) -> float:
    return sum(_rgb(colour)) / 3


def _luminance(colour: str) -> float:
    """Weigh a colour as WCAG 2 does."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in _rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
