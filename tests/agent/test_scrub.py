import sqlite3
from pathlib import Path

from akm_harbor.agent.scrub import scrub, secret_values

SECRET = "sk-0123456789abcdef"


def test_secrets_are_known_by_the_variables_name() -> None:
    found = secret_values([{"X_API_KEY": SECRET, "HOME": "/root/home/dir", "MY_TOKEN": "short"}])
    assert found == {SECRET.encode()}


def test_every_file_is_blanked_and_keeps_its_shape(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "opencode.txt").write_text(f'{{"output":"KEY={SECRET}"}}\n')
    (tmp_path / "clean.txt").write_text("nothing here")
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("create table t (x text)")
        db.execute("insert into t values (?)", (f"is {SECRET}",))
    db.close()
    assert scrub(tmp_path, frozenset({SECRET.encode()})) == 2
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert (tmp_path / "deep" / "opencode.txt").read_text() == '{"output":"KEY=' + "*" * len(SECRET) + '"}\n'
    db = sqlite3.connect(tmp_path / "a.db")
    assert db.execute("select x from t").fetchone() == ("is " + "*" * len(SECRET),)
    assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    db.close()


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text(SECRET)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "link").symlink_to(outside)
    assert scrub(tmp_path / "logs", frozenset({SECRET.encode()})) == 0
    assert outside.read_text() == SECRET
