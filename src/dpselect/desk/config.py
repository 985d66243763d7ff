"""The configuration of a desk: a TOML file, checked as a whole at the start, with errors that name the line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dpselect.errors import InvalidInput, plain
from dpselect.sources import Domain, check_not_rows, files_of
from dpselect.writing import write_whole

UNKNOWN, IN_TABLE = "unknown", "table:"
NAME = r"^[A-Za-z0-9_-]{1,60}$"

Text = Annotated[str, Field(min_length=1)]
Epsilon = Annotated[float, Field(gt=0, le=1e6)]
Name = Annotated[str, Field(pattern=NAME)]

_SHARED = ("epsilon", "delta", "every", "lifetime", "protects")
"""What two data sets with one budget must agree in."""

_TABLE_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"([^"]*)"|'([^']*)'""")

Place = tuple[str, ...]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class DataSetConfig(_Strict):
    """A data set that may be asked about: where its rows are, what is public about it, and its budget.

    See docs/desk.md for what each key means.
    """

    source: Text
    table: Text | None = None
    person: Text
    items: Annotated[dict[Text, Text], Field(min_length=1)]
    epsilon: Epsilon
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    people: Annotated[int, Field(ge=1)] | None = None
    max_items_per_person: Annotated[int, Field(ge=1)] | None = None
    filters: dict[Text, Text] = {}
    groups: dict[Text, Text] = {}
    max_groups_per_person: Annotated[int, Field(ge=1)] = 1
    time: Text | None = None
    every: Literal["day", "week", "month"] | None = None
    lifetime: Epsilon | None = None
    like: dict[Text, Text] = {}
    answer_after: Annotated[float, Field(ge=0, le=3600)] = 3.0
    protects: Text = "one person"
    budget: Name | None = None
    looked: bool = False
    analysts: dict[Name, Epsilon] = {}

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if (self.time is None) != (self.every is None):
            raise ValueError("time (a column) and every (day, week or month) must be stated together")
        if self.lifetime is not None and self.every is None:
            raise ValueError("lifetime must be left out without every: epsilon is the total for all time")
        if "://" in self.source and self.table is None:
            raise ValueError("table must name the table of the database")
        if "://" not in self.source and self.table is not None:
            raise ValueError("table must be left out: the source is a file")
        return self


class DeskConfig(_Strict):
    """The whole configuration."""

    ledger: Text
    hosts: list[Text] = []
    requests_per_minute: Annotated[int, Field(ge=0)] = 120
    datasets: dict[Name, DataSetConfig]


def read_config(path: Path) -> DeskConfig:
    """Read and check a configuration; paths in it are relative to its folder.

    Parameters
    ----------
    path : Path
        The TOML file.

    Returns
    -------
    DeskConfig
        The configuration, with absolute paths.

    Raises
    ------
    InvalidInput
        With every mistake, each with its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput("config", str(path), "must be a TOML file in UTF-8 that can be read") from None
    try:
        stated = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput("config", str(path), f"it is not valid TOML: {error}") from None
    lines = KeyLines(text)
    try:
        config = DeskConfig.model_validate(_located(stated, path.absolute().parent))
    except ValidationError as error:
        found = [(lines.of(_place(each["loc"])), _mistake(each)) for each in error.errors()]
        raise _refusal(path, found) from None
    if mistakes := _wrong_files(config, lines) or _shared_sources(config, lines):
        raise _refusal(path, mistakes)
    return config


def write_config(config: DeskConfig, path: Path) -> None:
    """Write a configuration that `read_config` reads back; the file is replaced as a whole."""
    stated = config.model_dump(exclude_defaults=True)
    datasets = stated.pop("datasets", {})
    lines = [f"{name} = {_toml(value)}" for name, value in stated.items()]
    for name, dataset in datasets.items():
        lines += ["", f"[datasets.{name}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in dataset.items()]
    if not datasets:
        lines += ["", "[datasets]"]
    write_whole(path, ("\n".join(lines) + "\n").encode())


class KeyLines:
    """Finds the line of a key in a TOML text, which `tomllib` does not tell."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Place, int] = {}
        table: Place = ()
        for number, line in enumerate(text.splitlines(), start=1):
            if header := _TABLE_HEADER.match(line):
                table = _parts(header[1])
                self._lines.setdefault(table, number)
            elif key := _KEY.match(line):
                self._lines.setdefault((*table, *_parts(key[1])), number)

    def of(self, place: Place) -> int | None:
        """Return the line of a key, of the nearest key around it, or None."""
        while place:
            if place in self._lines:
                return self._lines[place]
            place = place[:-1]
        return None


def _parts(key: str) -> Place:
    return tuple(match[1] or match[2] or match[0] for match in _KEY_PART.finditer(key))


def _place(location: tuple[int | str, ...]) -> Place:
    return tuple(str(part) for part in location if part != "[key]")


def _mistake(error: Mapping[str, Any]) -> str:
    """Return a mistake that Pydantic found, without the value, which can hold a password."""
    place = _place(error["loc"])
    name = ".".join(place)
    if error["type"] == "extra_forbidden":
        return f"{name} is not a key of the configuration"
    if error["type"] == "missing":
        return f"{name} is missing"
    if error["type"] == "value_error":
        return f"{name}: {error['ctx']['error']}"
    if error["type"] == "string_pattern_mismatch":
        return f"{name} must be a name of letters, digits, - and _, at most 60 characters"
    return f"{name}: {str(error['msg'])[0].lower()}{str(error['msg'])[1:]}"


def _refusal(path: Path, mistakes: list[tuple[int | None, str]]) -> InvalidInput:
    ordered = sorted(mistakes, key=lambda one: one[0] or 0)
    told = [f"line {line}: {text}" if line is not None else text for line, text in ordered]
    return InvalidInput("config", plain(path.name), "; ".join(told))


def _located(stated: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return what is stated, with paths made absolute."""

    def absolute(text: Any) -> Any:
        is_path = isinstance(text, str) and text and "://" not in text
        return str(folder / text) if is_path else text

    def listed(lists: Any) -> Any:
        if not isinstance(lists, dict):
            return lists
        return {name: _list(text, absolute) for name, text in lists.items()}

    located = {**stated, "ledger": absolute(stated["ledger"])} if "ledger" in stated else dict(stated)
    datasets = located.get("datasets")
    if isinstance(datasets, dict):
        located["datasets"] = {name: _dataset_located(each, absolute, listed) for name, each in datasets.items()}
    return located


def _list(text: Any, absolute: Any) -> Any:
    is_other = isinstance(text, str) and (text == UNKNOWN or text.startswith(IN_TABLE))
    return text if is_other else absolute(text)


def _dataset_located(stated: Any, absolute: Any, listed: Any) -> Any:
    if not isinstance(stated, dict):
        return stated
    changed = {"source": absolute, "items": listed, "groups": listed, "like": listed}
    numbers = {"epsilon", "delta", "lifetime", "answer_after"}
    located = {name: changed[name](value) if name in changed else value for name, value in stated.items()}
    # TOML distinguishes 2 from 2.0; people do not.
    return {
        name: float(value) if name in numbers and isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in located.items()
    }


def _wrong_files(config: DeskConfig, lines: KeyLines) -> list[tuple[int | None, str]]:
    """Return what is wrong with the files that the data sets name."""
    found = []
    for name, dataset in config.datasets.items():
        at = ("datasets", name)
        if "://" not in dataset.source and not files_of(dataset.source):
            found.append((lines.of((*at, "source")), f"source: there is no such file: {Path(dataset.source).name}"))
        for kind in ("items", "groups", "like"):
            for column, text in getattr(dataset, kind).items():
                line = lines.of((*at, kind, column))
                if text == UNKNOWN and kind != "items":
                    found.append((line, f"{kind}.{column} must be a public list, not unknown"))
                if text == UNKNOWN or text.startswith(IN_TABLE):
                    continue
                if not Path(text).is_file():
                    found.append((line, f"{kind}.{column}: there is no such file: {Path(text).name}"))
                    continue
                try:
                    check_not_rows(dataset.source, dataset.table, Domain.of(text))
                except InvalidInput:
                    found.append((line, f"{kind}.{column} must be a public file, not the private rows"))
    return found


def _shared_sources(config: DeskConfig, lines: KeyLines) -> list[tuple[int | None, str]]:
    """Return the data sets that read the same rows under different budgets, or one budget with two totals."""
    found: list[tuple[int | None, str]] = []
    named = list(config.datasets.items())
    for place, (first, one) in enumerate(named):
        for second, other in named[place + 1 :]:
            line = lines.of(("datasets", second))
            earlier = lines.of(("datasets", first))
            same_budget = (one.budget or first) == (other.budget or second)
            if not same_budget and _same_rows(one, other):
                advice = f'state the same one: budget = "{one.budget or first}"'
                found.append(
                    (line, f"{second} reads the rows of {first} (line {earlier}) under another budget; {advice}")
                )
            differing = [key for key in _SHARED if getattr(one, key) != getattr(other, key)]
            if same_budget and differing:
                found.append(
                    (line, f"{second} shares the budget of {first} (line {earlier}), so {differing[0]} must agree")
                )
    return found


def _same_rows(one: DataSetConfig, other: DataSetConfig) -> bool:
    if one.table is not None and other.table is not None:
        return _database(one) == _database(other)
    files = [{path.resolve() for path in files_of(each.source, each.table)} for each in (one, other)]
    return not files[0].isdisjoint(files[1])


def _database(dataset: DataSetConfig) -> tuple[str, ...]:
    """Return what identifies a table: the scheme, the server and database, and the name without the usual schema."""
    scheme, _, rest = dataset.source.partition("://")
    address = rest.rpartition("@")[2].partition("?")[0].casefold()
    address = re.sub(r"^(localhost|\[::1\]|127\.0\.0\.1)?(:5432)?(?=/|$)", "localhost", address)
    table = (dataset.table or "").casefold().replace('"', "")
    return scheme.casefold().partition("+")[0], address, re.sub(r"^(public|main)\.", "", table)


def _toml(value: Any) -> str:
    """Return a value in TOML; its strings are those of JSON."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items())
        return "{ " + inside + " }" if inside else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, str) else repr(value)
