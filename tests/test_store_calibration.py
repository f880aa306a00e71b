from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpubench.errors import UsageError
from gpubench.store.calibration import FILE, SAME, Calibration, Equal, Injected, Outcome, Slower, keep, read

WHEN = "2026-11-30T01:00:00Z"
OUTCOMES = [
    Outcome("ab", 0.03, {"equivalent": 3196, "regression": 3, "improvement": 1}, 200, 2),
    Outcome("compare", 0.03, {"same": 3180, "suspect": 12, "better": 8}, 200, 15),
]
EQUAL = Equal(WHEN, "1.0", 40, 10, 200, ["s/b[n=1]", "s/b[n=2]"], 3200, 3040, OUTCOMES)
SLOWER = Slower(WHEN, "1.0", 40, 10, 200, [Injected("s/b[n=1]", 0.05, 0.03, 0.049, 190, 200)])


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    assert read(tmp_path, "GPU-0, 700 W") is None
    keep(tmp_path / "new", "GPU-0, 700 W", Calibration("H200", aa=EQUAL))
    assert read(tmp_path / "new", "GPU-0, 700 W") == Calibration("H200", aa=EQUAL)
    assert read(tmp_path / "new", "GPU-0, 600 W") is None, "another power limit is another device"


def test_one_check_does_not_forget_the_other_nor_another_device(tmp_path: Path) -> None:
    keep(tmp_path, "a", Calibration("A", aa=EQUAL))
    keep(tmp_path, "b", Calibration("B", inject=SLOWER))
    keep(tmp_path, "a", Calibration("A", inject=SLOWER))
    assert read(tmp_path, "a") == Calibration("A", EQUAL, SLOWER)
    assert read(tmp_path, "b") == Calibration("B", None, SLOWER)


def test_what_was_kept_is_replaced_whole(tmp_path: Path) -> None:
    """A reader that has the old file open reads it to its end."""
    before = keep(tmp_path, "a", Calibration("A", aa=EQUAL)).read_bytes()
    (tmp_path / "kept").hardlink_to(tmp_path / FILE)
    keep(tmp_path, "a", Calibration("A", inject=SLOWER))
    assert (tmp_path / "kept").read_bytes() == before != (tmp_path / FILE).read_bytes()


def test_the_shares() -> None:
    ab, compare = OUTCOMES
    assert (ab.of, ab.wrong, ab.called("equivalent")) == (3200, 4, 3196)
    assert (compare.of, compare.wrong) == (3200, 20)
    assert [each.called(*SAME) for each in OUTCOMES] == [3196, 3180]
    assert Outcome("ab", 0.03, {"invalid": 1, "equivalent": 3}, 4, 0).of == 4
    assert SLOWER.share(0.05, 0.03) == 0.95
    assert SLOWER.share(0.03, 0.03) is None


@pytest.mark.parametrize(
    ("more", "margin", "measured", "unsure", "promised"),
    [
        (0.05, 0.03, 0.0451, 0.0, True),
        (0.05, 0.03, 0.0449, 0.0, False),
        (0.05, 0.03, 0.0549, 0.0, True),
        (0.05, 0.03, 0.0569, 0.0002, False),
        (0.05, 0.03, 0.0569, 0.02, True),  # noise, which is no reason to be let off
        (0.03, 0.03, 0.03, 0.0, True),
        (0.03, 0.03, 0.0301, 0.0, False),  # a loss beyond the margin is one, and rightly called so
        (0.03, 0.03, 0.0532, 0.1, False),
        (0.03, 0.03, 0.02, 0.0, True),
    ],
)
def test_a_promise_is_about_rows_that_took_as_much_longer(
    more: float, margin: float, measured: float, unsure: float, promised: bool
) -> None:
    one = Injected("s/b[n=1]", more, margin, measured, 200, 200, unsure)
    kept = Injected("s/b[n=2]", more, margin, min(more, margin) if more == margin else more, 0, 200)
    assert one.promised is promised
    slower = Slower(WHEN, "1.0", 40, 10, 200, [one, kept])
    assert slower.share(more, margin) == (0.5 if promised else 0.0)
    assert Slower(WHEN, "1.0", 40, 10, 200, [one]).share(more, margin) == (1.0 if promised else None)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[]", "expected schema gpubench.calibration/1"),
        ('{"schema": "gpubench.calibration/1"}', "expected schema"),
        ('{"schema": "gpubench.calibration/2", "devices": {}}', "expected schema"),
        ("{", "calibration.json"),
    ],
)
def test_a_file_that_is_none_of_ours_is_named(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(UsageError, match=told):
        read(tmp_path, "a")


@pytest.mark.parametrize(
    "entry",
    [
        1,
        {},
        {"name": "A", "aa": {}},
        {"name": "A", "aa": 1},
        {"name": "A", "inject": {"injected": [{}]}},
        "verdicts",
        "text",
        "extra",
    ],
)
def test_an_entry_that_is_broken_is_one_line(tmp_path: Path, entry: object) -> None:
    keep(tmp_path, "a", Calibration("A", aa=EQUAL))
    document = json.loads((tmp_path / FILE).read_text())
    first = document["devices"]["a"]["aa"]["outcomes"][0]
    if entry == "verdicts":
        first["verdicts"] = [1]
    elif entry == "text":
        first["verdicts"] = {"regression": "1"}
    elif entry == "extra":
        first["more"] = 1
    else:
        document["devices"]["a"] = entry
    (tmp_path / FILE).write_text(json.dumps(document))
    with pytest.raises(UsageError, match=r"a broken calibration: .* \(remove "):
        read(tmp_path, "a")
