"""The doctor names each planted fault, with a remedy; the rest of the machine is as it is."""

import importlib.metadata
import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from akm_harbor.cli.app import app
from akm_harbor.study import doctor_machine, doctor_tools
from akm_harbor.study.doctor import Wanted, examine

PROGRAMS = ("npm", "node", "bwrap", "docker")


def fake(folder, name, script):
    """A program of that name, first on the path: a test double that answers as the real one would."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


GOOD_DOCKER = """case "$1 $2" in
  "info --format") echo 28.0.0;;
  "compose version") echo v2.26.1;;
  "ps --all") ;;
esac"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A path that leads to the real tools but for those that a test replaces or takes away."""
    folder = tmp_path / "programs"
    folder.mkdir()
    rest = tmp_path / "rest"
    rest.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for path in sorted(Path(place).iterdir()) if Path(place).is_dir() else []:
            if path.name not in PROGRAMS and not (rest / path.name).exists():
                (rest / path.name).symlink_to(path)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{rest}")
    fake(folder, "docker", GOOD_DOCKER)
    fake(folder, "npm", 'case "$1" in --version) echo 10.9.0;; view) echo "\\"${2##*@}\\"";; *) echo;; esac')
    return folder


@pytest.fixture
def look(tmp_path):
    def run(check, **wanted):
        wanted.setdefault("cache_dir", tmp_path / "cache")
        return {f.name: f for f in check(Wanted(**wanted))}

    return run


def faulty(finding, *said, status=None):
    assert finding.status == (status or finding.status) != "ok", finding
    assert finding.remedy
    for text in said:
        assert text in finding.detail + finding.remedy, finding


def test_1_an_old_python(look, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 11, 9))
    faulty(look(doctor_machine.python)["python"], "Python 3.12 or newer", status="fail")


@pytest.mark.parametrize("version", ["0.21.4", "0.27.0", "1.0.0"])
def test_2_a_harbor_outside_the_range(look, monkeypatch, version):
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: version)
    faulty(look(doctor_tools.harbor)["harbor"], version, "pip install 'harbor>=0.22,<0.27'", status="fail")


def test_the_range_is_that_of_the_package():
    required = [r for r in importlib.metadata.requires("akm-harbor") or [] if r.startswith("harbor")]
    assert required
    bounds = set(required[0].removeprefix("harbor").split(","))
    first, beyond = (".".join(map(str, v)) for v in doctor_tools.HARBOR_RANGE)
    assert bounds == {f">={first}", f"<{beyond}"}


def test_3_no_bubblewrap(look, programs):
    found = look(doctor_tools.environments)
    faulty(found["bubblewrap"], "not found", "apt-get install bubblewrap", status="warn")
    assert found["docker"].status == "ok"


@pytest.mark.sandbox
def test_4_no_overlay(look, programs):
    fake(programs, "bwrap", 'echo "bwrap: Creating new namespace failed: Operation not permitted" >&2; exit 1')
    faulty(look(doctor_tools.environments)["overlay"], status="warn")


def test_5_a_docker_engine_that_does_not_answer(look, programs):
    fake(programs, "docker", 'echo "Cannot connect to the Docker daemon" >&2; exit 1')
    found = look(doctor_tools.environments)
    faulty(found["docker"], "Cannot connect to the Docker daemon", status="fail")  # no bubblewrap either
    faulty(found["environment"], "neither the sandbox nor Docker", status="fail")


def test_6_a_compose_that_is_too_old(look, programs):
    fake(programs, "docker", GOOD_DOCKER.replace("v2.26.1", "1.29.2"))
    faulty(look(doctor_tools.environments)["compose"], "1.29.2", "compose plugin")


def test_7_no_npm(look, programs):
    (programs / "npm").unlink()
    faulty(look(doctor_tools.npm)["npm"], "Node.js 20")


def test_8_a_pin_that_the_registry_does_not_have(look, programs):
    fake(programs, "npm", """case "$1 $2" in
  --version*) echo 10.9.0;;
  "view akm-cli@"*) echo "npm error code E404" >&2; exit 1;;
  "view bun@"*) echo "npm error code ETARGET" >&2; exit 1;;
  view*) echo "\\"${2##*@}\\"";;
esac""")  # fmt: skip
    found = look(doctor_tools.npm, online=True)
    assert found["pin opencode"].status == "ok"
    faulty(found["pin akm"], "is not in the registry", "--akm file:PATH", status="warn")
    faulty(found["pin bun"], "is not in the registry", "agents/pins.toml", status="fail")


@pytest.mark.parametrize(
    ("model", "status", "said"),
    [
        ("anthropic/claude", "fail", "ANTHROPIC_API_KEY"),
        ("claude", "fail", "provider/model"),
        ("acme/one", "warn", "acme"),
        ("scripted/demo", "ok", "none"),
    ],
)
def test_9_no_model_key(look, monkeypatch, model, status, said):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    found = look(doctor_tools.model_key, model=model)["model key"]
    assert found.status == status
    assert said in found.detail + found.remedy
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-never-shown")
    held = look(doctor_tools.model_key, model="anthropic/claude")["model key"]
    assert (held.status, "never-shown" in held.detail) == ("ok", False)


def test_10_no_disk(look, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(total=1e12, used=1e12, free=5e8))
    faulty(look(doctor_machine.disk)["disk"], "0.5 GB free", "sandbox clean", status="fail")


def test_jobs_that_have_no_place(look, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name, said in (("file", "is no folder"), ("file/below", "is no folder"), ("loop", "leads nowhere")):
        found = [one for one in doctor_machine.disk(Wanted(jobs_dir=tmp_path / name)) if one.status == "fail"]
        assert [said in one.detail for one in found] == [True], name


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
def test_11_folders_of_killed_sandboxes(look, tmp_path, programs):
    assert look(doctor_machine.left_over)["left-over folders"].status == "ok"
    dead = next((tmp_path / "cache").glob("user-*/trials")) / "task__abc"
    dead.mkdir()
    (dead / "lock").touch()
    faulty(look(doctor_machine.left_over)["left-over folders"], "1 folders", "akm-harbor sandbox clean", status="warn")
    assert dead.exists()  # a doctor looks, it does not sweep


def test_12_containers_of_killed_trials(look, programs):
    names = "hello__AbC1234\\thello__AbC1234-main-1\\tUp 2 days\\nmy-web\\tweb-1\\tUp 1 hour\\n"
    fake(programs, "docker", f'[ "$1" = ps ] && printf "{names}"; exit 0')
    found = look(doctor_machine.left_over)["left-over containers"]
    faulty(found, "1 Harbor trials: hello__AbC1234", "docker compose -p hello__AbC1234 down", status="warn")
    assert "my-web" not in found.detail


def test_13_a_clock_that_went_back(look, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0.0)
    faulty(look(doctor_machine.clock)["clock"], "before this package was installed", "timedatectl", status="fail")


def test_14_a_clock_that_is_off(look, monkeypatch):
    monkeypatch.setattr(doctor_machine, "_skew", lambda: -3600.0)
    faulty(look(doctor_machine.clock, online=True)["clock"], "-3600 s", status="fail")
    monkeypatch.setattr(doctor_machine, "_skew", lambda: None)
    faulty(look(doctor_machine.clock, online=True)["clock"], "no other clock", status="warn")


def test_15_a_kernel_whose_python_is_gone(look, tmp_path, monkeypatch):
    assert look(doctor_machine.kernel)["kernel"].status == "ok"
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["/venv/that/is/gone/bin/python", "-m", "x"], "display_name": "p"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    faulty(look(doctor_machine.kernel)["kernel"], "/venv/that/is/gone", "ipykernel install", status="fail")


def test_16_no_kernel(look, monkeypatch):
    monkeypatch.setattr(doctor_machine.importlib.util, "find_spec", lambda _name: None)
    faulty(look(doctor_machine.kernel)["kernel"], "pip install ipykernel", status="fail")


def test_a_check_that_dies_is_a_finding(monkeypatch):
    def dies(_wanted):
        raise RuntimeError("the patient's disease")

    monkeypatch.setattr(doctor_machine, "disk", dies)
    found = {f.name: f for f in examine(Wanted())}
    faulty(found["disk"], "the patient's disease", status="fail")
    assert found["clock"].status == "ok"


def test_the_command_as_text_and_as_json(programs, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    told = CliRunner().invoke(app, ["doctor", "--model", "openai/gpt", "--cache-dir", str(tmp_path / "cache")])
    assert told.exit_code == 1
    assert "fail model key: openai: OPENAI_API_KEY is not set\n     export OPENAI_API_KEY=…" in told.stdout
    told = CliRunner().invoke(app, ["doctor", "--json", "--cache-dir", str(tmp_path / "cache")])
    found = json.loads(told.stdout)
    assert {"name", "status", "detail", "remedy"} == set(found[0])
    assert told.exit_code == any(f["status"] == "fail" for f in found)
    assert CliRunner().invoke(app, ["doctor", "--clause", "layout"]).exception is not None
