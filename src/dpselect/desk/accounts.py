"""The accounts of a desk in the ledger: one for each budget, and one for each analyst who has a budget of their own."""

from __future__ import annotations

from pathlib import Path

from dpselect.desk.config import DataSetConfig, DeskConfig, lines_of, refusal
from dpselect.desk.tokens import TokenStore
from dpselect.errors import DpSelectError, InvalidInput, plain
from dpselect.ledger import Account, Ledger
from dpselect.ledger.names import alike
from dpselect.periods import protected_unit, unit_named


def analyst_account(budget: str, analyst: str) -> str:
    """Return the name of an analyst's account; no data set can have it, since names have no slash."""
    return f"{budget}/{analyst}"


def ensure_accounts(config: DeskConfig, ledger: Ledger, path: Path | None = None) -> None:
    """Make the accounts that the ledger lacks; refuse a configuration that disagrees with the ledger.

    If `path` is stated, the file of the configuration, the error names its line.

    Raises
    ------
    InvalidInput
        If an account has another total, unit or period than the configuration states: a total never changes.
    """
    for name, dataset in config.datasets.items():
        budget, analyst = dataset.budget or name, None
        try:
            ensure_account(ledger, budget, dataset, dataset.epsilon)
            for analyst, epsilon in dataset.analysts.items():
                ensure_account(ledger, analyst_account(budget, analyst), dataset, epsilon)
        except DpSelectError as error:
            if path is None:
                raise
            if not isinstance(error, InvalidInput) or error.argument == "ledger":
                raise refusal(path, [(lines_of(path).of(("ledger",)), str(error))]) from None
            place = ("datasets", name, *((error.argument,) if analyst is None else ("analysts", analyst)))
            raise refusal(path, [(lines_of(path).of(place), f"{'.'.join(place)}: {error}")]) from None


def check_spelling(analyst: str, config: DeskConfig, ledger: Ledger, tokens: TokenStore) -> None:
    """Refuse a new token for a name that differs only in case from one that has a budget or a token.

    Raises
    ------
    InvalidInput
        If there is such a name: its limit would not hold for the other spelling.
    """
    known = {*_with_budget(config, ledger), *(token.analyst for token in tokens.all() if token.state == "valid")}
    if others := alike(analyst, known - {analyst}):
        raise InvalidInput("analyst", analyst, f"the desk knows {others}, which differs only in case; write it so")


def check_tokens(config: DeskConfig, ledger: Ledger, tokens: TokenStore) -> None:
    """Refuse tokens of names that differ only in case from one that has a budget.

    Raises
    ------
    InvalidInput
        If a valid token has such a name.
    """
    known = _with_budget(config, ledger)
    for token in tokens.all():
        others = alike(token.analyst, known - {token.analyst})
        if others and token.state == "valid":
            raise InvalidInput(
                "token",
                token.id,
                f"it is of {token.analyst!r}, and {others}, which differs only in case, has a budget; revoke it with "
                f"`dpselect desk token revoke {token.id}`, and make a token for the name with the budget",
            )


def _with_budget(config: DeskConfig, ledger: Ledger) -> set[str]:
    """Return the analysts who have a budget of their own in a data set of the desk."""
    budgets = {dataset.budget or name for name, dataset in config.datasets.items()}
    names = [account.dataset.partition("/") for account in ledger.accounts()]
    return {analyst for budget, _, analyst in names if analyst and budget in budgets}


def ensure_account(ledger: Ledger, name: str, dataset: DataSetConfig, epsilon: float) -> Account:
    """Return the account of this name, made if there is none; refuse one with another total, unit or period."""
    try:
        found = ledger.account(name)
    except InvalidInput:
        found = None
    if found is None:
        return ledger.create(
            name,
            epsilon=epsilon,
            delta=dataset.delta,
            protects=dataset.protects,
            every=dataset.every,
            lifetime=dataset.lifetime if "/" not in name else None,
        )
    lifetime = None if found.lifetime is None else found.lifetime.epsilon
    stated = (epsilon, dataset.delta, dataset.every or "", dataset.lifetime if "/" not in name else None)
    agreed = (found.total.epsilon, found.total.delta, found.every, lifetime)
    if stated != agreed:
        per = f" for each {agreed[2]}" if agreed[2] else ""
        per += f", {lifetime:g} over all of them" if lifetime is not None else ""
        other = "" if "/" in name else ", or name another budget if the data are of other people"
        differing = zip(("epsilon", "delta", "every", "lifetime"), stated, agreed, strict=True)
        key, given = next((key, one) for key, one, another in differing if one != another)
        raise InvalidInput(
            key,
            plain("none") if given in (None, "") else given,
            f"the ledger has a budget {name!r} of epsilon {agreed[0]:g}, delta {agreed[1]:g}{per}, which never "
            f"changes; state the same{other}",
        )
    unit = dataset.protects if dataset.every is None else protected_unit(dataset.protects, unit_named(dataset.every))
    if found.protects != unit:
        raise InvalidInput(
            "protects",
            dataset.protects,
            f"the ledger's budget {name!r} protects {found.protects}, which never changes; state the same",
        )
    return found
