"""Eight arms on twelve corpus tasks in one job: what the analysis says equals what the policy scripted.

    AKM_HARBOR_AKM_SPEC=… AKM_HARBOR_PLUGIN_SPEC=… pytest tests/live/test_eight_arms.py

288 trials, two to sixty minutes. `AKM_HARBOR_EIGHT_ATTEMPTS` makes it shorter, `AKM_HARBOR_EIGHT_JOB` takes a
job that was run before. Two things are planted: in the akm arm the bundle of `docker-homelab` is empty, so those
trials are not delivered; and in a copy of the job two ledgers are edited.
"""

import json
import os
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
import yaml

from akm_harbor.ab.arms import load_trials, select_arm
from akm_harbor.ab.behaviour import Behaviour, behaviour
from akm_harbor.ab.factorial import INJECTION_BY_TOOLS
from akm_harbor.ab.many import PLAN, ManyArms, compare_arms
from akm_harbor.ab.policies import KEEP_REWARD
from akm_harbor.agent.toolchain import Toolchain
from akm_harbor.sandbox.model import ScriptedModel
from akm_harbor.trials import collect
from tests.ab.eight import ARMS, POLICY, ROOT, TASKS, Scripted, Truth, observed
from tests.agent.support import run_job
from tests.live.test_akm import whole  # noqa: F401  (a fixture)

pytestmark = [
    pytest.mark.live_akm,
    pytest.mark.sandbox,
    pytest.mark.opencode,
    pytest.mark.xdist_group("trials"),
]

ATTEMPTS = int(os.environ.get("AKM_HARBOR_EIGHT_ATTEMPTS", "3"))
UNDELIVERED = ("akm", "docker-homelab--restart-policy")


def planted_bundles(folder: Path) -> Path:
    """The shipped bundles, one of them without files."""
    target = folder / "bundles"
    shutil.copytree(ROOT / "agents" / "bundles", target)
    shutil.rmtree(target / "docker-homelab")
    (target / "docker-homelab").mkdir()
    return target


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The job's directory."""
    if given := os.environ.get("AKM_HARBOR_EIGHT_JOB"):
        return Path(given)
    toolchain: Toolchain = request.getfixturevalue("whole")
    folder = tmp_path_factory.mktemp("eight")
    with ScriptedModel(POLICY) as model:
        text = (ROOT / "arms" / "eight.yaml").read_text().replace("127.0.0.1:18080", f"127.0.0.1:{model.port}")
        config = yaml.safe_load(text)
        for agent in config["agents"]:
            agent["kwargs"]["toolchain"] = str(toolchain.tree)
            if agent["kwargs"]["arm"] == "akm":
                agent["kwargs"] |= {"bundles_dir": str(planted_bundles(folder)), "selfcheck": "record"}
        tasks = config["datasets"][0]["task_names"]
        return run_job(
            folder,
            "eight",
            config["agents"],
            tasks,
            tasks_dir=ROOT / "tasks",
            n_attempts=ATTEMPTS,
            n_concurrent_trials=3,
        )


@pytest.fixture(scope="module")
def data(job: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job, collected."""
    folder = tmp_path_factory.mktemp("dataset") / "dataset"
    assert collect([job], folder).n_trials == len(ARMS) * len(TASKS) * ATTEMPTS
    return folder


@pytest.fixture(scope="module")
def many(data: Path) -> ManyArms:
    """Planned contrasts and the 2 x 2."""
    return compare_arms(data, contrasts=PLAN, factorial=INJECTION_BY_TOOLS)


@pytest.fixture(scope="module")
def truth() -> dict[tuple[str, str], Counter[Truth]]:
    """What was scripted, with the trials that were kept from being delivered."""
    table = Scripted().table(ATTEMPTS)
    cell: Counter[Truth] = Counter()
    for told, n in table[UNDELIVERED].items():
        cell[
            told if told.reward else Truth(0, "not-delivered", called=False, found=False, opened=False, wrote=False)
        ] += n
    return {**table, UNDELIVERED: cell}


def test_every_attempt_is_what_was_scripted(many: ManyArms, truth: dict[tuple[str, str], Counter[Truth]]) -> None:
    assert many.behaviour is not None
    assert observed(many.behaviour) == truth


def test_the_funnel(many: ManyArms, truth: dict[tuple[str, str], Counter[Truth]]) -> None:
    assert many.behaviour is not None
    n = len(TASKS) * ATTEMPTS
    for funnel in (f for f in many.behaviour.funnels if f.family is None):
        stages = {s.name: s.yes for s in funnel.stages}
        told = Counter[str]()
        for (arm, _), cell in truth.items():
            for attempt, count in cell.items():
                if arm == funnel.arm:
                    told += Counter(
                        {name: count for name in ("called", "found", "opened", "wrote") if getattr(attempt, name)}
                    )
        assert {name: stages[name] for name in ("called", "found", "opened", "wrote")} == {
            name: told[name] for name in ("called", "found", "opened", "wrote")
        }
        offered = funnel.arm not in {"control", "oracle-context", "injection-only"}
        assert stages["offered"] == n * offered
        assert stages["exposed"] == n * (funnel.arm not in {"control", "tools-only"})
        kept_back = ATTEMPTS if funnel.arm == "akm" else 0
        assert stages["delivered"] == (0 if funnel.arm == "control" else n - kept_back)


def test_the_contrasts(many: ManyArms, truth: dict[tuple[str, str], Counter[Truth]]) -> None:
    rate = {key: sum(t.reward * n for t, n in cell.items()) / ATTEMPTS for key, cell in truth.items()}

    def mean(arm: str) -> float:
        return sum(rate[arm, folder] for folder in TASKS.values()) / len(TASKS)

    assert [(c.arm, c.versus) for c in many.contrasts] == [(p.arm, p.versus) for p in PLAN]
    for contrast in many.contrasts:
        assert contrast.difference.value == pytest.approx(mean(contrast.arm) - mean(contrast.versus))
        assert contrast.n_tasks == len(TASKS)
        assert contrast.fatal == ()
    both, injection, tools, neither = (mean(arm) for arm in INJECTION_BY_TOOLS)
    effects = {e.name: e.result.value for e in many.factorial}
    assert effects["injection"] == pytest.approx((both + injection - tools - neither) / 2)
    assert effects["tools"] == pytest.approx((both + tools - injection - neither) / 2)
    assert effects["interaction"] == pytest.approx(both - injection - tools + neither)


def test_the_complier_effect(many: ManyArms, truth: dict[tuple[str, str], Counter[Truth]]) -> None:
    def share(arm: str, what: str) -> float:
        cells = [truth[arm, folder] for folder in TASKS.values()]
        return sum(int(getattr(t, what)) * n for cell in cells for t, n in cell.items()) / (len(TASKS) * ATTEMPTS)

    for effect in many.complier:
        assert (effect.uptake_baseline, effect.uptake_treatment) == (0.0, pytest.approx(share("akm", effect.uptake)))
        gain = share("akm", "reward") - share("control", "reward")
        assert effect.effect.value == pytest.approx(gain / share("akm", effect.uptake))
        assert {a.name: a.holds for a in effect.assumptions} == {
            "assignment": True,
            "relevance": True,
            "monotonicity": True,
            "exclusion": None,
        }


def test_the_attribution(many: ManyArms, truth: dict[tuple[str, str], Counter[Truth]]) -> None:
    seen = many.behaviour
    assert seen is not None
    rows = {(r.arm, r.asset): r for r in seen.assets}
    for arm in ("akm", "tools-only", "akm-write-gate"):
        for asset, domain in (
            ("knowledge/drillbit-command-line", "drillbit"),
            ("knowledge/inkwell-press-file", "inkwell"),
        ):
            cells = [c for (a, folder), c in truth.items() if a == arm and folder.startswith(domain)]
            opened = [(t, n) for cell in cells for t, n in cell.items() if t.opened]
            row = rows[arm, asset]
            assert row.n_opened == sum(n for _, n in opened)
            assert row.with_rate.value == pytest.approx(sum(n * t.reward for t, n in opened) / row.n_opened)
        neighbours = sum(n for t, n in truth[arm, "drillbit--lean-canary"].items() if t.mode == "opened-wrong")
        sites = rows.get((arm, "knowledge/drillbit-sites"))
        assert (sites.n_opened if sites else 0) == neighbours


def test_the_declared_workflows(many: ManyArms, truth: dict[tuple[str, str], Counter[Truth]]) -> None:
    assert many.behaviour is not None
    broken = Counter(v.arm for v in many.behaviour.compliance.violations if v.item == "gold-opened")
    for arm in ("akm", "tools-only", "akm-write-gate"):
        cell = truth[arm, "workflow-compliance--publish-port"]
        assert broken[arm] == sum(n for t, n in cell.items() if not t.opened)


def test_planted_non_delivery_is_found(many: ManyArms) -> None:
    assert many.behaviour is not None
    kept = [t for t in many.behaviour.trials if t.delivered is False and not t.placebo]
    assert {(t.arm, t.task.rpartition("/")[2]) for t in kept} == {UNDELIVERED}
    assert len(kept) == ATTEMPTS
    assert all("bundle-empty" in t.reasons for t in kept)
    shares = {a.name: a.delivered for a in many.arms}
    assert shares["akm"] == pytest.approx(1 - 1 / len(TASKS))
    assert shares["empty-bundle"] == shares["oracle-context"] == 1.0


def opened_in(seen: Behaviour, task: str) -> list[str]:
    """Trials of the akm arm that opened the gold asset of a task by akm_show."""
    return [t.trial_path for t in seen.trials if t.arm == "akm" and t.task.endswith(task) and t.opening is not None]


def test_a_planted_disagreement_between_ledgers_is_found(job: Path, many: ManyArms, tmp_path: Path) -> None:
    seen = many.behaviour
    assert seen is not None
    assert [r.disagreements for r in seen.ledgers] == [()] * len(ARMS)
    copy = tmp_path / job.name
    shutil.copytree(job, copy, ignore=shutil.ignore_patterns("xdg-data"))
    first, second = (opened_in(seen, task)[0].rpartition("/")[2] for task in ("widen-pool", "request-limit"))
    ledger = copy / first / "agent" / "akm" / "ledger" / "events.jsonl"
    lines = ledger.read_text().splitlines()
    gone = next(x for x in lines if json.loads(x)["event"] == "tool_observation" and "akm_show" in x)
    ledger.write_text("\n".join(x for x in lines if x != gone) + "\n")
    with sqlite3.connect(copy / second / "agent" / "akm" / "state.db") as database:
        database.execute("delete from usage_events where event_type = 'show'")
    database.close()
    collect([copy], tmp_path / "dataset")
    trials = load_trials(tmp_path / "dataset")
    found = [
        d
        for r in behaviour(tmp_path / "dataset", [select_arm(trials, a) for a in ARMS], KEEP_REWARD).ledgers
        for d in r.disagreements
    ]
    assert {(d.trial_path.rpartition("/")[2], d.code) for d in found} == {
        (first, "not-in-ledger"),
        (second, "not-in-usage"),
    }
    by_code = {d.code: d for d in found}
    assert by_code["not-in-ledger"].call_id == json.loads(gone)["input"]["callID"]
    assert by_code["not-in-usage"].subject == "akm_show knowledge/inkwell-press-file"
