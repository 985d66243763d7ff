"""The program that makes mistakes in the code: it knows what it changes, and says when it no longer does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mutants.__main__ import MISSED, NONE, SURVIVED, Mutant, Outcome, chosen, package, read, report

MUTANT = Mutant("t1", "sampling", "sampling/topk.py", "a cut", "HOPELESS = -64.0", "HOPELESS = -6.0", ("oneshot",), ())


def test_a_mutant_changes_a_copy_and_nothing_else() -> None:
    with package(MUTANT) as folder:
        changed = (folder / "dpselect" / MUTANT.file).read_text()
    assert MUTANT.new in changed
    assert MUTANT.old not in changed
    assert MUTANT.old in (Path(__file__).parent.parent / "src" / "dpselect" / MUTANT.file).read_text()


@pytest.mark.parametrize(("old", "times"), [("HOPELESS = -63.0", 0), ("import", 12)])
def test_a_text_that_is_gone_or_not_unique_stops_the_program(old: str, times: int) -> None:
    with pytest.raises(SystemExit, match=r"t1: its text occurs [0-9]+ times in sampling/topk\.py, once is needed"):
        replace(MUTANT, old=old).applied("import " * times)


def test_mutants_are_chosen_by_id_and_room() -> None:
    mutants = read()
    assert len({mutant.id for mutant in mutants}) == len(mutants) >= 90
    assert [mutant.id for mutant in chosen(mutants, "s2,m8", None)] == ["s2", "m8"]
    assert {mutant.room for mutant in chosen(mutants, None, "ledger")} == {"ledger"}
    for only, room in (("nonesuch", None), (None, "nonesuch")):
        with pytest.raises(SystemExit, match=r"nonesuch|--room is one of"):
            chosen(mutants, only, room)


def test_every_mutant_has_tests_that_exist() -> None:
    root = Path(__file__).parent.parent
    files = {test.partition("::")[0] for mutant in read() for test in mutant.tests}
    assert {file for file in files if not (root / file).exists()} == set()


def test_every_mutant_can_be_made() -> None:
    source = Path(__file__).parent.parent / "src" / "dpselect"
    for mutant in read():
        assert mutant.applied((source / mutant.file).read_text()), mutant.id


def test_only_an_unexplained_survivor_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    caught, survived = Outcome(MUTANT, "caught (exact)", SURVIVED), Outcome(MUTANT, MISSED, SURVIVED)
    explained = Outcome(replace(MUTANT, survives="equivalent"), NONE, SURVIVED)
    assert report([caught, explained]) == 0
    assert "t1: a cut: equivalent" in capsys.readouterr().out
    assert report([caught, survived]) == 1
    assert "NOT EXPLAINED" in capsys.readouterr().out
