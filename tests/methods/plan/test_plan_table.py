"""The rules of the plan: each is taken for its problems only, and the page has them."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, losses, penalties, solve
from apcg.methods.base import Start, unmet
from apcg.methods.plan.case import Case
from apcg.methods.plan.plan import Auto
from apcg.methods.plan.rules import RULES

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import plan_table


class Ridge:
    """A penalty that is known by its functions only."""

    strong_convexity = 1.0

    def value(self, w):
        return 0.5 * float(np.vdot(w, w))

    def prox(self, v, step):
        return v / (1 + step)

    def conjugate(self, v):
        return 0.5 * float(np.vdot(v, v))

    def conjugate_gradient(self, v):
        return v


class Squares(losses.OwnLoss):
    """A loss that is known by its functions only."""

    name, gamma = "squares", 1.0

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        return z - y

    def conjugate(self, u, y):
        return 0.5 * u**2 + u * y


@cache
def data(n, d):
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + rng.standard_normal(n)


def one(loss="logistic", penalty="l2", n=400, d=20, alpha=1e-6, scale=1.0):
    """A problem with one output."""
    X, y = data(n, d)
    return ERM(scale * X, y if loss in ("squared", "huber") else np.sign(y), loss, penalty, alpha)


def many(loss="squared", penalty="l2", n=400, d=20, alpha=0.1, **options):
    """A problem with three outputs."""
    X = data(n, d)[0]
    Y = X[:, :3].argmax(axis=1) if loss == "multinomial" else X[:, :3]
    return ERM(X, np.sign(Y) if loss == "hinge" else Y, loss, penalty, alpha, **options)


def ids(loss="logistic", groups=(30, 400), n=3000, alpha=1e-5, shuffled=False, **options):
    """A problem with an id of each group in a row, those of low number in many rows."""
    rng = np.random.default_rng(n)
    begin = np.cumsum((0, *groups))
    chosen = [b + (g * rng.random(n) ** 3).astype(int) for b, g in zip(begin, groups, strict=False)]
    names = rng.permutation(begin[-1]) if shuffled else np.arange(begin[-1])
    X = sp.csr_matrix((np.ones(n * len(groups)), names[np.stack(chosen, axis=1)].ravel(),
                       np.arange(n + 1) * len(groups)), shape=(n, begin[-1]))  # fmt: skip
    X.sort_indices()
    return ERM(X, np.sign(rng.standard_normal(n)), loss, alpha=alpha, **options)


PRIMAL = Start(side="primal")
PRIMAL_K = Start(side="primal", w=np.zeros((20, 3)))
GROUPS, BOX = penalties.GroupLasso([4] * 5), penalties.Box(0.0, 1.0)
WEIGHTS = penalties.L2(np.linspace(1.0, 2.0, 50))
#: For each rule a problem of it (one with K outputs too, if it is for all), where its run begins,
#: and one that is of a rule after it (before it, for the last).
CASES = [
    ("group lasso", one(penalty=GROUPS), Start(), one()),
    ("a penalty of your own", one(penalty=Ridge()), Start(), one()),
    ("a loss of your own", one(Squares()), Start(), one("squared")),
    ("no penalty, squared", one("squared", None), Start(), one("logistic", None)),
    ("no penalty, squared", many(penalty=None), Start(), many("multinomial", None)),
    (
        "no penalty on some features, L2 or none on the others, smooth",
        one(penalty=None),
        Start(),
        one(),
    ),
    (
        "no penalty on some features, L2 or none on the others, a",
        one("hinge", None),
        Start(),
        one("hinge"),
    ),
    ("bounds, with L2", one(penalty=BOX), Start(), one(penalty=BOX, n=20, d=2100)),
    ("L2, X so large", one(n=20, d=30, scale=1e9), Start(), one(n=20, d=30)),
    ("L2, smooth loss, sparse X with ids", ids(), Start(), ids(groups=(30, 100))),
    ("L2, smooth loss, where", one(d=50), PRIMAL, one("hinge", d=50)),
    ("L2, smooth loss, at least 10", one(), Start(), one(d=50)),
    ("L2, squared loss, rows so", one("squared", d=50), Start(), one("huber", d=50)),
    ("L2, smooth loss, dense", one(n=600, d=100), Start(), one(n=600, d=200)),
    ("L1, elastic net", one(penalty="l1"), Start(), one("hinge", "l1")),
    ("hinge or epsilon", one("hinge", "l1"), Start(), one("hinge")),
    ("L2, dense, fewer", one(n=20, d=200), Start(), one(n=20, d=30)),
    ("an L2 weight", one("hinge", WEIGHTS, d=50), Start(), one("hinge", d=50)),
    ("an L2 weight", many("multinomial", WEIGHTS, d=50), Start(), many("multinomial")),
    ("L2, hinge", one("hinge"), Start(), one("hinge", n=20_000)),
    ("the same, more", one("hinge", n=20_000), Start(), one("hinge", d=200)),
    ("L2 otherwise", one(d=150), Start(), one(penalty=BOX, d=50)),
    ("bounds alone", one(penalty=BOX, n=20, d=2100), Start(), one()),
    ("no penalty on some", many("multinomial", None), Start(), many("multinomial")),
    ("a penalty on rows", many(penalty="group"), Start(), many()),
    ("softmax with L1", many("multinomial", "l1"), Start(), many("multinomial")),
    ("y of K columns", many(penalty="l1"), Start(), many()),
    ("L1, elastic net or groups", many("huber", "group"), Start(), many()),
    ("other penalties", many(penalty=Ridge()), Start(), many()),
    ("L2, squared loss, no more", many(), Start(), many(n=20, d=300)),
    ("L2 or elastic net", many("hinge"), Start(), many()),
]


def rule_of(problem, at):
    """The rule that is taken, and the problem as it sees it."""
    case = Case(problem, at, plan=Auto())
    return next(r for r in RULES if r.serves(problem) and r.when(case)), case


def test_every_rule_has_a_case():
    wanted = [rule for rule in RULES for _ in range(1 + (rule.many is None))]
    for rule, (of, problem, *_) in zip(wanted, CASES, strict=True):
        assert rule.of.startswith(of)
        assert rule.serves(problem)


@pytest.mark.parametrize(("of", "problem", "at", "other"), CASES, ids=[c[0] for c in CASES])
def test_a_rule_is_taken_for_its_problems_only(of, problem, at, other):
    """Its method has the name that it says, fits the problem, and comes with a reason."""
    rule, case = rule_of(problem, at)
    assert rule.of.startswith(of)
    method = rule.first(case)
    assert method.name == rule.method
    assert unmet(method, problem) is None
    assert rule.reason(case)
    assert not rule_of(other, at)[0].of.startswith(of)
    assert Auto().first(problem, at)[0] == method


def test_a_path_with_k_outputs_goes_on_with_newton():
    assert rule_of(many("multinomial"), PRIMAL_K)[0].method == "newton"
    assert rule_of(many("multinomial", d=80), Start())[0].method == "dual"


def test_a_softmax_with_few_numbers_of_w_is_newtons_at_once():
    """With many samples for each of them more will do; of a sparse X or with L1 none are few."""
    assert rule_of(many("multinomial"), Start())[0].method == "newton"
    assert rule_of(many("multinomial", n=50_000, d=60), Start())[0].method == "newton"
    assert rule_of(many("multinomial", n=40_000, d=60), Start())[0].method == "dual"
    assert rule_of(many("multinomial", "l1"), Start())[0].method == "working_set"
    assert rule_of(many("multinomial", "elasticnet"), Start())[0].method != "newton"


def test_an_idea_that_is_left_out_is_not_taken():
    ideas = {"working_set": one(penalty="l1"), "span": one(n=20, d=200), "newton": one()}
    ideas["orthogonal"] = one(n=20, d=30, scale=1e9)
    ideas["dual"], ideas["one_by_one"] = one(d=150), many(penalty="l1")
    for idea, problem in ideas.items():
        assert Auto().first(problem, Start())[0].name == idea
        assert Auto((idea,)).first(problem, Start())[0].name != idea


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge"])
def test_ids_are_eliminated_where_that_takes_least_time(loss):
    """Shuffled columns, an intercept and weights change nothing; long rows and few columns do."""
    weights = np.random.default_rng(0).random(3000)
    for problem in (
        ids(loss),
        ids(loss, shuffled=True),
        ids(loss, intercept=True, sample_weight=weights),
        ids(loss, groups=(30, 200, 4000), n=5000),
    ):
        assert rule_of(problem, Start())[0].method == "newton_ids"
        assert rule_of(problem, PRIMAL)[0].method == "newton_ids"
    words = sp.random(3000, 1500, 0.02, format="csr", random_state=0)
    others = (
        ids(loss, groups=(30, 100)),  # few columns: one factor of all
        ids(loss, groups=(30, 4000)),  # more columns than rows
        ERM(words, np.sign(words.sum(axis=1).A1 - 15), loss, alpha=1e-5),
    )
    for problem in others:
        assert rule_of(problem, Start())[0].method != "newton_ids"
    assert Auto(("newton",)).first(ids(loss), Start())[0].name == "dual"
    for alpha, name in ((10.0, "dual"), (1e-5, "newton_ids")):  # a large one: a few sweeps do
        assert Auto().first(ids("squared_hinge", alpha=alpha), Start(), 1e-3)[0].name == name


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_few_dense_samples_a_feature_are_for_newton_where_sweeps_are_many(loss):
    names = {a: rule_of(one(loss, n=900, d=150, alpha=a), Start())[0].method for a in (1.0, 1e-4)}
    assert names == {1.0: "dual", 1e-4: "newton"}
    assert rule_of(one(loss, n=600, d=200, alpha=1e-4), Start())[0].method == "dual"


def test_one_factor_of_a_square_dense_X_is_enough_for_the_squared_loss():
    for n in (200, 900, 1900):
        assert rule_of(one("squared", n=n, d=200, alpha=1e-3), Start())[0].method == "newton"
    assert rule_of(one("squared", n=150, d=200, alpha=1e-3), Start())[0].method == "dual"


def test_mostly_l1_is_solved_output_by_output():
    mostly, less = (many(penalty="elasticnet", l1_ratio=part) for part in (0.9, 0.1))
    assert rule_of(mostly, Start())[0].method == "one_by_one"
    assert rule_of(less, Start())[0].method != "one_by_one"


def test_raw_columns_are_solved_output_by_output():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 250)), rng.standard_normal((20, 3))
    raw = X * 10.0 ** np.linspace(-4, 8, 250)
    chosen = [rule_of(ERM(A, Y, "squared", alpha=1e-3), Start())[0].method for A in (X, raw)]
    assert chosen == ["dual", "one_by_one"]
    r = solve(ERM(raw, Y, "squared", alpha=1e-3, intercept=True), random_state=0)
    assert r.converged, r.status


def test_the_page_has_the_rules():
    page = plan_table.PAGE.read_text(encoding="utf-8")
    assert page == plan_table.written(page), "run python tools/plan_table.py"
