"""The result of an A/B comparison: frozen values that every view (page, notebook, JSON) is made of."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from akm_harbor.stats.bounds import Bounds
from akm_harbor.stats.equivalence import Equivalence
from akm_harbor.stats.means import VarianceComponents
from akm_harbor.stats.paired import PairingGain
from akm_harbor.stats.power import Components
from akm_harbor.stats.results import NotEstimable, Result, check_coverage

if TYPE_CHECKING:
    from akm_harbor.ab.behaviour import Behaviour
    from akm_harbor.ab.instrument import ComplierEffect

Grade = Literal["ok", "note", "caveat", "fatal"]
Direction = Literal["better", "worse", "open"]


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call as the page shows it.

    Attributes:
        index: 0-based order within the trial.
        text: the command, query, ref or path.
        marks: why it matters, e.g. `opened the gold asset`, `first write`.
        diff: lines that a write or an edit took out and put in.
        output: the beginning of what came back.
    """

    index: int
    tool: str
    text: str
    marks: tuple[str, ...]
    diff: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True)
class FailedTest:
    """One test that did not pass, in the verifier's words."""

    name: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as the task table shows it.

    Attributes:
        score: under the headline's policy; None if left out.
        errored: it had an exception, or no valid reward.
        delivered: did the treatment reach the agent; None if not recorded or not due.
    """

    trial_name: str
    trial_path: str
    status: str
    score: float | None
    reward: float | None
    errored: bool
    exception_type: str | None
    exception_cause: str | None
    exception_message: str | None
    delivered: bool | None
    delivery_reasons: tuple[str, ...]
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    environment_seconds: float | None
    setup_seconds: float | None
    agent_seconds: float | None
    verifier_seconds: float | None
    n_tool_calls: int | None
    n_akm_calls: int | None
    steps: tuple[Step, ...] = ()
    steps_left_out: int = 0
    failed_tests: tuple[FailedTest, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task under both arms.

    Attributes:
        difference: treatment minus baseline of the mean scores; None unless both arms have one.
        interval: Newcombe's interval of that difference where rewards are 0 or 1; wide by nature.
        family: the corpus family, where the tasks table knows the task.
    """

    task: str
    baseline: tuple[Attempt, ...]
    treatment: tuple[Attempt, ...]
    mean_baseline: float | None
    mean_treatment: float | None
    difference: float | None
    interval: Result | None
    family: str | None


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """The paired difference on the tasks of one family."""

    family: str
    n_tasks: int
    baseline: float
    treatment: float
    difference: Result


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """What an arm consists of."""

    name: str
    n_attempts: int
    n_tasks: int
    n_set_aside: int
    k_min: int
    k_max: int
    statuses: dict[str, int]
    agents: tuple[str, ...]
    models: tuple[str, ...]
    jobs: tuple[str, ...]
    first_start: datetime | None
    last_end: datetime | None
    mean: Result
    fixed_mean: Result
    components: VarianceComponents | NotEstimable


@dataclass(frozen=True, slots=True)
class Check:
    """One comparability check.

    Attributes:
        name: stable short name, e.g. `model`; what `--accept` takes.
        grade: ok, note, caveat or fatal.
        baseline: the baseline's value or values, for a reader.
        treatment: the treatment's.
        detail: what a difference means.
        accepted: a difference that was declared intended.
        compared: False where a side is not recorded, so that there was nothing to compare.
    """

    name: str
    title: str
    grade: Grade
    baseline: str
    treatment: str
    detail: str = ""
    accepted: bool = False
    compared: bool = True


@dataclass(frozen=True, slots=True)
class Delivery:
    """Did the treatment reach the agent.

    Attributes:
        delivered: attempts with positive evidence, and those whose empty bundle was the arm's own wish.
        undelivered: attempts with a negative verdict.
        unknown: attempts without a verdict (a control arm, or nothing was recorded).
        reasons: how often each reason of a negative verdict was given.
        flags: how often each reason was given on a delivered attempt.
        declared: attempts that count as delivered because the arm asked for an empty bundle.
    """

    arm: str
    delivered: int
    undelivered: int
    unknown: int
    reasons: dict[str, int]
    flags: dict[str, int]
    declared: int = 0

    @property
    def share(self) -> float | None:
        """Delivered share of the attempts with a verdict; None where there is none."""
        due = self.delivered + self.undelivered
        return self.delivered / due if due else None


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """The comparison under one error policy.

    Attributes:
        n_baseline: attempts that count in the baseline, on the shared tasks.
        n_treatment: the same for the treatment.
        dropped: tasks that an arm has no counting attempt for.
    """

    policy: str
    title: str
    headline: bool
    baseline: float | None
    treatment: float | None
    difference: Result
    sign_flip: Result
    n_tasks: int
    n_baseline: int
    n_treatment: int
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Placebo:
    """The treatment against a placebo arm of the same dataset: is it the notes?

    Attributes:
        arm: the placebo.
        row: under the headline's policy; its `baseline` is the placebo's mean.
    """

    arm: str
    row: PolicyRow


@dataclass(frozen=True, slots=True)
class BoundsRow:
    """Bounds of the difference for one reading of "missing"."""

    title: str
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class PassRow:
    """pass@k or pass^k of both arms and their paired difference."""

    kind: str
    k: int
    baseline: Result
    treatment: Result
    difference: Result


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Cost, tokens or time of both arms with their coverage.

    Attributes:
        baseline: mean over the shared tasks that have it in both arms, of the task means.
        known_baseline: attempts that report it.
        ratio: ratio of means (the bill).
        typical: geometric ratio (the typical task).
    """

    name: str
    title: str
    unit: str
    baseline: float | None
    treatment: float | None
    known_baseline: int
    known_treatment: int
    n_baseline: int
    n_treatment: int
    ratio: Result
    typical: Result
    n_tasks: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class CauseRow:
    """How often an exception cause occurred in each arm, with its exception types."""

    cause: str
    types: tuple[str, ...]
    baseline: int
    treatment: int


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors by arm and the test that they are balanced."""

    baseline: int
    treatment: int
    unscored_baseline: int
    unscored_treatment: int
    balance: Result
    causes: tuple[CauseRow, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the engagement funnel, counted over an arm's attempts."""

    name: str
    title: str
    yes: int
    no: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Engagement:
    """How far the treatment got in one arm, and how attempts that used it fared.

    Attributes:
        stages: the funnel, widest first.
        used: attempts that called akm or read the bundle, and their mean score; None without any.
        unused: the rest with a known number of calls.
    """

    arm: str
    stages: tuple[Stage, ...]
    n_used: int
    used: float | None
    n_unused: int
    unused: float | None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """One line that Harbor printed, beside what the trials say under each rule.

    Attributes:
        printed: Harbor's mean.
        rules: (rule, mean, trials) as recomputed.
        agrees: the rules whose mean is the printed one.
        pass_k: (k, printed, recomputed).
        remark: what makes the difference.
    """

    arm: str
    job: str
    eval_key: str
    harbor_version: str | None
    printed: float | None
    n_printed: int | None
    rules: tuple[tuple[str, float | None, int], ...]
    agrees: tuple[str, ...]
    pass_k: tuple[tuple[int, float, float | None], ...]
    remark: str


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Whether an arm keeps the Terminal-Bench 2 leaderboard's rules; None where nothing tells."""

    arm: str
    keeps: bool | None
    broken: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OtherMethod:
    """The same question asked with another method, for sensitivity.

    Attributes:
        unit: points or log odds.
    """

    title: str
    unit: str
    result: Result


@dataclass(frozen=True, slots=True)
class Planning:
    """What the design could see and what it would take to see less.

    Attributes:
        mde: smallest difference this run sees with 80% power, from its own spread where it has one.
        components: variance components of the difference, from this run or for planning.
        tasks_needed: (difference, tasks) at the run's attempts a task.
    """

    mde: Result
    components: Components
    tasks_needed: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The machine-readable answer.

    Attributes:
        exit_code: 0 no regression by the rule, 3 regression, 4 not comparable or not delivered.
        outcome: improvement, no-clear-difference, regression, not-comparable, not-delivered,
            unbalanced-errors or undecidable.
        rule: the rule, as a sentence.
        reasons: why the outcome is what it is.
        direction: which side of zero the whole interval lies on, better or worse, else open.
        settled: the interval and the exact test agree on whether there is a difference at all; None where
            there is no answer, or only one of the two exists. A reader who wants to publish an improvement
            asks for `improvement` and for this.
    """

    exit_code: int
    outcome: str
    rule: str
    reasons: tuple[str, ...]
    direction: Direction = "open"
    settled: bool | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for.

    Attributes:
        level: coverage of the intervals.
        look: which of how many planned looks at a running comparison this is, e.g. `2/5`; the level is
            then raised so that all looks together err as often as one.
        max_error_imbalance: largest difference of the arms' error shares that still gives an answer.
        strip_prefix: pair tasks by the part of their names after the last slash.

    Raises:
        UsageError: a level that cannot be meant.
    """

    by: str = "arm"
    policy: str = "keep-reward"
    level: float = 0.95
    look: str = ""
    rule: Literal["significant", "non-inferior"] = "significant"
    margin: float = 0.0
    min_delivered: float = 0.9
    max_error_imbalance: float = 1.0
    strict: bool = False
    strip_prefix: bool = False
    accept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_coverage(self.level)


@dataclass(frozen=True, slots=True)
class AbResult:
    """An A/B comparison, complete."""

    title: str
    options: Options
    baseline: ArmSummary
    treatment: ArmSummary
    shared_tasks: tuple[str, ...]
    only_baseline: tuple[str, ...]
    only_treatment: tuple[str, ...]
    headline: PolicyRow
    fixed_tasks: Result
    pairing: PairingGain | NotEstimable
    planning: Planning
    policies: tuple[PolicyRow, ...]
    bounds: tuple[BoundsRow, ...]
    delivered_only: PolicyRow | None
    delivery: tuple[Delivery, ...]
    checks: tuple[Check, ...]
    pass_k: tuple[PassRow, ...]
    usage: tuple[UsageRow, ...]
    phases: tuple[UsageRow, ...]
    errors: Errors
    other_methods: tuple[OtherMethod, ...]
    equivalence: Equivalence | NotEstimable | None
    engagement: tuple[Engagement, ...]
    behaviour: "Behaviour"
    complier: "tuple[ComplierEffect, ...]"
    placebos: tuple[Placebo, ...]
    reconciled: tuple[Reconciled, ...]
    leaderboard: tuple[Leaderboard, ...]
    families: tuple[FamilyRow, ...]
    tasks: tuple[TaskRow, ...]
    verdict: Verdict
    manifest: dict[str, Any]
    problems: tuple[dict[str, Any], ...]
