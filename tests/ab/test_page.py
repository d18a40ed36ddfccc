"""The page as a stranger's browser gets it, with the worst that a job directory can hold."""

import dataclasses
import shutil

import pytest

from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.drilldown import PRINTED_TASKS
from akm_harbor.ab.page import SECTIONS, amount, cell, ratio, render_page, render_section
from akm_harbor.report.offline import external_references
from akm_harbor.stats.results import Estimate, Interval, NotEstimable

from .support import dataset, matrix, trial

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</style><img src=x onerror=\"document.title='owned'\">",
    "{{ 7*7 }}{% for x in y %}",
    "'\"><iframe src='https://example.test'></iframe>",
    "evil\u202etxt.exe\u2066",
    "]]></svg><script>document.title='owned'</script>",
    "$\\frac{1}{0}$ $x^{",
    "line " * 200_000,
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    rows = []
    for index, text in enumerate(HOSTILE):
        for arm in (f"base {HOSTILE[0]}", f"treat {HOSTILE[1]} {HOSTILE[4]}"):
            common = {"job_name": text[:500], "agent_name": text[:500], "environment": text[:500]}
            rows.append(trial(arm, text, 0, float((index + len(arm)) % 2), **common))
            rows.append(
                trial(
                    arm,
                    text,
                    1,
                    None,
                    exception_type=text[:300],
                    exception_cause=text[:100],
                    exception_message=text,
                    treatment_delivered=False,
                    delivery_reasons=[text[:200]],
                    **common,
                )
            )
    tasks = [{"task_name": t, "family": t} for t in HOSTILE]
    path = dataset(tmp_path_factory.mktemp("hostile"), rows, tasks, {"package": HOSTILE[0], "note": HOSTILE[1]})
    return analyse(path, rows[0]["arm"], rows[2]["arm"])


def test_hostile_text_is_inert(hostile):
    page = render_page(hostile)
    assert external_references(page) == []
    assert "<script" not in page
    assert "<img" not in page
    assert "<iframe" not in page
    assert "\u202e" not in page
    assert "\u2066" not in page
    assert "{{ 7*7 }}" in page  # shown as it is, not evaluated
    assert page.count("</style>") == page.count("<style")
    assert len(page) < 2_000_000


@pytest.mark.browser
def test_browser_asks_for_nothing_and_runs_nothing(hostile, tmp_path):
    from playwright.sync_api import sync_playwright

    page_file = tmp_path / "report.html"
    page_file.write_text(render_page(hostile))
    requests, complaints = [], []
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 400, "height": 800})
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(page_file.as_uri())
        for summary in page.locator("summary").all():
            summary.click()
        page.wait_for_timeout(200)
        title, width = page.title(), page.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert requests == [page_file.as_uri()]
    assert complaints == []
    assert title.startswith("A/B report: ")
    assert width <= 400  # nothing makes a phone scroll sideways


@pytest.mark.browser
def test_paper_shows_what_a_click_opens(tmp_path, arms):
    from playwright.sync_api import sync_playwright

    rows = [*matrix("a", arms[0]), *matrix("b", arms[1])]
    page_file = tmp_path / "report.html"
    page_file.write_text(render_page(analyse(dataset(tmp_path, rows), "a", "b")))
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    shown = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 700, "height": 900})
        page.goto(page_file.as_uri())
        for media in ("screen", "print"):
            page.emulate_media(media=media)
            script = "[...document.querySelectorAll('article.attempt')].map(a => a.checkVisibility())"
            shown[media] = page.evaluate(script)
        browser.close()
    assert not any(shown["screen"])
    assert sum(shown["print"]) == 6 * PRINTED_TASKS  # three attempts in each arm


def test_sections_stand_alone(tmp_path, arms):
    rows = [*matrix("a", arms[0]), *matrix("b", arms[1])]
    result = analyse(dataset(tmp_path, rows), "a", "b")
    for name in ("headline", *SECTIONS):
        html = render_section(result, name)
        assert external_references(html) == []
        assert html.rstrip().endswith("</div>")
    assert "MDE" not in render_section(result, "headline")  # words, not abbreviations
    page = render_page(result)
    assert "On paper the trials of the 12 tasks" in page
    assert page.index("Before the result") < page.index("a difference of +14.0 points")
    assert "95% interval +4.3 to +23.8; exact sign-flip p = 0.021" in page


def test_page_is_the_same_twice(tmp_path, arms):
    result = analyse(dataset(tmp_path, [*matrix("a", arms[0]), *matrix("b", arms[1])]), "a", "b")
    assert render_page(result) == render_page(result)


@pytest.mark.parametrize(
    ("score", "errored", "delivered", "expected"),
    [
        (1.0, False, None, ("solved", "✓", "solved")),
        (0.0, False, True, ("failed", "\u00d7", "not solved")),
        (0.25, False, None, ("part", ".2", "reward 0.25")),
        (None, True, None, ("out errored", "\u2013", "left out; AgentTimeoutError")),
        (1.0, True, False, ("solved errored undelivered", "✓", "solved; AgentTimeoutError; treatment not delivered")),
    ],
)
def test_cells_are_told_apart_without_colour(tmp_path, score, errored, delivered, expected):
    rows = [*matrix("a", [[1], [0]]), *matrix("b", [[1], [1]])]
    attempt = analyse(dataset(tmp_path, rows), "a", "b").tasks[0].baseline[0]
    kind = "AgentTimeoutError" if errored else None
    changed = dataclasses.replace(attempt, score=score, errored=errored, delivered=delivered, exception_type=kind)
    assert cell(changed) == expected


@pytest.mark.parametrize(
    ("number", "unit", "expected"),
    [
        (None, "s", "\u2013"),
        (0.0123, "US$", "$0.0123"),
        (12.5, "US$", "$12.50"),
        (65.0, "s", "65.0 s"),
        (1200.0, "s", "20.0 min"),
        (17_200, "tokens", "17.2k"),
        (2_500_000, "tokens", "2.5M"),
        (50.0, "calls", "50"),
    ],
)
def test_amounts(number, unit, expected):
    assert amount(number, unit) == expected


def test_ratio_says_why_there_is_no_interval():
    assert ratio(Estimate(1.1063, "m", "e", 9, Interval(0.999, 1.2778, 0.95))) == "\u00d71.11 (1.00 to 1.28)"
    assert ratio(NotEstimable("one-task", "d", "m", "e", 1, 2.0)) == "\u00d72.00; one task"


@pytest.mark.parametrize(("models", "told"), [(("scripted/demo",) * 2, True), (("scripted/demo", "a/b"), False)])
def test_a_scripted_models_page_says_so(tmp_path, models, told):
    rows = [row for arm, model in zip("ab", models, strict=True) for row in matrix(arm, [[0], [1]], model_name=model)]
    page = render_page(analyse(dataset(tmp_path, rows), "a", "b"))
    assert ("Played by a scripted model" in page) is told
