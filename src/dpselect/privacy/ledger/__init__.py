"""The ledger: what each data set may cost, what it has cost, and every release that made it so.

* `ledger`  Ledger: create, spend, remaining, entries, check
* `chain`   what an entry holds, and the hash that ties it to all entries before it
* `names`   which names of data sets look alike, and which new ones are refused
* `amounts` exact sums of costs
* `rules`   which parts of a guarantee are added up: basic and zcdp
* `tip`     the chain through all data sets, and where it ends
* `schema`  the tables, and `steps` from each version of them to the next
* `place`   paths and URLs
* `store`   SQLite and PostgreSQL behind one door, and `failures`, what theirs mean
* `identity` whether a file is still the one that others find under its name
* `records` reading and writing the rows, inside one transaction
* `audit`   whether all of it is still what was written
* `statement` spent, left, and what the remainder would still buy
* `reserve` how select() and top() record a release before they answer

SQLAlchemy is loaded when a ledger is opened, not before.
"""

from dpselect.privacy.ledger.amounts import Budget
from dpselect.privacy.ledger.chain import Account, Entry, Fault
from dpselect.privacy.ledger.ledger import Ledger
from dpselect.privacy.ledger.reserve import reservation
from dpselect.privacy.ledger.statement import Statement

__all__ = ["Account", "Budget", "Entry", "Fault", "Ledger", "Statement", "reservation"]
