"""The scripts and plugins that run inside a container, run here under the toolchain's own Bun."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.agent.toolchain import Toolchain

pytestmark = [
    pytest.mark.opencode,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the toolchain's binaries are for Linux"),
]


def bun(toolchain: Toolchain, *arguments: str, code: str | None = None, **env: str) -> str:
    command = [str(toolchain.tree / "bin" / "bun"), *(["-e", code] if code else []), *arguments]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def capture(toolchain: Toolchain, tmp_path: Path, sources: list[dict[str, str]], **extra: Any) -> dict[str, Any]:
    out = tmp_path / "out"
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"out": str(out), "facts": {"version": 1, "arm": "a"}, "sources": sources, **extra}))
    bun(toolchain, str(toolchain.tree / "scripts" / "capture.js"), str(spec))
    found: dict[str, Any] = json.loads((out / "capture.json").read_text())
    return found


def test_a_database_in_use_is_copied_consistently(real_toolchain: Toolchain, tmp_path: Path) -> None:
    live = sqlite3.connect(tmp_path / "state.db")
    live.execute("pragma journal_mode=wal")
    live.execute("create table t (x)")
    live.executemany("insert into t values (?)", [(i,) for i in range(500)])
    live.commit()  # only in the WAL; the connection stays open
    assert (tmp_path / "state.db-wal").stat().st_size > 0
    source = {"role": "state_db", "path": str(tmp_path / "state.db"), "to": "state.db", "kind": "sqlite"}
    found = capture(real_toolchain, tmp_path, [source])
    live.close()
    copy = sqlite3.connect(tmp_path / "out" / "state.db")
    assert copy.execute("select count(*) from t").fetchone() == (500,)
    assert copy.execute("pragma integrity_check").fetchone() == ("ok",)
    copy.close()
    assert [entry["role"] for entry in found["files"]] == ["state_db"]
    assert found["files"][0]["bytes"] == (tmp_path / "out" / "state.db").stat().st_size


def test_what_is_missing_is_listed_and_stops_nothing(real_toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database at all, but long enough to be one" * 100)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "probe.jsonl").write_text("")
    sources = [
        {"role": "ledger", "path": str(tmp_path / "none.jsonl"), "to": "ledger/events.jsonl", "kind": "file"},
        {"role": "state_db", "path": str(tmp_path / "broken.db"), "to": "state.db", "kind": "sqlite"},
        {"role": "probe", "path": str(tmp_path / "out" / "probe.jsonl"), "to": "probe.jsonl", "kind": "in_place"},
        {"role": "akm_config", "path": str(tmp_path / "config.json"), "to": "config/config.json", "kind": "file"},
    ]
    found = capture(real_toolchain, tmp_path, sources)
    assert {entry["role"]: bool(entry["why"]) for entry in found["missing"]} == {
        "ledger": True,
        "state_db": True,
        "probe": True,
    }
    assert [entry["role"] for entry in found["files"]] == ["akm_config"]
    assert found["arm"] == "a"


def test_a_second_capture_replaces_the_first(real_toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "opencode.log").write_text("one")
    source = {"role": "opencode_log", "path": str(tmp_path / "logs"), "to": "opencode-log", "kind": "log"}
    first = capture(real_toolchain, tmp_path, [source])
    (tmp_path / "logs" / "opencode.log").write_text("one two")
    second = capture(real_toolchain, tmp_path, [source])
    assert (first["files"][0]["bytes"], second["files"][0]["bytes"]) == (3, 7)


def test_the_drain_waits_for_a_writer_and_ends_a_straggler(real_toolchain: Toolchain) -> None:
    drain = str(real_toolchain.tree / "scripts" / "drain.js")
    marked = {**os.environ, "AKM_HARBOR_RUN": "r1"}
    writer = subprocess.Popen(["sleep", "0.4"], env=marked, start_new_session=True)
    start = time.monotonic()
    bun(real_toolchain, drain, "r1", "5")
    assert time.monotonic() - start < 4
    writer.wait(timeout=5)
    straggler = subprocess.Popen(["sleep", "60"], env=marked, start_new_session=True)
    other = subprocess.Popen(["sleep", "60"], env={**marked, "AKM_HARBOR_RUN": "r2"}, start_new_session=True)
    try:
        bun(real_toolchain, drain, "r1", "0.1", "kill")
        assert straggler.wait(timeout=5) == -signal.SIGTERM
        assert other.poll() is None
    finally:
        for process in (straggler, other):
            process.kill()
            process.wait()


PLUGINS = {
    "one named plugin beside helpers": (
        "export const reset = () => undefined\nexport const AkmPlugin = async () => ({ event: 1, tool: 2 })",
        "AkmPlugin",
    ),
    "a default function": (
        "export const helper = () => 1\nexport default async () => ({ event: 1, tool: 2 })",
        "default",
    ),
    "a default with a server": (
        "const plugin = async () => ({ event: 1, tool: 2 })\nexport const server = plugin\nexport default { server }",
        "default.server",
    ),
    "the only function": ("export const start = async () => ({ event: 1, tool: 2 })\nexport const name = 'x'", "start"),
}


def load(toolchain: Toolchain, tmp_path: Path, text: str | None, **options: str) -> tuple[Any, dict[str, Any] | None]:
    """Load a plugin package through the shim: the hooks' names (or the error), and the note."""
    package = tmp_path / "akm-opencode"
    package.mkdir()
    (package / "package.json").write_text('{"name": "akm-opencode", "main": "index.js", "type": "module"}')
    if text is not None:
        (package / "index.js").write_text(text)
    note = tmp_path / "note.json"
    arguments = json.dumps({"entry": str(package), "note": str(note), **options})
    code = (
        f"const shim = await import({json.dumps(str(toolchain.tree / 'shim' / 'akm.js'))});"
        "if (Object.keys(shim).length !== 1) throw new Error('more than one export');"
        f"let out; try {{ out = Object.keys(await shim.AkmHarborTreatment({{}}, {arguments})) }} "
        "catch (error) { out = String(error.message) } console.log(JSON.stringify(out))"
    )
    out = json.loads(bun(toolchain, code=code))
    return out, json.loads(note.read_text()) if note.is_file() else None


@pytest.mark.parametrize("case", PLUGINS)
def test_the_shim_finds_the_plugin_among_its_exports(case: str, real_toolchain: Toolchain, tmp_path: Path) -> None:
    text, export = PLUGINS[case]
    hooks, note = load(real_toolchain, tmp_path, text)
    assert hooks == ["event", "tool"]
    assert note == {"ok": True, "detail": "imported", "export": export}


@pytest.mark.parametrize(
    "text", [None, "import 'akm-cli/dist/nothing.js'\nexport default 1", "export const a = () => 1, b = () => 2"]
)
def test_a_plugin_that_does_not_load_leaves_a_note(text: str | None, real_toolchain: Toolchain, tmp_path: Path) -> None:
    out, note = load(real_toolchain, tmp_path, text)
    assert isinstance(out, str)
    assert note is not None
    assert note["ok"] is False
    assert note["detail"]


def test_the_placebos_take_one_half_away(real_toolchain: Toolchain, tmp_path: Path) -> None:
    text = "export default async () => ({ tool: 1, event: 2, 'experimental.chat.system.transform': 3 })"
    for name, options, left in (
        ("a", {"tools": "off"}, ["event", "experimental.chat.system.transform"]),
        ("b", {"inject": "off"}, ["tool", "event"]),
    ):
        (tmp_path / name).mkdir()
        hooks, _ = load(real_toolchain, tmp_path / name, text, **options)
        assert hooks == left


def test_the_probe_tells_title_from_main_and_what_a_plugin_added(real_toolchain: Toolchain, tmp_path: Path) -> None:
    out = tmp_path / "probe.jsonl"
    context = tmp_path / "context.md"
    context.write_text("the whole context\n")
    folder = json.dumps(str(real_toolchain.tree / "probe"))
    code = f"""
const {{ AkmHarborProbeFirst }} = await import({folder} + "/first.js")
const {{ AkmHarborProbe }} = await import({folder} + "/probe.js")
const first = await AkmHarborProbeFirst()
const last = await AkmHarborProbe({{}}, {{ file: {json.dumps(str(out))}, context: {json.dumps(str(context))} }})
const system = async (session, text, added) => {{
  const output = {{ system: [text] }}
  await first["experimental.chat.system.transform"]({{ sessionID: session }}, output)
  if (added) output.system.push(added)
  await last["experimental.chat.system.transform"]({{ sessionID: session }}, output)
}}
const params = (session, agent) =>
  last["chat.params"]({{ sessionID: session, agent, model: {{ providerID: "p", id: "m" }} }})
for (const toolID of ["bash", "akm_search", "invalid"]) await last["tool.definition"]({{ toolID }})
// A title request runs beside the first main one: their hooks interleave.
await system("s", "You are a title generator.", "stolen")
await system("s", "You are a coding agent. the whole context", "injected text")
await params("s", "build")
await params("s", "title")
await system("s", "You are a coding agent.")
await params("s", "build")
await params("s", "compaction")
await last["tool.definition"](null)
await last["chat.params"](null)
"""
    bun(real_toolchain, code=code)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    seen = [(x["kind"], x["tools"], x["system_chars"], x["system_chars_before"], x["context_chars"]) for x in lines]
    assert seen == [
        ("main", ["akm_search", "bash"], 54, 41, 17),
        ("title", [], 32, 26, 0),
        ("main", ["akm_search", "bash"], 23, 23, 0),
        ("compaction", [], None, None, None),
    ]
    assert "coding" not in out.read_text()
