"""Every link of the pages, as a reader of the repository follows them, leads to a file and a heading that are there.

`make docs` checks the links of the manual's pages as a site; these tests check README too, and the pages as they stand.
Addresses elsewhere are checked by `make linkcheck`, which needs a network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "src").rglob("*.md"))]
ELSEWHERE = re.compile(r"[a-z]+:")
IN_HTML = re.compile(r'(?:href|src|srcset)="([^"]+)"')


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return what a link to a page may name after #: its headings, lower case and with hyphens, and ids in HTML."""
    found: list[str] = re.findall(r'id="([^"]+)"', page.read_text())
    tokens = MarkdownIt().enable("table").parse(page.read_text())
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            text = "".join(part.content for part in token.children or [] if part.type in ("text", "code_inline"))
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            repeats = sum(re.fullmatch(rf"{slug}(-\d+)?", other) is not None for other in found)
            found.append(f"{slug}-{repeats}" if repeats else slug)
    return frozenset(found)


def links(page: Path) -> Iterator[str]:
    """Yield the targets of all links and pictures."""
    for token in MarkdownIt().enable("table").parse(page.read_text()):
        for part in (token, *(token.children or [])):
            if part.type in ("html_block", "html_inline"):
                yield from IN_HTML.findall(part.content)
            for name in ("href", "src"):
                if name in part.attrs:
                    yield str(part.attrs[name])


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    wrong = []
    for link in links(page):
        if not ELSEWHERE.match(link):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert not broken(page)


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n[1](#a-b-c) [2](#d) [3](page.md) [4](none.md)\n\n<img src='x'><img src=\"y.svg\">\n")
    assert broken(page) == ["#d", "none.md", "y.svg"]
