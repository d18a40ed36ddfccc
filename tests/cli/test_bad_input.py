"""Bad input as a person gives it: one message, an exit code, never a traceback, nothing lost."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from akm_harbor.resources import sample_jobs
from akm_harbor.trials import collect

CODE = "from akm_harbor.cli import main; main()"
CLI = [sys.executable, "-c", CODE]
ENV = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
DEVICES = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")


def run(*arguments: object, **more: object) -> "subprocess.CompletedProcess[str]":
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([*CLI, *map(str, arguments)], text=True, check=False, env=ENV, **given)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad") / "dataset"
    collect([sample_jobs()], folder)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "plan --difference 1e-300",
        "plan --tasks 99999999999999999999999",
        "plan --budget 1e309 --trial-cost 1",
        "plan --budget 1e300 --trial-cost 1e-10",
        "plan --budget 10 --trial-cost 1e-300",
        "plan --difference 0.1 --alpha 1e-320",
        "plan --difference 0.1 --power 0.9999999999999999",
        "collect {jobs} -o new --workers 99999999999999999999",
        "report ab {dataset} -b control -t oracle-context -o new --level 0.9999999999999999",
        "report arms {dataset} -b control -o new --level 0.9999999999999999",
        "report notebook ab_report -o new --timeout nan",
        "report ab {dataset} -b control -t oracle-context -o new --junit new --markdown new",
        "doctor --harbor --python /bin/true",
        "canary refresh folder --k -3",
        "corpus new a--b --tasks file",
        "corpus new a--b --tasks tasks --bundle nope",
        "canary history {dataset} -o new",
        "canary snapshot folder --wait nan",
        "ab run demo --dry-run -o file",
        "ab run demo --dry-run -o {dataset}",
        "report ab {dataset} -b control -t oracle-context -o new --look=",
        "report ab {dataset} -b control -t oracle-context -o new --task-names twice.json",
        "report ab {dataset} -b control -t oracle-context -o new --task-names strange.json",
        "report arms {dataset} -a control -a control -o new",
        "memory probe locomo --seed -1 -o new",
        "toolchain show folder --verify",
    ],
)
def test_it_is_told_and_nothing_is_left(tmp_path: Path, dataset: Path, command: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "tasks").mkdir()
    (tmp_path / "bundles" / "minimal").mkdir(parents=True)
    (tmp_path / "strange.json").write_text('{"no such task": "b"}')
    (tmp_path / "twice.json").write_text('{"a": "b", "a": "c"}')
    words = [word.format(dataset=dataset, jobs=sample_jobs()) for word in command.split()]
    done = run(*words, cwd=tmp_path)
    assert done.returncode in {1, 2}, done.stdout
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    assert not (tmp_path / "new").exists()


@DEVICES
@pytest.mark.parametrize("command", ["tables", "plan --json", "arms list"])
def test_a_full_disk_behind_the_output_is_told(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(*command.split(), stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith("akm-harbor: No space left on device\n  Check that the place exists")


@pytest.mark.parametrize("words", [["collect", "", "-o", "data"], ["demo", "-o", ""], [""]])
def test_an_empty_argument_is_no_folder(tmp_path: Path, words: list[str]) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "is empty" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors as a shell does")
@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_with_a_stream_closed_the_work_is_done_all_the_same(tmp_path: Path, closed: str) -> None:
    command = f'"{sys.executable}" -c "{CODE}" collect "{sample_jobs()}" -o data --workers 2 {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, cwd=tmp_path, env=ENV
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "manifest.json").is_file()


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.rmdir({str(gone)!r}); {CODE}"
    command = [sys.executable, "-c", code, "collect", str(sample_jobs()), "-o", "data"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=gone, env=ENV)
    assert done.returncode == 1
    assert done.stderr.startswith("akm-harbor: ")
    assert "Traceback" not in done.stderr


def test_a_link_to_standard_output_stays_one(tmp_path: Path, dataset: Path) -> None:
    (tmp_path / "out").symlink_to("/dev/stdout")
    done = run("report", "ab", dataset, "-b", "control", "-t", "oracle-context", "-o", tmp_path / "r",
               "--markdown", tmp_path / "out")  # fmt: skip
    assert (tmp_path / "out").is_symlink()
    assert "oracle-context" in done.stdout.splitlines()[0]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_is_no_utf8_and_repaints_the_terminal_is_a_name_like_any_other(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9-\x1b[31m-\xe2\x80\xae"))
    folder.mkdir()
    arms = ["-b", "control", "-t", "oracle-context"]
    for code, *words in (
        (0, "collect", sample_jobs(), "-o", folder / "data"),
        (0, "report", "ab", folder / "data", *arms, "-o", folder / "out"),
        (0, "report", "arms", folder / "data", "-o", folder / "out"),
        (0, "ab", "export", folder / "data", *arms, "-o", folder / "made.zip"),
        (0, "ab", "verify", folder / "made.zip", "--json", folder / "differences.json"),
        (0, "memory", "probe", "demo-locomo", "-b", "bm25", "-g", "turn", "-o", folder / "probe"),
        (1, "memory", "report", folder / "probe", "-o", folder / "out"),
        (1, "ab", "verify", folder),
        (2, "report", "notebook", "ab_report", "-o", folder / "out", "-p", f"source={folder / 'data'}"),
    ):
        done = run(*words)
        assert done.returncode == code, (words, done.stderr)
        assert "Traceback" not in done.stderr
        assert not set(done.stdout + done.stderr) & {"\x1b", "\u202e"}, words
    assert sorted(found.name for found in folder.iterdir()) == ["data", "differences.json", "made.zip", "out", "probe"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks processes up in /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_who_ends_a_command_ends_its_workers(tmp_path: Path, number: int, code: int) -> None:
    words = ["memory", "probe", "demo-locomo", "-b", "bm25", "-b", "grep", "-g", "turn", "--repeats", "400", "-j", "2"]
    process = subprocess.Popen(
        [*CLI, *words, "-o", str(tmp_path / "data")],
        env={**ENV, "AKM_HARBOR_TEST_MARK": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  (a background shell ignores it)
        process_group=0,
    )
    wait_until(lambda: sum(map(works, marked(tmp_path))) == 2)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in said
    wait_until(lambda: not marked(tmp_path))


def test_a_command_that_is_ended_while_it_loads_says_nothing() -> None:
    code = "import sys\nsys.meta_path.insert(0, type('Ctrl_C', (), {'find_spec': staticmethod(find)}))\n"
    code = "def find(name, *_):\n if name == 'typer': raise KeyboardInterrupt\n" + code
    done = subprocess.run(
        [sys.executable, "-c", code + "from akm_harbor.cli import main; main()", "collect", "--help"],
        check=False,
        env=ENV,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def marked(test: Path) -> list[str]:
    """Processes that a test marked by a variable in their environment."""
    mark, found = f"AKM_HARBOR_TEST_MARK={test}".encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (place / "environ").read_bytes():
                found.append(place.name)
    return found


def works(process: str) -> bool:
    """Whether a process is a worker past its start: from then on a Ctrl-C is not for it."""
    with contextlib.suppress(OSError):
        place = Path("/proc") / process
        if b"spawn_main" in (place / "cmdline").read_bytes():
            status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
            return bool(int(status["SigIgn"], 16) >> (signal.SIGINT - 1) & 1)
    return False


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
