import io
import json
import tarfile
import threading
from pathlib import Path

import pytest

from akm_harbor.agent import build as building
from akm_harbor.agent import toolchain as tc
from akm_harbor.agent.errors import ToolchainError, ToolchainMissingError
from akm_harbor.agent.pins import Spec
from akm_harbor.agent.platforms import named

X64 = named("linux-x64")


def package(path: Path, name: str, version: str, files: dict[str, str], **manifest: object) -> Path:
    """A small npm package as a tarball."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {"package.json": json.dumps({"name": name, "version": version, **manifest}), **files}
    with tarfile.open(path, "w:gz") as tar:
        for member, text in texts.items():
            info = tarfile.TarInfo(f"package/{member}")
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Spec]:
    """Packages shaped like the real ones, as `file:` specs, and a cache of this test's own."""
    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(tc.ENV, raising=False)
    source = tmp_path / "packages"
    tarballs = {
        "opencode": package(
            source / "oc.tgz", "opencode-linux-x64", "1.18.33", {"bin/opencode": "#!/bin/sh\necho 1.18.33\n"}
        ),
        "bun": package(source / "bun.tgz", "@oven/bun-linux-x64", "1.4.5", {"bin/bun": "#!/bin/sh\n"}),
        "akm": package(source / "akm.tgz", "akm-cli", "0.9.0", {"dist/cli.js": "console.log('0.9.0')\n"}),
        "plugin": package(
            source / "plugin.tgz",
            "akm-opencode",
            "0.9.1",
            {"index.ts": "export const AkmPlugin = async () => ({})\n"},
            main="./index.ts",
            dependencies={"akm-cli": "^0.9.0"},
        ),
    }
    names = {"opencode": "opencode-ai", "bun": "bun", "akm": "akm-cli", "plugin": "akm-opencode"}
    return {part: Spec(names[part], "", tarball) for part, tarball in tarballs.items()}


def test_a_toolchain_is_built_whole_and_again_the_same(specs: dict[str, Spec]) -> None:
    first = building.build(specs, X64)
    assert dict(first.versions) == {"opencode": "1.18.33", "bun": "1.4.5", "akm": "0.9.0", "plugin": "0.9.1"}
    names = {path.relative_to(first.tree).as_posix() for path in first.tree.rglob("*")}
    assert {
        "bin/opencode",
        "bin/bun",
        "bin/akm",
        "plugin/node_modules/akm-cli/dist/cli.js",
        "plugin/node_modules/akm-opencode/index.ts",
        "probe/probe.js",
        "shim/akm.js",
        "scripts/capture.js",
    } <= names
    tc.verify(first)
    assert first.tar is not None
    content = first.tar.read_bytes()
    second = building.build(specs, X64, rebuild=True)
    assert second.digest == first.digest
    assert second.tar is not None
    assert second.tar.read_bytes() == content
    assert str(first.tree) not in (first.tree / tc.INFO).read_text()


def test_a_control_only_toolchain_lacks_akm(specs: dict[str, Spec]) -> None:
    half = building.build({part: specs[part] for part in ("opencode", "bun")}, X64)
    assert half.control_only
    assert not (half.tree / "plugin").exists()
    assert not (half.tree / "bin" / "akm").exists()


def test_what_is_built_is_found_again_without_building(specs: dict[str, Spec], monkeypatch: pytest.MonkeyPatch) -> None:
    built = building.build(specs, X64)

    def forbidden(*_: object) -> None:
        pytest.fail("built again")

    monkeypatch.setattr(building, "_make", forbidden)
    assert building.build(specs, X64).digest == built.digest


def test_a_changed_package_is_another_toolchain(specs: dict[str, Spec]) -> None:
    before = building.build(specs, X64)
    assert specs["akm"].source is not None
    package(specs["akm"].source, "akm-cli", "0.9.0", {"dist/cli.js": "console.log('other')\n"})
    after = building.build(specs, X64)
    assert after.digest != before.digest
    assert after.tree != before.tree


def test_building_at_the_same_time_gives_one_whole_result(specs: dict[str, Spec]) -> None:
    half = {part: specs[part] for part in ("opencode", "bun")}
    digests: list[str] = []
    threads = [threading.Thread(target=lambda: digests.append(building.build(half, X64).digest)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 4
    assert len(set(digests)) == 1
    left = [path.name for path in (tc.cache_dir() / "toolchains").iterdir()]
    assert left == [tc.build_key(half, X64)]


def test_a_failed_build_leaves_nothing(specs: dict[str, Spec]) -> None:
    assert specs["opencode"].source is not None
    package(specs["opencode"].source, "opencode-linux-x64", "1.18.33", {"README.md": ""})
    with pytest.raises(ToolchainError, match="bin/opencode"):
        building.build(specs, X64)
    assert list((tc.cache_dir() / "toolchains").iterdir()) == []


def test_two_versions_of_akm_in_one_arm_are_refused(specs: dict[str, Spec], tmp_path: Path) -> None:
    inside = {"index.ts": "", "node_modules/akm-cli/package.json": '{"name": "akm-cli", "version": "0.8.0"}'}
    plugin = package(
        tmp_path / "packages" / "two.tgz",
        "akm-opencode",
        "0.9.2",
        inside,
        dependencies={"akm-cli": "^0.8.0"},
        bundleDependencies=["akm-cli"],
    )
    with pytest.raises(ToolchainError, match="akm of its own"):
        building.build({**specs, "plugin": Spec("akm-opencode", "", plugin)}, X64)


def test_a_package_of_another_name_is_refused(specs: dict[str, Spec], tmp_path: Path) -> None:
    wrong = package(tmp_path / "packages" / "wrong.tgz", "something-else", "1.0.0", {"index.js": ""})
    with pytest.raises(ToolchainError, match="something-else"):
        building.build({**specs, "plugin": Spec("akm-opencode", "", wrong)}, X64)


def test_a_package_folder_is_packed_by_npm(specs: dict[str, Spec], tmp_path: Path) -> None:
    (tmp_path / "folder" / "bin").mkdir(parents=True)
    (tmp_path / "folder" / "package.json").write_text('{"name": "@oven/bun-linux-x64", "version": "1.4.6"}')
    (tmp_path / "folder" / "bin" / "bun").write_text("#!/bin/sh\n")
    half = building.build({"opencode": specs["opencode"], "bun": Spec("bun", "", tmp_path / "folder")}, X64)
    assert half.versions["bun"] == "1.4.6"


def test_tampering_is_found(specs: dict[str, Spec]) -> None:
    built = building.build(specs, X64)
    (built.tree / "shim" / "akm.js").write_text("// other\n")
    with pytest.raises(ToolchainError, match="digest"):
        tc.verify(built)


def test_an_archive_alone_is_unpacked_once(specs: dict[str, Spec], tmp_path: Path) -> None:
    built = building.build(specs, X64)
    assert built.tar is not None
    moved = tmp_path / "moved.tar"
    moved.write_bytes(built.tar.read_bytes())
    found = tc.find(moved)
    assert found.digest == built.digest
    assert found.tar == moved
    assert tc.find(moved).tree == found.tree
    assert (found.tree / "bin" / "opencode").stat().st_mode & 0o111
    tc.verify(found)


def test_the_kwarg_wins_over_the_variable_and_that_over_the_pins(
    specs: dict[str, Spec], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolchainMissingError, match="akm-harbor toolchain build"):
        tc.find(None, target=X64)
    monkeypatch.setattr(tc, "default_specs", lambda *, control_only: {} if control_only else specs)
    pinned = building.build(specs, X64)
    half = building.build({part: specs[part] for part in ("opencode", "bun")}, X64)
    assert tc.find(None, target=X64).digest == pinned.digest
    monkeypatch.setenv(tc.ENV, str(half.tar))
    assert tc.find(None, target=X64).digest == half.digest
    assert tc.find(str(pinned.tar), target=X64).digest == pinned.digest


@pytest.mark.parametrize("content", ["", "{}", '{"format": 99}', "[]", '{"format": 1, "parts": 3}'])
def test_a_folder_that_is_no_toolchain_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / tc.INFO).write_text(content)
    with pytest.raises(ToolchainError) as caught:
        tc.open_toolchain(tmp_path)
    assert caught.value.path == tmp_path / tc.INFO
