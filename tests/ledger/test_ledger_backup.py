"""A copy of a ledger in use is whole, and is kept from other users of the machine."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dpselect as dps
from dpselect.ledger import Ledger


def test_a_copy_that_is_made_while_others_spend_is_whole(tmp_path: Path) -> None:
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("films", epsilon=100.0)
        first = ledger.spend("films", dps.Guarantee(0.5))
        with ThreadPoolExecutor(2) as pool:
            spend = Ledger(tmp_path / "budget.sqlite").spend
            spends = [pool.submit(spend, "films", dps.Guarantee(0.5)) for _ in range(40)]
            for number in range(4):
                ledger.backup(tmp_path / f"copy {number}")
        hashes = [entry.hash for entry in ledger.entries("films")]
    assert len(hashes) == 1 + len(spends)
    for number in range(4):
        with Ledger(tmp_path / f"copy {number}") as copy:
            assert copy.check() == copy.check(head=first.hash) == []
            entries = [entry.hash for entry in copy.entries("films")]
            assert entries == hashes[: len(entries)]
            assert copy.spend("films", dps.Guarantee(0.5)).hash not in hashes
    modes = {stat.S_IMODE((tmp_path / f"copy {number}").stat().st_mode) for number in range(4)}
    assert modes == {0o600}


def test_a_copy_never_replaces_a_file(tmp_path: Path) -> None:
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("films", epsilon=1.0)
        before = ledger.head()
        for taken in ("budget.sqlite", "other"):
            (tmp_path / "other").touch()
            with pytest.raises(dps.InvalidInput, match="must be a file that does not exist yet"):
                ledger.backup(tmp_path / taken)
        with pytest.raises(dps.InvalidInput, match="in a folder that can be written"):
            ledger.backup(tmp_path / "none" / "copy")
        assert (tmp_path / "other").read_bytes() == b""
        assert ledger.head() == before


def test_there_is_no_copy_if_there_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(dps.InvalidInput, match="there is no ledger"):
        Ledger(tmp_path / "none.sqlite").backup(tmp_path / "copy")
    with pytest.raises(dps.InvalidInput, match="pg_dump"):
        Ledger("postgresql://nobody@localhost/none").backup(tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "damaged").write_bytes(b"no database" * 1000)
    with pytest.raises(dps.SourceError):
        Ledger(tmp_path / "damaged").backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
