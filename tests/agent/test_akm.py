import json

import pytest

from akm_harbor.agent.akm import Prepared, akm_config, akm_environment, read_prepared
from akm_harbor.agent.errors import SelfCheckError

GOOD = {"ok": True, "total_entries": 4, "detail": ""}
EMPTY = {"ok": True, "total_entries": 0, "detail": ""}
FAILED = {"ok": False, "total_entries": 0, "detail": "exit 78"}
WELL = {"ok": True, "detail": "4 entries"}
ILL = {"ok": False, "detail": "akm answers but holds nothing", "empty": True}
NO_PLUGIN = {"ok": False, "detail": "the plugin can't be imported: Cannot find module"}


def prepared(index: dict[str, object] | None, selfcheck: dict[str, object]) -> Prepared:
    return Prepared(index, selfcheck, {})


def test_akm_runs_offline_on_one_bundle_and_its_agent_is_not_marked() -> None:
    config = json.loads(akm_config())
    assert config["registries"] == []
    assert config["semanticSearchMode"] == "off"
    assert list(config["bundles"]) == [config["defaultBundle"]]
    environment = akm_environment("default")
    assert "AKM_EVENT_SOURCE" not in environment
    assert {"AKM_CONFIG_DIR", "AKM_DATA_DIR", "AKM_CACHE_DIR", "AKM_STATE_DIR"} <= set(environment)
    assert "AKM_WRITE_GATE" not in environment
    assert akm_environment("enforce")["AKM_WRITE_GATE"] == "enforce"


def test_a_healthy_akm_passes() -> None:
    prepared(GOOD, WELL).require_healthy(files=4)
    prepared(None, WELL).require_healthy(files=4)


@pytest.mark.parametrize(
    ("index", "selfcheck"), [(EMPTY, ILL), (EMPTY, WELL), (FAILED, ILL), (GOOD, ILL), (None, ILL), (GOOD, NO_PLUGIN)]
)
def test_a_broken_treatment_never_passes(index: dict[str, object] | None, selfcheck: dict[str, object]) -> None:
    with pytest.raises(SelfCheckError, match="selfcheck"):
        prepared(index, selfcheck).require_healthy(files=4)


def test_a_bundle_that_is_meant_to_be_empty_is_no_failure_but_a_broken_akm_is() -> None:
    prepared(EMPTY, ILL).require_healthy(files=0)
    with pytest.raises(SelfCheckError):
        prepared(FAILED, ILL).require_healthy(files=0)
    with pytest.raises(SelfCheckError, match="imported"):
        prepared(EMPTY, NO_PLUGIN).require_healthy(files=0)


def test_the_scripts_last_line_is_read() -> None:
    line = json.dumps({"index": GOOD, "selfcheck": WELL, "timings": {"index": 0.3}})
    found = read_prepared(f"noise\n{line}\n", "", 0)
    assert found.index == GOOD
    assert found.timings == {"index": 0.3}


@pytest.mark.parametrize("stdout", [None, "", "{}", "no json"])
def test_a_script_that_died_is_a_failed_selfcheck(stdout: str | None) -> None:
    found = read_prepared(stdout, "bun: not found", 127)
    assert found.selfcheck["ok"] is False
    assert "127" in str(found.selfcheck["detail"])
    with pytest.raises(SelfCheckError, match="127"):
        found.require_healthy(files=1)
