"""The outcome of a gate as JUnit XML, which CI servers show as tests."""

from collections.abc import Sequence
from xml.etree import ElementTree

from cbench_server.comparison.gating import Check
from cbench_server.reports.grid import printable


def to_junit(checks: Sequence[Check], name: str) -> str:
    """Render one test case a policy."""
    failed = sum(not each.passed for each in checks)
    suite = ElementTree.Element(
        "testsuite",
        name="cbench gate",
        tests=str(len(checks)),
        failures=str(failed),
        errors="0",
        skipped="0",
    )
    for each in checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=printable(name), name=printable(each.policy.text)
        )
        text = printable(each.explanation)
        if each.passed:
            ElementTree.SubElement(case, "system-out").text = text
        else:
            broken = ElementTree.SubElement(case, "failure", message=each.verdict, type="policy")
            broken.text = text
    ElementTree.indent(suite)
    body = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'
