"""The desk alone: a curator's own page on loopback, which keeps what they state in desk.toml in the working folder."""

from __future__ import annotations

import hmac
import itertools
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import dpselect
from dpselect._toml import KeyLines
from dpselect.desk.accounts import ensure_accounts
from dpselect.desk.config import IN_TABLE, DataSetConfig, DeskConfig, conflicts, read_config, write_config
from dpselect.desk.datasets import UNKNOWN, DataSet, once_key
from dpselect.desk.door import ASK, CURATE, Caller
from dpselect.desk.questions import DataSetState, Description, DiscoverQuestion, DomainFound, Mode
from dpselect.desk.refusals import Refused
from dpselect.desk.shared import LOOPBACK
from dpselect.errors import DpSelectError, InvalidInput, SourceError, has_password
from dpselect.ledger import Ledger, url_of
from dpselect.sources import Domain, KeptCounts, check_not_rows, column_names
from dpselect.writing import csv_bytes, write_whole

CURATOR = "curator"
CONFIG, LEDGER = "desk.toml", "ledger.sqlite"
_FIXED = ("person", "epsilon", "delta", "every", "lifetime", "protects", "time")
"""What the first description of a data set fixes for good."""


class AloneDesk:
    """Files that one curator releases from.

    Parameters
    ----------
    folder : Path
        The working folder, which holds desk.toml and ledger.sqlite.
    offered : sequence of Path
        The files named on the command line: data, and public lists.
    ledger : str, optional
        The path or URL of the ledger; by default that of desk.toml, or ledger.sqlite in the folder. Budgets do not
        move: if there is a desk.toml, it must be the same.

    Raises
    ------
    InvalidInput
        If the configuration or the ledger cannot be used.
    """

    mode: Mode = "alone"
    requests_per_minute = 0

    def __init__(self, folder: Path, offered: Sequence[Path] = (), ledger: str | None = None) -> None:
        self.token = secrets.token_urlsafe(32)
        self.hosts = LOOPBACK
        self._folder = folder
        self._place = folder / CONFIG
        self._lock = threading.Lock()
        self.offered = [str(path) for path in offered]
        self._config, self._on_disk = self._configured(ledger), _content(self._place)
        self._ledger = Ledger(self._config.ledger)
        self._kept = KeptCounts()
        if self._config.datasets:
            ensure_accounts(self._config, self._ledger, self._place)
        described = {Path(each.source).resolve() for each in self._config.datasets.values()}
        self._undescribed = self._named([path for path in offered if path.resolve() not in described])

    def caller(self, token: str) -> Caller | None:
        """Return the curator, if this is the token in the printed URL."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        return Caller(CURATOR, frozenset({ASK, CURATE}))

    def states(self, caller: Caller) -> list[DataSetState]:
        """Return the facts of the data sets, described ones first."""
        described = [self._state(name) for name in self._config.datasets]
        return [*described, *(self._undescribed_state(name) for name in self._undescribed)]

    def dataset(self, name: str) -> DataSet | None:
        """Return a data set that is described."""
        config = self._config.datasets.get(name)
        if config is None and name in self._undescribed:
            raise Refused(409, "describe the data set first: POST …/describe", code="not-described")
        return None if config is None else self._unpadded(name, config)

    def sharing(self, budget: str) -> frozenset[str]:
        """Return the names of the data sets that share a budget."""
        return frozenset(name for name, config in self._config.datasets.items() if (config.budget or name) == budget)

    def describe(self, name: str, description: Description) -> DataSetState:
        """Keep what the curator states; the first description makes the budget, which never changes."""
        with self._lock:
            before = self._config.datasets.get(name)
            if before is None and name not in self._undescribed:
                raise Refused(404, "no such data set; GET /v1/datasets lists them")
            kept = {} if before is None else before.model_dump()
            stated = description.model_dump()
            if before is not None:
                changed = [field for field in _FIXED if stated[field] != getattr(before, field)]
                if changed:
                    raise Refused(
                        409, f"{changed[0]} was fixed when the data set was described", code="fixed", field=changed[0]
                    )
            stated["items"] = {column: self._path(listed) for column, listed in description.items.items()}
            source = str(self._undescribed[name].absolute()) if before is None else before.source
            with self._new_lists() as write:
                stated["groups"] = {
                    column: self._path(listed) if isinstance(listed, str) else str(write(name, column, listed))
                    for column, listed in description.groups.items()
                }
                self._keep(name, {**kept, **stated, "source": source})
            self._undescribed.pop(name, None)
            return self._state(name)

    def discover(self, name: str, asked: DiscoverQuestion, key: str) -> tuple[DomainFound, bool]:
        """Publish which items of a column exist; the list becomes the domain of the column.

        Returns what was published, and whether it is the stored answer.
        """
        config = self._config.datasets[name]
        dataset = DataSet(name, config, self._ledger, self._kept)
        dataset.check_period(asked.period)
        names = _columns(config.source)
        if names is not None and asked.item not in names:
            raise Refused(400, f"item: must be a column of the file ({', '.join(names)})", field="item")
        found = dpselect.discover(
            config.source,
            item=asked.item,
            person=config.person,
            epsilon=asked.epsilon,
            delta=asked.delta,
            max_items_per_person=asked.max_items_per_person,
            at_least=asked.at_least,
            protects=config.protects,
            table_name=config.table,
            time=None if asked.period is None else config.time,
            period=asked.period,
            ledger=self._ledger,
            dataset=dataset.budget,
            purpose=dataset.purpose(f"which items of {asked.item} exist"),
            once=once_key(CURATOR, key),
        )
        file = ""
        if len(found.items) > 0:
            with self._lock, self._new_lists() as write:
                listed = write(name, asked.item, [str(item) for item in found.items])
                now = self._config.datasets[name]  # something else may have been stated meanwhile
                self._keep(name, {**now.model_dump(), "items": {**now.items, asked.item: str(listed)}})
                file = listed.name
        told = DomainFound(items=len(found.items), file=file, guarantee=found.guarantee.to_dict())
        return told, found.repeated

    def remember_look(self, name: str) -> None:
        """Keep, before the true scores are read, that they were."""
        with self._lock:
            config = self._config.datasets[name]
            if not config.looked:
                self._keep(name, {**config.model_dump(), "looked": True})

    def ready(self) -> bool:
        """Whether the ledger can be read, or there is none yet."""
        try:
            if self._config.datasets:
                self._ledger.accounts()
        except DpSelectError:
            return False
        return True

    def _configured(self, ledger: str | None) -> DeskConfig:
        """Return what desk.toml states, or a configuration without data sets if there is none."""
        if ledger is not None and has_password(ledger):
            raise InvalidInput(
                "ledger", ledger, f"must have no password, as {CONFIG} would hold it; use a password file (~/.pgpass)"
            )
        wanted = LEDGER if ledger is None else ledger
        url_of(wanted)  # an error if there can be no ledger
        place = wanted if "://" in wanted else str((self._folder / wanted).absolute())
        if not self._place.exists():
            return DeskConfig(ledger=place, datasets={})
        config = read_config(self._place)
        if ledger is not None and Path(place).resolve() != Path(config.ledger).resolve():
            raise InvalidInput(
                "ledger",
                ledger,
                f"must be that of {CONFIG} ({self._shown(config.ledger)}), where the budgets are; name it, or leave "
                "--ledger and DPSELECT_LEDGER out",
            )
        return config

    def _keep(self, name: str, stated: dict[str, Any]) -> None:
        """Check and write the configuration with a data set described like this, and make its budget."""
        if _content(self._place) != self._on_disk:
            raise Refused(
                409,
                f"{CONFIG} has changed since this desk started, by hand or by another desk in this folder; stop this "
                "desk and start it again",
                code="changed",
            )
        datasets = {each: one.model_dump() for each, one in self._config.datasets.items()}
        try:
            config = DeskConfig.model_validate(
                {**self._config.model_dump(), "datasets": {**datasets, name: stated}}, strict=True
            )
        except ValidationError as error:
            first = error.errors()[0]
            field = next((str(part) for part in reversed(first["loc"]) if part in stated), None)
            raise Refused(400, f"{field or 'description'}: {first['msg']}", field=field) from None
        if mistakes := conflicts(config, KeyLines("")):
            raise Refused(409, mistakes[0][1], code="shared-rows")
        self._check(name, config.datasets[name])
        ensure_accounts(config, self._ledger)
        write_config(config, self._place)
        self._config, self._on_disk = config, _content(self._place)

    def _check(self, name: str, config: DataSetConfig) -> None:
        """Refuse columns, lists and conditions that cannot be used, before the budget is made."""
        try:
            self._check_columns(config)
            DataSet(name, config, self._ledger, self._kept).check()
        except InvalidInput as error:
            raise Refused(400, str(error), field=error.argument) from None
        except SourceError as error:
            raise Refused(400, str(error)) from None

    def _check_columns(self, config: DataSetConfig) -> None:
        names = column_names(config.source)
        for field, column in (("person", config.person), ("time", config.time)):
            if column is not None and names is not None and column not in names:
                raise InvalidInput(field, column, f"must be a column of the file ({', '.join(names)})")
        for field, columns in (("items", config.items), ("groups", config.groups)):
            for column in columns:
                if names is not None and column not in names:
                    raise InvalidInput(field, column, f"must be a column of the file ({', '.join(names)})")
                if column == config.person:
                    raise InvalidInput(field, column, "must be another column than the person's")
                listed = columns[column]
                if listed != UNKNOWN and not listed.startswith(IN_TABLE) and not Path(listed).exists():
                    raise InvalidInput(field, Path(listed).name, "there is no such file in the folder of this desk")
                try:
                    check_not_rows(config.source, config.table, Domain.of(listed))
                except InvalidInput:
                    raise InvalidInput(
                        field, Path(listed).name, "must be a public list, not the private rows themselves"
                    ) from None
        if UNKNOWN in config.items.values() and not config.delta:
            raise InvalidInput("delta", config.delta, "must be above 0, such as 1e-6, if nobody can list the items")

    def _unpadded(self, name: str, config: DataSetConfig) -> DataSet:
        """Return a data set whose answers leave at once: alone, whoever sees the time has the rows."""
        return DataSet(name, config.model_copy(update={"answer_after": 0.0}), self._ledger, self._kept)

    def _state(self, name: str) -> DataSetState:
        config = self._config.datasets[name]
        dataset = self._unpadded(name, config)
        place: dict[str, Any] = {
            "path": self._shown(config.source),
            "person": config.person,
            "items": {column: self._shown(listed) for column, listed in config.items.items()},
            "groups": {column: self._shown(listed) for column, listed in config.groups.items()},
        }
        place |= {"filters": config.filters, "time": config.time}
        place |= {"ledger": self._shown(self._config.ledger), "account": dataset.budget}
        changed = {"columns_of_source": _columns(config.source), "source": place}
        return dataset.state(CURATOR).model_copy(update=changed)

    def _undescribed_state(self, name: str) -> DataSetState:
        return DataSetState(
            name=name,
            columns=[],
            domain_size={},
            budget=None,
            analyst_budget=None,
            questions=None,
            protects="one person",
            described=False,
            answer_after=0.0,
            looked=False,
            columns_of_source=_columns(str(self._undescribed[name])),
            source={"path": str(self._undescribed[name])},
        )

    def _named(self, paths: Sequence[Path]) -> dict[str, Path]:
        """Return names for the files that can hold people's rows: those with two columns or more."""
        found: dict[str, Path] = {}
        for path in {each.resolve(): each for each in paths}.values():
            try:
                columns = column_names(str(path))
            except InvalidInput as error:
                raise InvalidInput("files", error.given, error.accepted) from None
            if columns is not None and len(columns) < 2:
                continue
            base = _file_part(path.name.partition(".")[0])[:50] or "data"
            taken = {*found, *self._config.datasets}
            names = [base, *(f"{base}-{number}" for number in range(2, len(taken) + 3))]
            found[next(each for each in names if each not in taken)] = path
        return found

    @contextmanager
    def _new_lists(self) -> Iterator[Callable[[str, str, list[str]], Path]]:
        """Yield a function that writes a public list beside desk.toml; if the block fails, new files go again.

        No file is replaced: a list that differs from the file of its name gets a name with the next number.
        """
        new: list[Path] = []

        def write(name: str, column: str, listed: list[str]) -> Path:
            content = csv_bytes([column], [[each] for each in listed])
            numbers = ("" if number == 1 else f"-{number}" for number in itertools.count(1))
            folder, start = self._folder.absolute(), f"{name}-{_file_part(column)}"
            places = (folder / f"{start}{number}.csv" for number in numbers)
            path = next(each for each in places if not each.exists() or _holds(each, content))
            if not path.exists():
                new.append(path)
                write_whole(path, content)
            return path

        try:
            yield write
        except BaseException:
            for path in new:
                path.unlink(missing_ok=True)
            raise

    def _path(self, listed: str) -> str:
        """Return a list as the configuration names it: files by their absolute paths."""
        if listed == UNKNOWN or listed.startswith(IN_TABLE):
            return listed
        path = Path(listed)
        offered = next((Path(each) for each in self.offered if Path(each).name == listed), None)
        return str((offered if offered is not None else self._folder / path).absolute())

    def _shown(self, place: str) -> str:
        """Return a path as people in the working folder write it."""
        return place.removeprefix(f"{self._folder.absolute()}{os.sep}")


def _columns(source: str) -> list[str] | None:
    """Return the columns of a file; None if they are not known, or the file is gone."""
    try:
        return column_names(source)
    except InvalidInput:
        return None


def _content(path: Path) -> bytes | None:
    """Return what a file holds; None if there is none."""
    return path.read_bytes() if path.is_file() else None


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file has this content."""
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content


def _file_part(name: str) -> str:
    """Return a name with nothing that a file name or URL could not have."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "list"
