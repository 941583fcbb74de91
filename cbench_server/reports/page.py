"""Page of a run: one HTML file that needs no network, no server and no Node.

What systems and models said is included as data, escaped or packed, in script
elements that no browser executes, and is shown as text nodes. The policy in the
page's head admits our own script, by its digest, and nothing from anywhere.
"""

import base64
import hashlib
import html
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from cbench_server.reports.heat_map import HeatMap
from cbench_server.reports.judges import headline_mark
from cbench_server.reports.page_head import page_head
from cbench_server.reports.page_rows import PageRows
from cbench_server.reports.report import Report
from cbench_server.reports.table import to_table
from cbench_server.reports.tally import tally
from cbench_server.results import strict_json


def to_html(report: Report) -> Iterator[str]:
    """Write the page piece by piece; its size is bounded, however long the run."""
    script, style = _asset("report.js"), _asset("report.css")
    heat = HeatMap()
    found = tally(heat.noting(report.rows()))
    yield _opening(_title(report), script, style, to_table(report.run, found.facts))
    rows = PageRows(report)
    yield from rows.elements()
    head = page_head(report.run, found, report.compare())
    head["heat"] = heat.cells(headline_mark(report.run))
    head["shown"] = {
        "rows": rows.shown,
        "text_limit": rows.text_limit,
        "cut_texts": rows.cut_texts,
    }
    yield f'<script type="application/json" id="report">{_json(head)}</script>\n'
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def _title(report: Report) -> str:
    return f"{', '.join(report.run.ranked)}: {report.run.run_id or 'evaluation'}"


def _opening(title: str, script: str, style: str, table: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Charts set styles on their elements, which a style cannot turn into a request:
    # no image, font or connection is admitted.
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<noscript><pre>{html.escape(table)}</pre></noscript>
"""


def _json(document: Any) -> str:
    """Write JSON in which nothing can end a script element or open a comment in it."""
    return strict_json(document, indent=None).replace("<", "\\u003c")


@cache
def _asset(name: str) -> str:
    return files("cbench_server.reports").joinpath("assets", name).read_text("utf-8")
