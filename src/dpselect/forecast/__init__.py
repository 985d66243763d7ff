"""How likely is the right answer, and which epsilon does it take?

* `forecast(scores, mechanism)`: success probabilities and expected errors of one mechanism
* `compare(scores, k)`: all mechanisms side by side, with the epsilon each needs
* `plan(k, gap=..., accuracy=...)`: the same from public facts alone; `plan(k, epsilon=...)` asks what an epsilon can do
* `reach(mechanism, items)`: the lead from which on one mechanism is right
* `smallest_epsilon(scores, mechanism, accuracy)`, `success(scores, mechanism)`: one mechanism's need and curve

All but `plan` and `reach` are computed from the scores themselves and have no privacy guarantee: for the curator, not
for release.
"""

from dpselect.forecast.compare import LIMIT_WORDS, Comparison, Need, compare
from dpselect.forecast.curves import Success, smallest_epsilon, success
from dpselect.forecast.limits import gap_limit, proven_limit, swap_yardstick
from dpselect.forecast.metrics import (
    f1_score,
    items_returned,
    largest_error,
    relative_error,
    score_ratio,
)
from dpselect.forecast.outcome import TITLES, WARNING, Forecast, forecast
from dpselect.forecast.plan import GAMMAS, LEAD_PROBABILITIES, Lead, Leads, Plan, plan
from dpselect.forecast.reach import Reach, reach
from dpselect.forecast.render import check_plot, write_plot
from dpselect.forecast.simulate import PROBABILITIES, Figure

__all__ = [
    "GAMMAS",
    "LEAD_PROBABILITIES",
    "LIMIT_WORDS",
    "PROBABILITIES",
    "TITLES",
    "WARNING",
    "Comparison",
    "Figure",
    "Forecast",
    "Lead",
    "Leads",
    "Need",
    "Plan",
    "Reach",
    "Success",
    "check_plot",
    "compare",
    "f1_score",
    "forecast",
    "gap_limit",
    "items_returned",
    "largest_error",
    "plan",
    "proven_limit",
    "reach",
    "relative_error",
    "score_ratio",
    "smallest_epsilon",
    "success",
    "swap_yardstick",
    "write_plot",
]
