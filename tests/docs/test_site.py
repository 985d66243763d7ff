"""The manual as a site: it builds without a warning, is complete, and loads nothing from elsewhere."""

from __future__ import annotations

import importlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from dpselect.cli.app import COMMANDS

ROOT = Path(__file__).parent.parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MODULES = ["", "privacy", "ledger", "forecast", "ranking", "multiselect", "verify", "desk", "service"]
PHONE = {"width": 390, "height": 844}

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make docs` builds; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-c", "docs", "-b", "html", "-q", "-W", "--keep-going"]
    finished = subprocess.run([*command, ".", str(folder)], cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    shutil.rmtree(folder / ".doctrees")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium, or make test as root")
    # Chromium refuses to lock itself in when it runs as root, as it does in containers.
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as tools:
        running = tools.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--disable-gpu", *alone])
        yield running
        running.close()


def test_every_page_every_public_name_and_every_command_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    sources = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src" / "dpselect").rglob("*.md")]
    assert {path.relative_to(ROOT).with_suffix("") for path in sources} <= pages
    for name in filter(None, MODULES):
        module = importlib.import_module(f"dpselect.{name}")
        page = (site / "docs" / "api" / f"{name}.html").read_text()
        missing = [public for public in module.__all__ if f".{public}" not in page]
        assert not missing, name
        assert not re.search(r"docs/[a-z]+\.md", page), "a page that a docstring names is a link"
    commands = (site / "docs" / "commands.html").read_text()
    assert all(f'id="dpselect-{name}"' in commands for name in COMMANDS)


def test_pages_fit_a_phone_and_ask_for_nothing_outside(site: Path, browser: Any) -> None:
    context = browser.new_context(viewport=PHONE, offline=True)
    tab = context.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    for path in sorted({*site.rglob("*.html")} - {site / "index.html"}):  # which leads to another page at once
        tab.goto(path.as_uri())
        beyond = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert beyond <= 0, path.name
    context.close()
    assert not [url for url in asked if not url.startswith((site.as_uri(), "data:"))]
    assert not wrong


@pytest.mark.parametrize(
    ("words", "found", "first"),
    [
        ("permute", "mechanisms", False),
        ("Guarantee", "api/dpselect", False),
        ("budget", "docs/ledger", True),
        ("unknown domain", "docs/unknown", True),
        ("PostgreSQL", "docs/engines", True),
    ],
)
def test_the_search_finds_pages_and_names(site: Path, browser: Any, words: str, found: str, first: bool) -> None:
    context = browser.new_context(offline=True)
    tab = context.new_page()
    tab.goto(f"{(site / 'search.html').as_uri()}?q={words}")
    tab.wait_for_selector(f"#search-results li{':first-child' if first else ''} a[href*='{found}']")
    context.close()


@pytest.mark.parametrize(
    ("system", "chosen"), [("light", "auto"), ("dark", "auto"), ("light", "dark"), ("dark", "light")]
)
def test_the_colours_of_pages_and_pictures_follow_the_reader(
    site: Path, browser: Any, system: str, chosen: str
) -> None:
    context = browser.new_context(color_scheme=system, offline=True)
    context.add_init_script(f"localStorage.setItem('theme', '{chosen}')")
    tab = context.new_page()
    wanted_light = system == "light" if chosen == "auto" else chosen == "light"
    for page in ("ranking", "desk"):  # a drawing, and a screenshot
        tab.goto((site / "docs" / f"{page}.html").as_uri())
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (min(map(int, re.findall(r"\d+", ground)[:3])) > 200) == wanted_light
        card = imread(io.BytesIO(tab.locator(".content img").first.screenshot()))[10, 60, :3]
        assert (card > 0.8).all() if wanted_light else (card < 0.2).all(), page
    context.close()


def test_the_notebook_is_shown_with_its_outputs(site: Path) -> None:
    page = (site / "docs" / "notebook.html").read_text()
    assert "<strong>Private top 3</strong>" in page
    assert "the budget of 'views' does not allow this release" in page.replace("&#39;", "'")


def test_the_help_is_rendered_without_its_markup(site: Path) -> None:
    assert "[bold]" not in (site / "docs" / "commands.html").read_text()
