"""How likely is the right answer, and which epsilon does it take?

* `forecast(scores, mechanism)`: success probabilities and expected errors of one mechanism
* `forecast_groups({group: scores}, k, epsilon=...)`: what each group's answer is worth
* `compare(scores, k)`: all mechanisms side by side, with the epsilon each needs
* `plan(k, gap=..., accuracy=...)`: the same from public facts alone; `plan(k, epsilon=...)` asks what an epsilon can do
* `reach(mechanism, items)`: the lead from which on one mechanism is right
* `smallest_epsilon(scores, mechanism, accuracy)`, `success(scores, mechanism)`: one mechanism's need and curve
* `expected_leap`, `tail_loss_bound`, `success_bound`, `full_answer_gap`, `signed_error_bound`: the papers' utility
  theorems, from public facts alone
* `compare_unknown(scores, k, epsilon=..., delta=...)`, `epsilon_for_items`: how many items of an unknown domain to
  expect; `expected_discovered(scores, discovery)`: how many a discovery lists;
  `plan_unknown(k, epsilon=..., delta=...)`: what it takes to release one, from public facts alone

All but `plan`, `plan_unknown`, `reach` and the theorems are computed from the scores themselves and have no privacy
guarantee: for the curator, not for release.
"""

from dpselect.forecast.compare import LIMIT_WORDS, Comparison, Need, compare
from dpselect.forecast.curves import Success, smallest_epsilon, success
from dpselect.forecast.groups import GroupForecasts, forecast_groups
from dpselect.forecast.limits import gap_limit, proven_limit, swap_yardstick
from dpselect.forecast.metrics import (
    f1_score,
    items_returned,
    largest_error,
    relative_error,
    score_ratio,
    signed_error,
    total_error,
)
from dpselect.forecast.outcome import TITLES, WARNING, Forecast, forecast
from dpselect.forecast.plan import GAMMAS, LEAD_PROBABILITIES, Lead, Leads, Plan, plan
from dpselect.forecast.reach import Reach, reach
from dpselect.forecast.render import check_plot, write_plot
from dpselect.forecast.simulate import PROBABILITIES, Figure
from dpselect.forecast.theorems import (
    expected_leap,
    full_answer_gap,
    signed_error_bound,
    success_bound,
    tail_loss_bound,
)
from dpselect.forecast.unknown import (
    UNKNOWN_TITLES,
    UnknownComparison,
    UnknownFacts,
    UnknownOutlook,
    compare_unknown,
    epsilon_for_items,
    expected_discovered,
    plan_unknown,
)

__all__ = [
    "GAMMAS",
    "LEAD_PROBABILITIES",
    "LIMIT_WORDS",
    "PROBABILITIES",
    "TITLES",
    "UNKNOWN_TITLES",
    "WARNING",
    "Comparison",
    "Figure",
    "Forecast",
    "GroupForecasts",
    "Lead",
    "Leads",
    "Need",
    "Plan",
    "Reach",
    "Success",
    "UnknownComparison",
    "UnknownFacts",
    "UnknownOutlook",
    "check_plot",
    "compare",
    "compare_unknown",
    "epsilon_for_items",
    "expected_discovered",
    "expected_leap",
    "f1_score",
    "forecast",
    "forecast_groups",
    "full_answer_gap",
    "gap_limit",
    "items_returned",
    "largest_error",
    "plan",
    "plan_unknown",
    "proven_limit",
    "reach",
    "relative_error",
    "score_ratio",
    "signed_error",
    "signed_error_bound",
    "smallest_epsilon",
    "success",
    "success_bound",
    "swap_yardstick",
    "tail_loss_bound",
    "total_error",
    "write_plot",
]
