from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import UsageError
from gpubench.store import jsonfile


def refusal(call: Callable[[], object]) -> str:
    """The message of the UsageError a call ends in, which must be one line."""
    with pytest.raises(UsageError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a":\n  NaN}', "NaN is not a JSON number, at line 2, column 3"),
        ('{"NaN": Infinity}', "Infinity is not a JSON number, at line 1, column 9"),
        ("[-Infinity]", "-Infinity is not a JSON number, at line 1, column 2"),
        ('{"a": 1, "b": 1e999}', "1e999 is too large for a number, at line 1, column 15"),
        ("[-1e999]", "-1e999 is too large for a number, at line 1, column 2"),
        ("[" + "9" * 400 + ".0]", "99999999999999999999… is too large for a number, at line 1, column 2"),
        ('{"a":{"key": 1, "b": 2, "key": 1}}', 'key "key" is given twice in one object'),
        ("[1, " + "7" * 5000 + "]", "an integer of 5000 digits is too long, at line 1, column 5"),
        ("-" + "7" * 60, "an integer of 60 digits is too long, at line 1, column 1"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"a":' * 100_000, "is nested too deeply"),
        ("\ufeff{}", "begins with a byte order mark"),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark"),
        (b'{"a":\n"\xff"}', "byte 7 (line 2) is not UTF-8 text"),
        ("[]".encode("utf-16"), "byte 0 (line 1) is not UTF-8 text"),
        ("", "is empty"),
        (" \n\t", "is empty"),
        ('{"a": [1, 2', "ends in the middle of the JSON document, at line 1, column 12"),
        ('{"a": "tex', "ends in the middle of the JSON document, at line 1, column 7"),
        ("{} {}", "goes on after the end of the JSON document, at line 1, column 4"),
        ("{'a': 1}", "not JSON at line 1, column 2"),
        ('["\n"]', "not JSON at line 1, column 3"),
        ('["fine", "\\ud83d\\ude00", "\\ud83d"]', "half a surrogate pair, at line 1, column 26"),
        ("\0", "not JSON at line 1, column 1"),
    ],
)
def test_refused_in_one_line_with_its_place(text: str | bytes, words: str) -> None:
    message = refusal(lambda: jsonfile.loads(text, "some.json"))
    assert message.startswith("some.json: ")
    assert words in message


def test_accepted() -> None:
    text = '{"z": [1, -0.5, 1e-999, 1E3, null, true], "a": "NaN \\u00b5 \\ud83d\\ude00", "n": {"a": {"a": 1}}}'
    value = {"z": [1, -0.5, 0.0, 1000.0, None, True], "a": "NaN µ 😀", "n": {"a": {"a": 1}}}
    assert jsonfile.loads(text, "x") == value
    assert jsonfile.loads(text.encode(), "x") == value
    assert list(jsonfile.loads(text, "x")) == ["z", "a", "n"]


scalars = st.none() | st.booleans() | st.integers(-(10**38), 10**38) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(values, st.sampled_from([None, 1]))
def test_what_is_written_is_read_again(value: object, indent: int | None) -> None:
    text = jsonfile.dumps(value, indent)
    assert jsonfile.loads(text.encode(), "x") == value
    assert json.loads(text) == value


@given(st.text() | st.binary())
def test_any_text_is_a_value_or_one_line(text: str | bytes) -> None:
    message = ""
    try:
        jsonfile.loads(text, "x")
    except UsageError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_no_number_that_is_none_is_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        jsonfile.dumps({"a": [number]})


def test_bytes_of_an_argument_that_are_no_text_are_written_as_question_marks() -> None:
    assert jsonfile.loads(jsonfile.dumps([os.fsdecode(b"a\xffb"), "µ"]), "x") == ["a?b", "µ"]


def test_files_are_read_plain_or_gzip_by_their_first_bytes(tmp_path: Path) -> None:
    for name, data in {"a.json": b"{}", "b.json.gz": gzip.compress(b"{}"), "c.json": gzip.compress(b"{}")}.items():
        (tmp_path / name).write_bytes(data)
        assert jsonfile.read_bytes(tmp_path / name) == b"{}"


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    damaged = {"cut.gz": gzip.compress(b"text" * 99)[:-9], "crc.gz": gzip.compress(b"text")[:-8] + b"\0" * 8}
    damaged |= {"short.gz": b"\x1f\x8b", "junk.gz": b"\x1f\x8b\x08" + b"\xff" * 40}
    for name, data in damaged.items():
        (tmp_path / name).write_bytes(data)
        assert f"{name}: damaged gzip file" in refusal(lambda name=name: jsonfile.read_bytes(tmp_path / name))
    assert refusal(lambda: jsonfile.read_bytes(tmp_path / "no.json")) == f"{tmp_path / 'no.json'}: no such file"
    assert "is a folder" in refusal(lambda: jsonfile.read_bytes(tmp_path))
    assert "Not a directory" in refusal(lambda: jsonfile.read_bytes(tmp_path / "cut.gz" / "x.json"))
    assert "cannot read" in refusal(lambda: jsonfile.read_bytes(Path("a\0b\n.json")))
    assert "cannot read" in refusal(lambda: jsonfile.read_bytes(Path("x" * 5000)))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot read" in refusal(lambda: jsonfile.read_bytes(tmp_path / "loop"))


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert refusal(lambda: jsonfile.read_bytes(tmp_path / "a")) == f"cannot read {tmp_path / 'a'}: Permission denied"


def test_reading_is_bounded_before_and_after_decompression(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 11)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"x" * 10_000_000))
    for name in ("a", "bomb.gz"):
        assert "more than 10 bytes" in refusal(lambda name=name: jsonfile.read_bytes(tmp_path / name, limit=10))
    assert jsonfile.read_bytes(tmp_path / "a", limit=11) == b"x" * 11
    assert jsonfile.LIMIT == 2**29, "a run of tens of thousands of rows is tens of MB"
    tracemalloc.start()
    assert "more than 20,000 bytes" in refusal(lambda: jsonfile.read_bytes(tmp_path / "bomb.gz", limit=20_000))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_file_is_written_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    jsonfile.write_atomic(path, b"one")
    path.chmod(0o640)
    jsonfile.write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.json"]


def test_gzip_is_deterministic(tmp_path: Path) -> None:
    jsonfile.write_atomic(tmp_path / "a.json.gz", b"text")
    jsonfile.write_atomic(tmp_path / "b.json.gz", b"text")
    first, second = (tmp_path / "a.json.gz").read_bytes(), (tmp_path / "b.json.gz").read_bytes()
    assert first == second == gzip.compress(b"text", mtime=0)


def no_links(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_an_existing_file_is_kept_unless_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "a.json"
    jsonfile.write_atomic(path, b"one", replace=False)
    assert "exists already" in refusal(lambda: jsonfile.write_atomic(path, b"two", replace=False))
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "real.json").write_bytes(b"old")
    (tmp_path / "link.json").symlink_to(Path("folder", "real.json"))
    jsonfile.write_atomic(tmp_path / "link.json", b"new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "folder" / "real.json").read_bytes() == b"new"


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    message = refusal(lambda: jsonfile.write_atomic(path, b"new"))
    assert message == f"cannot write {path}: No space left on device"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert f"there is no folder {tmp_path / 'no'}" in refusal(lambda: jsonfile.write_atomic(tmp_path / "no" / "a", b""))
    assert "Not a directory" in refusal(lambda: jsonfile.write_atomic(tmp_path / "file" / "a", b""))
    assert "is a folder" in refusal(lambda: jsonfile.write_atomic(tmp_path, b""))
    assert "cannot write 'a\\x00b'" in refusal(lambda: jsonfile.write_atomic(Path("a\0b"), b""))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_device_is_written_to_and_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:  # also because it would succeed: tests may run as root
        raise AssertionError("a device is about to be replaced")

    monkeypatch.setattr(os, "replace", never)
    monkeypatch.setattr(os, "link", never)
    (tmp_path / "full.json").symlink_to("/dev/full")
    for path in (tmp_path / "full.json", Path("/dev/full")):
        message = refusal(lambda path=path: jsonfile.write_atomic(path, b"x"))
        assert message == f"cannot write {path}: No space left on device"
    jsonfile.write_atomic(Path("/dev/null"), b"x")


def test_a_limit_on_the_size_of_files_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    code = (
        "import sys, pathlib; from gpubench import errors; from gpubench.store import jsonfile\n"
        "try: jsonfile.write_atomic(pathlib.Path(sys.argv[1]), b'x' * 100_000)\n"
        "except errors.UsageError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
    )
    assert done.stdout == f"cannot write {path}: File too large\n"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("around", ["{}", "{} ", "{}\n", "[{}]", "[{},1]", '["1e9", 2, {} ]', '{{"a": {}}}'])
@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("1e309", "too large"),
        ("-1E+309", "too large"),
        ("1e0309", "too large"),
        ("9" * 39 + "e270", "too large"),
        ("9" * 39 + "." + "9" * 39 + "E270", "too large"),
        ("0." + "9" * 50 + "e999", "too large"),
        ("9" * 309 + ".5", "too large"),
        ("7" * 41, "integer of 41 digits"),
        ("-" + "7" * 40, "integer of 40 digits"),
    ],
)
def test_a_number_to_refuse_is_found_wherever_it_stands(around: str, number: str, words: str) -> None:
    """Numbers are checked one by one only in texts that may hold such a one."""
    assert words in refusal(lambda: jsonfile.loads(around.format(number), "x"))


def test_an_integer_of_forty_digits_is_read() -> None:
    assert jsonfile.loads("7" * 40, "x") == int("7" * 40)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**38), 10**38)


@given(NUMBERS, st.sampled_from(["", "1e935", "E400,"]))
def test_every_other_number_is_what_it_was(number: float, beside: str) -> None:
    assert jsonfile.loads(json.dumps([beside, number]), "x") == [beside, number]
