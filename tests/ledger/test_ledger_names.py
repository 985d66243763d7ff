"""Names that look alike are one data set, through every door; names of older ledgers stay usable as they are."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_files import rewrite_seals
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.ledger import Budget, Ledger
from dpselect.ledger.names import compared, new_name

NAME = "café ﬁlms"
ALIKE = [
    *("café ﬁlms ", " café ﬁlms", "café  ﬁlms", "CAFÉ FILMS", "cafe\u0301 films", "café films", "ｃａｆé films"),
    "café\ufe0f films",
]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with one data set, whose name holds an accent and a ligature."""
    ledger = Ledger(tmp_path / "budget.sqlite")
    ledger.create(NAME, epsilon=1.0)
    return ledger


def rows() -> Any:
    return pandas.DataFrame({"film": ["Heat", "Up"], "viewer": ["ann", "bob"]})


DOORS: dict[str, Callable[[Ledger, str], Any]] = {
    "create": lambda ledger, name: ledger.create(name, epsilon=5.0),
    "spend": lambda ledger, name: ledger.spend(name, dps.Guarantee(0.5)),
    "account": lambda ledger, name: ledger.account(name),
    "statement": lambda ledger, name: ledger.statement(name),
    "remaining": lambda ledger, name: ledger.remaining(name),
    "entries": lambda ledger, name: ledger.entries(name),
    "check": lambda ledger, name: ledger.check(name),
    "select": lambda ledger, name: dps.select({"a": 1, "b": 2}, k=1, epsilon=0.5, ledger=ledger, dataset=name),
    "top": lambda ledger, name: dps.top(
        rows(), item="film", person="viewer", k=1, domain=["Heat", "Up"], epsilon=0.5, ledger=ledger, dataset=name
    ),
    "rank": lambda ledger, name: dps.rank(
        [("a", "b"), ("b", "c")],
        k=1,
        epsilon=0.5,
        comparisons_per_pair=1,
        max_degree=2,
        domain=["a", "b", "c"],
        ledger=ledger,
        dataset=name,
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_a_look_alike_by_naming_the_existing_one(door: str, ledger: Ledger) -> None:
    with pytest.raises(
        dps.InvalidInput, match=f"the ledger has {NAME!r}, which differs only in case, blanks"
    ) as refusal:
        DOORS[door](ledger, "CAFÉ FILMS")
    assert refusal.value.argument == "dataset"
    assert [account.dataset for account in ledger.accounts()] == [NAME]
    assert ledger.remaining(NAME) == Budget(1.0)


def test_every_look_alike_is_refused(ledger: Ledger) -> None:
    for name in ALIKE:
        with pytest.raises(dps.InvalidInput, match=f"the ledger has {NAME!r}"):
            ledger.spend(name, dps.Guarantee(0.5))
        with pytest.raises(dps.InvalidInput, match="visible" if "\ufe0f" in name else f"the ledger has {NAME!r}"):
            ledger.create(name, epsilon=5.0)
    assert ledger.remaining(NAME) == Budget(1.0)


def test_a_look_alike_is_refused_on_the_command_line(ledger: Ledger, tmp_path: Path) -> None:
    for command in ("create X --epsilon 1", "spend X --epsilon 1", "show X", "check X"):
        words = ["Café films" if word == "X" else word for word in command.split()]
        result = CliRunner().invoke(app, ["ledger", *words, "--ledger", str(tmp_path / "budget.sqlite")])
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"the ledger has {NAME!r}" in " ".join(result.stderr.split())
    assert ledger.remaining(NAME) == Budget(1.0)


MIXED = ["fіlms", "filmѕ 2024", "ﬁlms кино", "Αthens", "οutput", "հome", "films Ꭺ", "кино Q3", "кино 映画", "films ᅠ"]
INVISIBLE = [
    *("films\u200b", "fi\u200dlms", "films\u00ad", "films\u2060", "\ufefffilms", "films\u202e", "films\u00a0"),
    *("films\ufe0f", "films\u034f", "영화\u3164", "films\u2800", "films\U000e0100"),
]
ORDINARY = [
    *("films 2024-Q3 (v2)", "Größe ☕", "naïve café", "Straße", "10 µm", "5 µl", "Oʻahu", "x² ½", "ⅣA", "42", "—"),
    *("продажи 2024", "м’яч", "Πωλήσεις", "बिक्री २०२४", "مبيعات 2024", "ยอดขาย", "מכירות"),
    *("映画とテレビ", "Tシャツの売上", "サーバー", "佐々木", "영화 DVD", "電影ㄅ", "ＦＵＬＬ width"),
]


def test_a_new_name_that_mixes_scripts_or_shows_nothing_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    for name in MIXED + INVISIBLE:
        with pytest.raises(dps.InvalidInput, match=r"letters of one script|visible|printable") as refusal:
            Ledger(tmp_path / "a").create(name, epsilon=1.0)
        assert refusal.value.argument == "dataset"
    assert list(tmp_path.iterdir()) == []


def test_ordinary_names_are_accepted_and_found(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a") as ledger:
        for name in ORDINARY:
            ledger.create(name, epsilon=1.0)
            ledger.spend(name, dps.Guarantee(0.5))
        assert all(ledger.remaining(name) == Budget(0.5) for name in ORDINARY)
        assert ledger.check() == []


def test_names_that_can_be_told_apart_are_different_data_sets(tmp_path: Path) -> None:
    names = ["films", "film", "films 2", "films-2", "f ilms", "filmé", "filme", "кино"]
    with Ledger(tmp_path / "a") as ledger:
        for name in names:
            ledger.create(name, epsilon=1.0)
        assert {account.dataset for account in ledger.accounts()} == set(names)


OLD_NAMES = ["films", "Films", "films ", "fіlms", "films\u034f"]


@pytest.fixture
def old_ledger(tmp_path: Path) -> Path:
    """The file of a ledger that was made when names were compared as they are spelt."""
    file = tmp_path / "old.sqlite"
    with Ledger(file) as ledger:
        for number in range(len(OLD_NAMES)):
            ledger.create(f"data set {number}", epsilon=float(number + 1))
        accounts = {account.dataset: account for account in ledger.accounts()}
    connection = sqlite3.connect(file)
    with connection:
        for number, name in enumerate(OLD_NAMES):
            account = accounts[f"data set {number}"]
            connection.execute(
                "UPDATE dpselect_accounts SET dataset = ?, head = ? WHERE dataset = ?",
                (name, replace(account, dataset=name).genesis, account.dataset),
            )
    connection.close()
    rewrite_seals(file)
    return file


def test_a_ledger_that_holds_look_alikes_opens_and_each_is_used_under_its_exact_name(old_ledger: Path) -> None:
    with Ledger(old_ledger) as ledger:
        for name in OLD_NAMES:
            ledger.spend(name, dps.Guarantee(0.5))
        assert [ledger.remaining(name) for name in OLD_NAMES] == [Budget(number + 0.5) for number in range(5)]
        assert ledger.check() == []
        assert [ledger.check(name) for name in OLD_NAMES] == [[]] * 5
        with pytest.raises(dps.InvalidInput, match="'Films' and 'films' and 'films ' and 'films\u034f', which differ"):
            ledger.create("FILMS", epsilon=1.0)
        with pytest.raises(dps.InvalidInput, match="'Films' and 'films' and 'films ' and 'films\u034f', which differ"):
            ledger.spend("FILMS", dps.Guarantee(0.5))


@given(st.text(max_size=8), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_a_name_is_compared_alike_in_all_its_forms(name: str, form: Any) -> None:
    same = compared(name)
    assert compared(same) == same
    assert compared(unicodedata.normalize(form, name)) == same
    assert compared(f" {name} ") == compared(name.casefold()) == same


@given(st.text(alphabet="abcXYZ àß09-_."))
def test_no_latin_name_is_taken_for_a_mix(name: str) -> None:
    assert new_name(name) == name
