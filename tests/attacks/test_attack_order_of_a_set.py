"""Attack: a set is private, but the order in which it is listed follows the scores.

Databases and `sorted` list a chosen set by descending score unless told otherwise.
"""

from __future__ import annotations

import pandas

import dpselect as dps

WITHOUT, WITH = {"tea": 10, "rum": 10}, {"tea": 10, "rum": 11}
"""Scores without and with one person."""


def naive_release(scores: dict[str, int], seed: int) -> list[str]:
    """Return a privately chosen set of two items, listed by their true scores."""
    chosen = dps.select(scores, k=2, epsilon=1.0, seed=seed).items
    return sorted(chosen, key=lambda item: (-scores[item], item != "tea"))


def test_the_attack_reads_one_person_off_a_naive_order() -> None:
    assert all(naive_release(WITH, seed)[0] == "rum" for seed in range(50))
    assert all(naive_release(WITHOUT, seed)[0] == "tea" for seed in range(50))


def test_the_order_of_a_set_from_dpselect_is_a_coin_that_knows_no_score() -> None:
    """Each item comes first in half of 400 releases, up to 5 standard deviations of 10, for any scores."""
    for mechanism in ("canonical", "oneshot"):
        for scores in (WITHOUT, WITH, {"tea": 10, "rum": 10_000}):
            releases = [dps.select(scores, k=2, epsilon=1.0, mechanism=mechanism, seed=seed) for seed in range(400)]
            assert not any(release.ordered for release in releases)
            first = sum(release.items[0] == "rum" for release in releases)
            assert abs(first - 200) < 5 * 10


def rows(shops: list[str]) -> pandas.DataFrame:
    """Return ten people with tea and eleven with rum in each shop, so that an engine that counts lists rum first."""
    found = [(shop, item, f"{item} {shop} {person}") for shop in shops for item in WITH for person in range(WITH[item])]
    return pandas.DataFrame(found, columns=["shop", "drink", "guest"])


def test_a_set_from_a_table_is_listed_in_an_order_of_its_own_too() -> None:
    """As above, for 400 shops in one table; pandas lists the drinks of every shop by their counts."""
    shops = [f"shop {number}" for number in range(400)]
    table = rows(shops)
    counted = table.groupby("shop")["drink"].value_counts()
    assert all(counted[shop].index.tolist() == ["rum", "tea"] for shop in shops)
    question = {"item": "drink", "person": "guest", "by": "shop", "groups": shops, "domain": list(WITH)}
    release = dps.top(table, **question, k=2, epsilon=1.0, seed=1)
    first = sum(shop.items[0] == "rum" for shop in release.groups.values())
    assert abs(first - 200) < 5 * 10
