"""Questions as clients send them, and the answers in the shapes that the OpenAPI document promises."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["alone", "shared"]
LARGEST_K = 10_000
MOST_COUNTS = 100_000
"""How many counts an uploaded look-alike may have."""

Name = Annotated[str, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    """Plain JSON without unknown fields, numbers in texts, or numbers that are not finite."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Question(Strict):
    """What is asked of a data set; `item`, `filter` and `by` are names from the configuration."""

    item: Name
    k: Annotated[int, Field(ge=1, le=LARGEST_K)]
    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    ordered: bool = False
    aim: Literal["most", "exact"] = "most"
    values: Annotated[float, Field(gt=0, lt=1)] | Literal[True] | None = None
    filter: Name | None = None
    by: Name | None = None
    period: Annotated[str, Field(max_length=20)] | None = None
    purpose: Annotated[str, Field(max_length=500)] = ""


class Counts(Strict):
    """An uploaded look-alike: how many people have each item."""

    counts: Annotated[list[Annotated[float, Field(ge=0, le=1e15)]], Field(min_length=2, max_length=MOST_COUNTS)]


class EstimateQuestion(Question):
    """A question, and what is known or wanted of its answer.

    lead: by how many people the last item of the right answer is expected to lead the next one. accuracy: the wanted
    probability of exactly the right answer. like: the name of a look-alike of the configuration, or counts.
    """

    lead: Annotated[float, Field(gt=0, le=1e12)] | None = None
    accuracy: Annotated[float, Field(gt=0, lt=1)] | None = None
    like: Name | Counts | None = None


class Description(Strict):
    """What the curator states of a data set; the person, the budget and the period are fixed by the first release."""

    person: Name
    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    items: Annotated[dict[Name, Annotated[str, Field(min_length=1, max_length=1000)]], Field(min_length=1)]
    people: Annotated[int, Field(ge=1, le=10**12)] | None = None
    max_items_per_person: Annotated[int, Field(ge=1, le=10**6)] | None = None
    groups: dict[Name, Annotated[str, Field(min_length=1, max_length=1000)] | list[str]] = {}
    max_groups_per_person: Annotated[int, Field(ge=1, le=10**6)] = 1
    filters: dict[Name, Annotated[str, Field(min_length=1, max_length=2000)]] = {}
    time: Name | None = None
    every: Literal["day", "week", "month"] | None = None
    lifetime: Annotated[float, Field(gt=0)] | None = None
    protects: Name = "one person"


class DiscoverQuestion(Strict):
    """Which items of a column exist."""

    item: Name
    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Annotated[float, Field(gt=0, lt=1)]
    max_items_per_person: Annotated[int, Field(ge=1, le=10**6)]
    at_least: Annotated[int, Field(ge=1, le=10**9)] = 1
    period: Annotated[str, Field(max_length=20)] | None = None


class BudgetState(BaseModel):
    """A budget: its total, what is spent, rounded up, and what is left, rounded down.

    With periods, among the facts of a data set, `spent` is the sum of all periods, and `remaining` is what is left for
    a new one; in an estimate, both are those of the period that is asked about.
    """

    epsilon: float
    delta: float
    spent: float
    remaining: float
    remaining_delta: float
    every: str | None = None
    lifetime: float | None = None


class QuestionsAllowed(BaseModel):
    """What may be asked of a data set."""

    items: dict[str, dict[str, Any]]
    filters: list[str]
    groups: dict[str, int | None]
    max_groups_per_person: int
    period: str | None
    values: bool
    max_items_per_person: int | None
    like: list[str]
    people: int | None


class DataSetState(BaseModel):
    """The public facts of a data set."""

    name: str
    columns: list[str]
    domain_size: dict[str, int | None]
    budget: BudgetState | None
    analyst_budget: BudgetState | None
    questions: QuestionsAllowed | None
    protects: str
    described: bool
    answer_after: float
    looked: bool
    columns_of_source: Annotated[list[str] | None, Field(serialization_alias="schema")] = None
    source: dict[str, Any] | None = None


class Session(BaseModel):
    """Who is asking, and what they may do."""

    mode: Mode
    analyst: str
    scopes: list[str]
    datasets: list[str]
    version: str
    offered: list[str] = []


class Estimate(BaseModel):
    """What a question would cost, which mechanism it would use, and how good it would be, from public facts.

    budgets: what it would be charged to: the budget of the data set and, if there is one, the analyst's own.
    """

    cost: dict[str, Any]
    budgets: list[BudgetState]
    mechanism: dict[str, Any]
    guarantee: dict[str, Any]
    words: dict[str, str | None]
    domain_size: int | None
    reach: dict[str, Any] | None
    curve: dict[str, Any] | None
    needed: dict[str, Any] | None
    buys: dict[str, Any]


class Look(BaseModel):
    """A curve computed from the private rows: for the curator's eyes alone."""

    curve: dict[str, Any]
    warning: str


class Preview(BaseModel):
    """The answer to a question on generated data."""

    release: dict[str, Any]
    people: int
    words: str


class PastRelease(BaseModel):
    """A release as the ledger recorded it.

    key, analyst, dataset and question are empty if it was made outside of the desk.
    """

    key: str
    analyst: str
    time: str
    purpose: str
    dataset: str
    question: str
    guarantee: dict[str, Any]
    parameters: dict[str, Any]
    answered: bool
    looked: bool
    release: dict[str, Any] | None
    words: dict[str, str | None] = {}


class DomainFound(BaseModel):
    """A list of items that was published, and the file that holds it, "" if there are none."""

    items: int
    file: str
    guarantee: dict[str, Any]


class Problem(BaseModel):
    """What went wrong; some codes have further fields."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str
    field: str | None = None
    charged: bool | None = None
    requested: float | None = None
    remaining: float | None = None
    difference: float | None = None


class ProblemAnswer(BaseModel):
    """The body of every answer that is not a success."""

    error: Problem
