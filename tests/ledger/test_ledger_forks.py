"""A forked child and other processes see each other's releases, whatever the parent does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dpselect as dps
from dpselect.ledger import Ledger, sqlite

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")

SPEND = """
import sys
import dpselect as dps

ledger = dps.privacy.Ledger(sys.argv[1])
ledger.spend("films", dps.Guarantee(0.875))
print("spent", flush=True)
sys.stdin.readline()
"""

FORK = """
import os, subprocess, sys
import dpselect as dps

file, spend = sys.argv[1:]
ledger = dps.privacy.Ledger(file)
ledger.spend("films", dps.Guarantee(0.125))
closed, close = os.pipe()
child = os.fork()
if child:
    ledger.close()
    os.write(close, b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.read(closed, 1)
command = [sys.executable, "-c", spend, file]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
    assert other.stdout.readline() == "spent\\n"
    try:
        ledger.spend("films", dps.Guarantee(0.875))
        print("overdrawn")
    except dps.DpSelectError as error:
        print(type(error).__name__)
    other.communicate("")
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger with a total of 1 for films."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.create("films", epsilon=1.0)
    return ledger


@pytest.mark.slow
def test_a_child_whose_parent_closed_the_ledger_sees_what_others_spend(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    command = [sys.executable, "-c", FORK, str(tmp_path / "ledger.sqlite"), SPEND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("BudgetExceeded\n", "", 0)
    assert [entry.guarantee.epsilon for entry in ledger.entries("films")] == [0.125, 0.875]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of threads that fork
def test_a_fork_waits_until_no_transaction_is_under_way(ledger: Ledger) -> None:
    """A child that inherits half a transaction would know of locks that it does not have."""
    forked = threading.Event()

    def fork() -> None:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        forked.set()

    thread = threading.Thread(target=fork)
    with sqlite.in_use:
        thread.start()
        assert not forked.wait(0.2)
    thread.join()
    assert forked.is_set()
    assert ledger.spend("films", dps.Guarantee(0.5)).sequence == 1
