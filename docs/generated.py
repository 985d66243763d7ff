"""What the site adds to the pages as they stand: the order of the pages, the API reference and the command reference.

A page asks for it with an HTML comment, which a plain view of the page does not show:

* `<!-- contents -->`: the links of the lists below it are the pages of the site, in that order.
* `<!-- public names of MODULE -->`: the reference of every public name of the module.
* `<!-- commands -->`: the reference of every command.
* `<!-- notebook FILE -->`: the cells of a notebook beside the page, with the outputs that are stored in it.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from rich.text import Text
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from typer.main import get_command

LINK = re.compile(r"^ *[*-] +\[[^\]]+\]\(([^)#]+\.md)\)|^\| *\[[^\]]+\]\(([^)#]+\.md)\)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what is done to pages before they are parsed, and after."""
    app.connect("source-read", fill)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("doctree-resolved", keep_punctuation)
    app.connect("build-finished", write_entrance)
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    return {"parallel_read_safe": True}


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Put what the comments of a page ask for in their place."""
    text = source[0]
    text = re.sub(r"<!-- public names of (\S+) -->", lambda found: reference(found[1]), text)
    text = re.sub(r"<!-- commands -->", lambda _: "\n".join(command_reference()), text)
    beside = Path(app.env.doc2path(page)).parent
    text = re.sub(r"<!-- notebook (\S+) -->", lambda found: "\n".join(notebook_cells(beside / found[1])), text)
    before, comment, listed = text.partition("<!-- contents -->")
    source[0] = before + listed + (contents(listed) if comment else "")


def contents(listed: str) -> str:
    """Return hidden tables of contents: one for each heading, with the pages that the lists below it link to."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in listed.splitlines():
        if line.startswith("#"):
            sections.append((line.lstrip("# "), []))
        elif found := LINK.match(line):
            sections[-1][1].append((found[1] or found[2]).removesuffix(".md"))
    return "".join(
        "\n\n```{toctree}\n:hidden:\n" + (f":caption: {title}\n" if title else "") + "\n" + "\n".join(pages) + "\n```\n"
        for title, pages in sections
        if pages
    )


def reference(module_name: str) -> str:
    """Return directives for the public names of a module: a table of all of them, functions first, and then each."""
    module = importlib.import_module(module_name)
    names = [name for name in module.__all__ if home_of(module_name, name) == module_name]
    kinds = {name: directive_of(getattr(module, name)) for name in names}
    # A function with the name of a class makes a mechanism, and stands with the mechanisms.
    order = {"function": 0, "class": 1, "data": 2, "exception": 3}
    names.sort(key=lambda name: max(order[kinds[name]], order["class"] if name[0].isupper() else 0))
    elsewhere = [f":py:obj:`{home_of(module_name, name)}.{name}`" for name in module.__all__ if name not in names]
    rst = [f".. currentmodule:: {module_name}", "", ".. autosummary::", ""]
    rst += [f"   {name}" for name in names if kinds[name] != "data"]
    rst += ["", *([f"Also here: {', '.join(elsewhere)}."] if elsewhere else []), ""]
    for name in names:
        if kinds[name] == "data":
            rst += [f".. data:: {name}", "", *(f"   {with_links(line)}" for line in text_below(module_name, name)), ""]
        else:
            rst += [f".. auto{kinds[name]}:: {name}", *(["   :members:"] if kinds[name] == "class" else []), ""]
    return "```{eval-rst}\n" + "\n".join(rst) + "\n```"


def home_of(module_name: str, name: str) -> str:
    """Return the module whose page has a public name that several modules have."""
    thing = getattr(importlib.import_module(module_name), name)
    first = ["dpselect", "dpselect.ledger", module_name]
    return next(home for home in first if getattr(importlib.import_module(home), name, None) is thing)


def link_pages(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make links of the pages that a docstring names."""
    lines[:] = map(with_links, lines)


def with_links(line: str) -> str:
    """Return a line of a docstring with a link for each page that it names, such as docs/groups.md."""
    return re.sub(r"\bdocs/([a-z-]+)\.md\b(#[a-z-]+)?", r":doc:`/docs/\1`", line)


def text_below(module_name: str, name: str) -> list[str]:
    """Return the docstring that stands below a constant in the module that defines it."""
    for module in [name for name in sys.modules if name.startswith(module_name)]:
        documented = ModuleAnalyzer.for_module(module).find_attr_docs()
        if ("", name) in documented:
            return documented["", name]
    raise LookupError(f"{module_name}.{name} has no docstring below it")


def directive_of(thing: Any) -> str:
    """Return what autodoc calls a thing."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if inspect.isroutine(thing) else "data"


def command_reference() -> Iterator[str]:
    """Yield the reference of all commands, as Markdown."""
    from dpselect.cli import app
    from dpselect.cli.app import imported

    root: Any = get_command(app)
    for name in root.commands:
        yield from command_section(imported(name), f"dpselect {name}", 2)


def command_section(command: Any, path: str, level: int) -> Iterator[str]:
    """Yield the reference of a command and its sub-commands: what it does, how it is called, arguments and options."""
    context = click.Context(command, info_name=path)
    yield f"{'#' * level} `{path}`\n"
    yield re.sub(r"\[/?bold\]", "**", inspect.cleandoc(command.help or "")) + "\n"
    yield "```text\n" + " ".join([path, *command.collect_usage_pieces(context)]) + "\n```\n"
    records = [record for each in command.params if (record := each.get_help_record(context))]
    if records:
        yield "| argument or option | meaning |\n|---|---|"
        for names, meaning in records:
            yield f"| `{cell(names.removesuffix(' <str>'))}` | {cell(Text.from_markup(meaning).plain)} |"
        yield ""
    if command.epilog:
        title, _, lines = Text.from_markup(command.epilog).plain.partition("\n")
        yield f"{title}\n\n```sh\n{lines.strip()}\n```\n"
    for name, each in getattr(command, "commands", {}).items():
        yield from command_section(each, f"{path} {name}", level + 1)


def notebook_cells(path: Path) -> Iterator[str]:
    """Yield the cells of a notebook with their outputs, as Markdown; the page has a title of its own."""
    for part in json.loads(path.read_text())["cells"]:
        source = "".join(part["source"])
        if part["cell_type"] == "markdown":
            yield re.sub(r"^# .*\n+", "", source) + "\n"
            continue
        yield f"```python\n{source}\n```\n"
        for output in part["outputs"]:
            if html := "".join(output.get("data", {}).get("text/html", "")):
                yield f'```{{raw}} html\n<div class="output">{html}</div>\n```\n'
            else:
                yield f"```text\n{''.join(output.get('text') or output['data']['text/plain'])}\n```\n"


def cell(text: str) -> str:
    """Return text that may stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def keep_punctuation(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Give each formula the brackets and the punctuation that touch it, so that no line ends between them."""
    for formula in list(tree.findall(nodes.math)):
        place = formula.parent.index(formula)
        before, after = (formula.parent[at] if 0 <= at < len(formula.parent) else None for at in (place - 1, place + 1))
        if isinstance(before, nodes.Text) and (found := re.search(r"[(\"]+$", before)):
            formula["before"] = found[0]
            before.parent.replace(before, nodes.Text(before[: found.start()]))
        if isinstance(after, nodes.Text) and (found := re.match(r"[^\s\w]+", after)):
            formula["after"] = found[0]
            after.parent.replace(after, nodes.Text(after[found.end() :]))


def write_formula(writer: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show by themselves; a long one may break after a relation or a sum."""
    as_block = isinstance(node, nodes.math_block)
    # A prime has a superscript of its own, so that x'_i has both above each other.
    pieces = broken(node.astext().replace("'", r"^{\prime}"), RELATIONS, 30)
    pieces = [part for piece in pieces for part in broken(piece, SUMS, 60)]
    mathml = [tex2mathml(piece) for piece in pieces]
    mathml[0] = escape(node.get("before", "")) + mathml[0]
    mathml[-1] += escape(node.get("after", ""))
    written = " ".join(f'<span class="formula">{piece}</span>' for piece in mathml)
    written = re.sub(r"<mo>([{}⌊⌋⌈⌉])</mo>", r'<mo stretchy="false">\1</mo>', written)
    # Few fonts have the long stroke of a difference of sets.
    written = written.replace("⧵", "\\")
    space = '<mspace width="0.17em"></mspace>'
    written = re.sub(r"(<mi>[a-z]{2,}</mi>(\s*<mo>&ApplyFunction;</mo>)?)(?=\s*<m[ins])", rf"\1{space}", written)
    written = re.sub(r"(</m(?:i|n|sub|frac)>)(?=\s*<mi>[a-z]{2,}</mi>)", rf"\1{space}", written)
    if as_block:
        written = '<div class="math">' + written.replace("<math ", '<math displaystyle="true" ') + "</div>"
    writer.body.append(written)
    raise nodes.SkipNode


RELATIONS = {"=", "<", ">", r"\le", r"\ge", r"\in", r"\propto", r"\sim", ",", ";"}
SUMS = {"+", "-", r"\cdot", "/"}
OPENING, CLOSING = {*"([{", r"\lbrace", r"\lfloor", r"\lceil"}, {*")]}", r"\rbrace", r"\rfloor", r"\rceil"}


def broken(formula: str, after: set[str], short: int) -> list[str]:
    """Divide a formula that is not short after some of its operators, but not within brackets."""
    if len(formula) < short:
        return [formula]
    pieces, depth = [""], 0
    for token in re.findall(r"\\[A-Za-z]+|.", formula, re.DOTALL):
        pieces[-1] += token
        depth += (token in OPENING) - (token in CLOSING)
        if depth == 0 and token in after and pieces[-1].strip() != token:
            pieces.append("")
    return [piece for piece in pieces if piece.strip()]


ENTRANCE = """<!doctype html>
<meta charset="utf-8">
<title>dpselect</title>
<meta http-equiv="refresh" content="0; url={first}">
<a href="{first}">The manual</a>
"""


def write_entrance(app: Sphinx, error: Exception | None) -> None:
    """Write the page that a visitor of the folder comes to, which leads to the first page."""
    if error is None and app.builder.format == "html":
        first = app.builder.get_target_uri(app.config.root_doc)
        (app.outdir / "index.html").write_text(ENTRANCE.format(first=first))
