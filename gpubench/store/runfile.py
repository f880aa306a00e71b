"""The run file `gpubench.run/1`: a Run as JSON, and back with every key, type and rule checked.

The text is one JSON document with one line per key and one line per record, so that a run file can be searched and
compared by line. The journal (`gpubench.store.journal`) is made of the same lines.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gpubench.errors import UsageError
from gpubench.nearest import did_you_mean
from gpubench.result import SCHEMA, Ceiling, Conditions, Record, Run
from gpubench.store import jsonfile
from gpubench.suite import name_of, record_id

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

T = TypeVar("T")
FAMILY = SCHEMA.split("/")[0]

_KEYS = [field.name for kind in (Run, Record) for field in dataclasses.fields(kind)]
_EXPECTED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "dataclass_type": "an object",
}


def plain(value: Any) -> Any:
    """Dataclasses as dicts of their fields, at any depth; everything else as it is."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list) and value and dataclasses.is_dataclass(value[0]):
        return [plain(item) for item in value]
    return value


def to_json(run: Run) -> dict[str, Any]:
    """The document of a run: JSON values, `schema` first and `records` last."""
    return {**head(run), "records": plain(run.records)}


def head(run: Run) -> dict[str, Any]:
    """The document of a run without its records."""
    document = plain(dataclasses.replace(run, records=[]))
    del document["records"]
    return {"schema": document.pop("schema"), **document}


def encode(run: Run) -> bytes:
    """The text of a run file, UTF-8. ValueError if a value is NaN or infinite: None says what could not be had."""
    return document(head(run), [jsonfile.dumps(plain(record)) for record in run.records])


def document(head: dict[str, Any], rows: Iterable[str]) -> bytes:
    """The text of a run file from its head and the JSON of each record."""
    keys = [f"{jsonfile.dumps(key)}:{jsonfile.dumps(value)}" for key, value in head.items()]
    body = ",\n".join(rows)
    keys.append(f'"records":[\n{body}\n]' if body else '"records":[]')
    return ("{" + ",\n".join(keys) + "}\n").encode()


def decode(data: bytes, where: str) -> Run:
    """The run in the text of a run file; UsageError naming `where`, the field, what was expected and what is there."""
    with _no_collector():
        check_schema(jsonfile.loads(data, where), where)  # and forgotten: the types are read from the text
        return _checked(data, where)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Nothing read here is garbage; looking for some doubles the time that a file of thousands of rows takes."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def from_json(content: dict[str, Any], where: str) -> Run:
    """The run of a document in JSON values, as strict as `decode`."""
    check_schema(content, where)
    return _checked(jsonfile.dumps(content).encode(), where)


def check_schema(content: Any, where: str, schema: str = SCHEMA) -> None:
    """UsageError unless a document says that it is a run file, or one of another `schema`, of a version we read."""
    family, _, version = schema.partition("/")
    foreign = f"{where}: not a gpubench run file"
    if not isinstance(content, dict):
        raise UsageError(f"{foreign}: it holds {_kind(content)}, expected an object with the key schema")
    if "schema" not in content:
        raise UsageError(f"{foreign}: it has no key schema", f'expected "schema": "{schema}"')
    found = content["schema"]
    match = re.fullmatch(rf"{re.escape(family)}/([1-9][0-9]{{0,8}})", found) if isinstance(found, str) else None
    if match is None:
        paired = "gpubench compare FILE shows an A/B measurement" if str(found).startswith("gpubench.ab/") else ""
        raise UsageError(f"{foreign}: its schema is {_got(found)}, expected {schema}", paired)
    if int(match[1]) > int(version):
        raise UsageError(
            f"{where}: written by a newer gpubench: its schema is {found}, this one reads {schema}",
            "pip install --upgrade gpubench-suite",
        )


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a run file."""
    outer = _adapter(Run).json_schema()
    definitions = outer["$defs"]
    run = definitions.pop("Run")
    run["properties"]["schema"] = {"const": SCHEMA, "title": "Schema"}
    run["required"] = ["schema", *run["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **run, "$defs": definitions}


def typed(kind: type[T], data: bytes, where: str) -> T:
    """A document's text as one of our dataclasses, every key and type checked as in a run file."""
    with _no_collector():
        return _one(kind, data, where)


def decode_ceilings(values: list[Any], where: str) -> list[Ceiling]:
    """Ceilings from JSON values, as strict as in a run file."""
    return _validated(Ceiling, jsonfile.dumps(values).encode(), where, outer=0)


def record_to_json(record: Record) -> dict[str, Any]:
    """A record as JSON values."""
    return cast(dict[str, Any], plain(record))


def record_from_json(value: Any, where: str) -> Record:
    """A record from JSON values, as strict as in a run file."""
    record = _one(Record, jsonfile.dumps(value).encode(), where)
    if wrong := fault(record):
        raise UsageError(f"{where}: {wrong.removeprefix('.')}")
    return record


def _checked(data: bytes, where: str) -> Run:
    run = _one(Run, data, where)
    _check_run(run, where)
    return run


# Types: pydantic over the dataclasses, in a list because a dataclass of the standard library takes no configuration.


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(list[kind], config=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))


def _one(kind: type[T], data: bytes, where: str) -> T:
    value: T = _validated(kind, b"[" + data + b"]", where, outer=1)[0]
    return value


def _validated(kind: Any, data: bytes, where: str, outer: int) -> list[Any]:
    """The values of a JSON list; the first error becomes one line. `outer` levels of its place are not the user's."""
    from pydantic import ValidationError

    try:
        return cast(list[Any], _adapter(kind).validate_json(data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place: Sequence[int | str] = first["loc"][outer:]
        if len(place) > 2 and place[-3] == "params":  # and the last step is a branch of int | str
            place, wanted = place[:-1], f"expected an integer or a name, got {_got(first['input'])}"
        else:
            wanted = _wanted(first)
        raise UsageError(f"{where}: {_field(place)}{wanted}") from None


def _wanted(error: ErrorDetails) -> str:
    kind = error["type"]
    if kind == "json_invalid":  # what the strict reader let pass, and this one does not: hundreds of levels
        return "is nested too deeply"
    if kind == "missing":
        return "is missing"
    if kind == "unexpected_keyword_argument":
        return "unknown key" + did_you_mean(str(error["loc"][-1]), _KEYS)
    context = error.get("ctx", {})
    expected = f"one of {context['expected']}" if kind == "literal_error" else _EXPECTED.get(kind)
    if expected is None:
        return f"{error['msg'][0].lower()}{error['msg'][1:]}, got {_got(error['input'])}"
    return f"expected {expected}, got {_got(error['input'])}"


def _field(place: Sequence[int | str]) -> str:
    """records[3].params["a b"] and a colon; nothing for the document itself."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,60}", step):
            text += f".{step}" if text else step
        else:
            text += f"[{_got(step)}]"
    return f"{text}: " if text else ""


def _got(value: Any) -> str:
    """A JSON value as a short line of ASCII."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(value: Any) -> str:
    names = {list: "a list", str: "text", int: "a number", float: "a number", bool: "true or false"}
    return names.get(type(value), "null")


# Rules that types cannot say.


def _check_run(run: Run, where: str) -> None:
    seen: dict[tuple[str, Conditions], int] = {}
    for index, record in enumerate(run.records):
        wrong = fault(record)
        first = seen.setdefault((name_of(record), record.conditions), index)
        if wrong is None and first != index:
            wrong = f".id: the same row as records[{first}]: {_got(record.id)} under the same conditions"
        if wrong is not None:
            raise UsageError(f"{where}: records[{index}]{wrong}")


def fault(record: Record) -> str | None:
    """What is wrong with a record, beginning with the field; None if nothing is."""
    expected = record_id(record.suite, record.benchmark, record.params, record.conditions)
    if record.id != expected and record.id != name_of(record):  # older files have no conditions in an id
        return f".id: expected {_got(expected)} from suite, benchmark, params and conditions, got {_got(record.id)}"
    if record.status != "ok" and (record.summary is not None or record.metrics):
        field = "metrics" if record.summary is None else "summary"
        return f".{field}: a record that is {record.status} has no number"
    primary = [metric.name for metric in record.metrics if metric.primary]
    if len(primary) > 1:
        return f".metrics: {len(primary)} are primary, expected one at most"
    names = [metric.name for metric in record.metrics]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        return f".metrics: {_got(twice[0])} is given twice"
    return _wrong_samples(record) or _wrong_times(record)


def _wrong_samples(record: Record) -> str | None:
    samples = record.samples
    lengths = [len(samples.gpu_ns), len(samples.launches), len(samples.block), len(samples.sm_mhz)]
    if len(set(lengths)) > 1:
        return ".samples: gpu_ns, launches, block and sm_mhz have {}, {}, {} and {} values".format(*lengths)
    return (
        _below(".samples.gpu_ns", samples.gpu_ns, 0)
        or _below(".samples.launches", samples.launches, 1)
        or _below(".samples.block", samples.block, 0)
        or _below(".samples.sm_mhz", [0 if mhz is None else mhz for mhz in samples.sm_mhz], 0)
        or _below(".call_ns", record.call_ns, 0)
    )


def _wrong_times(record: Record) -> str | None:
    parts: tuple[tuple[str, object, tuple[str, ...]], ...] = (
        (".", record, ("setup_ns", "check_ns", "compile_ns")),
        (".work.", record.work, ("flops", "bytes")),
        (".summary.", record.summary, ("median_ns", "min_ns", "p10_ns", "p90_ns", "low_ns", "high_ns")),
    )
    for prefix, part, names in parts:
        for name in names if part is not None else ():
            value = getattr(part, name)
            if value is not None and value < 0:
                return f"{prefix}{name}: expected 0 or more, got {value}"
    return None


def _below(name: str, values: Sequence[float], least: int) -> str | None:
    if not values or min(values) >= least:
        return None
    index = next(index for index, value in enumerate(values) if value < least)
    return f"{name}[{index}]: expected {least} or more, got {values[index]}"
