"""`dpselect verify`: checks of every mechanism on small domains."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpselect.cli.audit import audit_command
from dpselect.cli.options import ResultFormat, examples
from dpselect.cli.output import Format, as_csv, as_json, as_text, failure, progress_bar, publish
from dpselect.errors import InvalidInput
from dpselect.verify import (
    Check,
    ExactCheck,
    Rejection,
    SamplerCheck,
    exact_checks,
    privacy_checks,
    rejections,
    sampler_checks,
)

Result = TypeVar("Result", Check, SamplerCheck, ExactCheck, Rejection)

EXAMPLES = examples("dpselect verify --quick --mechanism peeling", title="Example, which takes about fifteen seconds:")

_FAILED = 1
_SHOWN_ELSEWHERE = ("k", "epsilon", "sensitivity", "noise", "inner", "test_epsilon", "test_delta")
_VERDICTS = {
    "privacy": ("holds", "BROKEN"),
    "samplers": ("agrees", "DIFFERS"),
    "exact": ("agrees", "DIFFERS"),
    "broken": ("rejected", "MISSED"),
}


def verify_command(
    mechanism: Annotated[
        str | None, typer.Option(help="Check only this mechanism, such as oneshot or peeling.", metavar="NAME")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings and draws; about half a minute.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Instead, bound epsilon from below by thousands of releases.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="With --audit: make the answers reproducible.", metavar="N")] = None,
    form: ResultFormat = Format.table,
) -> None:
    """Check the guarantee of every mechanism on all neighbours of small domains.

    Then compare the draws of the samplers with their laws, and rates, thresholds
    and conversions with exact values. Finally make sure that deliberately broken
    mechanisms are rejected. The exit status is 1 if a check fails.

    With --audit nothing of this, but a test of the whole path from outside:
    neighbouring tables go in, thousands of releases come out, on every engine
    that can be had here. It takes about ten minutes, with --quick one.
    """
    if audit:
        audit_command(mechanism, quick=quick, seed=seed, form=form)
        return
    if seed is not None:
        raise InvalidInput("seed", seed, "must be left out without --audit: the other checks have fixed seeds")
    to_check = privacy_checks(mechanism, quick=quick)
    to_draw = sampler_checks(mechanism, quick=quick)
    to_compute = exact_checks(mechanism)
    to_reject = rejections()
    total, done = len(to_check) + len(to_draw) + len(to_compute) + len(to_reject), 0
    with progress_bar("Checking") as progress:

        def run(checks: Sequence[Callable[[], Result]]) -> list[Result]:
            nonlocal done
            results = []
            for check in checks:
                progress(done / total)
                results.append(check())
                done += 1
            return results

        found = _Found(run(to_check), run(to_draw), run(to_compute), run(to_reject))
    publish(_text(found, form), None)
    failed = sum(not result.passed for results in found for result in results)
    if failed:
        failure(f"{failed} of {total} checks failed; do not publish results of the mechanisms concerned")
        raise typer.Exit(_FAILED)


class _Found(NamedTuple):
    """The results of all checks."""

    privacy: list[Check]
    samplers: list[SamplerCheck]
    exact: list[ExactCheck]
    broken: list[Rejection]


def _text(found: _Found, form: Format) -> str:
    rows = {
        "privacy": [_privacy_row(check) for check in found.privacy],
        "samplers": [_sampler_row(check) for check in found.samplers],
        "exact": [_exact_row(check) for check in found.exact],
        "broken": [_broken_row(rejection) for rejection in found.broken],
    }
    if form is Format.json:
        passed = all(result.passed for results in found for result in results)
        return as_json({"passed": passed, **rows})
    if form is Format.csv:
        flat = [{"check": name, **row} for name, part in rows.items() for row in part]
        columns = list(dict.fromkeys(column for row in flat for column in row if column != "verdict"))
        return as_csv([{column: row.get(column, "") for column in [*columns, "verdict"]} for row in flat])
    return as_text(
        _privacy_table(found.privacy),
        *_failures(found.privacy),
        "",
        _sampler_table(found.samplers),
        "",
        _exact_table(found.exact),
        "",
        _broken_table(found.broken),
        "",
        Text(_summary(found)),
    )


def _privacy_table(checks: list[Check]) -> Table:
    rows = [
        [
            _variant(check),
            str(check.mechanism.k),
            str(check.domain).replace(" by", "\nby"),
            _moves(check),
            str(check.neighbours),
            f"{check.worst_loss:.3f}",
            f"{check.epsilon:g}, {check.delta:g}" if check.delta else f"{check.epsilon:g}",
            # Zero and the rounding errors around it are shown alike.
            f"{check.headroom:.3f}".replace("-0.000", "0.000"),
            _verdict("privacy", check),
        ]
        for check in checks
    ]
    headings = ["k>", "scores", "a person\nmoves by>", "neigh-\nbours>", "worst\nloss>", "claim>", "head-\nroom>"]
    return _table("Largest privacy loss over all neighbours", ["mechanism", *headings, "verdict>"], rows)


def _failures(checks: list[Check]) -> list[Text]:
    lines = []
    for check in checks:
        if not check.passed:
            witness = check.witness
            name = f"{check.mechanism!r}: " + "".join(f"{fault}; " for fault in check.faults)
            lines.append(
                Text(f"{name}worst at {witness.scores} and {witness.neighbour}, outcome {witness.outcome}", "red")
            )
    return lines


def _sampler_table(checks: list[SamplerCheck]) -> Table:
    rows = [
        [
            _variant(check),
            str(check.mechanism.k),
            f"{float(check.items):g}",
            check.compared,
            str(check.draws),
            str(check.cells),
            f"{check.p_value:.3g}",
            _verdict("samplers", check),
        ]
        for check in checks
    ]
    headings = ["mechanism", "k>", "items>", "compared", "draws>", "cells>", "p-value>", "verdict>"]
    return _table("Draws against the stated law (χ² test)", headings, rows)


def _exact_table(checks: list[ExactCheck]) -> Table:
    rows = [
        [
            check.name,
            check.compared,
            str(len(check.values)),
            *(f"{value:.5g}" for value in (check.found, check.least, check.most)),
            _verdict("exact", check),
        ]
        for check in checks
    ]
    headings = ["mechanism", "compared", "cases>", "found>", "least>", "most>", "verdict>"]
    return _table("Exact comparisons: the value found must lie between the bounds of theory", headings, rows)


def _broken_table(found: list[Rejection]) -> Table:
    rows = []
    for rejection in found:
        check, twin = rejection.of_broken, rejection.mechanism
        if isinstance(check, Check) and check.delta:
            evidence = f"privacy: delta {check.divergence:.2g} > {check.delta:g}"
        elif isinstance(check, Check):
            evidence = f"privacy: loss {check.worst_loss:.2f} > {check.epsilon:g}"
        elif isinstance(check, ExactCheck):
            beyond = f"> {check.most:.5g}" if check.found > check.most else f"< {check.least:.5g}"
            evidence = f"exact: {check.found:.5g} {beyond}"
        else:
            evidence = f"sampler: p = {check.p_value:.1g}" if check.p_value else "sampler: p = 0"
        name = ", ".join(filter(None, [twin.name, twin.noise]))
        rows.append([name, twin.flaw, evidence, _verdict("broken", rejection)])
    title = "Deliberately broken: each must be rejected, and its sound twin accepted"
    return _table(title, ["mechanism", "what is wrong with it", "rejected by", "verdict>"], rows, sections=False)


def _summary(found: _Found) -> str:
    said: list[tuple[Sequence[Check | SamplerCheck | ExactCheck | Rejection], str]] = [
        (found.privacy, "guarantees hold"),
        (found.samplers, "samplers agree with their law"),
        (found.exact, "exact comparisons agree"),
        (found.broken, "broken mechanisms were rejected"),
    ]
    return ", ".join(f"{sum(each.passed for each in part)} of {len(part)} {what}" for part, what in said) + "."


def _table(title: str, headings: list[str], rows: list[list[Any]], *, sections: bool = True) -> Table:
    """Return a table; columns whose heading ends in > hold numbers, the others wrap.

    With sections, rows of the same mechanism follow each other without a line and show its name once.
    """
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=0,
    )
    for heading in headings:
        number = heading.endswith(">")
        table.add_column(
            heading.removesuffix(">"), justify="right" if number else "left", no_wrap=number, overflow="fold"
        )
    names = [row[0] for row in rows]
    for place, (name, *cells) in enumerate(rows):
        again = sections and place > 0 and names[place - 1] == name
        table.add_row("" if again else name, *cells, end_section=sections and names[place + 1 : place + 2] != [name])
    return table


def _verdict(kind: str, result: Check | SamplerCheck | ExactCheck | Rejection) -> Text:
    return Text(_VERDICTS[kind][not result.passed], "green" if result.passed else "bold red")


def _variant(check: Check | SamplerCheck) -> str:
    described = _described(check.mechanism)
    name = ", ".join(filter(None, [described["mechanism"], described["noise"]]))
    return "\n".join(filter(None, [name, described["parameters"]]))


def _moves(check: Check) -> str:
    return f"{check.domain.sensitivity.low:g}..{check.domain.sensitivity.high:g}"


def _described(mechanism: Any) -> dict[str, Any]:
    return {
        "mechanism": mechanism.name,
        "noise": getattr(mechanism, "noise_name", getattr(mechanism, "noise", "")),
        "parameters": _parameters(mechanism),
        "k": mechanism.k,
    }


def _parameters(mechanism: Any) -> str:
    """Return the parameters beside k, epsilon, sensitivity and noise, as in "gamma 0.5, no margin"."""
    words = []
    inner = getattr(mechanism, "inner", None)
    if inner is not None:
        words.append(" ".join(filter(None, [f"around {inner.name}", getattr(inner, "noise", "")])))
    for field in fields(mechanism):
        value = getattr(mechanism, field.name)
        if (
            field.name in _SHOWN_ELSEWHERE
            or value is None
            or (field.name in ("delta", "ordered", "rounded") and not value)
        ):
            continue
        if isinstance(value, bool):
            words.append(field.name if value else f"no {field.name}")
        else:
            words.append(f"{field.name} {value:g}" if isinstance(value, float) else f"{field.name} {value}")
    return ", ".join(words)


def _privacy_row(check: Check) -> dict[str, Any]:
    return {
        **_described(check.mechanism),
        "scores": str(check.domain),
        "sensitivity": _moves(check),
        "neighbours": check.neighbours,
        "worst_loss": _number(check.worst_loss),
        "epsilon": check.epsilon,
        "delta": check.delta,
        "headroom": _number(check.headroom),
        "verdict": str(_verdict("privacy", check)),
    }


def _sampler_row(check: SamplerCheck) -> dict[str, Any]:
    return {
        **_described(check.mechanism),
        "items": check.items,
        "compared": check.compared,
        "draws": check.draws,
        "p_value": check.p_value,
        "verdict": str(_verdict("samplers", check)),
    }


def _exact_row(check: ExactCheck) -> dict[str, Any]:
    return {
        "mechanism": check.name,
        "compared": check.compared,
        "cases": len(check.values),
        "found": _number(check.found),
        "least": check.least,
        "most": check.most,
        "verdict": str(_verdict("exact", check)),
    }


def _broken_row(rejection: Rejection) -> dict[str, Any]:
    check, twin = rejection.of_broken, rejection.mechanism
    if isinstance(check, Check):
        found = {"worst_loss": _number(check.worst_loss), "epsilon": check.epsilon}
    elif isinstance(check, ExactCheck):
        found = {"found": _number(check.found), "least": check.least, "most": check.most}
    else:
        found = {"p_value": check.p_value}
    return {
        "mechanism": twin.name,
        "noise": twin.noise,
        **({} if twin.k is None else {"parameters": twin.parameters, "k": twin.k}),
        "flaw": twin.flaw,
        "rejected_by": twin.rejected_by,
        **found,
        "verdict": str(_verdict("broken", rejection)),
    }


def _number(value: float) -> float | str:
    """Return a number that JSON can hold."""
    return value if math.isfinite(value) else str(value)
