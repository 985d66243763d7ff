"""Releases from counts that the desk keeps in memory: charged and recorded as others, and never from other rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desks import FILMS, write_config

from dpselect.desk import SharedDesk, read_config
from dpselect.desk.datasets import DataSet
from dpselect.desk.questions import Question
from dpselect.errors import BudgetExceeded, InvalidInput
from dpselect.sources import Counts, kept, open_counts

CERTAIN = Question(item="film", k=3, epsilon=500.0)
"""At this epsilon another answer than the right one has a probability below 1e-100."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the tables that are opened for releases; files that were just written are kept, too."""
    found: list[Any] = []

    @contextlib.contextmanager
    def recorded(table: Any, **asked: Any) -> Iterator[Counts]:
        found.append(table)
        with open_counts(table, **asked) as counts:
            yield counts

    monkeypatch.setattr(kept, "open_counts", recorded)
    monkeypatch.setattr(kept, "SETTLED_SECONDS", 0)
    return found


def dataset_in(folder: Path, **changes: Any) -> DataSet:
    found = SharedDesk(read_config(write_config(folder, **changes))).dataset("views")
    assert found is not None
    return found


def test_a_release_from_memory_is_charged_and_recorded_like_the_first(tmp_path: Path, opened: list[Any]) -> None:
    dataset = dataset_in(tmp_path, epsilon=1000.0, analysts={"ann": 600.0})
    first = dataset.release(CERTAIN, "bob", "1")
    assert dataset.release(CERTAIN, "bob", "1").repeated
    second = dataset.release(CERTAIN, "bob", "2")
    assert opened == [dataset.config.source]
    assert {**first.to_dict(), "items": sorted(first.items)} == {**second.to_dict(), "items": sorted(second.items)}
    one, two = dataset.ledger.entries("views")
    assert (one.guarantee, one.parameters, one.purpose) == (two.guarantee, two.parameters, two.purpose)
    assert dataset.ledger.remaining("views").epsilon == 0.0
    with pytest.raises(BudgetExceeded):
        dataset.release(CERTAIN, "bob", "3")
    assert dataset.ledger.find("views", "bob:3") is None


def test_rows_that_changed_between_questions_are_read(tmp_path: Path, opened: list[Any]) -> None:
    dataset = dataset_in(tmp_path, epsilon=10_000.0)
    assert sorted(dataset.release(CERTAIN, "ann", "1").items) == sorted(FILMS[:3])
    rows = tmp_path / "views.csv"
    rows.write_text(
        rows.read_text() + "".join(f"{FILMS[-1]},viewer {number},20,DE,2025-11-01\n" for number in range(500))
    )
    assert FILMS[-1] in dataset.release(CERTAIN, "ann", "2").items
    assert len(opened) == 2
    rows.unlink()
    with pytest.raises(InvalidInput):
        dataset.release(CERTAIN, "ann", "3")
    assert not dataset.was_charged("ann", "3")


def test_the_choice_of_items_is_kept_with_the_counts(tmp_path: Path, opened: list[Any]) -> None:
    dataset = dataset_in(tmp_path, epsilon=10_000.0, max_items_per_person=1)
    question = CERTAIN.model_copy(update={"values": 0.5, "k": len(FILMS)})
    releases = [dataset.release(question, "ann", str(number)).to_dict() for number in range(2)]
    one, two = (dict(zip(release["items"], release["values"], strict=True)) for release in releases)
    assert len(opened) == 1
    assert max(abs(one[film] - two[film]) for film in FILMS) < 1
