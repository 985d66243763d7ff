"""Unknown domains: Discovered against Restricted, and which of the two "auto" takes (docs/discovery.md).

Both get the same people, each with at most m items kept at random, and are judged by the k items that most people kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.forecast import f1_score, items_returned
from dpselect.mechanisms import Discovered, PooledDomain, mechanism_for
from dpselect.mechanisms.auto import automatic_for_unknown
from dpselect.reproduce.data import Data
from dpselect.sampling import bit_source
from dpselect.scores import Scores
from experiments.auto import PAIRED
from experiments.unknown import pool_of

TITLE = "unknown domains: F1 of Discovered and Restricted at the same (ε, δ), means of seeded draws"
HAS_QUICK = True
QUICK = ("games_steam",)

LENGTHS = (10, 30, 100, 300)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
LIMITS = (1, 5, 20, 100)
DRAWS = 20
LARGEST_REGRET = 0.02
"""The mean F1 that "auto" may lose against the better of the two in hindsight."""


def rows(data: Path, *, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Yield a row for each data set, limit, k and ε: F1 and items returned of both mechanisms."""
    tables = list(product(QUICK if quick else PAIRED, (1, 20) if quick else LIMITS))
    for name, _ in tables:
        Data(data).file_of(name)
    with ProcessPoolExecutor() as pool:
        for done in as_completed(pool.submit(answers, data, name, most, quick) for name, most in tables):
            yield from done.result()


def answers(data: Path, name: str, most: int, quick: bool) -> list[dict[str, Any]]:
    """Return the rows of one table."""
    files = Data(data)
    counts, held = weighed(*files.bounded_pairs(name, most), most)
    delta = 0.5 / files.people(name)
    found = []
    for k, epsilon in product((30, 300) if quick else LENGTHS, EPSILONS):
        if k > len(counts):
            continue
        asked: dict[str, Any] = {"k": k, "epsilon": epsilon, "delta": delta, "max_items_per_person": most}
        restricted, discovered = (mechanism_for(each, **asked) for each in ("restricted", "discovered"))
        assert isinstance(restricted, PooledDomain)
        assert isinstance(discovered, Discovered)
        drawn = {
            "restricted": _restricted(restricted, counts),
            "discovered": _discovered(discovered, counts, held),
        }
        top, chosen = counts[:k], automatic_for_unknown(k, most, None, counts=True)
        row: dict[str, Any] = {"data": name, "m": most, "k": k, "ε": epsilon, "auto": chosen}
        for label, results in drawn.items():
            row[f"items {label}"] = fmean(items_returned(top, answer) for answer in results)
            row[f"F1 {label}"] = fmean(f1_score(top, answer) for answer in results)
        found.append(row)
    return found


def weighed(people: Array, items: Array, most: int) -> tuple[Array, Array]:
    """Return the counts of items, highest first, and in each row how many people with n = 1 … m items have the item."""
    kept = np.bincount(people)[people]
    table = np.zeros((int(items.max()) + 1, most), dtype=np.int64)
    np.add.at(table, (items, kept - 1), 1)
    counts = table.sum(axis=1)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    return counts[order], table[order]


def _restricted(mechanism: PooledDomain, counts: Array) -> list[Array]:
    bits, pool = bit_source(1), pool_of(counts, mechanism.pool_size)
    return [mechanism.draw_from(pool, bits).values for _ in range(DRAWS)]


def _discovered(mechanism: Discovered, counts: Array, held: Array) -> list[Array]:
    bits, found = bit_source(1), mechanism.discovery
    weights = Scores.of(held @ np.array([found.weight(n) for n in range(1, held.shape[1] + 1)]))
    answers = []
    for _ in range(DRAWS):
        listed = counts[found.draw(weights, bits).positions()]
        answers.append(listed[mechanism.choose(listed, bits)])
    return answers


def summary(rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the tables to print: the mean gain by limit and k, and what each way to choose is worth."""
    gains = []
    for most, k in sorted({(row["m"], row["k"]) for row in rows}):
        inside = [row for row in rows if (row["m"], row["k"]) == (most, k)]
        gain = {
            f"ε = {epsilon:g}": fmean(
                row["F1 discovered"] - row["F1 restricted"] for row in inside if row["ε"] == epsilon
            )
            for epsilon in EPSILONS
        }
        gains.append({"m": most, "k": k, **gain, "auto": inside[0]["auto"]})
    yield "F1 of discovered minus F1 of restricted, means over data sets", gains
    choices = {
        "restricted": lambda row: row["F1 restricted"],
        "discovered": lambda row: row["F1 discovered"],
        "auto": lambda row: row[f"F1 {row['auto']}"],
        "best in hindsight": _best,
    }
    yield (
        "mean F1, and what is lost against the better one in hindsight",
        [
            {
                "mechanism": label,
                "questions": len(rows),
                "F1": fmean(f1(row) for row in rows),
                "regret": fmean(_best(row) - f1(row) for row in rows),
                "limit": LARGEST_REGRET if label == "auto" else "",
            }
            for label, f1 in choices.items()
        ],
    )


def _gain(row: dict[str, Any]) -> float:
    return float(row["F1 discovered"] - row["F1 restricted"])


def _best(row: dict[str, Any]) -> float:
    return float(max(row["F1 restricted"], row["F1 discovered"]))
