"""Which files a path names, and in which format; both are decided by names alone, before a file is opened."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from dpselect.errors import InvalidInput, plain

DELIMITERS = {".csv": ",;\t|", ".txt": ",;\t|", ".tsv": "\t"}
"""The endings of CSV files, with the delimiters that each may have."""

LINES = (".jsonl", ".ndjson", ".json")
PARQUET = (".parquet", ".parq", ".pq")

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_IN_FOLDER = (".parquet", ".csv")
"""The files that a folder stands for: those with the first of these endings that it has."""

_ENDINGS = (
    "must be a file whose name ends in .csv, .tsv, .txt, .jsonl, .ndjson or .json (also with .gz or .zst after it) or "
    "in .parquet"
)
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""A URL, also after pathlib has turned its // into /."""

_OBJECT_STORES = ("s3", "s3a", "s3n", "gs", "gcs", "az", "azure", "abfs", "abfss", "wasb", "wasbs", "adl", "r2", "hdfs")
_WEB = ("http", "https", "ftp", "ftps", "sftp")


@dataclass(frozen=True)
class Located:
    """Existing files of one format: one file, or those of a folder or a pattern."""

    path: Path
    ending: str
    compression: str
    parts: tuple[str, ...]

    @classmethod
    def at(cls, argument: str, path: str | os.PathLike[str]) -> Located:
        """Find the files that a path names; `argument` names it in error messages."""
        if not str(path):
            raise InvalidInput(argument, "", "must be the path of a file")
        path = Path(path)
        try:
            is_file, is_folder = path.is_file(), path.is_dir()
        except (OSError, ValueError):
            is_file = is_folder = False
        if is_folder:
            ending, compression, parts = _in_folder(argument, path)
        else:
            ending, compression = _format(path)
            parts = [str(path)] if is_file else _matches(str(path))
        if not parts:
            _refuse_url(argument, path)
            instead = ", or state the number of possible items" if argument == "domain" else ""
            raise InvalidInput(argument, str(path), f"there is no such file; check the path{instead}")
        if ending in _SPREADSHEETS:
            raise InvalidInput(
                argument,
                path.name,
                "spreadsheets are not read; save the sheet as CSV (UTF-8), or in Python read it with pandas.read_excel",
            )
        if ending not in (*DELIMITERS, *LINES, *PARQUET):
            raise InvalidInput(argument, path.name, _ENDINGS)
        if ending in LINES and not is_file:
            raise InvalidInput(
                argument, str(path), "only Parquet and CSV files can be read by a pattern; name one file"
            )
        if not all(os.access(part, os.R_OK) for part in parts):
            raise InvalidInput(argument, str(path), "permission to read it is denied; check the rights of the file")
        return cls(path, ending, compression, tuple(parts))


def _in_folder(argument: str, folder: Path) -> tuple[str, str, list[str]]:
    """Return the format and the files of a folder."""
    for ending in _IN_FOLDER:
        if parts := _matches(os.path.join(glob.escape(str(folder)), f"*{ending}")):
            return ending, "none", parts
    raise InvalidInput(
        argument,
        str(folder),
        f"the folder has no file that ends in {' or '.join(_IN_FOLDER)}; name a file, or a pattern such as '*.csv.gz'",
    )


def _format(path: Path) -> tuple[str, str]:
    """Return the ending of a file name that names the format, and the compression."""
    endings = [suffix.lower() for suffix in path.suffixes[-2:]] or [""]
    if endings[-1] in _COMPRESSIONS and len(endings) == 2 and endings[0] not in PARQUET:
        return endings[0], _COMPRESSIONS[endings[-1]]
    return endings[-1], "none"


def _matches(pattern: str) -> list[str]:
    if not glob.has_magic(pattern) or "\0" in pattern:
        return []
    return sorted(match for match in glob.glob(pattern) if os.path.isfile(match))


def refused_url(argument: str, scheme: str) -> InvalidInput | None:
    """Return the error for a URL that no engine here reads, with what to do instead; None for another scheme.

    The URL itself is not quoted, because it may hold a password or a token.
    """
    given = plain(f"{scheme.lower()}://…")
    if scheme.lower() in _OBJECT_STORES:
        with_spark = (
            ", or read them with Spark: spark://HOST:PORT or spark+local:// with --table s3a://…, if Spark has the "
            "connector"
        )
        return InvalidInput(
            argument,
            given,
            "object stores are not read directly; copy the files to this machine and name them"
            + (with_spark if argument == "table" else ""),
        )
    if scheme.lower() in _WEB:
        return InvalidInput(argument, given, "files are not downloaded; fetch it first, such as with curl, and name it")
    if scheme.lower() == "file":
        return InvalidInput(argument, given, "must be a path; leave out file://")
    return None


def _refuse_url(argument: str, path: Path) -> None:
    """Raise an error if a path, which names no file, is a URL."""
    match = _URL.match(str(path))
    if match is not None:
        raise refused_url(argument, match[1]) or InvalidInput(
            argument,
            plain(f"{match[1].lower()}://…"),
            "must be the path of a file; databases are read by top and rank",
        )


def would_read(source: str | os.PathLike[str], file: str | os.PathLike[str]) -> bool:
    """Return whether a folder or pattern would also read a file, which need not exist yet.

    Parameters
    ----------
    source : str or PathLike
        A path, as in `dpselect.top`.
    file : str or PathLike
        The file that is to be written.

    Returns
    -------
    bool
        False if `source` is a single file, or cannot be read.

    Examples
    --------
    >>> would_read("rows/2026-11-15.csv", "rows/answer.csv")
    False
    """
    try:
        found = Located.at("table", source)
    except InvalidInput:
        return False
    if found.path.is_file():
        return False
    name = f"*{found.ending}" if found.path.is_dir() else found.path.name
    folder = os.path.realpath(Path(file).parent)
    return fnmatchcase(Path(file).name, name) and any(
        os.path.realpath(Path(part).parent) == folder for part in found.parts
    )
