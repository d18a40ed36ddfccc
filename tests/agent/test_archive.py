import contextlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from akm_harbor.agent.archive import pack, tree_digest, unpack
from akm_harbor.agent.errors import ToolchainError


def fill(root: Path) -> Path:
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_text("#!/bin/sh\n")
    (root / "bin" / "tool").chmod(0o755)
    (root / "bin" / "alias").symlink_to("tool")
    (root / "text.txt").write_text("hello")
    return root


def test_the_same_content_gives_the_same_digest_and_the_same_bytes(tmp_path: Path) -> None:
    one, two = fill(tmp_path / "one"), fill(tmp_path / "two")
    os.utime(two / "text.txt", (1, 1))
    (two / "text.txt").chmod(0o600)
    assert tree_digest(one) == tree_digest(two)
    pack(one, tmp_path / "one.tar")
    pack(two, tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


@pytest.mark.parametrize("change", ["content", "name", "executable", "link"])
def test_every_change_that_matters_changes_the_digest(tmp_path: Path, change: str) -> None:
    root = fill(tmp_path / "root")
    before = tree_digest(root)
    if change == "content":
        (root / "text.txt").write_text("hellO")
    elif change == "name":
        (root / "text.txt").rename(root / "other.txt")
    elif change == "executable":
        (root / "bin" / "tool").chmod(0o644)
    else:
        (root / "bin" / "alias").unlink()
        (root / "bin" / "alias").symlink_to("../text.txt")
    assert tree_digest(root) != before


def test_there_and_back(tmp_path: Path) -> None:
    root = fill(tmp_path / "root")
    pack(root, tmp_path / "a.tar")
    (tmp_path / "back").mkdir()
    unpack(tmp_path / "a.tar", tmp_path / "back")
    assert tree_digest(tmp_path / "back") == tree_digest(root)


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    root = fill(tmp_path / "root")
    (root / "out").symlink_to("/etc/passwd")
    with pytest.raises(ToolchainError, match="leads out"):
        tree_digest(root)


@pytest.mark.parametrize("name", ["package/../../evil", "package/a/../../../evil", "/evil"])
def test_a_member_that_leads_out_is_not_unpacked(tmp_path: Path, name: str) -> None:
    target = tmp_path / "in" / "target"
    target.mkdir(parents=True)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        info = tarfile.TarInfo(name)
        info.size = 4
        tar.addfile(info, io.BytesIO(b"evil"))
    with contextlib.suppress(ToolchainError):  # refused, or laid down inside: never outside
        unpack(tmp_path / "a.tar", target, strip=1)
    assert not list(tmp_path.glob("**/evil")) or all(p.is_relative_to(target) for p in tmp_path.glob("**/evil"))


def test_a_link_member_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        info = tarfile.TarInfo("package/link")
        info.type, info.linkname = tarfile.SYMTYPE, "../../outside"
        tar.addfile(info)
    with pytest.raises(ToolchainError):
        unpack(tmp_path / "a.tar", tmp_path / "target", strip=1)


def test_something_else_than_a_tar_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no tar")
    with pytest.raises(ToolchainError) as caught:
        unpack(tmp_path / "a.tar", tmp_path)
    assert caught.value.path == tmp_path / "a.tar"
