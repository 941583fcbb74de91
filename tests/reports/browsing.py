"""A page in a real Chromium: opened from a file, and asked what a person would see."""

import json
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, Keys
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from cbench_server.reports.page import to_html
from cbench_server.reports.report import Report

# Chromium talks to its maker now and then, which has nothing to do with the page.
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_SECONDS = 60


def start_chromium(binary: str, driver: str, profile: Path) -> Chrome:
    """Start a browser that notes every request and every message of its console."""
    options = Options()
    options.binary_location = binary
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    return Chrome(options=options, service=Service(driver))


class Page:
    """One report, opened."""

    def __init__(self, chrome: Chrome, folder: Path) -> None:
        self.chrome = chrome
        self._file = folder / "report.html"

    def open(
        self, report: Report, *, width: int = 1280, dark: bool = False, fragment: str = ""
    ) -> "Page":
        """Write the report, open it, and wait for its rows."""
        document = "".join(to_html(report))
        return self.open_text(document, width=width, dark=dark, fragment=fragment)

    def open_text(
        self, document: str, *, width: int = 1280, dark: bool = False, fragment: str = ""
    ) -> "Page":
        """Do the same for a page that has been written."""
        self._file.write_text(document, "utf-8")
        self.look(width=width, dark=dark)
        # A fragment alone would not load anything anew.
        self.chrome.get("about:blank")
        self.requests()
        self.complaints()
        self.chrome.get(self._file.as_uri() + fragment)
        self.until(".list")
        return self

    def look(self, *, width: int, dark: bool) -> None:
        """Set what the page is shown on."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def all(self, css: str) -> list[WebElement]:
        """Find every element."""
        return self.chrome.find_elements(By.CSS_SELECTOR, css)

    def one(self, css: str) -> WebElement:
        """Find the first element."""
        return self.chrome.find_element(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        """Return what elements say, seen or not."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        found: list[str] = self.chrome.execute_script(script, css)
        return found

    def until(self, css: str) -> WebElement:
        """Wait for an element."""
        wait = WebDriverWait(self.chrome, PATIENCE_SECONDS, poll_frequency=0.05)
        found: WebElement = wait.until(lambda chrome: chrome.find_element(By.CSS_SELECTOR, css))
        return found

    def until_true(self, expression: str) -> None:
        """Wait for a JavaScript expression to hold."""
        wait = WebDriverWait(self.chrome, PATIENCE_SECONDS, poll_frequency=0.05)
        wait.until(lambda chrome: chrome.execute_script(f"return Boolean({expression})"))

    def run(self, script: str, *arguments: object) -> Any:
        """Run JavaScript."""
        return self.chrome.execute_script(script, *arguments)

    def search(self, text: str) -> None:
        """Type into the search box, instead of what was there."""
        box = self.one("input[type=search]")
        box.send_keys(Keys.CONTROL, "a")
        box.send_keys(text or Keys.DELETE)

    def open_row(self, number: int = 1) -> None:
        """Click on a row of the table and wait for what it opens."""
        self.all(".list .row")[number - 1].click()
        self.until("dialog .content")

    def requests(self) -> list[str]:
        """Return what was asked for since the last time, unless the page's policy stopped it."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.chrome.get_log("performance")
        ]
        stopped = {
            message["params"]["requestId"]
            for message in messages
            if message["params"].get("blockedReason") == "csp"
        }
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
            and message["params"]["requestId"] not in stopped
        ]

    def complaints(self) -> list[str]:
        """Return what the console holds since the last time."""
        return [str(entry["message"]) for entry in self.chrome.get_log("browser")]
