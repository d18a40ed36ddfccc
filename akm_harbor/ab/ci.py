"""A comparison for CI: JUnit XML for the test tab, Markdown for a job's summary."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import akm_harbor
from akm_harbor.ab import words
from akm_harbor.ab.result import AbResult, Delivery
from akm_harbor.ab.verdict import NO_ANSWER, REGRESSION
from akm_harbor.report.text import short, visible

_MOST_TASKS = 200
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(r: AbResult) -> str:
    """The comparison as JUnit XML: verdict, comparability, delivery, errors, one test case each.

    A regression is a failure, a question without an answer an error; a caveat is neither.
    """
    suite = ET.Element("testsuite", name=_xml(f"akm_harbor: {r.title}"))
    cases = list(_cases(r))
    for name, kind, message in cases:
        case = ET.SubElement(suite, "testcase", classname="akm_harbor.ab", name=_xml(name), time="0")
        if kind:
            ET.SubElement(case, kind, message=_xml(message.splitlines()[0] if message else name)).text = _xml(message)
        else:
            ET.SubElement(case, "system-out").text = _xml(message)
    for kind in ("failure", "error", "skipped"):
        suite.set(f"{kind}s" if kind != "skipped" else kind, str(sum(1 for case in cases if case[1] == kind)))
    suite.set("tests", str(len(cases)))
    suite.set("time", "0")
    properties = ET.Element("properties")
    for name, value in (
        ("akm_harbor", akm_harbor.__version__),
        ("outcome", r.verdict.outcome),
        ("rule", r.verdict.rule),
    ):
        ET.SubElement(properties, "property", name=name, value=_xml(value))
    suite.insert(0, properties)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _cases(r: AbResult) -> Iterator[tuple[str, str, str]]:
    """Name, kind (empty for passed) and text of each test case."""
    code = r.verdict.exit_code
    kind = "failure" if code == REGRESSION else "error" if code == NO_ANSWER else ""
    text = "\n".join([words.headline(r), words.precision(r), r.verdict.rule, *r.verdict.reasons])
    yield "verdict", kind, text
    for check in r.checks:
        detail = f"{check.title}: {check.baseline} against {check.treatment}. {check.detail}"
        yield f"comparable: {check.name}", "failure" if check.grade == "fatal" else "", detail
    yield "delivery", "error" if r.verdict.outcome == "not-delivered" else "", words.delivery_sentence(r)
    errors = f"attempts with errors: {r.errors.baseline} of the baseline, {r.errors.treatment} of the treatment"
    yield "errors are balanced", "error" if r.verdict.outcome == "unbalanced-errors" else "", errors


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", visible(text))


def markdown(r: AbResult) -> str:
    """The comparison as GitHub-flavoured Markdown: verdict, headline, what it rests on, tasks that differ."""
    mark = {REGRESSION: "❌", NO_ANSWER: "⚠️"}.get(r.verdict.exit_code, "✅")
    solved = [words.percent(share) for share in (r.headline.baseline, r.headline.treatment)]
    lines = [
        f"## {mark} {_md(r.title)}: {_outcome(r)}",
        "",
        _md(words.headline(r)),
        "",
        _md(words.precision(r)),
        "",
        f"| | {_md(r.baseline.name)} | {_md(r.treatment.name)} |",
        "| --- | --- | --- |",
        f"| attempts | {r.baseline.n_attempts} | {r.treatment.n_attempts} |",
        f"| solved, of {len(r.shared_tasks)} shared tasks | {solved[0]} | {solved[1]} |",
        f"| attempts with errors | {r.errors.baseline} | {r.errors.treatment} |",
        f"| treatment delivered | {_delivered(r.delivery[0])} | {_delivered(r.delivery[1])} |",
        "",
        f"Rule: {_md(r.verdict.rule)}",
        *(f"- {_md(reason)}" for reason in r.verdict.reasons),
        *_caveats(r),
        "",
        *_tasks(r),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _outcome(r: AbResult) -> str:
    """The outcome in words: failing to rule a loss out is not having found one."""
    if r.verdict.outcome == "regression" and r.verdict.direction != "worse" and r.options.rule == "non-inferior":
        return words.against_margin(r).rstrip(".").lower()
    return r.verdict.outcome.replace("-", " ")


def _delivered(delivery: Delivery) -> str:
    due = delivery.delivered + delivery.undelivered
    return f"{delivery.delivered} of {due}" if due else "not recorded" if delivery.unknown else "not due"


def _caveats(r: AbResult) -> Iterator[str]:
    for check in r.checks:
        if check.grade in {"caveat", "fatal"}:
            yield f"- {check.grade}: {_md(check.title)}: {_md(check.baseline)} against {_md(check.treatment)}"


def _tasks(r: AbResult) -> Iterator[str]:
    differing = sorted((t for t in r.tasks if t.difference), key=lambda t: (t.difference or 0.0, t.task))
    if not differing:
        return
    yield f"<details><summary>{len(differing)} of {len(r.tasks)} tasks differ</summary>"
    yield ""
    yield "| task | baseline | treatment | points |"
    yield "| --- | --- | --- | --- |"
    for t in differing[:_MOST_TASKS]:
        yield (
            f"| {_md(short(t.task))} | {words.percent(t.mean_baseline)} | {words.percent(t.mean_treatment)} "
            f"| {words.points(t.difference)} |"
        )
    if len(differing) > _MOST_TASKS:
        yield f"| and {len(differing) - _MOST_TASKS} more in report.html | | | |"
    yield ""
    yield "</details>"


def _md(text: str) -> str:
    """Text that stays text: names come from job directories, and Markdown may hold HTML and links."""
    plain = " ".join(visible(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", plain).replace("@", "@&#8203;").replace("://", ":&#8203;//")
