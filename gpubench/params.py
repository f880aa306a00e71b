"""What a user writes after -p, and as the values of an axis in a plan: `n=256,512`, `n=256:4352:64`, `n=1:1024:*2`.

A value is a plain decimal integer or a name. `1e9`, `4k` and `010` mean different things to different readers, so they
are refused; whether an axis can take a value is the axis's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpubench.errors import UsageError
from gpubench.result import Param

MOST_VALUES = 10_000
"""Of one axis, asked for at once: more is a slip of the keyboard."""

_AXIS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # 18 digits: within 64 bits
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]{0,63}")
_FORMS = "such as {0}=1024, {0}=256,512 or {0}=256:4352:64"


def parse_params(texts: Iterable[str]) -> dict[str, tuple[Param, ...]]:
    """Every -p of a command line, by axis; UsageError where an axis is given twice."""
    params: dict[str, tuple[Param, ...]] = {}
    for text in texts:
        name, values = parse_param(text)
        if name in params:
            raise UsageError(f"-p {name} is given twice", f"one list: -p {name}=VALUE,VALUE")
        params[name] = values
    return params


def parse_param(text: str) -> tuple[str, tuple[Param, ...]]:
    """The axis and the values of one -p; UsageError that says what to type where it is not NAME=VALUES."""
    name, equals, values = text.partition("=")
    name = name.strip()
    if not equals or not _AXIS.fullmatch(name):
        raise UsageError(f"-p {text!r} is not NAME=VALUES", _FORMS.format("n"))
    return name, parse_values(name, values)


def parse_values(name: str, text: str) -> tuple[Param, ...]:
    """The values of axis `name` in `1,2,4`, `a:b:step` (b included where it is hit), `a:b:*factor`, or a mix."""
    values: list[Param] = []
    for piece in text.split(","):
        piece = piece.strip()
        if not piece:
            problem = "an empty value" if text.strip() else "no value"
            raise UsageError(f"axis {name}: {problem}" + (f" in {text!r}" if text.strip() else ""), _FORMS.format(name))
        if ":" in piece:
            values.extend(_range(name, piece, MOST_VALUES - len(values)))
        else:
            values.append(_value(name, piece))
        if len(values) > MOST_VALUES:
            raise _too_many(name, text)
    return tuple(values)


def _value(name: str, text: str) -> Param:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NAME.fullmatch(text):
        return text
    raise UsageError(f"axis {name}: {_short(text)} is neither a plain decimal integer nor a name", _FORMS.format(name))


def _range(name: str, text: str, room: int) -> list[int]:
    """The integers of first:last:step or first:last:*factor, at most `room` of them."""
    parts = text.split(":")
    forms = f"{name}=FIRST:LAST:STEP, such as {name}=256:4352:64, or {name}=1:1024:*2"
    if len(parts) != 3:
        raise UsageError(f"axis {name}: the range {_short(text)} is not FIRST:LAST:STEP", forms)
    times = parts[2].startswith("*")
    numbers = [*parts[:2], parts[2].removeprefix("*")]
    if not all(_INTEGER.fullmatch(number) for number in numbers):
        raise UsageError(f"axis {name}: the range {_short(text)} is not of plain decimal integers", forms)
    first, last, step = map(int, numbers)
    if step < (2 if times else 1):
        least = "a factor of at least 2" if times else "a step of at least 1"
        raise UsageError(f"axis {name}: the range {text!r} never ends", f"it needs {least}")
    if first > last:
        raise UsageError(f"axis {name}: the range {text!r} is empty", f"smaller end first: {last}:{first}:{parts[2]}")
    if not times:
        if (last - first) // step + 1 > room:
            raise _too_many(name, text)
        return list(range(first, last + 1, step))
    if first < 1:
        raise UsageError(f"axis {name}: the range {text!r} multiplies from {first}", "it starts at 1 or above")
    values = []
    while first <= last:  # at most 60 values: the ends have 18 digits
        values.append(first)
        first *= step
    return values


def _too_many(name: str, text: str) -> UsageError:
    return UsageError(f"axis {name}: {_short(text)} is more than {MOST_VALUES} values", "ask for fewer")


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
