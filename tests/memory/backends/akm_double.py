"""A stand-in for the akm executable: its command line in a page of Python, whole or broken on purpose.

Keyword search over names, descriptions and tags, every word required, as akm 0.9.0 does it;
`curate` takes any word. The file `mode` beside the executable says how it is broken.
"""

# ruff: noqa: T201, PTH109
import json
import re
import sqlite3
import stat
import sys
from pathlib import Path

MODES = (
    "ok",
    "no-sqlite",
    "silent",
    "exit-1",
    "stale",
    "foreign-index",
    "unsearchable",
    "contaminated",
    "prose",
    "busy",
    "no-curate",
    "no-flags",
    "body",
    "fragments",
    "no-count",
)


def install(folder: Path, mode: str = "ok") -> Path:
    """Write an executable double into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "akm"
    source = Path(__file__).read_text()
    program.write_text(f"#!{sys.executable} -IS\n{source}\n\nif __name__ == '__main__':\n    main()\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "mode").write_text(mode)
    return program


def main() -> None:
    import os

    here = Path(sys.argv[0]).resolve().parent
    mode = (here / "mode").read_text()
    arguments = sys.argv[1:]
    with (here / "calls.jsonl").open("a") as log:
        log.write(json.dumps({"args": arguments, "env": dict(os.environ), "cwd": os.getcwd()}) + "\n")
    if arguments == ["--version"]:
        print("0.0.0-double")
        return
    fail = {"no-sqlite": "appendEvent failed: Could not locate the bindings file", "silent": ""}
    if mode == "exit-1":
        print(json.dumps({"ok": False, "error": "the index is locked", "code": "X", "hint": "wait"}), file=sys.stderr)
        sys.exit(1)
    if mode == "busy" and not (here / "was-busy").exists():
        (here / "was-busy").touch()
        sys.exit(75)
    if mode == "prose":
        print("Indexed a few things.")
        return
    data = Path(os.environ["AKM_DATA_DIR"])
    if arguments[0] == "index":
        if mode in fail:
            print(fail[mode], file=sys.stderr)
            print(json.dumps({"totalEntries": 0}))
            return
        index(Path(os.environ["AKM_BUNDLE_DIR"]), data, mode)
    elif arguments[0] in ("search", "curate"):
        if mode == "no-curate" and arguments[0] == "curate":
            print(json.dumps({"ok": False, "error": "Unknown command", "code": "UNKNOWN_COMMAND"}), file=sys.stderr)
            sys.exit(2)
        flags = [a for a in arguments if a.startswith("--no-") or a == "--shape"]
        if mode == "no-flags" and flags:
            print(
                json.dumps({"ok": False, "error": f"Unknown flag {flags[0]}", "code": "UNKNOWN_FLAG"}), file=sys.stderr
            )
            sys.exit(2)
        search(arguments, data, mode)
    else:
        sys.exit(2)


def index(bundle: Path, data: Path, mode: str) -> None:
    with sqlite3.connect(data / "state.db") as state:
        state.execute("CREATE TABLE IF NOT EXISTS usage_events (query TEXT)")
    entries = {}
    for file in sorted((bundle / "memories").glob("*.md")):
        content = file.read_text()
        head, _, body = content[4:].partition("---\n") if content.startswith("---\n") else ("", "", content)
        description = re.search(r"^description: (.*)$", head, re.MULTILINE)
        tags = re.search(r"^tags: (.*)$", head, re.MULTILINE)
        text = f"{file.stem} {json.loads(description[1]) if description else ''} {tags[1] if tags else ''}"
        entries[file.stem] = words(text + (body if mode == "body" else ""))
    if "probeone" not in entries:  # what is broken shows on a real store, not on the trial
        if mode == "stale":
            entries.popitem()
        if mode == "foreign-index":
            entries["facts"] = []
    (data / "index.db").write_text(json.dumps(entries))
    key = {"no-count": "entries"}.get(mode, "totalEntries")
    print("[index] progress on stderr", file=sys.stderr)
    print(json.dumps({key: len(entries), "mode": "full"}))


def search(arguments: list[str], data: Path, mode: str) -> None:
    limit = int(arguments[arguments.index("--limit") + 1])
    query = words(arguments[arguments.index("--") + 1])
    entries = json.loads((data / "index.db").read_text())
    if "--no-track-usage" not in arguments:
        with sqlite3.connect(data / "state.db") as state:
            state.execute("INSERT INTO usage_events VALUES ('q')")
    if mode == "unsearchable" and "probeone" not in entries:
        entries = {}
    need = any if arguments[0] == "curate" else all
    found = [name for name, held in sorted(entries.items()) if query and need(word in held for word in query)]
    if mode == "contaminated" and "probeone" not in entries and not any(word in entries for word in query):
        found = ["stranger", *found]
    suffix = "#akm-fragment-1-abcdefabcdef" if mode == "fragments" else ""
    hits = [{"ref": f"bench//memories/{name}{suffix}", "name": name, "score": 1.0} for name in found]
    if mode == "fragments":
        hits = [dict(hit, ref=hit["ref"].replace("-1-", f"-{n}-")) for hit in hits for n in (1, 2)]
    print(json.dumps({"items" if arguments[0] == "curate" else "hits": hits[:limit]}))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())
