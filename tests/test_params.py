from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import UsageError
from gpubench.params import MOST_VALUES, parse_param, parse_params


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("n=1,2,4", "n", (1, 2, 4)),
        ("n=0", "n", (0,)),
        ("n=-5", "n", (-5,)),  # an integer; the axis says that it is below its minimum
        ("dtype=float32,bfloat16", "dtype", ("float32", "bfloat16")),
        ("dtype=float8_e4m3fn", "dtype", ("float8_e4m3fn",)),
        ("n=256:1024:256", "n", (256, 512, 768, 1024)),
        ("n=256:1023:256", "n", (256, 512, 768)),
        ("n=1:16:*2", "n", (1, 2, 4, 8, 16)),
        ("n=3:20:*2", "n", (3, 6, 12)),
        ("n=7:7:1", "n", (7,)),
        ("n=1:3:1,100", "n", (1, 2, 3, 100)),
        ("n = 1, 2", "n", (1, 2)),
        (f"n=1:{MOST_VALUES}:1", "n", tuple(range(1, MOST_VALUES + 1))),
    ],
)
def test_values(text: str, name: str, values: tuple[object, ...]) -> None:
    assert parse_param(text) == (name, values)


NOT_VALUES = [
    "1e9",
    "4k",
    "010",
    "-010",
    "-0",
    "0x10",
    "1_000",
    "+5",
    "1.0",
    "１２",
    "٣",
    "1,,2",
    "1,",
    ",1",
    "nn!",
    "[1]",
    "n=3",
    "--n",
    "1.5:2:1",
    "a:b:1",
    "1:1e3:1",
    "1:010:1",
    "1:8",
    "1:8:2:2",
    ":8:1",
    "1::1",
    "1:8:",
    "1:8:0",
    "1:8:-1",
    "1:8:*1",
    "1:8:*0",
    "1:8:*",
    "1:8:**2",
    "8:1:1",
    "8:1:*2",
    "0:8:*2",
    "-4:8:*2",
    "1:10001:1",
    "1:999999999999999999:1",
    "1:9000:1,1:9000:1",
]


@pytest.mark.parametrize("value", [*NOT_VALUES, "", " ", "1 000", "a b", "9" * 19, "9" * 5000])
def test_values_refused_in_one_line_that_says_what_to_type(value: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_param(f"n={value}")
    assert "axis n" in error.value.message
    assert error.value.hint
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("text", ["", "n", "=3", "=", "1n=3", "n-m=3", "n m=3", "ñ=3", "-n=3"])
def test_what_is_not_name_and_values(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not NAME=VALUES \(such as n=1024"):
        parse_param(text)


def test_an_axis_twice_is_refused() -> None:
    assert parse_params(["n=1", "m=2"]) == {"n": (1,), "m": (2,)}
    with pytest.raises(UsageError, match="-p n is given twice"):
        parse_params(["n=1", "m=2", "n=3"])


PLAIN = st.integers(-(10**17), 10**17) | st.from_regex(r"[A-Za-z_][A-Za-z0-9_.+-]{0,20}", fullmatch=True)


@given(st.lists(PLAIN, min_size=1, max_size=20))
def test_values_read_back(values: list[int | str]) -> None:
    _, read = parse_param("n=" + ",".join(str(value) for value in values))
    assert read == tuple(values)
    assert [type(value) for value in read] == [type(value) for value in values]


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 20))
def test_a_range_is_pythons_with_its_end(first: int, length: int, step: int) -> None:
    last = first + length
    assert parse_param(f"n={first}:{last}:{step}") == ("n", tuple(range(first, last + 1, step)))


@given(st.text(max_size=30))
def test_any_text_is_values_or_a_usage_error(text: str) -> None:
    try:
        _, values = parse_param(text)
    except UsageError:
        return
    assert values
    assert all(type(value) in (int, str) for value in values)
