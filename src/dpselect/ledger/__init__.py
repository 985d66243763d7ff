"""The ledger: what each data set may cost, what it has cost, and every release that was charged to it.

* `ledger`   Ledger: create, spend, remaining, entries, check
* `statement`  one view of a data set: spent, left, and what the remainder buys
* `once`     releases that are charged once and answered once under a key
* `rules`    exact sums of costs, and the rules by which they add up: basic and zcdp
* `chain`    what an entry holds, and the hashes that tie it to everything before it
* `names`    which names of data sets look alike, and which new ones are refused
* `records`  reading and writing the rows, inside one transaction
* `audit`    whether everything is still as it was written
* `schema`   the tables, and the migrations between their versions
* `store`    SQLite and PostgreSQL behind one interface, and what their failures mean
* `sqlite`   the file of a SQLite ledger, and whether its name still leads to it

`dpselect.ledger` loads SQLAlchemy when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect.ledger.chain import Account, Entry, Fault
    from dpselect.ledger.ledger import Ledger
    from dpselect.ledger.once import OnceCharge
    from dpselect.ledger.rules import Budget
    from dpselect.ledger.statement import Statement
    from dpselect.ledger.store import ledger_file, url_of

_HOMES = {
    "Account": "chain",
    "Budget": "rules",
    "Entry": "chain",
    "Fault": "chain",
    "Ledger": "ledger",
    "OnceCharge": "once",
    "Statement": "statement",
    "ledger_file": "store",
    "url_of": "store",
}

__all__ = ["Account", "Budget", "Entry", "Fault", "Ledger", "OnceCharge", "Statement", "ledger_file", "url_of"]


if not TYPE_CHECKING:  # checkers of types then report a name that does not exist

    def __getattr__(name: str) -> Any:
        """Load a public name from its module on first use."""
        if name in _HOMES:
            return getattr(import_module(f"dpselect.ledger.{_HOMES[name]}"), name)
        raise AttributeError(f"module 'dpselect.ledger' has no attribute {name!r}")
