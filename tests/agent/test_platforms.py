import pytest

from akm_harbor.agent import platforms
from akm_harbor.errors import UsageError


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("x86_64\nglibc\navx2\n", "linux-x64"),
        ("x86_64\nglibc\nbaseline\n", "linux-x64-baseline"),
        ("x86_64\nmusl\navx2\n", "linux-x64-musl"),
        ("x86_64\nmusl\nbaseline\n", "linux-x64-baseline-musl"),
        ("aarch64\nglibc\navx2\n", "linux-arm64"),
        ("aarch64\nmusl\navx2\n", "linux-arm64-musl"),
    ],
)
def test_what_a_container_says_names_its_packages(output: str, name: str) -> None:
    found = platforms.from_container(output)
    assert found is not None
    assert found.name == name
    assert found.name in platforms.NAMES
    assert found.opencode_package == f"opencode-{name}"


@pytest.mark.parametrize("output", ["", "sparc\nglibc\navx2\n", "x86_64\n"])
def test_nonsense_is_no_platform(output: str) -> None:
    assert platforms.from_container(output) is None


def test_bun_has_one_x64_build_for_every_cpu() -> None:
    assert platforms.named("linux-x64-baseline").bun_package == "@oven/bun-linux-x64"
    assert platforms.named("linux-arm64-musl").bun_package == "@oven/bun-linux-aarch64-musl"


def test_an_unknown_platform_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="linux-arm64-musl"):
        platforms.named("windows-x64")
