"""The package's public surface, what it costs to import, and what its wheel carries."""

import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import akm_harbor

ROOT = Path(__file__).parents[1]
ANALYSIS = ("tables", "trials", "stats", "ab", "memory", "canary", "report")


@pytest.mark.parametrize("name", akm_harbor.__all__)
def test_public_names_load_on_first_use(name: str) -> None:
    assert isinstance(getattr(akm_harbor, name), type)
    assert name in dir(akm_harbor)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'AkmOpenCodex'"):
        _ = akm_harbor.AkmOpenCodex


def _modules(room: str) -> list[str]:
    folder = ROOT / "akm_harbor" / room
    return [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in sorted(folder.rglob("*.py"))
    ]


def test_analysis_never_loads_harbor() -> None:
    modules = ["akm_harbor", *(m for room in (*ANALYSIS, "cli") for m in _modules(room))]
    code = (
        f"import importlib, sys\nfor m in {modules!r}: importlib.import_module(m)\n"
        "sys.exit('harbor' in sys.modules or 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_imports_nothing_heavy() -> None:
    heavy = ("pandas", "pyarrow", "numpy", "matplotlib")
    code = f"from akm_harbor.cli.app import app\nimport sys\nprint([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_harbor_finds_the_report_plugin() -> None:
    (plugin,) = entry_points(group="harbor.plugins", name="akm")
    assert plugin.load() is akm_harbor.ReportPlugin


def test_a_wheel_carries_the_data_folders(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("agents", "arms", "tasks", "notebooks"):
        shipped = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
        missing = [file for file in shipped.stdout.splitlines() if f"akm_harbor/_data/{file}" not in names]
        assert not missing
    assert not [name for name in names if "/tests/" in name and "/_data/tasks/" not in name]
