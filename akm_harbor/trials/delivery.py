"""Did the treatment reach the agent? A pure function over the evidence of one trial.

A plugin that does not load leaves no error anywhere and the trial looks like a baseline,
so only positive evidence counts: the plugin's ledger has a session, akm was found and
works, the index holds the bundle, and, where the probe watched, the model was really
offered the tools and shown the context.
"""

from dataclasses import dataclass

HELPER_FAILURES_TOLERATED = 2
"""Single failed calls of akm happen in healthy sessions; a broken akm fails at every event."""

REASONS: dict[str, str] = {
    # why not
    "no-evidence": "a treatment trial without any captured evidence",
    "plugin-not-loaded": "the plugin started no session: it was missing, or could not be loaded",
    "plugin-error": "opencode reports an error of the plugin",
    "akm-not-resolved": "nothing shows that the plugin found akm",
    "akm-cli-failing": "the plugin found no working akm, or its calls kept failing",
    "akm-calls-failing": "every akm call of the model failed",
    "bundle-empty": "the bundle held no file",
    "index-empty": "akm indexed nothing",
    "index-unknown": "nothing shows that the bundle was indexed",
    "selfcheck-failed": "akm did not answer the self-check before the run",
    "tools-not-offered": "no main model request offered akm tools",
    "context-not-injected": "no main model request carried the plugin's text",
    "bundle-not-in-context": "no main model request carried the bundle's text, which this arm puts into the prompt",
    # true, but worth knowing
    "index-built-by-akm": "set-up built no index; akm built it itself during the run",
    "context-eaten-by-title": "the plugin's text went to the title request only, as this arm allows",
    "not-probed": "no probe watched the model requests: what was offered and injected is inferred, or unknown",
    "context-in-some-requests": "some main model requests carried the bundle's text, others did not",
    # no verdict
    "no-request": "the agent asked the model nothing, so there was nothing to carry the bundle's text",
    # beside either verdict
    "placebo-as-declared": "the arm asked for an empty bundle",
    "akm-on-control-arm": "a control trial was offered akm tools, or the plugin started a session",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one trial left behind; None means that nothing tells.

    Attributes:
        expected: the arm is a treatment arm; None for an agent that is not ours.
        captured: anything of akm's was captured.
        session_started: the plugin's ledger has a session.
        cli_resolved: the plugin logged that it found akm.
        cli_failed: the plugin logged that it found none that works.
        helper_failures: failed calls of akm by the plugin, the benign kind left out.
        plugin_error: opencode logged an error of the plugin.
        cli_worked: the ledger shows an effect only a working akm has (a recall with refs, recorded feedback).
        index_entries: entries after the harness's own index step; None when it did not run.
        live_entries: entries in the index captured after the run.
        bundle_files: files in the uploaded bundle.
        declared_empty: the arm asked for an empty bundle.
        selfcheck_ok: akm's answer before the run.
        main_requests: main model requests the probe saw; None without a probe.
        tools_offered: one of them offered akm tools.
        context_injected: one of them carried text the plugin added.
        title_injected: a title request carried text the plugin added.
        tools_wanted: the arm offers tools.
        context_wanted: the arm injects, and the title request cannot eat it.
        akm_calls: the model's akm calls.
        akm_failed: of which failed.
        akm_answered: of which brought a payload.
        oracle: the arm puts the bundle's text into the prompt (`context=bundle`), with or without akm.
        context_seen: main requests of which the probe knows whether they carried it.
        context_shown: of which did.
    """

    expected: bool | None
    captured: bool = False
    session_started: bool = False
    cli_resolved: bool = False
    cli_failed: bool = False
    helper_failures: int = 0
    plugin_error: bool = False
    cli_worked: bool = False
    index_entries: int | None = None
    live_entries: int | None = None
    bundle_files: int | None = None
    declared_empty: bool = False
    selfcheck_ok: bool | None = None
    main_requests: int | None = None
    tools_offered: bool | None = None
    context_injected: bool | None = None
    title_injected: bool | None = None
    tools_wanted: bool = True
    context_wanted: bool = True
    akm_calls: int = 0
    akm_failed: int = 0
    akm_answered: int = 0
    oracle: bool = False
    context_seen: int = 0
    context_shown: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The delivery verdict.

    Attributes:
        delivered: None on a control arm, a foreign agent, or an oracle-context arm that nobody watched;
            true only on positive evidence.
        reasons: codes of `REASONS`; for a true verdict, what is worth knowing about it.
        plugin_loaded: the plugin started a session.
        tools_offered: as seen by the probe.
        context_injected: as seen by the probe.
        akm_answered: akm gave at least one answer with a payload, or passed the self-check.
        bundle_indexed: the index held entries.
        n_index_entries: how many, after set-up if known, else after the run.
    """

    delivered: bool | None
    reasons: tuple[str, ...]
    plugin_loaded: bool | None
    tools_offered: bool | None
    context_injected: bool | None
    akm_answered: bool | None
    bundle_indexed: bool | None
    n_index_entries: int | None


def verdict(e: Evidence) -> Verdict:
    """Judge one trial's evidence."""
    if not e.expected:
        contaminated = e.expected is False and (e.tools_offered is True or e.session_started)
        delivered, reasons = _in_context(e) if e.oracle and e.expected is False else (None, ())
        reasons += ("akm-on-control-arm",) if contaminated else ()
        return Verdict(delivered, reasons, None, e.tools_offered, e.context_injected, None, None, None)
    if not e.captured:
        return Verdict(
            delivered=False,
            reasons=("no-evidence",),
            plugin_loaded=None,
            tools_offered=e.tools_offered,
            context_injected=e.context_injected,
            akm_answered=None,
            bundle_indexed=None,
            n_index_entries=None,
        )
    failures = [*_plugin(e), *_akm(e), *_index(e), *_seen(e)]
    entries = e.index_entries or (e.live_entries if e.live_entries is not None else e.index_entries)
    remarks = _remarks(e) if not failures else []
    if e.declared_empty:
        remarks.append("placebo-as-declared")
    return Verdict(
        not failures,
        tuple(failures + remarks),
        e.session_started,
        e.tools_offered,
        e.context_injected,
        e.akm_answered > 0 or e.cli_worked or e.selfcheck_ok is True,
        None if entries is None else entries > 0,
        entries,
    )


def _in_context(e: Evidence) -> tuple[bool | None, tuple[str, ...]]:
    """The oracle-context arm's verdict: the probe saw the bundle's text in main requests, or it did not."""
    declared = ("placebo-as-declared",) if e.declared_empty else ()
    if e.bundle_files == 0:
        return False, ("bundle-empty", *declared)
    if not e.context_seen:
        return None, ("no-request",) if e.main_requests == 0 else ("not-probed",)
    if not e.context_shown:
        return False, ("bundle-not-in-context",)
    return True, ("context-in-some-requests",) if e.context_shown < e.context_seen else ()


def _plugin(e: Evidence) -> list[str]:
    if not e.session_started:
        # A loaded plugin that was offered and answered proves itself without a ledger.
        return [] if e.tools_offered and e.cli_resolved else ["plugin-not-loaded"]
    return ["plugin-error"] if e.plugin_error else []


def _akm(e: Evidence) -> list[str]:
    if e.cli_failed or (e.helper_failures > HELPER_FAILURES_TOLERATED and not e.cli_worked):
        return ["akm-cli-failing"]
    if e.selfcheck_ok is False and not e.declared_empty:
        return ["selfcheck-failed"]
    # A newer plugin may resolve akm without saying so; an effect of akm is as good as the word.
    if e.session_started and not e.cli_resolved and not e.cli_worked:
        return ["akm-not-resolved"]
    if e.akm_calls and e.akm_failed == e.akm_calls:
        return ["akm-calls-failing"]
    return []


def _index(e: Evidence) -> list[str]:
    if e.index_entries or e.live_entries:
        return []
    if e.bundle_files == 0:
        return ["bundle-empty"]
    if e.index_entries is None and e.live_entries is None:
        return [] if e.akm_answered else ["index-unknown"]
    return ["index-empty"]


def _seen(e: Evidence) -> list[str]:
    if not e.main_requests:
        return []
    reasons = ["bundle-not-in-context"] if e.oracle and e.context_seen and not e.context_shown else []
    if e.tools_wanted and e.tools_offered is False:
        reasons.append("tools-not-offered")
    if e.context_wanted and e.context_injected is False:
        reasons.append("context-not-injected")
    return reasons


def _remarks(e: Evidence) -> list[str]:
    remarks = []
    if not e.index_entries and e.live_entries:
        remarks.append("index-built-by-akm")
    if e.context_injected is False and e.title_injected:
        remarks.append("context-eaten-by-title")
    if e.main_requests is None:
        remarks.append("not-probed")
    return remarks
