"""The configuration of a desk: a TOML file, checked as a whole at the start, with errors that name the line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from dpselect._toml import KeyLines, Place, read_toml
from dpselect.desk.same_rows import TableAddress, same_rows
from dpselect.errors import InvalidInput, plain
from dpselect.ledger import url_of
from dpselect.sources import Domain, check_not_rows, files_of, public_name
from dpselect.writing import write_whole

UNKNOWN, IN_TABLE = "unknown", "table:"
NAME = r"^[A-Za-z0-9_-]{1,60}$"


def _host(text: str) -> str:
    """Refuse what no browser sends as the name of a host."""
    if re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*", text) is None:
        raise ValueError("must be the name or address of a host alone, such as desk.example.org")
    return text


Text = Annotated[str, Field(min_length=1)]
Epsilon = Annotated[float, Field(gt=0, le=1e6)]
Name = Annotated[str, Field(pattern=NAME)]
Host = Annotated[str, AfterValidator(_host)]

_SHARED = ("epsilon", "delta", "every", "lifetime", "protects")
"""What two data sets with one budget must agree in."""


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
        if self.table is not None:
            TableAddress.of(self.source, self.table)
        return self


class DeskConfig(_Strict):
    """The whole configuration, as docs/desk.md describes it.

    Attributes
    ----------
    ledger
        The path or URL of the ledger.
    hosts
        Further names under which the service is reached.
    requests_per_minute
        The limit for each analyst; 0 for none.
    datasets
        What may be asked about, by name.
    """

    ledger: Text
    hosts: list[Host] = []
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
    config, lines = _stated(path)
    try:
        url_of(config.ledger)
    except InvalidInput as error:
        raise refusal(path, [(lines.of(("ledger",)), str(error))]) from None
    if mistakes := _wrong_files(config, lines) or conflicts(config, lines):
        raise refusal(path, mistakes)
    return config


def read_ledger_place(path: Path) -> str:
    """Return where the ledger of a configuration is; the files of its data sets need not be there."""
    return _stated(path)[0].ledger


def lines_of(path: Path) -> KeyLines:
    """Return the lines of the keys of a configuration that was read."""
    return KeyLines(path.read_text(encoding="utf-8"))


def _stated(path: Path) -> tuple[DeskConfig, KeyLines]:
    """Return what a file states, checked by itself, and the lines of its keys."""
    stated, text = read_toml(path)
    lines = KeyLines(text)
    try:
        config = DeskConfig.model_validate(_located(stated, path.absolute().parent))
    except ValidationError as error:
        found = [(lines.of(_place(each["loc"])), _mistake(each)) for each in error.errors()]
        raise refusal(path, found) from None
    return config, lines


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


def refusal(path: Path, mistakes: list[tuple[int | None, str]]) -> InvalidInput:
    """Return the error for mistakes in a configuration, each with its line if it is known."""
    ordered = sorted(mistakes, key=lambda one: one[0] or 0)
    told = [f"line {line}: {text}" if line is not None else text for line, text in ordered]
    return InvalidInput("config", plain(path.name), "; ".join(told))


def _located(stated: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return what is stated, with paths made absolute."""

    def absolute(text: Any) -> Any:
        if not isinstance(text, str) or not text:
            return text
        scheme, separator, rest = text.partition("://")
        if not separator:
            return str(folder / text)
        return f"{scheme}://{folder / rest}" if scheme.lower() == "duckdb" and rest else text

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
                elif text == UNKNOWN and not dataset.delta:
                    found.append((line, f"{kind}.{column} is unknown, which needs a delta, such as delta = 1e-6"))
                if text == UNKNOWN:
                    continue
                if text.startswith(IN_TABLE):
                    if dataset.table is None or kind == "like":
                        found.append((line, f"{kind}.{column} must be a file"))
                    continue
                if not Path(text).is_file():
                    found.append((line, f"{kind}.{column}: there is no such file: {Path(text).name}"))
                    continue
                try:
                    check_not_rows(dataset.source, dataset.table, Domain.of(text))
                except InvalidInput:
                    found.append((line, f"{kind}.{column} must be a public file, not the private rows"))
    return found


def conflicts(config: DeskConfig, lines: KeyLines) -> list[tuple[int | None, str]]:
    """Return which data sets read the same rows under different budgets, or disagree about a budget that they share."""
    found: list[tuple[int | None, str]] = []
    named = list(config.datasets.items())
    for place, (first, one) in enumerate(named):
        for second, other in named[place + 1 :]:
            line = lines.of(("datasets", second))
            number = lines.of(("datasets", first))
            named_first = first if number is None else f"{first} (line {number})"
            same_budget = (one.budget or first) == (other.budget or second)
            is_same = same_rows(one.source, one.table, other.source, other.table)
            same_name = public_name(one.source, one.table) == public_name(other.source, other.table)
            if same_budget and same_name and not is_same:
                # A key belongs to a budget, and a question does not know its folder or server.
                text = f"{second} shares the budget of {named_first}, so its file or table must not have"
                alike = "; write source and table alike if they are the same" if is_same is None else ""
                found.append((line, f"{text} the same name; rename one{alike}"))
            if not same_budget and is_same is None and not (one.budget and other.budget):
                advice = "state budget in both: one name if a person can be in both, otherwise two"
                text = f"{second} may read the rows of {named_first}, which their addresses do not tell"
                found.append((line, f"{text}; {advice}"))
            if not same_budget and is_same:
                advice = f'state the same one: budget = "{one.budget or first}"'
                found.append((line, f"{second} reads the rows of {named_first} under another budget; {advice}"))
            # On the same rows, another column of times would count a row in another period, whose budget is another;
            # another column of people would make another unit of protection.
            shared = _SHARED if is_same is False else (*_SHARED, "time", "person")
            differing = [key for key in shared if getattr(one, key) != getattr(other, key)]
            if same_budget and differing:
                found.append((line, f"{second} shares the budget of {named_first}, so {differing[0]} must agree"))
    return found


def _toml(value: Any) -> str:
    """Return a value in TOML; its strings are those of JSON, in which no character is written as two."""
    if isinstance(value, dict):
        inside = ", ".join(f"{_toml(name)} = {_toml(each)}" for name, each in value.items())
        return "{ " + inside + " }" if inside else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f") if isinstance(value, str) else repr(value)
