"""Looking at a running comparison more than once without raising its error rate."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Shape = Literal["pocock", "obrien-fleming"]
_POINTS = 401


def boundaries(looks: int | Sequence[float], shape: Shape = "obrien-fleming", alpha: float = 0.05) -> tuple[float, ...]:
    """Two-sided critical |z| at each planned look.

    Args:
        looks: how many equally spaced looks, or the information fraction at each, ending at 1.
        shape: `pocock` has the same limit at each look; `obrien-fleming` is strict early and almost
            the usual limit at the end.
        alpha: error rate over all looks together.

    Raises:
        ValueError: fractions that do not rise to 1.
    """
    fractions = np.arange(1, looks + 1) / looks if isinstance(looks, int) else np.asarray(looks, dtype=np.float64)
    if fractions.size == 0 or (np.diff(fractions, prepend=0.0) <= 0).any() or abs(fractions[-1] - 1) > 1e-12:
        raise ValueError("information fractions must rise to 1")
    relative = np.ones_like(fractions) if shape == "pocock" else fractions**-0.5

    def excess(scale: float) -> float:
        return crossing_probability(fractions, scale * relative) - alpha

    scale = optimize.brentq(excess, float(stats.norm.ppf(1 - alpha / 2)) * 0.99, 10.0, xtol=1e-6)
    return tuple(float(c) for c in scale * relative)


def crossing_probability(
    fractions: Sequence[float] | NDArray[np.float64], limits: Sequence[float] | NDArray[np.float64]
) -> float:
    """Chance that |z| passes its limit at any look when nothing differs.

    The density of the score process among those still inside is carried from look to look by numerical
    integration (Armitage, McPherson and Rowe 1969).
    """
    times, bounds = np.asarray(fractions, dtype=np.float64), np.asarray(limits, dtype=np.float64)
    edge = bounds[0] * np.sqrt(times[0])
    grid = np.linspace(-edge, edge, _POINTS)
    density = stats.norm.pdf(grid, scale=np.sqrt(times[0]))
    crossed = 2 * float(stats.norm.sf(bounds[0]))
    for before, now, limit in zip(times, times[1:], bounds[1:], strict=False):
        step, edge = np.sqrt(now - before), limit * np.sqrt(now)
        outside = stats.norm.sf((edge - grid) / step) + stats.norm.cdf((-edge - grid) / step)
        crossed += float(np.trapezoid(density * outside, grid))
        after = np.linspace(-edge, edge, _POINTS)
        kernel = stats.norm.pdf((after[:, None] - grid[None, :]) / step) / step
        density, grid = np.trapezoid(kernel * density, grid, axis=1), after
    return crossed
