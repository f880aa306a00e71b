"""The pages say what is there: links lead somewhere, modules and flags exist, and every flag is on a page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

from gpubench.cli.app import app
from gpubench.discovery import Library
from gpubench.params import parse_params
from gpubench.plan import select

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "results/README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
each_page = pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])


def commands() -> Iterator[tuple[str, set[str], list[tuple[str, ...]]]]:
    """Each command as it is typed, the flags that it knows, and the names of each of its options."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    for name, command in root.commands.items():
        for inner, one in getattr(command, "commands", {"": command}).items():
            options = [tuple(param.opts) for param in one.params if param.param_type_name == "option"]
            yield f"{name} {inner}".strip(), {"-h", "--help", *(flag for names in options for flag in names)}, options


COMMANDS = {name: known for name, known, _ in commands()}


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    bare = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE))
    return {heading.replace(" ", "-") for heading in bare}


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        if not link.startswith("https://"):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@each_page
def test_modules_that_it_names_exist(page: Path) -> None:
    for name in re.findall(r"`(gpubench(?:\.\w+)+)[`(]", TEXTS[page]):
        parts = name.split(".")
        if parts[1:] == ["yaml"]:
            continue  # the file of settings
        paths = [ROOT.joinpath(*parts[:length]) for length in range(len(parts), 0, -1)]
        found = next(path for path in paths if path.is_dir() or path.with_suffix(".py").exists())
        text = (found / "__init__.py" if found.is_dir() else found.with_suffix(".py")).read_text(encoding="utf-8")
        for rest in parts[len(found.relative_to(ROOT).parts) :]:
            assert re.search(rf"\b{rest}\b", text), name


@each_page
def test_commands_and_flags_that_it_names_exist(page: Path) -> None:
    blocks = re.findall(r"```[a-z]*\n(.*?)```", TEXTS[page], re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    spans = [span.replace("\n", " ") for span in re.findall(r"`(gpubench [^`]+)`", TEXTS[page])]
    shown = [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?gpubench [a-z]", line)]
    for line in (*shown, *spans):
        typed = re.split(r" {2,}|[;|&]", line)[0]
        words = shlex.split(typed)[1:]
        name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
        assert name in COMMANDS or name in ("baseline", "selfcheck", "--help"), line
        for flag in re.findall(r"(?<= )--?[a-z][a-z-]*", typed):
            assert flag in COMMANDS.get(name, {"--help"}), line


def asked() -> list[str]:
    """Each `gpubench run …` of the pages and of the claims that were not run, without what follows it."""
    shown = [line for text in TEXTS.values() for line in re.findall(r"(?<![\w-])gpubench run [^`;|&#\n]+", text)]
    typed = {re.split(r" {2,}|\n|, ", line)[0].rstrip(".:") for line in shown}
    return sorted(typed | {each.command for each in Library().claims().values() if not each.untested})


def test_what_is_to_be_run_can_be_run() -> None:
    library, lines = Library(), asked()
    assert len(lines) > 30
    for line in lines:
        words, params, flags = shlex.split(line)[2:], [], set()
        while flag := next((word for word in words if word.startswith("-")), None):
            at = words.index(flag)
            takes = flag in ("-p", "-o", "--export", "--device", "--tag", "--case-time", "--ceilings", "--dtype")
            params += words[at + 1 : at + 2] if flag == "-p" else []
            flags.add(flag)
            del words[at : at + 1 + takes]
        if not any(word.endswith((".py", ".cu")) or ":" in word or word.isupper() for word in words):
            assert select(words, library, parse_params(params)), line
            assert flags <= COMMANDS["run"], line


def test_every_flag_is_on_a_page() -> None:
    text = "\n".join(text for page, text in TEXTS.items() if page.name not in ("CHANGELOG.md", "decisions.md"))
    said = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text)) | {"--help", "-h"}
    missing = {(name, names) for name, _, options in commands() for names in options if not said & set(names)}
    assert not missing


def test_what_readme_says_other_tools_read_is_in_the_table() -> None:
    """The only figures of README that no script draws."""
    table = (ROOT / "docs/accuracy.md").read_text(encoding="utf-8").split("## Operations")[1]
    reads = {row[0]: float(row[1]) for row in re.findall(r"^\| ([\w ]+) \| ([\d.]+) µs", table, re.MULTILINE)}
    found = re.search(r"one kernel of ([\d.]+) µs is ([\d.]+) µs in one tool and ([\d.]+)", TEXTS[ROOT / "README.md"])
    assert found is not None
    for figure, tool in zip(found.groups(), ("gpubench cold", "triton do_bench", "perf_counter"), strict=True):
        assert abs(float(figure) - reads[tool]) <= 0.05, tool
