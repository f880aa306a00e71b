"""The yaml door: INPUTS O31, O32, O33 and their siblings. What a key makes of a text is tested in test_settings."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpubench import yamlfile
from gpubench.errors import UsageError
from gpubench.node import Node


@pytest.fixture(params=["libyaml", "python"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers that PyYAML may come with."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CBaseLoader", raising=False)


def load(tmp_path: Path, text: str | bytes) -> Node:
    path = tmp_path / "plan.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return yamlfile.load(path)


def refused(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(UsageError) as error:
        load(tmp_path, text)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(str(tmp_path / "plan.yaml"))
    return message.removeprefix(str(tmp_path / "plan.yaml"))


def plain(node: Node) -> object:
    if isinstance(node.value, str):
        return node.value
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    return {name: plain(each) for name, each in node.value.items()}


@pytest.mark.usefixtures("_parser")
def test_every_scalar_stays_as_it_was_written(tmp_path: Path) -> None:
    words = ["1e-3", "1.0e-3", "off", "NO", "y", "010", "0o17", "0x1F", "1_000", "1:30", "2026-01-01", ".nan", "-.inf"]
    node = load(tmp_path, "a:\n" + "".join(f"  - {word}\n" for word in words))
    assert plain(node) == {"a": words}


@pytest.mark.usefixtures("_parser")
def test_words_as_keys_do_not_vanish(tmp_path: Path) -> None:
    node = load(tmp_path, "on: 1\nyes: 2\nNO: 3\nn: 4\n1: 5\n")
    assert plain(node) == {"on": "1", "yes": "2", "NO": "3", "n": "4", "1": "5"}


@pytest.mark.usefixtures("_parser")
def test_lines_and_keys(tmp_path: Path) -> None:
    node = load(tmp_path, "# comment\nrun:\n  matmul:\n    n:\n      - 1\n      - 2\nbudget: {max_time: 60s}\n")
    run = node.mapping("")["run"]
    sizes = run.mapping("")["matmul"].mapping("")["n"]
    assert (run.line, sizes.line, sizes.items()[1].line) == (2, 4, 6)
    assert sizes.items()[1].where == f"{tmp_path}/plan.yaml:6: run.matmul.n"
    assert node.mapping("")["budget"].mapping("")["max_time"].where.endswith(":7: budget.max_time")


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sizes: 1\nother: 2\nsizes: 3\n", ":3: the key sizes is already on line 1"),
        ("a: {b: 1, b: 2}\n", ":1: the key b in a is already on line 1"),
        ('a: {b: 1, "b": 2}\n', "is already on line 1"),
        ("", ": the file is empty"),
        ("# only a comment\n\n", ": the file is empty"),
        ("---\n", ": the file is empty"),
        ("~\n", ": the file is empty"),
        ("a: 1\n---\nb: 2\n", ":2: a second document"),
        ("a: 1\n---\n", ":2: a second document"),
        ("a: &x [1]\nb: *x\n", ":1: a uses an anchor"),
        ("a: *x\n", ":1: a uses an anchor"),
        ("a:\n  <<: {b: 1}\n", ":2: a merge key"),
        ("a: !!python/object/apply:os.system [true]\n", ":1: a has a tag"),
        ("a: !!int '3'\n", ":1: a has a tag"),
        ("!x a: 1\n", ":1: "),
        ("? [a, b]\n: 1\n", ":1: a key is not a word"),
        ("? {a: 1}\n: 1\n", ":1: a key is not a word"),
        (": 1\n", ":1: "),
        ("~: 1\n", ":1: a key is not a word"),
        ("a:\n\t- 1\n", ":2: a tab in the indentation"),
        ("a:\n  b: 1\n\tc: 2\n", ":3: a tab in the indentation"),
        ("a: [1, 2\nb: 3\n", ": not yaml"),
        ("a: 'x\n", ": not yaml"),
        ("a: b: c\n", ":1: not yaml"),
        ("a: \x07\n", ": not yaml"),
        (b"a: \x00\n", ": not yaml"),
        (b"x: 1\na: \xff\n", ":2: not UTF-8"),
        ("a: 1\n".encode("utf-16"), ":1: not UTF-8"),
        ("a: " + "[" * 100, ":1: more than 16 levels deep"),
        ("a: " + "[" * 100_000, ":1: "),
        ("a: " + "{b: " * 100, ":1: more than 16 levels deep"),
        (b"a: 1\n" + b"#" * 2**20, ": larger than 1,048,576 bytes"),
    ],
)
def test_refused_with_file_and_line(tmp_path: Path, text: str | bytes, says: str) -> None:
    assert says in refused(tmp_path, text)


def test_a_byte_order_mark_and_one_document_mark_are_taken(tmp_path: Path) -> None:
    assert plain(load(tmp_path, b"\xef\xbb\xbfa: 1\n")) == {"a": "1"}
    assert plain(load(tmp_path, "---\na: 1\r\nb: 2\r\n...\n")) == {"a": "1", "b": "2"}


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml: cannot be read: No such file"):
        yamlfile.load(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        yamlfile.load(tmp_path)


@pytest.mark.parametrize("word", ["yes", "No", "ON", "off", "true", "False"])
def test_a_truth_word_must_be_quoted_to_be_text(tmp_path: Path, word: str) -> None:
    node = load(tmp_path, f'a: {word}\nb: "{word}"\n').mapping("")
    assert node["b"].text("a name") == word
    with pytest.raises(UsageError, match=rf':1: a is .{word}.; expected a name \(.*quote it: "{word}"'):
        node["a"].text("a name")


@pytest.mark.parametrize("word", ["", "~", "null", "NULL"])
def test_nothing_is_not_text(tmp_path: Path, word: str) -> None:
    node = load(tmp_path, f'a: {word}\nb: "{word}"\n').mapping("")
    assert node["b"].text("a name") == word
    with pytest.raises(UsageError, match=":1: a is empty; expected a name"):
        node["a"].text("a name")


def test_the_wrong_shape_says_what_it_is(tmp_path: Path) -> None:
    node = load(tmp_path, "a: [1]\nb: {c: 1}\n").mapping("")
    with pytest.raises(UsageError, match=":1: a is a list; expected a mapping of suites"):
        node["a"].mapping("a mapping of suites")
    with pytest.raises(UsageError, match=":2: b is a mapping; expected a name"):
        node["b"].text("a name")
    with pytest.raises(UsageError, match=r":2: warmpu is not a known key; did you mean warmup\? \(known here: warmup"):
        load(tmp_path, "warmup: 1\nwarmpu: 50\n").mapping("", ["warmup"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.one_of(
        st.text(max_size=12),
        st.booleans().map(str),
        st.floats().map(str),
        st.sampled_from(["yes", "n", "~", "1:30", "010", "2026-01-01", "1e3", ".inf", "0b1", "<<", "="]),
    )
)
def test_where_text_is_wanted_text_comes_or_an_error(tmp_path: Path, word: str) -> None:
    try:
        text = load(tmp_path, f"a: {word}\n".encode("utf-8", "surrogatepass")).mapping("")["a"].text("a name")
    except UsageError as error:
        text = str(error)  # one line, whatever was in the file
        assert len(text.splitlines()) == 1
    else:
        assert type(text) is str
        assert text.lower() not in ("yes", "no", "true", "false", "on", "off", "null", "~") or word[:1] in "\"'|>"
