"""Regression views of an arm effect, on the odds scale: sensitivity only, never the headline."""

import warnings
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.attempts import Attempts, arrays
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result, clamp_p

GEE_ESTIMAND = "log odds ratio, averaged over tasks"
MIXED_ESTIMAND = "log odds ratio within a task"
_LARGEST = 10.0
_SMALLEST_ERROR = 1e-6
"""No data are precise to a millionth of a log odds: a smaller error is what rounding leaves of none."""


def _long(baseline: Attempts, treatment: Attempts) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Rewards, arm (0 or 1) and task of every attempt."""
    rewards, arm, task = [], [], []
    for which, attempts in enumerate((baseline, treatment)):
        for index, values in enumerate(arrays(attempts)):
            rewards.append(values)
            arm += [which] * values.size
            task += [index] * values.size
    return np.concatenate(rewards), np.array(arm), np.array(task)


def _refused(baseline: Attempts, treatment: Attempts, method: str, estimand: str) -> NotEstimable | None:
    """What must be known before a fit: afterwards it looks like a result."""
    n = len(baseline)
    if n != len(treatment):
        raise ValueError(f"arms of {n} and {len(treatment)} tasks cannot be paired")
    if n < 2:
        return NotEstimable("one-task" if n else "no-task", "Fewer than two shared tasks.", method, estimand, n)
    sides = [np.concatenate(arrays(arm)) for arm in (baseline, treatment)]
    if not np.isin(np.concatenate(sides), (0.0, 1.0)).all():
        return NotEstimable("not-binary", "A reward is neither 0 nor 1.", method, estimand, n)
    if any(side.min() == side.max() for side in sides):
        detail = "An arm has only successes or only failures, so its odds have no finite estimate."
        return NotEstimable("separation", detail, method, estimand, n)
    return None


def gee_log_odds(
    baseline: Attempts,
    treatment: Attempts,
    level: float = 0.95,
    covariance: Literal["bias_reduced", "robust"] = "bias_reduced",
) -> Result:
    """Log odds ratio by generalised estimating equations, exchangeable within tasks.

    The plain sandwich (`robust`) is too short with few tasks; the bias-reduced one is the default.
    """
    from statsmodels.genmod.cov_struct import Exchangeable
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_estimating_equations import GEE

    method = f"GEE, exchangeable, {covariance} standard error"
    refused = _refused(baseline, treatment, method, GEE_ESTIMAND)
    if refused is not None:
        return refused
    rewards, arm, task = _long(baseline, treatment)
    design = np.column_stack([np.ones(arm.size), arm])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a bad fit is caught below by what it says, not by how it warns
        model = GEE(rewards, design, groups=task, family=Binomial(), cov_struct=Exchangeable())
        try:
            fit = model.fit(cov_type=covariance)
            value, se = float(fit.params[1]), float(fit.bse[1])  # a negative variance becomes NaN here
        except (np.linalg.LinAlgError, ValueError, ZeroDivisionError):
            return NotEstimable("no-fit", "The model could not be fitted.", method, GEE_ESTIMAND, len(baseline))
    return _odds(value, se, len(baseline), level, method=method, estimand=GEE_ESTIMAND)


def mixed_logit(baseline: Attempts, treatment: Attempts, level: float = 0.95) -> Result:
    """Log odds ratio within a task, random task intercepts, variational Bayes.

    Its posterior mode and its variational mean disagree by more than a standard deviation on small data,
    so it is a second opinion at most.
    """
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    method = "mixed logit, variational Bayes"
    refused = _refused(baseline, treatment, method, MIXED_ESTIMAND)
    if refused is not None:
        return refused
    rewards, arm, task = _long(baseline, treatment)
    design = np.column_stack([np.ones(arm.size), arm])
    groups = (task[:, None] == np.arange(len(baseline))[None, :]).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BinomialBayesMixedGLM(rewards, design, groups, np.zeros(len(baseline), dtype=int))
        # its own start is random: the same data would give another sixth digit each time
        start = model.k_fep + model.k_vcp + model.k_vc
        fit = model.fit_vb(mean=np.zeros(start), sd=np.full(start, 0.5))
    value, se = float(fit.fe_mean[1]), float(fit.fe_sd[1])
    return _odds(value, se, len(baseline), level, method=method, estimand=MIXED_ESTIMAND)


def _odds(value: float, se: float, n: int, level: float, *, method: str, estimand: str) -> Result:
    if not (np.isfinite(value) and np.isfinite(se)):
        return NotEstimable("no-fit", "The model could not be fitted.", method, estimand, n)
    if abs(value) > _LARGEST:
        detail = "The fit ran away: the arms are almost completely separated."
        return NotEstimable("separation", detail, method, estimand, n)
    if se < _SMALLEST_ERROR:
        detail = "Every task shows the same difference, so its spread between tasks cannot be estimated."
        return NotEstimable("constant-difference", detail, method, estimand, n)
    z, half = value / se, float(stats.norm.ppf((1 + level) / 2)) * se
    return Estimate(
        value,
        method,
        estimand,
        n,
        Interval(value - half, value + half, level),
        se,
        None,
        z,
        clamp_p(2 * stats.norm.sf(abs(z))),
        ("Sensitivity only.",),
    )
