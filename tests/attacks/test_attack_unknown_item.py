"""Attack: an item that only one person can have appears in the answer, or changes how long the answer is."""

from __future__ import annotations

import random

import pandas
import pytest

import dpselect as dps

GROUPS = [f"shop {number}" for number in range(150)]


def rows(*, with_ann: bool) -> pandas.DataFrame:
    """Return people who search for tea in each of many shops; and Ann, who searches for something of her own in all."""
    found = [(shop, "tea", f"{shop}, buyer {number}") for shop in GROUPS for number in range(60)]
    if with_ann:
        found += [(shop, "letter to Ann Example", f"ann of {shop}") for shop in GROUPS]
    return pandas.DataFrame(found, columns=["shop", "query", "user"])


def naive_release(table: pandas.DataFrame, seed: int) -> set[str]:
    """Return the items with the two largest counts after Laplace noise, of those that the rows name."""
    noise = random.Random(seed)
    counts = table.groupby("query")["user"].nunique()
    noisy = {query: count + noise.expovariate(1.0) - noise.expovariate(1.0) for query, count in counts.items()}
    return set(sorted(noisy, key=noisy.__getitem__, reverse=True)[:2])


def test_the_attack_finds_the_item_in_every_naive_release() -> None:
    """The noise hides how many people have the item, and not that it exists."""
    one_shop = rows(with_ann=True).query("shop == 'shop 0'")
    assert all("letter to Ann Example" in naive_release(one_shop, seed) for seed in range(50))


@pytest.mark.slow
def test_an_unknown_item_does_not_appear_and_does_not_change_the_length() -> None:
    """A hundred and fifty shops, each with an item that one person has, which may appear with probability 1e-9."""
    question = {"item": "query", "person": "user", "by": "shop", "groups": GROUPS, "k": 2, "domain": dps.UNKNOWN}
    for with_ann in (False, True):
        release = dps.top(rows(with_ann=with_ann), **question, epsilon=8.0, delta=1e-9)
        assert {tuple(shop.items) for shop in release.groups.values()} == {("tea",)}
