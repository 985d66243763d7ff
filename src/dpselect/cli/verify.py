"""`dpselect verify`: exact privacy checks of every mechanism on small domains."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpselect.cli.output import Format, as_csv, as_json, as_text, note, progress_bar, publish
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
from dpselect.verify.broken.exact import ExactTwin

Result = TypeVar("Result", Check, SamplerCheck, ExactCheck, Rejection)

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
        str | None, typer.Option(help="Check only this mechanism, as oneshot or peeling.", metavar="NAME")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings and draws; about half a minute.")] = False,
    form: Annotated[Format, typer.Option("--format", help="How to show the checks.")] = Format.table,
) -> None:
    """Check every mechanism's guarantee on all neighbours of small domains.

    Then compare what the samplers draw with the laws they state, word by word and
    statistically, and the figures behind the guarantees with exact ones. Finally make
    sure that a corpus of broken mechanisms is rejected. Exit status 1 if anything fails.

    Example, which takes about fifteen seconds:

    [bold]dpselect verify --quick --mechanism peeling[/bold]
    """
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
        note(f"{failed} of {total} checks failed; do not publish anything made by a mechanism that did")
        raise typer.Exit(_FAILED)


class _Found(NamedTuple):
    """What all checks found."""

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
    table = _table("Privacy loss over all neighbours, exactly")
    table.add_column("mechanism", no_wrap=True)
    for heading in ("k", "scores", "a person\nmoves by", "neigh-\nbours", "worst\nloss", "claim", "head-\nroom"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for number, check in enumerate(checks):
        row = _privacy_row(check)
        table.add_row(
            _name(checks, number),
            str(row["k"]),
            row["scores"],
            row["sensitivity"],
            str(check.neighbours),
            f"{check.worst_loss:.3f}",
            _claim(check),
            # Zero and the rounding noise around it are shown alike.
            f"{check.headroom:.3f}".replace("-0.000", "0.000"),
            _coloured(row["verdict"]),
            end_section=_ends_section(checks, number),
        )
    return table


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
    table = _table("What is drawn against the stated law (χ²)")
    table.add_column("mechanism", no_wrap=True)
    for heading in ("k", "items"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("compared", no_wrap=True)
    for heading in ("draws", "cells", "p-value"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for number, check in enumerate(checks):
        row = _sampler_row(check)
        table.add_row(
            _name(checks, number),
            str(row["k"]),
            f"{float(check.items):g}",
            check.compared,
            str(check.draws),
            str(check.cells),
            f"{check.p_value:.3g}",
            _coloured(row["verdict"]),
            end_section=_ends_section(checks, number),
        )
    return table


def _exact_table(checks: list[ExactCheck]) -> Table:
    table = _table("Without sampling: what was found, and between which bounds theory puts it")
    table.add_column("mechanism", no_wrap=True)
    table.add_column("compared")
    for heading in ("cases", "found", "least", "most"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for number, check in enumerate(checks):
        table.add_row(
            "" if number and checks[number - 1].name == check.name else check.name,
            check.compared,
            str(len(check.values)),
            *(f"{value:.5g}" for value in (check.found, check.least, check.most)),
            _coloured(_verdict("exact", check.passed)),
            end_section=number + 1 < len(checks) and checks[number + 1].name != check.name,
        )
    return table


def _broken_table(found: list[Rejection]) -> Table:
    table = _table("Broken on purpose: each must be rejected, its sound twin accepted")
    table.add_column("mechanism", max_width=20)
    for heading in ("what is wrong with it", "rejected by"):
        table.add_column(heading)
    table.add_column("verdict", no_wrap=True)
    for rejection in found:
        check = rejection.of_broken
        if isinstance(check, Check):
            evidence = (
                f"privacy: delta {check.divergence:.2g} > {check.delta:g}"
                if check.delta
                else f"privacy: loss {check.worst_loss:.2f} > {check.epsilon:g}"
            )
        elif isinstance(check, ExactCheck):
            beyond = f"> {check.most:.5g}" if check.found > check.most else f"< {check.least:.5g}"
            evidence = f"exact: {check.found:.5g} {beyond}"
        else:
            evidence = f"sampler: p = {check.p_value:.1g}" if check.p_value else "sampler: p = 0"
        name = ", ".join(filter(None, [rejection.mechanism.name, rejection.mechanism.noise]))
        table.add_row(name, rejection.mechanism.flaw, evidence, _coloured(_verdict("broken", rejection.passed)))
    return table


def _summary(found: _Found) -> str:
    return (
        f"{sum(check.passed for check in found.privacy)} of {len(found.privacy)} guarantees hold, "
        f"{sum(check.passed for check in found.samplers)} of {len(found.samplers)} samplers agree with their law, "
        f"{sum(check.passed for check in found.exact)} of {len(found.exact)} exact comparisons agree, "
        f"{sum(rejection.passed for rejection in found.broken)} of {len(found.broken)} broken mechanisms were rejected."
    )


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=0,
    )


def _verdict(kind: str, passed: bool) -> str:
    good, bad = _VERDICTS[kind]
    return good if passed else bad


def _coloured(verdict: str) -> Text:
    return Text(verdict, "bold red" if verdict.isupper() else "green")


def _name(checks: Sequence[Check | SamplerCheck], number: int) -> str:
    """Return the variant that a check is about, in the first of its rows only."""
    if number and _variant(checks[number]) == _variant(checks[number - 1]):
        return ""
    mechanism, noise, parameters = _variant(checks[number])
    return "\n".join(filter(None, [", ".join(filter(None, [mechanism, noise])), parameters]))


def _ends_section(checks: Sequence[Check | SamplerCheck], number: int) -> bool:
    return number + 1 < len(checks) and _variant(checks[number]) != _variant(checks[number + 1])


def _variant(check: Check | SamplerCheck) -> tuple[str, str, str]:
    described = _described(check.mechanism)
    return described["mechanism"], described["noise"], described["parameters"]


def _claim(check: Check) -> str:
    return f"{check.epsilon:g}, {check.delta:g}" if check.delta else f"{check.epsilon:g}"


def _described(mechanism: Any) -> dict[str, Any]:
    return {
        "mechanism": mechanism.name,
        "noise": getattr(mechanism, "noise", ""),
        "parameters": _parameters(mechanism),
        "k": mechanism.k,
    }


def _parameters(mechanism: Any) -> str:
    """Return what a mechanism has beside k, epsilon, sensitivity and noise, as in "gamma 0.5, no margin"."""
    words = []
    inner = getattr(mechanism, "inner", None)
    if inner is not None:
        words.append(" ".join(filter(None, [f"around {inner.name}", getattr(inner, "noise", "")])))
    for field in fields(mechanism):
        value = getattr(mechanism, field.name)
        if field.name in _SHOWN_ELSEWHERE or value is None or (field.name == "delta" and not value):
            continue
        if isinstance(value, bool):
            words.append(field.name if value else f"no {field.name}")
        else:
            words.append(f"{field.name} {value:g}" if isinstance(value, float) else f"{field.name} {value}")
    return ", ".join(words)


def _privacy_row(check: Check) -> dict[str, Any]:
    moves = check.domain.sensitivity
    return {
        **_described(check.mechanism),
        "scores": str(check.domain),
        "sensitivity": f"{moves.low:g}..{moves.high:g}",
        "neighbours": check.neighbours,
        "worst_loss": _number(check.worst_loss),
        "epsilon": check.epsilon,
        "delta": check.delta,
        "headroom": _number(check.headroom),
        "verdict": _verdict("privacy", check.passed),
    }


def _sampler_row(check: SamplerCheck) -> dict[str, Any]:
    return {
        **_described(check.mechanism),
        "items": check.items,
        "compared": check.compared,
        "draws": check.draws,
        "p_value": check.p_value,
        "verdict": _verdict("samplers", check.passed),
    }


def _exact_row(check: ExactCheck) -> dict[str, Any]:
    return {
        "mechanism": check.name,
        "compared": check.compared,
        "cases": len(check.values),
        "found": _number(check.found),
        "least": check.least,
        "most": check.most,
        "verdict": _verdict("exact", check.passed),
    }


def _broken_row(rejection: Rejection) -> dict[str, Any]:
    check, twin = rejection.of_broken, rejection.mechanism
    if isinstance(check, Check):
        found = {"worst_loss": _number(check.worst_loss), "epsilon": check.epsilon}
    elif isinstance(check, ExactCheck):
        found = {"found": _number(check.found), "least": check.least, "most": check.most}
    else:
        found = {"p_value": check.p_value}
    described = {"mechanism": twin.name, "noise": twin.noise} if isinstance(twin, ExactTwin) else _described(twin)
    return {
        **described,
        "flaw": twin.flaw,
        "rejected_by": twin.rejected_by,
        **found,
        "verdict": _verdict("broken", rejection.passed),
    }


def _number(value: float) -> float | str:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else str(value)
