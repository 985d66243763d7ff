"""How likely is the right answer, and which epsilon does it take?

* `forecast(scores, mechanism)`: success probabilities and expected errors of one mechanism
* `compare(scores, k)`: all mechanisms side by side, with the epsilon each needs
* `plan(k, gap=..., accuracy=...)`: the same from public facts alone
* `smallest_epsilon(scores, mechanism, accuracy)`, `success(scores, mechanism)`: one mechanism's need and curve

All but `plan` are computed from the scores themselves and have no privacy guarantee: for the curator, not for
release.
"""

from dpselect.forecast.compare import (
    LIMIT_WORDS,
    Comparison,
    Need,
    Plan,
    compare,
    plan,
)
from dpselect.forecast.curves import Success, gap_limit, smallest_epsilon, success, swap_limit
from dpselect.forecast.metrics import (
    f1_score,
    items_returned,
    largest_error,
    relative_error,
    score_ratio,
)
from dpselect.forecast.outcome import TITLES, WARNING, Forecast, forecast
from dpselect.forecast.render import check_plot, write_plot
from dpselect.forecast.simulate import PROBABILITIES, Figure

__all__ = [
    "LIMIT_WORDS",
    "PROBABILITIES",
    "TITLES",
    "WARNING",
    "Comparison",
    "Figure",
    "Forecast",
    "Need",
    "Plan",
    "Success",
    "check_plot",
    "compare",
    "f1_score",
    "forecast",
    "gap_limit",
    "items_returned",
    "largest_error",
    "plan",
    "relative_error",
    "score_ratio",
    "smallest_epsilon",
    "success",
    "swap_limit",
    "write_plot",
]
