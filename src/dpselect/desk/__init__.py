"""The curator's desk: a page and a service that publish private top-k answers under a budget.

* `run(files)`: the desk alone, on loopback, for whoever holds the files
* `run(config=...)`: a shared service with tokens; `read_config` reads and checks its configuration
* `create_app(desk)`: the ASGI application of an `AloneDesk` or a `SharedDesk`
* `TokenStore(place)`: the tokens of analysts, in the ledger's database
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpselect._lazy import loader

if TYPE_CHECKING:
    from dpselect.desk.accounts import analyst_account as analyst_account
    from dpselect.desk.accounts import check_spelling as check_spelling
    from dpselect.desk.accounts import ensure_account as ensure_account
    from dpselect.desk.accounts import ensure_accounts as ensure_accounts
    from dpselect.desk.alone import AloneDesk as AloneDesk
    from dpselect.desk.app import create_app as create_app
    from dpselect.desk.config import DeskConfig as DeskConfig
    from dpselect.desk.config import read_config as read_config
    from dpselect.desk.config import read_ledger_place as read_ledger_place
    from dpselect.desk.serving import run as run
    from dpselect.desk.shared import SharedDesk as SharedDesk
    from dpselect.desk.tokens import Token as Token
    from dpselect.desk.tokens import TokenStore as TokenStore
    from dpselect.desk.tokens import check_days as check_days

_MODULES = {
    "AloneDesk": "alone",
    "DeskConfig": "config",
    "SharedDesk": "shared",
    "Token": "tokens",
    "TokenStore": "tokens",
    "analyst_account": "accounts",
    "check_days": "tokens",
    "check_spelling": "accounts",
    "create_app": "app",
    "ensure_account": "accounts",
    "ensure_accounts": "accounts",
    "read_config": "config",
    "read_ledger_place": "config",
    "run": "serving",
}

__all__ = [
    "AloneDesk",
    "DeskConfig",
    "SharedDesk",
    "Token",
    "TokenStore",
    "analyst_account",
    "check_days",
    "create_app",
    "ensure_account",
    "ensure_accounts",
    "read_config",
    "read_ledger_place",
    "run",
]


__getattr__ = loader(__name__, _MODULES, "the desk", "serve")
