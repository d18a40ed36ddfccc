import sys
from pathlib import Path

import pytest

from akm_harbor.sandbox import root
from akm_harbor.sandbox.environ import passed_on
from akm_harbor.sandbox.failures import SandboxUnavailableError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


def test_the_host_as_a_base_is_made_once_and_holds_no_secret(tmp_path: Path) -> None:
    first = root.host_root(tmp_path)
    assert root.host_root(tmp_path) == first
    assert len(list(tmp_path.iterdir())) == 1
    assert first.parts[0].target == "/"
    skeleton = Path(first.parts[0].lower[0])
    assert {part.target for part in first.parts} >= {"/", "/usr"}
    assert (skeleton / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert not any((skeleton / "home").iterdir())
    assert not any((skeleton / "root").iterdir())
    for line in (skeleton / "etc" / "shadow").read_text().splitlines():
        assert line.split(":")[1] == "*"
    readable = [path for path in (skeleton / "etc").rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(readable) > 20
    assert [path for path in readable if not path.stat().st_mode & 0o004] == [
        path for path in readable if path.name in {"shadow", "gshadow"} and path.parent.name == "etc"
    ]


def test_etc_is_copied_by_what_anybody_may_read(tmp_path: Path) -> None:
    source = tmp_path / "etc"
    (source / "open").mkdir(parents=True)
    (source / "closed").mkdir(mode=0o700)
    (source / "closed" / "readable").write_text("but in a closed folder")
    (source / "open" / "a").write_text("a")
    (source / "secret").write_text("s")
    (source / "secret").chmod(0o640)
    (source / "link").symlink_to("secret")
    (source / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (source / "group").write_text("root:x:0:\n")
    root._copy_etc(source, tmp_path / "copy")
    names = sorted(str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*"))
    assert names == [
        "group",
        "gshadow",
        "hostname",
        "hosts",
        "link",
        "open",
        "open/a",
        "passwd",
        "resolv.conf",
        "shadow",
    ]
    assert (tmp_path / "copy" / "shadow").read_text() == "root:*:19000:0:99999:7:::\n"


def test_a_cache_inside_a_folder_that_is_shown_is_refused(tmp_path: Path) -> None:
    base = root.Root((root.Part("root", "/", ("/",)), root.Part("opt", "/opt", (str(tmp_path),))), "x")
    with pytest.raises(SandboxUnavailableError, match="cannot lie inside"):
        root.check_no_overlap(base, tmp_path / "cache")
    root.check_no_overlap(base, tmp_path.parent / "elsewhere")


def test_variables_that_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("NAMED", "n")
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/passwd")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(tmp_path))
    shown = passed_on(["NAMED", "UNSET"], certificates=True)
    assert shown["TZ"] == "UTC"
    assert shown["NAMED"] == "n"
    assert shown["SSL_CERT_FILE"] == "/etc/passwd"
    assert not {"OPENAI_API_KEY", "NODE_EXTRA_CA_CERTS", "UNSET", "HOME", "PATH"} & set(shown)
    assert "SSL_CERT_FILE" not in passed_on(certificates=False)
