"""Interior points for K outputs: every loss with every sum of norms, against other solvers."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from apcg import ERM, losses, penalties, solve
from apcg.methods.base import Budget, Target
from apcg.methods.interior import general
from apcg.methods.interior.cones import Cones
from apcg.methods.interior.general import InteriorK, InteriorKRun
from apcg.methods.interior.systems_k import Bend, ByFeatures, ByRows

LOSSES = {
    "hinge of classes": losses.MulticlassHinge(),
    "smoothed": losses.MulticlassHinge(gamma=0.3),
    "softmax": losses.Multinomial(),
    "hinge": losses.Hinge(),
    "squared hinge": losses.SquaredHinge(),
    "logistic": losses.Logistic(),
    "squared": losses.Squared(),
    "huber": losses.Huber(0.7),
    "epsilon": losses.EpsilonInsensitive(0.1),
    "pinball": losses.Pinball(0.3),
    "squared epsilon": losses.SquaredEpsilonInsensitive(0.1),
}
PENALTIES = ("l2", "l1", "elasticnet", "group", "group_elasticnet")


def problem(name, penalty, seed=0, n=40, d=8, K=3, alpha=0.02, intercept=True, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    z = X @ rng.standard_normal((d, K)) + rng.standard_normal((n, K))
    loss = LOSSES[name]
    y = z.argmax(axis=1) if isinstance(loss, losses.MulticlassHinge | losses.Multinomial) else z
    if y.ndim == 2 and loss.margin:
        y = np.where(z > np.median(z, axis=0), 1.0, -1.0)
    weight = rng.uniform(0, 2, n) * (rng.random(n) < 0.9) if weighted else None
    return ERM(X, y, loss, penalty, alpha, sample_weight=weight, intercept=intercept)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_the_gap_closes_for_every_loss_and_penalty(name, penalty, intercept):
    p = problem(name, penalty, intercept=intercept, weighted=intercept)
    r = solve(p, InteriorK(), tol=1e-7)
    assert r.converged
    assert p.primal(r.w, r.intercept) - p.dual(r.x) <= 1.01e-7 * r.primal


@pytest.mark.parametrize("penalty", ["l1", "group"])
@pytest.mark.parametrize("name", ["hinge of classes", "smoothed", "huber", "logistic"])
def test_by_rows_and_by_features_agree(name, penalty, monkeypatch):
    p = problem(name, penalty, n=20, d=30, alpha=0.05)
    found = []
    for system in (ByRows, ByFeatures):
        monkeypatch.setattr(general, "_by_rows", lambda p, rows=system is ByRows: rows)
        r = solve(p, InteriorK(), tol=1e-6)
        assert r.converged
        found.append(r.primal)
    assert found[0] == pytest.approx(found[1], rel=3e-6)


@pytest.mark.parametrize("name", ["hinge of classes", "huber"])
def test_both_systems_solve_the_same_equations(name):
    p = problem(name, "group", n=30, d=5)
    run = InteriorKRun(p, Target(1e-6, 100))
    rng = np.random.default_rng(0)
    r, pull = rng.standard_normal((5, 3)), rng.standard_normal((30, 3))
    r_b = rng.standard_normal(3)
    r_b -= r_b.mean()
    C = run._penalty.bend
    for system in (ByFeatures, ByRows):
        dW, db, dq = system(run._X, True, run._rows, C).solve(r, r_b, pull)
        X = run._X[:, :-1]
        assert np.allclose(C.times(dW) + X.T @ dq, r)
        assert np.allclose(dq.sum(axis=0), r_b)
        assert np.allclose(dq, run._rows.bent(X @ dW + db + pull))


@pytest.mark.parametrize("unlikely", [[], [2], [0, 2]])
def test_steps_by_rows_keep_their_digits_beside_unlikely_classes(unlikely):
    """theta is 1/p: 1e20 for a class that no row is likely to have."""
    p = problem("softmax", "l1", n=20, d=60)
    run = InteriorKRun(p, Target(1e-6, 100))
    run._rows.weigh(np.where(np.isin(np.arange(3), unlikely), -46.0, 0.0) + np.zeros((20, 3)))
    rng = np.random.default_rng(0)
    r, r_b, pull = (rng.standard_normal(shape) for shape in ((60, 3), 3, (20, 3)))
    system = ByRows(run._X, True, run._rows, run._penalty.bend)
    dW, db, dq = system.solve(r, r_b - r_b.mean(), pull)
    assert np.allclose(dq, run._rows.bent(run._X[:, :-1] @ dW + db + pull), rtol=1e-8, atol=0)
    assert system.short < 1e-10


def test_steps_by_rows_that_are_wrong_are_left(monkeypatch):
    p = problem("hinge of classes", "l1", n=20, d=60, alpha=1e-3)
    good = InteriorKRun(p, Target(1e-6, 1000))
    good.advance(Budget(1000))
    assert good._system is ByRows
    monkeypatch.setattr(ByRows, "_solve", lambda self, first, r_b: (0 * first, 0 * r_b))
    run = InteriorKRun(p, Target(1e-6, 1000))
    run.advance(Budget(1000))
    assert run._system is ByFeatures
    assert run._best.relative <= 1e-6


@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_many_features_are_no_limit_where_samples_are_few(penalty):
    p = problem("hinge of classes", penalty, n=25, d=1200, K=4, alpha=1e-3, intercept=False)
    assert general.applies(p)
    assert general.step_cost(p, by_rows=True) < 0.01 * general.step_cost(p, by_rows=False)
    r = solve(p, InteriorK())
    assert r.converged
    assert r.epochs < 500  # in matrices of rows all along


def test_a_gap_that_rises_at_first_is_no_reason_to_leave_rows():
    """alpha = 1e-5: no step of the first ten brings the gap down, and all of them are exact."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 200)), np.arange(50) % 6
    r = solve(ERM(X, y, "multiclass_hinge", "group", 1e-5), InteriorK())
    assert r.converged
    assert r.epochs < 300


@pytest.mark.parametrize("seed", [1, 2])
def test_steps_by_features_are_refined_until_they_are_exact(seed):
    """Twelve columns of rank three, and next to no penalty: three rounds leave 1e-8."""
    rng = np.random.default_rng(seed)
    X = 1e3 * rng.standard_normal((60, 3)) @ rng.standard_normal((3, 12))
    run = InteriorKRun(
        ERM(X, np.arange(60) % 3, "multiclass_hinge", "l1", 1e-6), general.Target(1e-6, 100)
    )
    C = Bend(10 ** rng.uniform(-6, -4, (12, 3)))
    r, pull = rng.standard_normal((12, 3)), rng.standard_normal((60, 3))
    dW, _, dq = ByFeatures(run._X, False, run._rows, C).solve(r, np.zeros(3), pull)
    assert np.abs(C.times(dW) + X.T @ dq - r).max() <= 1e-9 * np.abs(r).max()


def test_a_linear_program_has_the_value_that_scipy_finds():
    p = problem("hinge of classes", "l1", n=30, d=5, intercept=False)
    n, d, K = 30, 5, 3
    X, y = np.asarray(p.samples.rows(np.arange(n)).times(np.eye(d))), p.y
    # variables: W+ (dK), W- (dK), xi (n)
    cost = np.concatenate([np.full(2 * d * K, p.alpha), np.full(n, 1 / n)])
    A, b = [], []
    for i in range(n):
        for k in range(K):
            row = np.zeros((d, K))
            row[:, k] += X[i]
            row[:, y[i]] -= X[i]
            xi = np.zeros(n)
            xi[i] = -1
            A.append(np.concatenate([row.ravel(), -row.ravel(), xi]))
            b.append(-float(k != y[i]))
    best = linprog(cost, np.array(A), np.array(b), method="highs").fun
    assert solve(p, tol=1e-8).primal == pytest.approx(best, rel=1e-7)


def test_zeros_are_zeros():
    p = problem("hinge of classes", "group", d=12, alpha=0.1)
    r = solve(p)
    assert r.converged
    rows = np.abs(r.w).max(axis=1)
    assert (rows == 0).any()
    assert (rows > 0).any()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_alike_and_unscaled_columns_and_a_tiny_alpha(kind):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 25)) + 0.1 * rng.standard_normal(
        (60, 25)
    )
    X *= 10 ** rng.uniform(-1.5, 1.5, 25)
    for penalty in PENALTIES:
        p = ERM(kind(X), np.arange(60) % 4, "multiclass_hinge", penalty, 1e-5, intercept=True)
        r = solve(p, random_state=0)
        # without a square in the penalty rounding ends it earlier
        assert r.converged or (penalty in ("l1", "group") and r.gap <= 1e-4 * r.primal), penalty


def test_a_penalty_for_each_feature():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 3
    weights = np.array([0.5, 1.0, 2.0, 0.1])
    assert solve(ERM(X, y, "multiclass_hinge", penalties.L1(weights), 0.1), tol=1e-7).converged
    p = ERM(X, y, "multiclass_hinge", penalties.L2(np.arange(1.0, 5)), 0.1)
    for seed in range(6):  # some sweeps get on slowly: the plan of the scaled problem sees that
        assert solve(p, tol=1e-7, random_state=seed).converged


def test_auto_leaves_slow_sweeps_for_it():
    X, y = np.random.default_rng(0).standard_normal((40, 80)), np.arange(40) % 5
    r = solve(ERM(X, y, "multiclass_hinge", "l2", 1e-6), random_state=0)
    assert r.converged
    assert any("dual -> interior: less time" in note for note in r.trace.notes)


@pytest.mark.parametrize("scaled", [False, True])
def test_auto_leaves_newtons_method_that_goes_round_for_it(scaled):
    """Columns of a loss whose phi'' jumps, with a small alpha."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 50)) * (10 ** rng.uniform(-1.5, 1.5, 50) if scaled else 1.0)
    z = X @ rng.standard_normal((50, 4))
    y = np.sign(z / z.std() + 0.3 * rng.standard_normal((400, 4)))
    r = solve(ERM(X, y, losses.SmoothedHinge(0.02), "l2", 1e-5), random_state=0)
    assert r.converged
    assert any("newton -> interior" in note for note in r.trace.notes)
    assert r.epochs < 500  # and not only when max_epochs is near


def test_auto_leaves_sets_of_groups_that_are_slow_for_it():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((120, 60)) * 10 ** rng.uniform(-1.5, 1.5, 60)
    X += 3 * rng.standard_normal(60)
    y = (X[:, :3] + rng.standard_normal((120, 3))).argmax(axis=1)
    y[:3] = 0, 1, 2
    p = ERM(X, y, "multinomial", "group", 1e-5, intercept=True)
    r = solve(p, random_state=0)
    assert r.converged
    assert any("group_set -> interior" in note for note in r.trace.notes)
    assert solve(p, max_epochs=20, random_state=0).epochs < 200


def test_its_work_counts_as_passes_and_a_budget_ends_it():
    p = problem("smoothed", "group", n=60, d=30)
    r = solve(p, InteriorK(), max_epochs=3)
    assert r.status.code == "max_epochs"
    assert r.epochs < 3 + 2 * general.step_cost(p, by_rows=False) / general.pass_cost(p)
    whole = solve(p, InteriorK())
    assert whole.epochs >= 10


def test_a_start_is_inside_all_bounds():
    run = InteriorKRun(problem("hinge of classes", "l1"), Target(1e-6, 100))
    assert run._rows.products > 0
    assert run._penalty.products > 0


def test_a_step_of_cones_keeps_tau_and_ends_at_the_boundary():
    rng = np.random.default_rng(0)
    cones = Cones(np.array([1.0, 2.0, 0.5]), 4, 1.0)
    for _ in range(5):
        cones.weigh()
        cones.aim(0.1 * cones.products / 3)
        cones.direct(rng.standard_normal((3, 4)))
        cones.move(0.9 / cones.fastest)
    s, z = cones._s, cones._z
    assert np.all(z[:, 0] == [1.0, 2.0, 0.5])
    assert np.all(np.linalg.norm(s[:, 1:], axis=1) < s[:, 0])
    assert np.all(np.linalg.norm(z[:, 1:], axis=1) < z[:, 0])


# ---- one output ---------------------------------------------------------------------------------

ONE = {
    "hinge": losses.Hinge(),
    "smoothed": losses.SmoothedHinge(0.05),
    "squared hinge": losses.SquaredHinge(),
    "logistic": losses.Logistic(),
    "squared": losses.Squared(),
    "huber": losses.Huber(0.1),
    "tube": losses.EpsilonInsensitive(0.1),
    "squared tube": losses.SquaredEpsilonInsensitive(0.1),
    "quantile": losses.Pinball(0.9),
}
#: of 40 features; groups of 7, 7, 7, 7, 7 and 5
ONE_PENALTIES = {
    "l1": {"penalty": "l1"},
    "l2": {"penalty": "l2"},
    "net": {"penalty": "elasticnet", "l1_ratio": 0.5},
    "w >= 0": {"penalty": "l2", "positive": True},
    "w >= 0, l1": {"penalty": "l1", "positive": True},
    "in a box": {"penalty": "l2", "positive": (-0.05, 0.1)},
    "groups": {"penalty": penalties.GroupLasso([7, 7, 7, 7, 7, 5])},
}


def with_one_output(loss, penalty, n, alpha=1e-3):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 40)) + rng.standard_normal((n, 1))
    z = X[:, :10].sum(axis=1) + rng.standard_normal(n)
    y = np.sign(z) if ONE[loss].margin else z
    s = rng.uniform(0.0, 2.0, n) * (rng.random(n) < 0.9)
    made = ONE_PENALTIES[penalty]
    return ERM(X, y, ONE[loss], alpha=alpha, intercept=True, sample_weight=s, **made)


@pytest.mark.parametrize("n", [25, 150])
@pytest.mark.parametrize("penalty", ONE_PENALTIES)
@pytest.mark.parametrize("loss", ONE)
def test_one_output_of_any_loss_and_penalty(loss, penalty, n):
    """By rows and by features."""
    try:
        p = with_one_output(loss, penalty, n)
    except ValueError:  # a loss that is not smooth, with such a penalty
        return
    r = solve(p, InteriorK(), tol=1e-7, random_state=0)
    assert r.converged, r.status
    assert np.all(p.g.clip(r.w) == r.w)


def test_zeros_of_one_output_are_zeros():
    for penalty in ("l1", "w >= 0", "groups"):
        r = solve(with_one_output("smoothed", penalty, 150, alpha=0.1), InteriorK(), tol=1e-8)
        assert 0 < np.count_nonzero(r.w) < 40, penalty


@pytest.mark.parametrize(("loss", "penalty"), [("smoothed", "groups"), ("quantile", "w >= 0")])
def test_what_does_not_arrive_is_left_for_it(loss, penalty):
    """Data that can be fitted, columns of many scales and a tiny alpha."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 140)) * 10 ** rng.uniform(-1.5, 1.5, 140)
    z = X @ rng.standard_normal(140)
    made = {"penalty": penalties.GroupLasso([7] * 20)} if penalty == "groups" else (
        ONE_PENALTIES[penalty])  # fmt: skip
    y = np.sign(z) if ONE[loss].margin else z
    r = solve(ERM(X, y, ONE[loss], alpha=1e-6, **made), random_state=0)
    assert r.converged, r.status
    assert any("-> interior" in note for note in r.trace.notes), r.trace.notes


def test_slopes_of_classes_sum_to_zero_where_curvatures_are_far_apart():
    """Or else p does not sum to s after a step, and x is never feasible: L1 at small alphas."""
    run = InteriorKRun(problem("hinge of classes", "l1"), Target(1e-6, 100))
    rows, rng = run._rows, np.random.default_rng(0)
    sigma = rows._pairs.b = rows._pairs.b * 10.0 ** rng.uniform(-12, 0, rows._pairs.b.shape)
    rows.weigh(rng.standard_normal(sigma.shape))
    made = rows.bent(1 + 1e-9 * rng.standard_normal(sigma.shape))
    assert np.abs(made.sum(axis=1)).max() <= 1e-15 * np.abs(made).max(axis=1).max()


@pytest.mark.parametrize("seed", range(2))
def test_classes_with_l1_at_a_small_alpha_converge(seed):
    p = problem("hinge of classes", "l1", seed=seed, n=136, d=100, K=5, alpha=1e-6)
    assert solve(p, random_state=0).converged


def test_outputs_that_are_apart_have_a_matrix_each():
    """400 x 300 with 8 outputs is large for one matrix, and takes no longer for eight."""
    p = problem("huber", "l2", n=400, d=300, K=8)
    assert general.applies(p)
    assert not general.applies(problem("huber", "group", n=400, d=400, K=8))
    assert general.cost(p) < 5 * general.cost(problem("hinge", "l2", n=400, d=300, K=2))
    run = InteriorKRun(p, Target(1e-6, 100))
    system = ByFeatures(run._X, True, run._rows, run._penalty.bend)
    assert [factor._U.shape for factor in system._factors] == [(301, 301)] * 8


def test_sets_leave_enough_passes_for_interior_points():
    """A round of sets ends where its budget does, whatever its model would still take."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 200))
    X += 0.3 * rng.standard_normal((60, 200))
    y = np.sign(X @ rng.standard_normal(200) + rng.standard_normal(60))
    sizes = penalties.GroupLasso([10] * 20)
    for p in (
        ERM(X, y, losses.SmoothedHinge(0.3), sizes, 1e-4, intercept=True),
        ERM(X, np.arange(60) % 5, "multinomial", "group", 1e-4),
    ):
        r = solve(p, random_state=0)
        assert r.converged
        assert any("group_set -> interior" in note for note in r.trace.notes)


@pytest.mark.parametrize("loss", ["multinomial", "logistic"])
def test_products_of_the_penalty_do_not_run_ahead_of_the_gap(loss):
    """Or rounding ends the run while the slopes of the loss are still on their way."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 80))
    z = X[:, :6] + 0.3 * rng.standard_normal((120, 6))
    y = z.argmax(axis=1) if loss == "multinomial" else np.sign(z[:, 0])
    run = InteriorKRun(ERM(X, y, loss, "l1", 1e-5), Target(1e-7, 10**4))
    for _ in range(30):
        gap = run._gap
        run.advance(Budget(1))
        assert run._penalty.products >= 0.01 * min(gap, run._gap)
    assert run._best.relative <= 1e-7


@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_a_matrix_that_overflows_ends_the_run_and_not_the_program(penalty):
    """What is squared overflows at X of 1e150; the answer is certified, wherever it is."""
    X = 1e150 * np.random.default_rng(0).standard_normal((12, 40))
    p = ERM(X, np.arange(12) % 3, losses.Multinomial(n_classes=3), penalty, 1e-12)
    r = solve(p, InteriorK(), max_epochs=300)
    assert r.primal <= p.primal(np.zeros_like(r.w)) * (1 + 1e-12)
    assert r.dual <= r.primal
