"""Draw demo.svg from what `dpselect demo` really prints: run `python docs/images/make.py`."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 92
PICTURE = Path(__file__).with_name("demo.svg")


class Terminal(io.StringIO):
    """Standard output that calls itself a terminal, so that the demo prints its colours."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """Say yes."""
        return True


def demo_output() -> str:
    """Return what the demo prints on a terminal."""
    os.environ["COLUMNS"] = str(COLUMNS)
    os.environ.setdefault("TERM", "xterm-256color")
    from dpselect.cli import app

    terminal = Terminal()
    with contextlib.redirect_stdout(terminal):
        app(["demo"], standalone_mode=False)
    return terminal.getvalue()


def picture(output: str) -> str:
    """Return the output as an SVG that asks no other site for fonts."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    console.print("[bold]$ dpselect demo[/bold]")
    console.print(Text.from_ansi(output.rstrip("\n")))
    svg = console.export_svg(title="dpselect demo", unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(picture(demo_output()), encoding="utf-8")
