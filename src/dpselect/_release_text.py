"""Releases as people read them: the answer as a table, and what was done and promised."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dpselect._text import facts_table, item_text
from dpselect.mechanisms import Canonical, Discovery, Mechanism
from dpselect.periods import Period
from dpselect.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from dpselect._discover import DomainRelease
    from dpselect.release import Release


def release_tables(release: Release) -> list[RenderableType]:
    """Return the answer, or that of each group, and the facts about it."""
    title = f"Private {'lowest' if release.lowest else 'top'} {release.k}"
    if release.groups is None:
        return [Text(title, style="bold"), _answer_table(release), facts(release)]
    parts: list[RenderableType] = [Text(f"{title} of each of {len(release.groups):,} groups", style="bold")]
    for group, part in release.groups.items():
        stopped = f" (stopped after {len(part.items)} of {part.k})" if part.stopped else ""
        parts += ["", Text.assemble("Group ", (item_text(group).plain, "bold"), stopped), _answer_table(part)]
    return [*parts, "", facts(release)]


def release_columns(release: Release) -> list[str]:
    """Return the columns of an answer, which may have no items."""
    return [
        *(["group"] if release.groups is not None else []),
        *(["rank"] if release.ordered else []),
        "item",
        *(["value", "low", "high"] if release.values is not None else []),
    ]


def release_rows(release: Release) -> list[dict[str, Any]]:
    """Return a row for each item: its rank if the answer is ordered, the item, and its noisy score if there is one.

    With groups, a row also has the group, and ranks are within it.
    """
    if release.groups is not None:
        return [{"group": group, **row} for group, part in release.groups.items() for row in release_rows(part)]
    rows: list[dict[str, Any]] = []
    for place, item in enumerate(release.items):
        row: dict[str, Any] = {"rank": place + 1} if release.ordered else {}
        row["item"] = item
        if release.values is not None and release.intervals is not None:
            low, high = release.intervals[place]
            row |= {"value": release.values[place], "low": low, "high": high}
        rows.append(row)
    return rows


def _answer_table(release: Release) -> Table:
    table = Table()
    for name in release_columns(release):
        table.add_column(name, justify="left" if name == "item" else "right", overflow="fold")
    for row in release_rows(release):
        table.add_row(*(item_text(cell) for cell in row.values()))
    return table


def facts(release: Release) -> Table:
    """Return a table of what was done and promised, and of what the order means."""
    rows: list[tuple[str, str]] = []
    if release.stopped:
        where = f"after {len(release.items)} of {release.k}"
        if release.groups is not None:
            early = sum(part.stopped for part in release.groups.values())
            where = f"early in {early:,} group{'' if early == 1 else 's'}"
        rows.append(("Answer", f"stopped {where}: more could reveal that an item exists"))
    if release.groups is not None:
        rows.append(("Groups", _groups_fact(release)))
    rows.append(("Order", _order_fact(release)))
    if release.period is not None:
        rows.append(("Period", str(Period.of(release.period))))
    if release.domain is not None:
        rows.append(("Domain", f"{release.domain}{'' if release.groups is None else ', for each group'}"))
    if release.confidence is not None:
        kept = _limit(release.mechanism)
        rows.append(
            (
                "Values",
                f"noisy; each true value{kept and f', counting {kept},'} is between low and high with probability "
                f"{release.confidence:g}",
            )
        )
    rows.append(("Mechanism", mechanism_words(release.mechanism)))
    if release.reach is not None:
        rows.append(("Reach", str(release.reach)))
    return facts_table([*rows, *_promise(release)])


def _order_fact(release: Release) -> str:
    if not release.ordered:
        return "random, without meaning"
    return f"{'lowest' if release.lowest else 'highest'} first, up to noise; the order is part of the private answer"


def mechanism_words(mechanism: Mechanism | Discovery) -> str:
    """Return a mechanism with its options in words, as in "canonical, exponential noise"."""
    if isinstance(mechanism, Discovery):
        return f"discovery, {_limit(mechanism)}"
    described = mechanism.describe()
    link = ", then" if "discovery" in described else " around"
    inside = f"{link} {described['inner']['name']}" if "inner" in described else ""
    described |= described.get("inner", {})
    chosen = "".join(f", {option}" for option in _options_of(described))
    kept = _limit(mechanism)
    return f"{mechanism.name}{inside}{chosen}{kept and f', {kept}'}"


def _limit(mechanism: Any) -> str:
    limit = getattr(mechanism, "max_items_per_person", None)
    return "" if limit is None else f"at most {limit} item{'s' if limit > 1 else ''} per person"


def _options_of(described: dict[str, Any]) -> list[str]:
    """Return the noise of a mechanism, and what else differs from its default, in words."""
    options = [f"{described['noise']} noise"] if "noise" in described else []
    if described.get("gamma", Canonical.gamma) != Canonical.gamma:
        options.append(f"gamma {described['gamma']:g}")
    if not described.get("margin", True):
        options.append("no margin")
    return [*options, "rounded loss"] if described.get("rounded") else options


def _promise(release: Release | DomainRelease) -> list[tuple[str, str]]:
    promise = str(release.guarantee)
    if release.secure:
        return [("Guarantee", promise), ("Protection", protection(release.guarantee))]
    exact = release.mechanism.exact
    reason = "a seed was given; without it" if exact else "the mechanism does not draw exactly; if it did"
    return [("Guarantee", f"none, because {reason}, {promise}")]


def protection(guarantee: Guarantee) -> str:
    """Return how strong a guarantee is, in the words of plan."""
    if not guarantee.delta:
        return guarantee.strength
    # As a fraction: a float can be so small that 1/delta is infinite.
    people = math.floor(1 / Fraction(repr(float(guarantee.delta))))
    return f"{guarantee.strength}, if the data are of fewer than 1/delta = {people:,} people"


def _groups_fact(release: Release) -> str:
    """Return how many groups there are, in how many of them a person counts, and how many items they have."""
    parts, most = list((release.groups or {}).values()), release.max_groups_per_person
    limit = f"each person counts in {'one of them' if most == 1 else f'at most {most} of them'}, chosen at random"
    sizes = [part.domain.items for part in parts if part.domain is not None and part.domain.items is not None]
    own = f"; {min(sizes):,} to {max(sizes):,} items each, stated as public" if release.domain is None and sizes else ""
    return f"{len(parts):,}, stated as public; {limit}{own}"


def domain_tables(release: DomainRelease) -> list[RenderableType]:
    """Return the items that were listed, and the facts about the release."""
    listed = Table()
    listed.add_column(Text(release.column), overflow="fold")
    for item in release.items:
        listed.add_row(item_text(item))
    mechanism = release.mechanism
    limit, least = mechanism.max_items_per_person, mechanism.at_least
    needed = [math.ceil(mechanism.threshold / mechanism.weight(items)) for items in (1, limit)]
    many = f"; with {limit} items each it takes {needed[1]:,}" if limit > 1 else ""
    rows = [("Order", "by name")]
    if release.period is not None:
        rows.append(("Period", str(Period.of(release.period))))
    rows.append(("Mechanism", mechanism_words(mechanism)))
    rows.append(("Reach", f"{needed[0]:,} people who have nothing else get an item listed with probability 0.5{many}"))
    if least > 1:
        rows.append(("At least", f"an item with fewer than {least} people is listed with probability 1e-6 at most"))
    title = Text(f"Discovered items: {len(release.items):,}", style="bold")
    return [title, listed, facts_table([*rows, *_promise(release)])]
