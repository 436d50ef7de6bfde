"""What users write is used or refused, and the helpers that check it find what is wrong."""

import math

import numpy as np
import pytest

from apcg import ERM, functions, losses, minimize, penalties, solve
from apcg._kernels.losses import scalar as kernels
from apcg.certify.judge import rounding
from apcg.certify.points import Certificate
from apcg.methods.base import Point, Work

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 4)), RNG.standard_normal(20)


class Quantile(losses.Loss):
    name, margin = "quantile", False

    def __init__(self, q=0.3, gamma=0.1):
        self.domain, self.gamma = (q - 1, q), gamma


# ---- losses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["value", "derivative", "conjugate", "prox_conjugate", "duals", "clip", "arrays", "kinks",
     "gap_share", "nearest_conjugate_slope", "argument", "room", "resting"],
)  # fmt: skip
@pytest.mark.parametrize("base", [Quantile, losses.Huber, losses.Logistic, losses.Squared])
def test_an_override_that_nobody_would_call_is_refused(base, name):
    made = type("Mine", (base,), {name: lambda self, *a: 0.0})()
    with pytest.raises(TypeError, match=f"Mine has its own {name}, which the compiled code"):
        ERM(X, np.sign(Y), made)
    one = base()
    vars(one)[name] = lambda *a: 0.0
    if callable(getattr(base, name)):
        with pytest.raises(TypeError, match=f"has its own {name}"):
            ERM(X, np.sign(Y), one)


def test_a_loss_without_numbers_is_not_the_hinge_loss():
    class Cubic(losses.Loss):
        name = "cubic"

    with pytest.raises(TypeError, match="neither its domain nor theta"):
        ERM(X, np.sign(Y), Cubic())
    with pytest.raises(TypeError, match="neither its domain nor theta"):
        losses.check(Cubic())


@pytest.mark.parametrize(
    ("members", "error", "text"),
    [
        ({"domain": "ab"}, TypeError, r"must be \(lower, upper\), got 'ab'"),
        ({"domain": (0.0,)}, TypeError, r"must be \(lower, upper\)"),
        ({"domain": (0.0, 1.0), "gamma": math.nan}, ValueError, "gamma >= 0"),
        ({"domain": (0.0, 1.0), "eta": -1.0}, ValueError, "eta of"),
        ({"domain": (0.0, 1.0), "gamma": 1.0, "eta": 2.0}, ValueError, "phi'' >= 1/eta"),
        ({"domain": (-math.inf, math.inf)}, ValueError, "must have a bounded domain"),
        ({"domain": (0.0, 1.0), "kernel": "cubic"}, ValueError, "must be 'interval', 'logistic'"),
        ({"domain": (0.0, 1.0), "kernel": "logistic", "theta": (0.0,)}, TypeError, "derive from"),
    ],
)
def test_numbers_that_are_no_loss(members, error, text):
    made = type("Mine", (losses.Loss,), {"name": "mine", "__repr__": lambda s: "Mine()", **members})
    with pytest.raises(error, match=text):
        losses.by_name(made())


def test_another_logistic_loss_is_none():
    made = type("Mine", (losses.Logistic,), {"gamma": 1.0})()
    with pytest.raises(ValueError, match="has gamma = 4"):
        losses.by_name(made)


def test_helpers_of_a_users_class_are_left_alone():
    class Mine(Quantile):
        """With a method of another name, and a repr."""

        def at(self, q):
            return q

        def __repr__(self):
            return "Mine()"

    assert solve(ERM(X, Y, Mine(), alpha=0.1), random_state=0).converged


EXAMPLES = [
    losses.Hinge(), losses.SmoothedHinge(0.3), losses.SquaredHinge(), losses.Logistic(),
    losses.Squared(), losses.Huber(0.7), losses.EpsilonInsensitive(0.2), Quantile(),
    Quantile(0.8, 0.0), losses.StronglyConvex("logistic", 5.0),
]  # fmt: skip


@pytest.mark.parametrize("loss", EXAMPLES, ids=repr)
def test_check_of_sound_losses(loss):
    report = losses.check(loss)
    assert report, str(report)
    assert len(report.lines) >= 6


def pinball(r):
    return np.maximum(-0.3 * r, 0.7 * r)


def test_check_tells_whether_it_is_your_phi():
    assert losses.check(Quantile(0.3, 0.0), pinball)
    for wrong in (Quantile(0.7, 0.0), Quantile(0.3, 0.1), losses.EpsilonInsensitive(0.0)):
        report = losses.check(wrong, pinball)
        assert not report
        assert [what for what, fault in report.lines if fault] == ["value as you wrote it"]
        assert "WRONG" in str(report)
        with pytest.raises(ValueError, match="value as you wrote it: at m = "):
            report.raise_if_wrong()


class Broken:
    """A loss whose parts can be spoilt one by one; only for the report."""

    def __init__(self, base, **parts):
        self._base, self._parts = base, parts

    def __getattr__(self, name):
        return self._parts[name] if name in self._parts else getattr(self._base, name)

    def __repr__(self):
        return "Broken()"


H = losses.Huber(1.0)


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ({"derivative": lambda r: 1.01 * H.derivative(r)}, "derivative against differences"),
        ({"value": lambda r: -H.value(r), "derivative": lambda r: -H.derivative(r)}, "is convex"),
        ({"domain": (-0.9, 0.9)}, "-derivative is in the domain"),
        ({"domain": (-1.5, 1.5)}, "conjugate against numerical"),
        ({"conjugate": lambda u: 1.001 * H.conjugate(u) + 0.001}, "conjugate against numerical"),
        ({"conjugate": lambda u: np.square(u) / 2}, "infinite outside"),
        ({"gamma": 1.1}, "phi'' <= 1/gamma"),
        ({"eta": 10.0}, "phi'' >= 1/eta"),
        ({"prox_conjugate": lambda v, step: 0.9 * H.prox_conjugate(v, step)}, "prox of the"),
    ],
)
def test_every_comparison_can_fail(parts, what):
    from apcg.losses.check import loss_report

    faults = [name for name, fault in loss_report(Broken(H, **parts)).lines if fault]
    assert any(what in name for name in faults), faults


# ---- penalties ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["value", "prox", "terms", "strong_convexity"])
@pytest.mark.parametrize(
    "use",
    [
        lambda psi: minimize(functions.LeastSquares(X, Y), psi),
        lambda psi: ERM(X, Y, "squared", psi),
        penalties.check,
    ],
)
def test_a_penalty_whose_override_nobody_would_call(use, name):
    made = type("Mine", (penalties.L1,), {name: lambda self, *a: 0.0})
    psi = object.__new__(made)
    psi.alpha = 1.0
    psi._terms = penalties.L1(1.0).terms
    with pytest.raises(TypeError, match=f"Mine has its own {name}"):
        use(psi)


def test_a_penalty_by_its_parameters_is_used():
    class Half(penalties.L1):
        def _parameters(self):
            return 0.5 * self.alpha, 0.0, -np.inf, np.inf

    f = functions.LeastSquares(X, Y)
    found = minimize(f, Half(2.0), tol=1e-10, random_state=0)
    expected = minimize(f, penalties.L1(1.0), tol=1e-10, random_state=0)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-8)


def test_groups_need_blocks():
    for psi in (penalties.GroupL2(1.0), penalties.L2Ball(1.0)):
        with pytest.raises(ValueError, match=r"blocks are not given; give their sizes"):
            minimize(functions.LeastSquares(X, Y), psi)
        minimize(functions.LeastSquares(X, Y), psi, blocks=[4])
        minimize(functions.LeastSquares(X[:, :1], Y), psi)


SOUND = [(penalties.L1(0.5), None), (penalties.L2(2.0), None), (penalties.Box(-1, 2), None),
         (penalties.ElasticNet(1.0), None), (penalties.GroupL2(1.0), 3), (penalties.L2Ball(1.0), 3),
         (penalties.NonNegative(), None)]  # fmt: skip


@pytest.mark.parametrize(("psi", "size"), SOUND, ids=repr)
def test_check_of_sound_penalties(psi, size):
    report = penalties.check(psi, size)
    assert report, str(report)


class Own:
    strong_convexity = 0.0

    def value(self, x, i):
        return abs(x)

    def prox(self, v, step, i):
        return math.copysign(max(abs(v) - step, 0.0), v)


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ({}, None),
        ({"prox": lambda s, v, step, i: math.copysign(max(abs(v) - 1.2 * step, 0.0), v)}, "brute"),
        ({"prox": lambda s, v, step, i: np.array([v])}, "shape"),
        ({"value": lambda s, x, i: abs(x) if abs(x) < 3 else math.inf}, "finite where prox is"),
        ({"strong_convexity": 0.5}, "strongly so with 0.5"),
        ({"value": lambda s, x, i: math.sqrt(abs(x))}, "value is convex"),
        ({"prox": lambda s, v, step, i: 2 * v}, "non-expansive"),
    ],
)
def test_check_of_a_penalty_of_ones_own(parts, what):
    faults = [name for name, fault in penalties.check(type("P", (Own,), parts)()).lines if fault]
    assert any(what in name for name in faults) if what else not faults


# ---- functions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["value", "gradient", "partial_gradient", "lipschitz", "rows"])
def test_a_function_whose_override_nobody_would_call(name):
    made = type("Mine", (functions.LeastSquares,), {name: lambda self, *a: 0.0})(X, Y)
    with pytest.raises(TypeError, match=f"Mine has its own {name}"):
        minimize(made)
    with pytest.raises(TypeError, match=f"Mine has its own {name}"):
        functions.check(made)


@pytest.mark.parametrize("N", [3, 500])
def test_an_indefinite_q(N):
    """All 2 x 2 minors are fine, and x'Qx is not convex all the same."""
    Q = np.full((N, N), -0.9) + 1.9 * np.eye(N)
    with pytest.raises(ValueError, match="eigenvalue of at most -"):
        functions.Quadratic(Q)
    B = RNG.standard_normal((N // 2 + 1, N))
    functions.Quadratic(B.T @ B)  # singular, and convex
    functions.Quadratic(np.zeros((N, N)))


FUNCTIONS = [functions.LeastSquares(X, Y), functions.LeastSquares(X, Y, 0.5),
             functions.Logistic(X, np.sign(Y)), functions.Quadratic(X.T @ X, Y[:4])]  # fmt: skip


@pytest.mark.parametrize("blocks", [None, [2, 2], [4]])
@pytest.mark.parametrize("f", FUNCTIONS, ids=repr)
def test_check_of_sound_functions(f, blocks):
    report = functions.check(f, blocks=blocks)
    assert report, str(report)


class Oracle:
    L = np.sum(X**2, axis=0)
    mu = 0.0

    def value(self, x):
        return 0.5 * float(np.sum((X @ x - Y) ** 2))

    def partial_gradient(self, i, x):
        return float(X[:, i] @ (X @ x - Y))


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ({}, None),
        ({"L": 0.5 * Oracle.L}, "L against partial gradients"),
        ({"partial_gradient": lambda s, i, x: 1.01 * X[:, i] @ (X @ x - Y)}, "partial gradients"),
        ({"mu": 0.99}, "mu = 0.99"),
        (
            {
                "value": lambda s, x: -0.5 * float(np.sum((X @ x - Y) ** 2)),
                "partial_gradient": lambda s, i, x: -float(X[:, i] @ (X @ x - Y)),
            },
            "convex along its blocks",
        ),
    ],
)
def test_check_of_an_oracle(parts, what):
    report = functions.check(type("F", (Oracle,), parts)(), np.zeros(4))
    faults = [name for name, fault in report.lines if fault]
    assert any(what in name for name in faults) if what else not faults


def test_check_asks_for_the_length_of_x():
    with pytest.raises(ValueError, match="x is needed"):
        functions.check(Oracle())


# ---- methods ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "error", "text"),
    [
        (None, TypeError, "must give a Point, got NoneType"),
        (Point(w=np.zeros(3)), ValueError, "w of the point of a method must have length 4"),
        (Point(x=np.zeros(3)), ValueError, "x of the point of a method must have length 20"),
        (Point(w=np.zeros(4), z=np.zeros(3)), ValueError, "z of the point"),
        (Point(x=np.zeros(20), v=np.zeros(3)), ValueError, "v of the point"),
        (Point(w=[0.0] * 4), TypeError, "array of float64"),
        (Point(w=np.zeros(4, np.float32)), TypeError, "array of float64"),
        (Point(w=np.zeros((4, 1))), ValueError, "length 4"),
    ],
)
def test_the_points_of_a_method_are_looked_at(point, error, text):
    class Wrong:
        name, needs = "wrong", ()

        @classmethod
        def start(cls, *given):
            return cls()

        def advance(self, budget):
            return Work(1)

        def point(self):
            return point

        def seen(self, certificate):
            pass

    with pytest.raises(error, match=text):
        solve(ERM(X, Y, "squared"), Wrong)


# ---- kernels called directly --------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda k: k.total(np.zeros(9), np.ones(3), True, np.ones(1)),
        lambda k: k.total(np.zeros(9), np.ones(9), True, np.ones(3)),
        lambda k: k.total_conjugate(np.zeros(9), np.ones(3)),
        lambda k: k.gap_share(np.zeros(3), np.zeros(9), np.ones(1)),
        lambda k: k.gap_share(np.zeros(9), np.zeros(9), np.ones(2)),
        lambda k: k.dual_prox(np.zeros(9), np.ones(3)),
        lambda k: k.dual_prox(np.zeros(9), np.ones(9), np.ones(3)),
    ],
)
def test_kernels_of_losses_look_at_lengths(call):
    with pytest.raises(ValueError, match="must have one length"):
        call(losses.Logistic().arrays)


@pytest.mark.parametrize(
    ("name", "theta"),
    [("interval", ()), ("interval", (1.0,) * 4), ("logistic", (0.0, 1.0)), ("logistic", ()),
     ("perturbed", (1.0,) * 3), ("perturbed", (1.0, 1.0, 1.0, 0.0, 1.0))],
)  # fmt: skip
def test_kernels_of_losses_look_at_theta(name, theta):
    with pytest.raises(ValueError, match="numbers, got"):
        kernels.Loss(name, theta)


# ---- rounding -----------------------------------------------------------------------------------


def test_p_next_to_nothing_does_not_ask_for_looks_without_end():
    """P is below what the rounding of X w makes of it: the gap cannot fall, est does."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 5)) + 1e3
    y = A @ (1e-3 * rng.standard_normal(5))
    for seed in range(4):
        p = ERM(A, y, "epsilon_insensitive", alpha=1e-14)
        r = solve(p, "dual", random_state=seed)
        assert len(r.trace) < 150
        known = Certificate(r.w, r.x, 0.0, A @ r.w, r.primal, r.dual)
        assert r.converged or r.gap <= 16 * rounding(p, known)
