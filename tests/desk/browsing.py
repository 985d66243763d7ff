"""A real Chromium on a real desk: pages that must not complain, and a record of everything that is sent."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from desks import RunningDesk, served, served_app, write_data

from dpselect.desk import AloneDesk, create_app
from dpselect.desk.operations import Log

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
MARKS = [
    pytest.mark.slow,
    pytest.mark.xdist_group("desk browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium, or make test as root"),
]
PATIENCE = 60_000
"""Milliseconds to wait for an element: a busy machine may need some."""

VIOLATIONS = (
    "addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective}`))"
)
REFUSAL = "Failed to load resource: the server responded with a status of"
LOST = "Failed to load resource: net::ERR_FAILED"


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start the machine's Chromium."""
    from playwright.sync_api import sync_playwright

    # Chromium refuses to lock itself in when it runs as root, as it does in containers.
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as tools:
        running = tools.chromium.launch(executable_path=CHROMIUM, headless=True, args=[*OPTIONS, *alone])
        yield running
        running.close()


@contextlib.contextmanager
def opened(browser: Any, address: str, *, width: int = 1280, **settings: Any) -> Iterator[Any]:
    """Open a page in a fresh profile; it must not complain, break its policy, or call any other site."""
    context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True, **settings)
    context.set_default_timeout(PATIENCE)
    context.add_init_script(VIOLATIONS)
    page = context.new_page()
    complaints: list[str] = []
    site = address.split("#")[0].rstrip("/")
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("request", lambda sent: None if sent.url.startswith((site, "blob:")) else complaints.append(sent.url))
    try:
        page.goto(address)
        yield page
    finally:
        context.close()
    if wrong := [each for each in complaints if not each.startswith((REFUSAL, LOST))]:
        raise AssertionError(f"the page complains: {wrong}")


@dataclass
class Traffic:
    """Everything that a desk received and sent, as text."""

    received: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def wrap(self, app: Any) -> Any:
        """Return the application with its traffic recorded."""

        async def recorded(scope: Any, receive: Any, send: Any) -> None:
            line = [scope["method"], scope["raw_path"].decode(), scope["query_string"].decode()]
            headers = [part.decode("latin-1") for header in scope["headers"] for part in header]
            self.received.append(" ".join([*line, "headers", *headers]))

            async def listened() -> Any:
                message = await receive()
                self.received.append(message.get("body", b"").decode())
                return message

            async def told(message: Any) -> None:
                self.sent.append(repr(message.get("headers", "")) + message.get("body", b"").decode())
                await send(message)

            await app(scope, listened, told)

        return recorded

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join([*self.received, *self.sent])


@dataclass
class Desk(RunningDesk):
    """A desk with a record of its traffic."""

    traffic: Traffic = field(default_factory=Traffic)

    @property
    def address(self) -> str:
        """The address that the desk prints for its owner, or that an analyst is given with a token."""
        return f"{self.url}/#token={self.token}"


@contextlib.contextmanager
def alone_in(folder: Path, *, data: bool = True) -> Iterator[Desk]:
    """Serve a desk alone in a folder with the data of `desks`."""
    if data:
        write_data(folder)
    traffic, lines = Traffic(), Lines()
    desk = AloneDesk(folder, [folder / name for name in ("views.csv", "films.csv", "countries.csv")])
    with served_app(traffic.wrap(create_app(desk, log=Log(lines)))) as url:  # type: ignore[arg-type]
        yield Desk(url, desk.token, folder, log=lines, traffic=traffic)


@contextlib.contextmanager
def shared_by(config: Path) -> Iterator[Desk]:
    """Serve the shared desk of a configuration; its token is of "ann"."""
    traffic = Traffic()
    with served(config, wrapped=traffic.wrap) as running:
        yield Desk(running.url, running.token, running.folder, log=running.log, traffic=traffic)


class Lines(list[str]):
    """A stream that keeps what is written."""

    def write(self, text: str) -> None:
        """Keep it."""
        self.append(text)

    def flush(self) -> None:
        """Do nothing."""


def describe(page: Any, *, epsilon: str = "2", more: bool = False) -> None:
    """Fill step 1 as a curator of the test data does, and save."""
    page.select_option("#describe-person", "viewer")
    page.fill("#describe-epsilon", epsilon)
    page.select_option("#describe-item-0", "film")
    if more:
        page.click("#describe-more > summary")
        page.click("#add-group")
        page.select_option("#describe-group-1", "country")
        page.click("#add-filter")
        page.fill("#describe-filter-name-2", "adults")
        page.fill("#describe-filter-condition-2", "CAST(age AS INTEGER) >= 18")
    page.click("#describe-button")
    settled(page)


def settled(page: Any) -> None:
    """Wait until the estimate of the question as it stands is on the page."""
    page.wait_for_selector("#step-release:visible")
    page.wait_for_selector("#buys:not(:empty)")


def ask(page: Any, *, k: str = "3", epsilon: str = "0.25") -> None:
    """State a question, press the button, confirm."""
    page.fill("#k", k)
    page.fill("#epsilon", epsilon)
    page.click("#release-button")
    page.click("#confirm-release")


def answer(page: Any) -> list[str]:
    """Wait for the answer and return its items."""
    page.wait_for_selector("#answer:visible .answer-table")
    return [text.strip() for text in page.locator("#answer .items li").all_text_contents()]


def spent(desk: RunningDesk, place: int = 0) -> float:
    """Return what is spent, as the desk says."""
    found: float = desk.send("GET", "/v1/datasets")[2][place]["budget"]["spent"]
    return found
