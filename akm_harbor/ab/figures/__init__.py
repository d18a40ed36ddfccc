"""The figures of an A/B report, each from a frozen result to inline SVG."""

from akm_harbor.ab.figures.differences import family_forest, policy_forest, task_forest
from akm_harbor.ab.figures.errors import error_causes
from akm_harbor.ab.figures.funnel import funnel
from akm_harbor.ab.figures.usage import cost_and_reward, phase_times

__all__ = ["cost_and_reward", "error_causes", "family_forest", "funnel", "phase_times", "policy_forest", "task_forest"]
