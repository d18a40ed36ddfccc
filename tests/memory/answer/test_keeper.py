"""The process that makes the calls outlives the run that asked for them: killed runs lose and repeat nothing."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer.caller import Endpoint
from akm_harbor.memory.answer.calls import Request
from akm_harbor.memory.answer.journal import read_journal
from akm_harbor.memory.answer.keeper import Keeper, Terms
from akm_harbor.memory.answer.result import read_study
from tests.memory.answer.model_double import Double, Script
from tests.memory.answer.support import declare, execute, script_for, stable

ROOT = Path(__file__).parents[3]


def terms(url, **changes):
    return Terms(Endpoint("openai/m", url, "DOUBLE_KEY", price=(1.0, 1.0), **changes), None, None, None, 4)


def requests(number):
    return [Request("reader", "", "openai/m", (("user", f"hello {i}"),), (("max_tokens", 9),)) for i in range(number)]


def test_calls_are_made_and_a_run_that_goes_away_leaves_its_answers_in_the_journal(tmp_path):
    with Double(Script(seconds=0.3)) as double:
        keeper = Keeper(tmp_path / "j", terms(double.url))
        replies = list(keeper.ask(requests(3)))
        assert all(reply.answered for reply in replies)
        assert keeper.spent["requests"] == 3
        for request in requests(12)[3:]:  # nine more are asked for, and then nobody listens any more
            keeper._tell(dataclasses.asdict(request))
        while sum(double.requests.values()) < 5:
            time.sleep(0.02)
        keeper._process.stdin.close()
        keeper._process.stdout.close()
        assert keeper._process.wait(60) == 0
        recorded = read_journal(tmp_path / "j")
        assert recorded.in_flight == {}
        assert len(recorded.replies) == sum(double.answers.values()) < 12
        again = Keeper(tmp_path / "j", terms(double.url))
        again.close()


def test_a_damaged_journal_is_told_by_the_process(tmp_path):
    (tmp_path / "j").write_text("nonsense\n")
    with pytest.raises(AkmHarborError, match="line 1 of the journal"):
        Keeper(tmp_path / "j", terms("http://127.0.0.1:1/v1"))


def test_a_process_that_is_killed_is_told_and_its_calls_are_uncertain(tmp_path):
    with Double(Script(seconds=5)) as double:
        keeper = Keeper(tmp_path / "j", terms(double.url))
        with pytest.raises(AkmHarborError, match="process that makes the model calls ended"):
            for _ in keeper.ask(_killing(keeper, double)):
                pass
        keeper.close()
    recorded = read_journal(tmp_path / "j")
    assert len(recorded.in_flight) >= 1
    assert not recorded.replies


def _killing(keeper, double):
    yield requests(1)[0]
    while not double.requests:
        time.sleep(0.02)
    os.kill(keeper._process.pid, signal.SIGKILL)
    keeper._process.wait()


def test_a_study_killed_at_any_moment_and_resumed_is_the_same_and_pays_each_call_once(stores, tmp_path):
    double = Double(script_for(stores["locomo"]))
    double.script.seconds = 0.05
    arms = {"arms": ["none", "oracle", "bm25"], "sample": 8, "gates": {"ceiling": 0.0, "retrieval": 0.0}}
    judged = {"scorer": {"name": "akm-harbor-judge"}, "judge": {"model": "openai/double-judge", "probe": 2}}
    with double:
        path = declare(tmp_path, double.url, **arms, **judged)
        command = [sys.executable, "-c", "from akm_harbor.cli import main; main()", "memory", "run"]
        command += ["-c", str(path), "-o", str(tmp_path / "out")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "AKM_HARBOR_CACHE": str(tmp_path / "cache")}
        for more in (1, 9, 4):
            before = sum(double.requests.values())
            run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while run.poll() is None and sum(double.requests.values()) < before + more:
                time.sleep(0.01)
            assert run.poll() is None, "it ended before it could be killed"
            run.kill()
            run.wait()
            assert not (tmp_path / "out").exists()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert Counter(double.requests.values()).keys() == {1}
        assert double.requests == double.answers
        execute(path, stores["locomo"], tmp_path / "whole")
    killed, whole = read_study(tmp_path / "out"), read_study(tmp_path / "whole")
    assert stable(killed.trials).equals(stable(whole.trials))
    assert stable(killed.scores).equals(stable(whole.scores))
    assert killed.manifest["calls"]["taken_over"] > 0
    assert killed.manifest["calls"]["uncertain"] == 0
