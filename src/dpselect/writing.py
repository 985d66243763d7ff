"""Writing a file completely or not at all, and comparing paths that may lead to the same file."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import os
import re
import secrets
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_OPEN_FILE = re.compile(r"/dev/(stdout|stderr|fd/\d+)|/proc/[^/]+/fd/\d+")
_OWN_FILE = re.compile(r"/dev/(?:stdout|stderr)|(?:/dev|/proc/self)/fd/(\d{1,9})")
_MOUNTS = Path("/proc/self/mountinfo")


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace a file in one step: a failure or an interrupt leaves the old file as it was.

    The content goes to a temporary file in the same folder, which is then renamed. An existing file keeps its
    permissions, and a symbolic link still leads to it. A pipe or a device such as /dev/stdout is written to directly.
    """
    given = Path(path)
    number = _open_file(given)
    if number is not None or is_stream(given):
        # A socket cannot be opened by its name, but an open one can be written to.
        with given.open("ab") if number is None else os.fdopen(os.dup(number), "wb") as stream:
            stream.write(content)
        return
    target = given.resolve()
    before = target.stat() if target.exists() else None
    temporary = target.with_name(f".dpselect-{secrets.token_hex(8)}")
    try:
        # Not tempfile, which ignores the umask and makes files private to the user.
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            with contextlib.suppress(OSError):
                os.chown(temporary, before.st_uid, before.st_gid)
            os.chmod(temporary, stat.S_IMODE(before.st_mode))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return a CSV with a header, every cell in quotes."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def is_writable(path: str | os.PathLike[str]) -> bool:
    """Whether `write_whole` can write there: to a file, which may be new, in a writable folder, or to a stream."""
    given = Path(path)
    try:
        number = _open_file(given)
        if number is not None:
            return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        if is_stream(given):
            return os.access(given, os.W_OK)
        target = given.resolve()
        if target.exists() and not (target.is_file() and os.access(target, os.W_OK) and not _is_mounted(target)):
            return False
        return target.parent.is_dir() and os.access(target.parent, os.W_OK)
    except (OSError, ValueError, RuntimeError):
        return False


def is_same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file, by device and inode; by resolved names if one does not exist yet."""
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        pass
    try:
        return os.path.realpath(first) == os.path.realpath(second)
    except (OSError, ValueError):
        return False


def is_stream(path: Path) -> bool:
    """Whether a path leads to a device, a pipe, or an open file of this process, such as /dev/stdout."""
    if not path.exists() or path.is_dir():
        return False
    return not path.is_file() or _OPEN_FILE.fullmatch(str(path.absolute())) is not None


def _open_file(path: Path) -> int | None:
    """Return the file descriptor that a path such as /dev/stdout or /dev/fd/3 names, if any."""
    match = _OWN_FILE.fullmatch(str(path.absolute()))
    if match is None:
        return None
    return int(match[1]) if match[1] else 1 + path.name.endswith("err")


def _is_mounted(file: Path) -> bool:
    """Whether a file is a mount point by itself, as in containers, so that it cannot be replaced."""
    written = re.sub(r"[ \t\n\\]", lambda mark: f"\\{ord(mark[0]):03o}", str(file))
    with contextlib.suppress(OSError):
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
        return any(line.split(" ")[4] == written for line in lines)
    return False
