"""HTML reports in a real browser, from the disk and without a network: drawn, told, dark, narrow, printed, accessible,
and deaf to what a run file has to say in markup and script."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser, media, phone, required, said, show, violations

from gpubench.ab import judge as abjudge
from gpubench.cli.report import write_run
from gpubench.compare.runs import compare
from gpubench.report.html import comparison, paired
from gpubench.result import Run
from gpubench.store import runfile
from gpubench.store.abfile import AbRun
from gpubench.store.folder import read_measured, read_run, read_runs
from gpubench.suite import record_id

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference" / "h200"
SECONDS = 5.0
"""What a report takes at most, of the processors' time: others that use the machine do not count."""
LARGEST = 1_800_000
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CHARTS = ".chart[data-chart]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    required()
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def lecture(folder: Path) -> Path:
    """The report of the whole lecture on an H200."""
    write_run(read_run(REFERENCE / "lecture.json.gz"), folder / "lecture.html")
    return folder / "lecture.html"


@pytest.fixture(scope="module")
def driver(folder: Path) -> Iterator[Any]:
    with browser() as driver:
        yield driver


@pytest.fixture
def page(driver: Any, lecture: Path) -> Iterator[Any]:
    """The lecture's report, open and drawn."""
    media(driver, prefers_color_scheme="light")
    show(driver, lecture)
    said(driver)
    yield driver
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    media(driver)


def charts(driver: Any) -> list[dict[str, Any]]:
    """Of each chart its id, how many marks it has, and how wide it is beside its holder."""
    found: list[dict[str, Any]] = driver.execute_script(
        """
        return [...document.querySelectorAll(arguments[0])].map((holder) => ({
          id: holder.dataset.name,
          marks: holder.querySelectorAll("[class^='mark-'] path, [class^='mark-'] line, [class^='mark-'] text").length,
          wide: holder.querySelector("svg")?.getBoundingClientRect().width ?? 0,
          holder: holder.getBoundingClientRect().width,
          label: holder.getAttribute("aria-label"),
        }));
        """,
        CHARTS,
    )
    return found


def test_a_report_is_small_and_quick(lecture: Path) -> None:
    assert lecture.stat().st_size <= LARGEST
    run, times = read_run(REFERENCE / "lecture.json.gz"), []
    for _ in range(2):
        begun = time.process_time()
        write_run(run, lecture.with_name("again.html"))
        times.append(time.process_time() - begun)
    assert min(times) <= SECONDS
    assert lecture.with_name("again.html").read_bytes() == lecture.read_bytes()


def test_every_chart_has_marks_and_nothing_is_said_or_fetched(driver: Any, lecture: Path) -> None:
    said(driver)
    show(driver, lecture)
    found = charts(driver)
    assert {"roofline", "curve"} <= {chart["id"] for chart in found}
    assert all(chart["marks"] > 3 and chart["label"] and chart["wide"] <= chart["holder"] + 1 for chart in found)
    assert said(driver) == []
    assert driver.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)") == []


def test_the_policy_refuses_any_other_script(page: Any) -> None:
    page.execute_script(
        """
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.head.append(script);
        """
    )
    assert page.execute_script("return window.ran") is None
    assert any("Content Security Policy" in line for line in said(page))


def test_a_mark_tells_what_it_is(page: Any) -> None:
    from selenium.webdriver import ActionChains

    mark = page.find_element("css selector", f"{CHARTS}[data-name=curve] .mark-symbol.role-mark path")
    page.execute_script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", mark)
    ActionChains(page).move_to_element(mark).perform()
    tip = page.find_element("id", "tip")
    assert tip.is_displayed()
    assert len(tip.text.splitlines()) >= 2
    ActionChains(page).move_to_element(page.find_element("tag name", "h2")).perform()
    assert not tip.is_displayed()


def test_dark_by_the_system_and_by_choice(page: Any) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    ink = f"return document.querySelector('{CHARTS} .role-axis-label text').getAttribute('fill')"
    light = page.execute_script(ground), page.execute_script(ink)
    media(page, prefers_color_scheme="dark")
    assert _until(page, ink, light[1]) != light[1]
    dark = page.execute_script(ground), page.execute_script(ink)
    assert dark[0] != light[0]
    page.find_element("id", "theme").click()
    assert _until(page, ink, dark[1]) == light[1]
    assert page.execute_script(ground) == light[0]
    assert said(page) == []


def _until(driver: Any, script: str, other: str) -> Any:
    """What a script says once it is something else."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(driver, 20, 0.05).until(lambda it: it.execute_script(script) not in (other, None)) and (
        driver.execute_script(script)
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_checker_passes(driver: Any, folder: Path, scheme: str) -> None:
    """Of a small report with all that is folded, which has every kind of content; of the large one as it opens."""
    path = folder / "traps.html"
    write_run(read_run(REFERENCE / "traps.json.gz"), path)
    media(driver, prefers_color_scheme=scheme)
    show(driver, path)
    driver.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    assert violations(driver) == []


def test_the_accessibility_checker_passes_on_the_large_report(page: Any) -> None:
    assert violations(page, but=f"{CHARTS} svg") == []


def test_a_phone_scrolls_no_page_sideways(driver: Any, page: Any, lecture: Path) -> None:
    phone(page)
    show(page, lecture)
    assert page.execute_script("return [innerWidth, document.documentElement.scrollWidth]") == [360, 360]
    page.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.execute_script("return document.documentElement.scrollWidth") == 360
    assert all(chart["marks"] > 3 and chart["wide"] <= 361 for chart in charts(page))


def test_on_a_phone_no_chart_is_squeezed_by_its_words_or_cuts_them_off(driver: Any, page: Any, lecture: Path) -> None:
    phone(page)
    show(page, lecture)
    assert squeezed(page) == []
    page.execute_script("document.documentElement.dataset.drawn = ''; dispatchEvent(new Event('resize'))")
    _until(page, "return document.documentElement.dataset.drawn", "")
    assert squeezed(page) == []


def test_no_legend_of_a_tablet_leaves_its_chart(driver: Any, page: Any, lecture: Path) -> None:
    size = {"width": 700, "height": 1000, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    show(page, lecture)
    assert squeezed(page) == []


def test_paper_has_no_words_that_unfold_something(page: Any) -> None:
    closed = """
        return [...document.querySelectorAll("main details:not([open]) > summary")]
          .filter((each) => each.checkVisibility() && !each.closest(".claims")).length
        """
    claims = """
        const summaries = [...document.querySelectorAll(".claims > li > details > summary")];
        return summaries.every((each) => each.checkVisibility());
        """
    assert page.execute_script(closed) > 20
    media(page, "print")
    assert page.execute_script(closed) == 0
    assert page.execute_script(claims), "a claim's summary is what it says"


def squeezed(driver: Any) -> list[Any]:
    """The charts with a frame of less than a third of their holder's width, or with words beyond their edges by more
    than a letter."""
    found: list[Any] = driver.execute_script(
        """
        return [...document.querySelectorAll(arguments[0])].flatMap((holder) => {
          const edge = holder.querySelector("svg").getBoundingClientRect();
          const frame = holder.querySelector("path.background").getBoundingClientRect().width;
          const out = [...holder.querySelectorAll("text")].filter((text) => {
            const it = text.getBoundingClientRect();
            return it.width > 0 && (it.top < edge.top - 1 || it.left < edge.left - 8 || it.right > edge.right + 8);
          });
          const bad = frame < holder.clientWidth / 3 || out.length;
          return bad ? [[holder.dataset.name, frame, out.map((text) => text.textContent)]] : [];
        });
        """,
        CHARTS,
    )
    return found


def test_it_prints_light_with_every_chart(page: Any) -> None:
    page.find_element("id", "theme").click()
    _until(page, "return document.documentElement.dataset.drawn", "light")
    page.execute_script(
        f"""
        addEventListener("beforeprint", () => {{
          window.printed = document.querySelector("{CHARTS} .role-axis-label text").getAttribute("fill");
        }});
        """
    )
    printed = base64.b64decode(page.print_page())
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 4
    assert page.execute_script("return window.printed") == "#1f2328"
    assert said(page) == []


def test_keys_reach_everything(page: Any) -> None:
    from selenium.webdriver import ActionChains, Keys

    ActionChains(page).send_keys(Keys.TAB).perform()
    skip = page.switch_to.active_element
    assert skip.text == "Skip to the report"
    assert page.execute_script("return arguments[0].getBoundingClientRect().top", skip) >= 0
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert page.execute_script(outline) != "none"
    skip.send_keys(Keys.ENTER)
    assert page.execute_script("return document.activeElement.id") == "report"


def test_a_link_to_a_claim_unfolds_it(page: Any) -> None:
    link = page.find_element("css selector", ".chips a")
    name = link.get_attribute("href").partition("#")[2]
    page.execute_script("arguments[0].click()", link)
    assert _until(page, f"return document.querySelector('#{name} > details').open", "false")


def test_without_script_every_figure_is_there(driver: Any, lecture: Path) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(lecture.as_uri())
        assert "752 rows measured" in driver.find_element("class name", "verdict").text
        assert "Charts need JavaScript" in driver.page_source
        assert len(driver.find_elements("css selector", "#suites tbody tr")) >= 774
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_hostile_run_file_runs_nothing(driver: Any, folder: Path) -> None:
    run = hostile(read_run(REFERENCE / "lecture-machine.json.gz"))
    path = folder / "hostile.html"
    write_run(runfile.decode(runfile.encode(run), "hostile"), path)
    said(driver)
    show(driver, path)
    assert driver.execute_script("return [window.pwned, document.querySelectorAll('img, iframe, object').length]") == [
        None,
        0,
    ]
    scripts = "return document.querySelectorAll('script:not([type])').length"
    assert driver.execute_script(scripts) == 2  # the page's own, and Vega
    assert said(driver) == []
    assert all(chart["marks"] > 0 for chart in charts(driver))
    from selenium.webdriver import ActionChains

    for mark in driver.find_elements("css selector", f"{CHARTS} .mark-symbol.role-mark path")[:3]:
        driver.execute_script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", mark)
        ActionChains(driver).move_to_element(mark).perform()
    assert driver.execute_script("return window.pwned") is None
    assert read_run(path) == run
    phone(driver)
    show(driver, path)
    assert driver.execute_script("return document.documentElement.scrollWidth") == 360
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_comparison_draws_its_changes_and_is_accessible(driver: Any, folder: Path) -> None:
    base, new = (read_run(REFERENCE / f"{name}.json.gz") for name in ("matmul-sweep", "lecture"))
    names = {record.id for record in new.records}
    base = dataclasses.replace(base, records=[record for record in base.records if record.id in names])
    new = dataclasses.replace(new, records=[record for record in new.records if record.suite == "matmul-sweep"])
    judged = compare([base], new, 0.03, {}, "error")
    path = folder / "change.html"
    path.write_bytes(comparison.report(judged, [base], new))
    said(driver)
    show(driver, path)
    assert [chart["marks"] > 3 for chart in charts(driver)] == [True]
    driver.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    assert violations(driver) == []
    assert said(driver) == []
    assert read_runs(path) == [base, new]


def test_a_measurement_in_pairs_draws_its_intervals_and_is_accessible(driver: Any, folder: Path) -> None:
    found, path = read_measured(GOLDEN / "ab-1.json"), folder / "ab.html"
    assert isinstance(found, AbRun)
    path.write_bytes(paired.report(abjudge.judged(found), found))
    said(driver)
    show(driver, path)
    assert [(chart["id"], chart["marks"] >= 2) for chart in charts(driver)] == [("comparison", True)]
    driver.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    assert violations(driver) == []
    assert said(driver) == []
    phone(driver)
    show(driver, path)
    assert driver.execute_script("return document.documentElement.scrollWidth") == 360
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert read_measured(path) == found


MARKUP = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1><svg onload=window.pwned=1>"
    "\"'`${window.pwned=1}"
    "<!-- --><style>*{display:none}</style>javascript:window.pwned=1 & \u2028 "
)


def hostile(run: Run) -> Run:
    """The run with markup and script in every text that is not one of a few words."""
    count = itertools.count()

    def bad(text: str) -> str:
        return f"{MARKUP}{text}{next(count)}"

    def spoiled(value: Any) -> Any:
        if isinstance(value, str):
            return bad(value)
        if isinstance(value, list):
            return [spoiled(each) for each in value]
        if isinstance(value, dict):
            return {name: spoiled(each) for name, each in value.items()}
        return value

    records = []
    for record in run.records:
        suite, benchmark = f"{MARKUP}{record.suite}", f"{record.benchmark}{MARKUP}"
        params = {
            name: f"{MARKUP}{value}" if isinstance(value, str) else value for name, value in record.params.items()
        }
        records.append(
            dataclasses.replace(
                record,
                id=record_id(suite, benchmark, params, record.conditions),
                suite=suite,
                benchmark=benchmark,
                params=params,
                reason=bad(record.reason or ""),
                labels=spoiled(record.labels),
                kernels=[dataclasses.replace(kernel, name=bad(kernel.name)) for kernel in record.kernels],
                stopped_by=bad(record.stopped_by or ""),
            )
        )
    ceilings = [dataclasses.replace(each, name=bad(each.name), record=bad(each.record)) for each in run.ceilings]
    claims = [
        claim | {name: bad(str(claim[name])) for name in ("id", "statement", "reason", "proof", "verdict")} | {
            "effects": [each | {"name": bad(each["name"]), "unit": bad(each["unit"])} for each in claim["effects"]]
        }
        for claim in run.claims
    ]  # fmt: skip
    return dataclasses.replace(
        run,
        records=records,
        ceilings=ceilings,
        claims=claims,
        device=spoiled(run.device) | {"kind": "cuda"},
        software=spoiled(run.software),
        host=spoiled(run.host),
        vcs=spoiled(run.vcs),
        settings=spoiled(run.settings),
        argv=spoiled(run.argv),
        tags=[bad("tag")],
        fingerprint=run.fingerprint | {"id": bad("fingerprint")},
    )
