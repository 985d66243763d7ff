"""How likely is the right answer, and which epsilon does it take?

* `forecast(scores, mechanism)`: exact success probabilities and expected errors of one mechanism
* `compare(scores, k)`: all mechanisms side by side, with the epsilon each needs
* `plan(k, gap=..., accuracy=...)`: the same from public facts alone
* `smallest_epsilon(scores, mechanism, accuracy)`, `success(scores, mechanism)`: one mechanism's need and curve

All but `plan` are computed from the scores themselves, so they are as private as these: for the curator, not for
release.
"""

from dpselect.forecast.comparison import Comparison, Need, compare
from dpselect.forecast.curves import Success, gap_limit, smallest_epsilon, success, swap_limit
from dpselect.forecast.metrics import f1_score, items_returned, largest_error, relative_error, score_ratio
from dpselect.forecast.outcome import WARNING, Forecast, forecast
from dpselect.forecast.picture import check_plot, write_plot
from dpselect.forecast.planning import Plan, plan
from dpselect.forecast.simulation import Figure

__all__ = [
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
