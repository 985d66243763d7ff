"""Whether the canonical paper's claims hold, from the rows of its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpselect.reproduce.study import Row, shown
from dpselect.reproduce.subset_curves import OURS, PUBLISHED
from dpselect.reproduce.verdict import Check, Verdict, counted

SHARES = (0.5, 0.9, 0.99)
"""Probabilities of the exact answer for which the ε needed is computed."""

DIVIDING = ("One-shot", "Peeling")
"""The mechanisms that divide ε by k."""

EXACT = "Every probability is exact, by sums and integrals; none is simulated."

ACCURATE = 1e-6
"""How far integrals may be off, at most."""

CLAIMED = {10: 6, 100: 34, 1000: 81}
"""How many times smaller a budget Canonical needs on Netflix, as the paper says (section 7.1)."""


def epsilon_table(rows: list[Row], wanted: float, kind: str = "top") -> dict[int, dict[str, float]]:
    """Return the ε needed by each mechanism for a kind of answer, for each k; infinite where none is enough."""
    table: dict[int, dict[str, float]] = {}
    for row in rows:
        if (row.get("kind"), row.get("wanted")) == (kind, wanted):
            found = row["needed_epsilon"]
            table.setdefault(row["k"], {})[row["mechanism"]] = math.inf if found is None else found
    return table


def _times_smaller(rows: list[Row], wanted: float) -> dict[int, float]:
    """Return Peeling's ε over that of the better published form of Canonical."""
    table = epsilon_table(rows, wanted)
    return {k: found["Peeling"] / min(found[name] for name in PUBLISHED) for k, found in table.items()}


def judge_netflix(rows: list[Row]) -> Verdict:
    """Judge Figure 1: the budget at the paper's three k."""
    table = epsilon_table(rows, 0.99)
    ratios = {share: _times_smaller(rows, share) for share in SHARES}
    said = "; ".join(
        f"at P = {share:g}: " + ", ".join(f"{ratio:.1f} (k = {k})" for k, ratio in ratios[share].items())
        for share in SHARES
    )
    ours = ", ".join(f"{found['Peeling'] / found[OURS]:.0f} (k = {k})" for k, found in table.items())
    most = max(table)
    enough = ", ".join(f"{name} {shown(table[most][name])}" for name in (OURS, *PUBLISHED, "One-shot", "Peeling"))
    claimed = ", ".join(f"{CLAIMED[k]}" for k in table if k in CLAIMED)
    text = (
        "The better published form of Canonical needs this many times less epsilon than Peeling to return exactly "
        f"the top k of Netflix with probability P: {said}. The paper says {claimed}, without saying at which "
        "probability; no single one gives all three. We take almost certainly as 0.99. With its margin and exponential "
        "noise (our default) "
        f"Canonical needs, at P = 0.99, {ours} times "
        f"less than Peeling. The epsilon needed for 0.99 at k = {most:,}: {enough}."
    )
    checks = [
        Check(f"fewer than {least} times at k = {k}, P =", f"{share:g}", ratios[share][k] >= least)
        for k, least in CLAIMED.items()
        for share in SHARES
    ]
    checks += [Check("more than epsilon = 1 at k = 1000 for", name, table[1000][name] <= 1) for name in PUBLISHED]
    return counted(checks, f"{text} {EXACT}")


def judge_set(rows: list[Row], kinds: Sequence[str] = ("top", "great", "good")) -> Verdict:
    """Judge Figures 3 and 6 to 10: Canonical needs less than the mechanisms it is compared with, at every k."""
    table = epsilon_table(rows, 0.99)
    ratios = _times_smaller(rows, 0.99)
    said = "; ".join(
        f"k = {k:,}: {shown(min(found[name] for name in PUBLISHED))}, where One-shot needs {shown(found['One-shot'])} "
        f"and Peeling {shown(found['Peeling'])} ({ratios[k]:.1f} times as much), and Canonical with its margin "
        f"{shown(found[OURS])}"
        for k, found in table.items()
    )
    text = f"The epsilon that the better published form of Canonical needs to be exact with probability 0.99: {said}."
    hopeless = [f"{name} at k = {k:,}" for k, found in table.items() for name in found if found[name] == math.inf]
    if hopeless:
        text += f" No epsilon is enough for {' and '.join(hopeless)}: items tied with rank k stand in for better ones."
    return counted(_leads(rows, kinds), f"{text} {EXACT}")


def judge_kinds(rows: list[Row]) -> Verdict:
    """Judge Figure 5: Canonical leads for great and good answers as well."""
    said = []
    tables = {kind: epsilon_table(rows, 0.9, kind) for kind in ("great", "good")}
    for k in tables["great"]:
        for kind, table in tables.items():
            canonical, others = (shown(min(table[k][name] for name in names)) for names in (PUBLISHED, DIVIDING))
            said.append(f"{kind} at k = {k:,} from {canonical} on (One-shot or Peeling: {others})")
    text = f"The better published form of Canonical has a chance of at least 0.9 of being {'; '.join(said)}."
    return counted(_leads(rows, ("great", "good")), f"{text} {EXACT}")


def _leads(rows: list[Row], kinds: Sequence[str]) -> list[Check]:
    """Check whether each published form of Canonical needs less ε than One-shot and Peeling, for every k and share."""
    tables = {(kind, share): epsilon_table(rows, share, kind) for kind in kinds for share in SHARES}
    return [
        Check(
            f"{name}, {kind} at k = {k:,} with P =", f"{share:g}", needed[name] < min(needed[one] for one in DIVIDING)
        )
        for name in PUBLISHED
        for kind in kinds
        for k in sorted({row["k"] for row in rows})
        for share in SHARES
        for needed in [tables[kind, share][k]]
    ]


def judge_exponents(rows: list[Row]) -> Verdict:
    """Judge Figure 2, where k is at least 100: for k = 10 the paper sees no difference."""
    checks, said = [], []
    for kind, word in (("top", "exact"), ("good", "good")):
        for k in sorted({row["k"] for row in rows if row["k"] >= 100}):
            for name in PUBLISHED:
                own = []
                for exponent in sorted({row["exponent"] for row in rows}):
                    found = {row["mechanism"]: row for row in rows if (row["k"], row["exponent"]) == (k, exponent)}
                    others = max(found[other][kind] for other in DIVIDING)
                    held = found[name][kind] >= others - ACCURATE
                    own.append(Check(f"{name}, {word} at k = {k:,}, exponent", f"{exponent:g}", held))
                said.append(f"{name} {word} at k = {k:,}: {sum(check.held for check in own)} of {len(own)}")
                checks += own
    text = f"At least as likely as One-shot and Peeling at this many exponents: {'; '.join(said)}."
    return counted(checks, f"{text} {EXACT}")


def judge_noises(rows: list[Row]) -> Verdict:
    """Judge Figure 4."""
    table = epsilon_table(rows, 0.99)
    said = "; ".join(
        f"k = {k:,}: "
        + ", ".join(f"{noise} {shown(epsilon)}" for noise, epsilon in sorted(found.items(), key=lambda two: two[1]))
        for k, found in table.items()
    )
    worst = max(max(found.values()) / min(found.values()) for found in table.values())
    text = (
        f"The epsilon needed for 0.99, least first: {said}. The worst noise needs at most {worst:.2f} times the best."
    )
    checks = [
        Check(f"exponential not the best at k = {k:,}, P =", f"{share:g}", found["exponential"] <= min(found.values()))
        for k in table
        for share in SHARES
        for found in [epsilon_table(rows, share)[k]]
    ]
    return counted(checks, f"{text} {EXACT}")
