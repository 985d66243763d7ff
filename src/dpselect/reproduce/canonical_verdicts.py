"""Whether the canonical paper's claims hold, from the rows of its figures."""

from __future__ import annotations

import math

from dpselect.reproduce.study import Row, Verdict, shown
from dpselect.reproduce.subset_curves import OURS, PUBLISHED

SHARES = (0.5, 0.9, 0.99)
"""Probabilities of the exact answer for which the ε needed is computed."""

CLAIMED = {10: 6, 100: 34, 1000: 81}
"""How many times smaller a budget Canonical needs on Netflix, as the paper says (section 7.1)."""


def epsilon_table(rows: list[Row], wanted: float) -> dict[int, dict[str, float]]:
    """Return the ε needed by each mechanism, for each k; infinite where none is enough."""
    table: dict[int, dict[str, float]] = {}
    for row in rows:
        if row.get("wanted") == wanted:
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
        f"probability. With its margin and exponential noise (our default) Canonical needs, at P = 0.99, {ours} times "
        f"less than Peeling. The epsilon needed for 0.99 at k = {most:,}: {enough}."
    )
    holds = all(ratio >= CLAIMED.get(k, 1) for k, ratio in ratios[0.99].items())
    return Verdict(holds and min(table[most][name] for name in PUBLISHED) <= 1, text)


def judge_set(rows: list[Row]) -> Verdict:
    """Judge Figures 3 and 5 to 10: Canonical needs less than the mechanisms it is compared with, at every k."""
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
    better = [
        min(found[name] for name in PUBLISHED) < min(found["One-shot"], found["Peeling"]) for found in table.values()
    ]
    return Verdict(all(better), text)


def _reaches(rows: list[Row], k: int, mechanism: str, kind: str, wanted: float = 0.9) -> float:
    """Return the least ε on a curve from which on the chance is as wanted."""
    own = sorted(
        (row["epsilon"], row[kind])
        for row in rows
        if "epsilon" in row and (row["k"], row["mechanism"]) == (k, mechanism)
    )
    missed = [place for place, (_, chance) in enumerate(own) if chance < wanted]
    return float(own[min(missed[-1] + 1 if missed else 0, len(own) - 1)][0])


def judge_kinds(rows: list[Row]) -> Verdict:
    """Judge Figure 5: Canonical leads for great and good answers as well."""
    said, leads = [], []
    for k in sorted({row["k"] for row in rows}):
        for kind in ("great", "good"):
            canonical = min(_reaches(rows, k, name, kind) for name in PUBLISHED)
            others = min(_reaches(rows, k, name, kind) for name in ("One-shot", "Peeling"))
            leads.append(canonical < others)
            said.append(f"{kind} at k = {k:,} from {canonical:.2g} on (One-shot or Peeling: {others:.2g})")
    text = f"The better published form of Canonical has a chance of at least 0.9 of being {'; '.join(said)}."
    return Verdict(all(leads), text)


def judge_exponents(rows: list[Row]) -> Verdict:
    """Judge Figure 2."""
    wins, pairs = {"top": 0, "good": 0}, 0
    for k in sorted({row["k"] for row in rows}):
        for exponent in sorted({row["exponent"] for row in rows}):
            found = {row["mechanism"]: row for row in rows if (row["k"], row["exponent"]) == (k, exponent)}
            pairs += 1
            for kind in wins:
                best = max(found[name][kind] for name in PUBLISHED)
                wins[kind] += best >= max(found[name][kind] for name in ("One-shot", "Peeling")) - 0.02
    text = (
        f"Over {pairs} pairs of k and exponent, the better published form of Canonical is at most 0.02 less likely "
        f"than One-shot and Peeling to be exact at {wins['top']}, and to be good at {wins['good']}."
    )
    return Verdict(wins["top"] == pairs and wins["good"] >= 0.8 * pairs, text)


def judge_noises(rows: list[Row]) -> Verdict:
    """Judge Figure 4."""
    table = epsilon_table(rows, 0.99)
    best = {k: min(found, key=found.__getitem__) for k, found in table.items()}
    said = "; ".join(
        f"k = {k:,}: "
        + ", ".join(f"{noise} {shown(epsilon)}" for noise, epsilon in sorted(found.items(), key=lambda two: two[1]))
        for k, found in table.items()
    )
    worst = max(max(found.values()) / min(found.values()) for found in table.values())
    text = (
        f"The epsilon needed for 0.99, least first: {said}. The worst noise needs at most {worst:.2f} times the best."
    )
    return Verdict(set(best.values()) == {"exponential"}, text)
