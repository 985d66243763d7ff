"""Make desk.png, a released chart on the page of the desk: run `python docs/images/desk.py`; it needs Chromium."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PICTURE = Path(__file__).with_name("desk.png")


def release(page: Page) -> None:
    """Describe the demo's data, ask for the numbers too, and release, as a newcomer does."""
    page.select_option("#describe-person", "viewer")
    page.select_option("#describe-item-0", "film")
    page.click("#describe-button")
    page.check("#with-values")
    page.click("#release-button")
    page.click("#confirm-release")
    page.wait_for_selector("#answer .chart")
    page.wait_for_selector("#history details")


def main() -> None:
    """Start the desk in an empty folder, release, and take the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        command = [sys.executable, "-m", "dpselect", "desk", "--port", "0"]
        desk = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        try:
            lines = iter(desk.stderr or ())
            address = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
            options = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=options)
            page = browser.new_page(viewport={"width": 1120, "height": 1030}, color_scheme="light")
            page.goto(address)
            release(page)
            page.evaluate("document.activeElement.blur()")
            page.evaluate("document.getElementById('step-release').scrollIntoView({ block: 'start' })")
            page.wait_for_selector("#buys:not(:empty)")
            page.screenshot(path=PICTURE)
            browser.close()
        finally:
            desk.terminate()
            desk.wait()


if __name__ == "__main__":
    main()
