"""The one JSON door: strict and bounded reading, strict writing, and files that are never torn.

Reading refuses what other parsers let through: NaN and infinities, numbers that overflow, keys given twice, a byte
order mark, endless nesting. Every refusal is one line that names the file and the place.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import math
import os
import re
import secrets
import stat
import zlib
from pathlib import Path, PurePath
from typing import Any, NoReturn

from gpubench.errors import UsageError

LIMIT = 512 * 1024 * 1024
"""Most bytes read from one file, counted after decompression."""
DIGITS = 40
"""Most characters of an integer; counts of bytes and flops need far fewer."""

_GZIP_MAGIC = b"\x1f\x8b"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DIGITS_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_NUMBER = b"0" * DIGITS
_HUGE_NUMBER = re.compile(rb"0e\+?000+(?:[\s,\]}]|\Z)")
"""An exponent below 100 is too small to overflow with fewer than DIGITS digits before it."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|NaN|-?Infinity|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?', re.DOTALL)


class _Refused(Exception):
    """A value that JSON as we read it cannot hold. `token` is its text in the file, None where a key says the place."""

    def __init__(self, what: str, token: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.token = token


def loads(text: str | bytes, where: str) -> Any:
    """The value of one JSON document. `where` names its origin in the UsageError that anything else raises."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if isinstance(text, bytes):
        text = _decoded(text, where)
    if text.startswith("\ufeff"):
        raise UsageError(f"{where}: begins with a byte order mark", "save it as UTF-8 without a BOM")
    if not text.strip():
        raise UsageError(f"{where}: is empty", "expected a JSON document")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, **_number_hooks(data))
        if "\\u" in text and _SURROGATE.search(text):
            _refuse_surrogates(text)
    except json.JSONDecodeError as error:
        _refuse_syntax(text, where, error)
    except _Refused as error:
        place = "" if error.token is None else _place(text, error.token)
        raise UsageError(f"{where}: {error.what}{place}") from None
    except RecursionError:
        raise UsageError(f"{where}: is nested too deeply") from None
    return value


def dumps(value: Any, indent: int | None = None) -> str:
    """Strict JSON, keys in the order given, no spaces unless `indent` is given.

    A NaN or an infinity is an error of the program, not of the user: ValueError. Text that is not Unicode (bytes of an
    argument or a file name that are not UTF-8) is written with "?" in place of what cannot be.
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, indent=indent, separators=separators)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def read_bytes(path: Path, limit: int = LIMIT) -> bytes:
    """The content of a file, decompressed if it is gzip by its first bytes; UsageError if it cannot be had."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise UsageError(f"{shown(path)}: no such file") from None
    except IsADirectoryError:
        raise UsageError(f"{shown(path)}: is a folder, not a file") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {shown(path)}: {_reason(error)}") from None
    if len(data) <= limit and data.startswith(_GZIP_MAGIC):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(limit + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(f"{shown(path)}: damaged gzip file: {_reason(error)}") from None
    if len(data) > limit:
        raise UsageError(f"{shown(path)}: holds more than {limit:,} bytes, the most gpubench reads from one file")
    return data


def write_atomic(path: Path, data: bytes, replace: bool = True) -> None:
    """Write a whole file or nothing: a reader sees the old content or the new, and a failure leaves the old.

    With `replace=False` an existing file is a UsageError. A name that ends in .gz is compressed, the same data always
    to the same bytes. A link is followed; a device or a pipe is written to. Every failure is a UsageError.
    """
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    try:
        old = _status(path)
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if old is not None and not stat.S_ISREG(old.st_mode):
            with open(path, "wb", buffering=0) as file:
                write_all(file.fileno(), data)
            return
        target = Path(os.path.realpath(path))
        temporary = target.parent / f".gpubench-{secrets.token_hex(8)}.tmp"
        try:
            _write_new(temporary, data, None if old is None else stat.S_IMODE(old.st_mode))
            if replace:
                os.replace(temporary, target)
            else:
                _link_new(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(target.parent)
    except FileExistsError:
        raise UsageError(f"{shown(path)}: exists already and is not replaced") from None
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from None


def shown(path: PurePath) -> str:
    """A path as one printable line: a name may hold anything, and one typed wrong more than that."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def cannot_write(path: Path, error: OSError | ValueError, hint: str = "") -> UsageError:
    """The one line for a file that could not be written."""
    missing = isinstance(error, FileNotFoundError) and not path.parent.exists()
    why = f"there is no folder {shown(path.parent)}" if missing else _reason(error)
    return UsageError(f"cannot write {shown(path)}: {why}", hint)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte; os.write may stop early, as on a disk that fills up."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power failure, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folder
        return
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems
        pass
    finally:
        os.close(descriptor)


def _write_new(path: Path, data: bytes, mode: int | None) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        write_all(descriptor, data)
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link_new(temporary: Path, target: Path) -> None:
    """Give a finished file its name, unless the name is taken: FileExistsError."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name, then move over it
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.replace(temporary, target)


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _reason(error: Exception) -> str:
    """The system's words for a failure, without its number and path."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(words.split()) or type(error).__name__


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{where}: byte {error.start} (line {line}) is not UTF-8 text") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"key {_short(json.dumps(key))} is given twice in one object")
            seen.add(key)
    return result


def _number_hooks(data: bytes) -> dict[str, Any]:
    """The checks of numbers, where the text may hold one to refuse: a call of Python for each sample of many rows takes
    longer than all the rest of reading them."""
    shape = data.translate(_DIGITS_ALIKE)
    suspicious = _LONG_NUMBER in shape or _HUGE_NUMBER.search(shape)
    return {"parse_float": _float, "parse_int": _int} if suspicious else {}


def _constant(token: str) -> NoReturn:
    raise _Refused(f"{token} is not a JSON number", token)


def _float(token: str) -> float:
    value = float(token)
    if math.isinf(value):
        raise _Refused(f"{_short(token)} is too large for a number", token)
    return value


def _int(token: str) -> int:
    if len(token) > DIGITS:
        raise _Refused(f"an integer of {len(token.lstrip('-'))} digits is too long", token)
    return int(token)


def _short(token: str) -> str:
    return token if len(token) <= 24 else token[:20] + "…"


def _refuse_surrogates(text: str) -> None:
    """Half of a UTF-16 pair is no character: it could be neither printed nor written again."""
    for token in _TOKEN.finditer(text):
        if _SURROGATE.search(token[0]):
            try:
                json.loads(token[0]).encode("utf-8")
            except UnicodeEncodeError:
                raise _Refused("text with half a surrogate pair", token[0]) from None


def _refuse_syntax(text: str, where: str, error: json.JSONDecodeError) -> NoReturn:
    place = f"line {error.lineno}, column {error.colno}"
    if error.msg == "Extra data":
        raise UsageError(f"{where}: goes on after the end of the JSON document, at {place}") from None
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        raise UsageError(f"{where}: ends in the middle of the JSON document, at {place}", "is it cut short?") from None
    raise UsageError(f"{where}: not JSON at {place}: {error.msg[0].lower()}{error.msg[1:]}") from None


def _place(text: str, token: str) -> str:
    """Where a token stands first, outside of other texts."""
    match = next((match for match in _TOKEN.finditer(text) if match[0] == token), None)
    if match is None:
        return ""
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - text.rfind("\n", 0, match.start())
    return f", at line {line}, column {column}"
