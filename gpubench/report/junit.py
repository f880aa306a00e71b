"""A run as JUnit XML, for whatever shows test results: a testcase for each row."""

from __future__ import annotations

from gpubench.report.words import plain
from gpubench.result import FAILED, Record, Run


def junit(run: Run) -> str:
    """The document: a suite for each benchmark suite; a failure for each row that ought to have a number and has none,
    `skipped` for what does not apply here. `time` is the median of one call in seconds."""
    from xml.etree import ElementTree as xml

    root = xml.Element("testsuites", {"name": "gpubench", **_counts(run.records)})
    for name in dict.fromkeys(record.suite for record in run.records):
        own = [record for record in run.records if record.suite == name]
        suite = xml.SubElement(
            root, "testsuite", {"name": plain(name), "timestamp": run.started_at[:19], **_counts(own)}
        )
        for record in own:
            case = xml.SubElement(
                suite, "testcase", {"classname": plain(f"{record.suite}.{record.benchmark}"), "name": plain(record.id)}
            )
            case.set("time", f"{record.summary.median_ns / 1e9:.9f}" if record.summary is not None else "0")
            message = plain(": ".join(filter(None, (record.status, record.reason))))
            if record.status in FAILED:
                xml.SubElement(case, "failure", {"type": record.status, "message": message})
            elif record.status != "ok":
                xml.SubElement(case, "skipped", {"message": message})
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _counts(records: list[Record]) -> dict[str, str]:
    failed = sum(record.status in FAILED for record in records)
    skipped = sum(record.status != "ok" for record in records) - failed
    return {"tests": str(len(records)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
