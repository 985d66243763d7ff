"""What forecasts and simulations are shown with: tables and pages in HTML that need no network."""

from __future__ import annotations

from html import escape

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:52rem;padding:0 1rem;color:#111}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "th,td{padding:.25rem .8rem;text-align:left;border-bottom:1px solid #ccc}"
    "td+td{font-variant-numeric:tabular-nums}.note{color:#555}svg{max-width:100%;height:auto}"
)


def table_html(title: str, headings: list[str], rows: list[list[str]], *, note: str = "") -> str:
    """Return a table with a title, and a note below it."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    below = f'<p class="note">{escape(note[:1].upper() + note[1:])}.</p>' if note else ""
    caption = f"<p><strong>{escape(title)}</strong></p>"
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def page_html(title: str, svg: str, table: str) -> str:
    """Return a whole page with a drawing and a table below it."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{svg[svg.index('<svg') :]}\n{table}\n"
        "</body></html>\n"
    )
