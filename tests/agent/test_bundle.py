import os
from pathlib import Path

import pytest

from akm_harbor.agent.bundle import find_bundle, read_bundle
from akm_harbor.agent.errors import BundleError


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task beside a folder of bundles, as in the corpus."""
    folder = tmp_path / "tasks" / "zorbl--listen"
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text('[metadata]\nbundle = "zorbl"\n')
    bundle = tmp_path / "agents" / "bundles" / "zorbl"
    (bundle / "knowledge").mkdir(parents=True)
    (bundle / "knowledge" / "format.md").write_text("# Format\n\nOne line.\n")
    (bundle / "memories").mkdir()
    (bundle / "memories" / "port.md").write_text("The port is 4117.\n")
    return folder


def test_the_tasks_own_bundle_is_found_beside_the_tasks(task: Path) -> None:
    bundle = find_bundle("task", task, None)
    assert bundle.name == "zorbl"
    assert [name for name, _ in bundle.files] == ["knowledge/format.md", "memories/port.md"]


def test_the_old_name_of_the_key_is_read_too(task: Path) -> None:
    (task / "task.toml").write_text('[metadata]\nakm_bundle = "zorbl"\n')
    assert find_bundle("task", task, None).name == "zorbl"


def test_a_placebo_may_come_from_another_folder(task: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "tides" / "knowledge").mkdir(parents=True)
    (tmp_path / "elsewhere" / "tides" / "knowledge" / "moon.md").write_text("Full moon.\n")
    assert find_bundle("tides", task, str(tmp_path / "elsewhere")).name == "tides"
    with pytest.raises(BundleError, match="tides"):
        find_bundle("tides", task, None)


def test_the_empty_bundle_needs_no_folder(task: Path) -> None:
    bundle = find_bundle("empty", task, None)
    assert bundle.files == ()


def test_a_task_without_a_bundle_says_what_to_do(task: Path) -> None:
    (task / "task.toml").write_text("[metadata]\n")
    with pytest.raises(BundleError, match="bundle=NAME"):
        find_bundle("task", task, None)


@pytest.mark.parametrize("name", ["..", ".", ".git", "a/b", "../zorbl", "a\\b", "a\nb", "/etc", "\u202ezorbl"])
def test_a_hostile_bundle_name_is_refused(task: Path, name: str) -> None:
    with pytest.raises(BundleError):
        find_bundle(name, task, None)


def test_what_lies_at_the_top_never_enters(task: Path, tmp_path: Path) -> None:
    root = tmp_path / "agents" / "bundles" / "zorbl"
    (root / "README.md").write_text("The answer is 4117.\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    bundle = find_bundle("task", task, None)
    assert bundle.left_out == ("README.md",)
    assert len(bundle.files) == 2
    bundle.copy_to(tmp_path / "laid")
    assert sorted(p.name for p in (tmp_path / "laid").rglob("*") if p.is_file()) == ["format.md", "port.md"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../tasks", "format.md"])
def test_links_inside_a_bundle_are_refused(task: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "agents" / "bundles" / "zorbl" / "knowledge" / "link.md").symlink_to(target)
    with pytest.raises(BundleError, match="links"):
        find_bundle("task", task, None)


def test_a_bundle_that_is_a_link_is_refused(task: Path, tmp_path: Path) -> None:
    (tmp_path / "agents" / "bundles" / "other").symlink_to("zorbl")
    with pytest.raises(BundleError, match="link"):
        find_bundle("other", task, None)


def test_a_special_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b" / "knowledge").mkdir(parents=True)
    os.mkfifo(tmp_path / "b" / "knowledge" / "pipe.md")
    with pytest.raises(BundleError, match="neither"):
        read_bundle(tmp_path / "b")


def test_a_control_character_in_a_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b" / "knowledge").mkdir(parents=True)
    (tmp_path / "b" / "knowledge" / "a\nb.md").write_text("x")
    with pytest.raises(BundleError, match="file name"):
        read_bundle(tmp_path / "b")


def test_the_digest_is_of_names_and_contents(task: Path, tmp_path: Path) -> None:
    path = tmp_path / "agents" / "bundles" / "zorbl" / "memories" / "port.md"
    before = find_bundle("task", task, None).digest
    os.utime(path, (1, 1))
    assert find_bundle("task", task, None).digest == before
    path.write_text("The port is 4118.\n")
    assert find_bundle("task", task, None).digest != before


def test_the_context_text_holds_every_text_file_whole(task: Path, tmp_path: Path) -> None:
    (tmp_path / "agents" / "bundles" / "zorbl" / "knowledge" / "picture.bin").write_bytes(b"\xff\xfe\x00")
    text = find_bundle("task", task, None).context_text()
    assert "## knowledge/format.md\n\n# Format\n\nOne line." in text
    assert "The port is 4117." in text
    assert "picture" not in text
