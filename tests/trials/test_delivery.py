from dataclasses import replace
from pathlib import Path

import pytest

from akm_harbor.trials.delivery import REASONS, Evidence, verdict

HEALTHY = Evidence(
    expected=True,
    captured=True,
    session_started=True,
    cli_resolved=True,
    cli_worked=True,
    index_entries=2,
    live_entries=2,
    bundle_files=2,
    selfcheck_ok=True,
    main_requests=4,
    tools_offered=True,
    context_injected=True,
    title_injected=False,
    akm_calls=2,
    akm_answered=2,
)


def test_a_healthy_trial() -> None:
    got = verdict(HEALTHY)
    assert (got.delivered, got.reasons) == (True, ())
    assert (got.plugin_loaded, got.akm_answered, got.bundle_indexed, got.n_index_entries) == (True, True, True, 2)


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({"captured": False}, ("no-evidence",)),
        ({"session_started": False, "cli_resolved": False, "cli_worked": False}, ("plugin-not-loaded",)),
        ({"plugin_error": True}, ("plugin-error",)),
        ({"cli_resolved": False, "cli_failed": True, "cli_worked": False, "helper_failures": 9}, ("akm-cli-failing",)),
        ({"cli_worked": False, "helper_failures": 3}, ("akm-cli-failing",)),
        ({"cli_resolved": False, "cli_worked": False}, ("akm-not-resolved",)),
        ({"selfcheck_ok": False}, ("selfcheck-failed",)),
        ({"akm_failed": 2, "akm_answered": 0}, ("akm-calls-failing",)),
        ({"index_entries": 0, "live_entries": 0, "bundle_files": 0}, ("bundle-empty",)),
        ({"index_entries": 0, "live_entries": 0}, ("index-empty",)),
        ({"index_entries": None, "live_entries": None, "akm_answered": 0, "akm_calls": 0}, ("index-unknown",)),
        ({"tools_offered": False}, ("tools-not-offered",)),
        ({"context_injected": False}, ("context-not-injected",)),
        ({"tools_offered": False, "context_injected": False}, ("tools-not-offered", "context-not-injected")),
    ],
)
def test_each_break_is_not_delivered_and_says_why(changes: dict, reasons: tuple[str, ...]) -> None:
    got = verdict(replace(HEALTHY, **changes))
    assert (got.delivered, got.reasons) == (False, reasons)


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        # Benign: single failed helper calls, no call by the model, a search without a hit.
        ({"helper_failures": 1}, ()),
        ({"akm_calls": 0, "akm_answered": 0}, ()),
        ({"akm_calls": 1, "akm_answered": 0}, ()),
        # A newer plugin may not log how it found akm.
        ({"cli_resolved": False}, ()),
        # The harness built no index; akm healed itself.
        ({"index_entries": None}, ("index-built-by-akm",)),
        ({"index_entries": 0, "live_entries": 2}, ("index-built-by-akm",)),
        # The title arm: the injection is known to be eaten.
        ({"context_injected": False, "title_injected": True, "context_wanted": False}, ("context-eaten-by-title",)),
        # Injection-only and tools-only arms.
        ({"tools_offered": False, "tools_wanted": False}, ()),
        ({"context_injected": False, "context_wanted": False}, ()),
        # No probe: recorded before there was one.
        ({"main_requests": None, "tools_offered": None, "context_injected": None}, ("not-probed",)),
        # The agent died before its first request: nothing was seen, nothing is held against the arm.
        ({"main_requests": 0, "tools_offered": None, "context_injected": None}, ()),
    ],
)
def test_delivered_with_what_is_worth_knowing(changes: dict, reasons: tuple[str, ...]) -> None:
    got = verdict(replace(HEALTHY, **changes))
    assert (got.delivered, got.reasons) == (True, reasons)


def test_the_title_request_took_the_context_although_the_arm_switched_titles_off() -> None:
    got = verdict(replace(HEALTHY, context_injected=False, title_injected=True))
    assert (got.delivered, got.reasons) == (False, ("context-not-injected",))


def test_a_declared_placebo_is_named_as_one() -> None:
    empty = replace(HEALTHY, index_entries=0, live_entries=0, bundle_files=0, declared_empty=True, selfcheck_ok=False)
    got = verdict(empty)
    assert (got.delivered, got.reasons) == (False, ("bundle-empty", "placebo-as-declared"))


ORACLE = Evidence(expected=False, oracle=True, bundle_files=3, main_requests=2, context_seen=2, context_shown=2)


@pytest.mark.parametrize(
    ("changes", "delivered", "reasons"),
    [
        ({}, True, ()),
        ({"context_shown": 1}, True, ("context-in-some-requests",)),
        ({"context_shown": 0}, False, ("bundle-not-in-context",)),
        ({"bundle_files": 0}, False, ("bundle-empty",)),
        ({"bundle_files": 0, "declared_empty": True}, False, ("bundle-empty", "placebo-as-declared")),
        ({"main_requests": None, "context_seen": 0, "context_shown": 0}, None, ("not-probed",)),
        ({"context_seen": 0, "context_shown": 0}, None, ("not-probed",)),
        ({"main_requests": 0, "context_seen": 0, "context_shown": 0}, None, ("no-request",)),
        ({"tools_offered": True}, True, ("akm-on-control-arm",)),
        ({"oracle": False}, None, ()),
    ],
)
def test_the_oracle_context_arm_is_judged_by_what_the_requests_carried(
    changes: dict, delivered: bool | None, reasons: tuple[str, ...]
) -> None:
    got = verdict(replace(ORACLE, **changes))
    assert (got.delivered, got.reasons) == (delivered, reasons)


def test_akm_and_the_bundles_text_must_both_arrive() -> None:
    both = replace(HEALTHY, oracle=True, context_seen=4, context_shown=4)
    assert verdict(both).delivered is True
    assert verdict(replace(both, context_shown=0)).reasons == ("bundle-not-in-context",)
    assert verdict(replace(both, tools_offered=False)).reasons == ("tools-not-offered",)


def test_control_arms_and_foreign_agents_have_no_verdict() -> None:
    assert verdict(Evidence(expected=False)).delivered is None
    assert verdict(Evidence(expected=None, tools_offered=True)).reasons == ()


def test_a_control_arm_that_saw_akm_is_told() -> None:
    for changes in ({"tools_offered": True}, {"session_started": True}):
        got = verdict(Evidence(expected=False, **changes))
        assert (got.delivered, got.reasons) == (None, ("akm-on-control-arm",))


def test_no_evidence_at_all_is_never_true() -> None:
    assert verdict(Evidence(expected=True, captured=True)).delivered is False


def test_every_code_is_documented() -> None:
    seen = set()
    for expected in (True, False):
        for session in (True, False):
            for entries in (None, 0, 3):
                for offered in (None, True, False):
                    got = verdict(
                        replace(
                            HEALTHY,
                            expected=expected,
                            session_started=session,
                            index_entries=entries,
                            live_entries=entries,
                            tools_offered=offered,
                            cli_resolved=session,
                        )
                    )
                    seen |= set(got.reasons)
    assert seen
    assert seen <= REASONS.keys()


def test_every_code_is_on_the_page() -> None:
    text = (Path(__file__).parents[2] / "docs" / "collect.md").read_text()
    assert [code for code in REASONS if f"`{code}`" not in text] == []
