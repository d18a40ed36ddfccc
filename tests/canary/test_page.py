import json
import shutil
import subprocess
from pathlib import Path

import pytest

from akm_harbor.canary import figures
from akm_harbor.canary.analysis import analyse
from akm_harbor.canary.notebook import load, sample
from akm_harbor.canary.page import SECTIONS, render_page, render_section, stretches
from akm_harbor.canary.run import SAMPLE
from akm_harbor.canary.simulate.calibration import read_calibration
from akm_harbor.canary.simulate.history import Story, tell
from akm_harbor.canary.sources import Gathered, gather
from akm_harbor.errors import UsageError
from akm_harbor.report.offline import external_references
from akm_harbor.resources import resource


def _result(*stories: Story) -> object:
    found = Gathered(sources=[story.label for story in stories])
    for story in stories:
        for name, rows in tell(story).items():
            found.rows[name] += rows
    return analyse(found)


def test_the_page_holds_every_section_and_loads_nothing(collapse: Path) -> None:
    html = render_page(analyse(gather([collapse])), read_calibration(resource(*SAMPLE, "calibration.json")))
    assert external_references(html) == []
    for name in SECTIONS:
        assert f'id="{name}"' in html
    for text in ("collapse-recall", "memories/bream-proxy-headers", "as-designed", "16 / 40"):
        assert text in html


def test_text_from_a_store_is_escaped(collapse: Path) -> None:
    found = gather([collapse])
    for rows in found.rows.values():
        for row in rows:
            row["store"] = "<script>alert(1)</script>"
    for row in found.rows["canary_queries"]:
        row["query"] = "<img src=x onerror=alert(1)>"
        row["anchor_ref"] = 'memories/"><svg onload=alert(1)>'
    html = render_page(analyse(found))
    assert "<script" not in html
    assert "<img src=x" not in html
    assert "<svg onload" not in html
    assert external_references(html) == []


def test_a_short_history_can_be_drawn() -> None:
    result = _result(Story("one-day", days=1), Story("two-days", days=2, refresh_at=1))
    html = render_page(result)  # type: ignore[arg-type]
    assert "Not enough history" in html


def test_years_are_drawn_as_one_image_not_as_thousands_of_shapes() -> None:
    result = _result(Story("years", days=400))
    drawn = figures.timeline(result.stores[0])  # type: ignore[attr-defined]
    assert drawn is not None
    assert "data:image/png" in drawn
    assert len(drawn) < 60_000


def test_neighbouring_cycles_with_the_same_verdicts_are_one_line(collapse: Path) -> None:
    (store,) = analyse(gather([collapse])).stores
    rows, older = stretches(store)
    assert older == 0
    assert rows[0].first == rows[0].last == 11
    assert sum(one.last - one.first + 1 for one in rows) == 5


def test_a_section_alone(collapse: Path) -> None:
    html = render_section(analyse(gather([collapse])), "alerts")
    assert html.startswith("<style>")
    assert "Alerts by the three rules" in html
    assert "Store shape" not in html


def test_the_samples_ship_and_load(tmp_path: Path) -> None:
    assert [path.name for path in sample()] == ["simulated-decline", "snapshots-of-akm", "state-db-of-akm"]
    made = load("", out=str(tmp_path / "out"))
    assert json.loads(made.verdict_file.read_text())["status"] == "warn"
    assert made.page.stat().st_size < 2_000_000
    with pytest.raises(UsageError, match="as-planned"):
        load("", rule="as-planned")


@pytest.mark.browser
def test_the_page_shows_without_script_or_request(collapse: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render_page(analyse(gather([collapse]))))
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += [
        "--disable-background-networking",
        "--disable-component-update",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    shot = tmp_path / "shot.png"
    subprocess.run(
        [browser, *flags, "--window-size=1000,1400", f"--screenshot={shot}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    assert shot.stat().st_size > 30_000
