"""Bad input: the type of the error, and the part of its text that helps.

Every message says what was got and what was wanted; the tables below assert the distinctive words.
"""

import ctypes
import math
import re

import numpy as np
import pytest
import scipy
import scipy.sparse as sp

from apcg import functions, minimize, penalties

A = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 4.0], [1.0, 1.0, 1.0]])
B = np.ones(4)
X0 = np.zeros(3)
Q = A.T @ A
LS = functions.LeastSquares(A, B)
HOLE = np.where(np.arange(12).reshape(4, 3) == 7, np.nan, A)  # row 2, column 1


class OwnF:
    """A well-behaved oracle, for cases to spoil."""

    def __init__(self, **spoilt):
        self.L = np.diag(Q).copy()
        self.__dict__.update(spoilt)

    def value(self, x):
        return 0.5 * float(np.sum((A @ x - B) ** 2))

    def partial_gradient(self, i, x):
        return A[:, i] @ (A @ x - B)


class OwnPsi:
    def __init__(self, **spoilt):
        self.__dict__.update(spoilt)

    def value(self, x, i):
        return float(np.abs(x).sum())

    def prox(self, v, step, i):
        return np.sign(v) * np.maximum(np.abs(v) - step, 0.0)


def solve(f=LS, psi=None, x0=X0, **options):
    return minimize(f, psi, x0, max_epochs=3, **options)


def lipschitz(L, **options):
    return lambda: solve(OwnF(L=L), **options)


FUNCTIONS = [
    ("string", lambda: functions.LeastSquares("data.csv", B), TypeError, "file must be read first"),
    ("none", lambda: functions.LeastSquares(None, B), TypeError, "got dtype object"),
    ("complex", lambda: functions.LeastSquares(1j * A, B), TypeError, "use .real"),
    ("object", lambda: functions.LeastSquares(A.astype(object), B), TypeError, ".astype(float)"),
    ("sparse complex", lambda: functions.LeastSquares(sp.csc_array(1j * A), B), TypeError, ".real"),
    ("ragged", lambda: functions.LeastSquares([[1, 2], [3]], B), ValueError, "inhomogeneous"),
    ("masked", lambda: functions.LeastSquares(np.ma.masked_less(A, 1), B), ValueError, "masked"),
    ("A 1-D", lambda: functions.LeastSquares(B, B), ValueError, "A.reshape(-1, 1)"),
    ("A 1-D sparse", lambda: functions.LeastSquares(sp.coo_array(B), B), ValueError, "shape (4,)"),
    ("A 3-D", lambda: functions.LeastSquares(A[None], B), ValueError, "shape (1, 4, 3)"),
    ("no rows", lambda: functions.LeastSquares(A[:0], []), ValueError, "its shape is (0, 3)"),
    ("no columns", lambda: functions.LeastSquares(sp.csr_array((4, 0)), B), ValueError, "(4, 0)"),
    ("A nan", lambda: functions.LeastSquares(HOLE, B), ValueError, "nan at row 2, column 1"),
    (
        "A inf sparse",
        lambda: functions.LeastSquares(sp.csr_array(np.where(np.isnan(HOLE), np.inf, A)), B),
        ValueError,
        "inf at row 2, column 1",
    ),
    ("b long", lambda: functions.LeastSquares(A, np.ones(5)), ValueError, "for each row of A"),
    ("b column", lambda: functions.LeastSquares(A, B[:, None]), ValueError, "use b.ravel()"),
    ("b sparse", lambda: functions.LeastSquares(A, sp.csr_array(B[:, None])), TypeError, "toarray"),
    ("b nan", lambda: functions.LeastSquares(A, [1, 2, np.nan, 4]), ValueError, "at position 2"),
    ("b number", lambda: functions.LeastSquares(A, 1.0), ValueError, "got a single number"),
    ("sigma", lambda: functions.LeastSquares(A, B, sigma=-1), ValueError, "[0, inf), got -1"),
    ("sigmas", lambda: functions.LeastSquares(A, B, [1, -2, 1]), ValueError, "negative, got -2"),
    ("sigma nan", lambda: functions.LeastSquares(A, B, sigma=math.nan), ValueError, "got nan"),
    (
        "sigma complex",
        lambda: functions.LeastSquares(A, B, sigma=np.complex128(1)),
        TypeError,
        "of type complex128",
    ),
    ("no Q", lambda: functions.Quadratic(), ValueError, "Give Q or factor"),
    ("Q and factor", lambda: functions.Quadratic(Q, factor=A), ValueError, "one of the two"),
    ("Q not square", lambda: functions.Quadratic(A), ValueError, "square, got shape (4, 3)"),
    ("Q asymmetric", lambda: functions.Quadratic(np.triu(Q)), ValueError, "use (Q + Q.T)/2"),
    ("Q negative", lambda: functions.Quadratic(-Q), ValueError, "diagonal entry -18"),
    ("Q indefinite", lambda: functions.Quadratic([[1, 2], [2, 1]]), ValueError, "Q[0, 1] = 2"),
    (
        "Q zero diagonal",
        lambda: functions.Quadratic(sp.csr_array([[0.0, 1.0], [1.0, 0.0]])),
        ValueError,
        "Q_ij^2 <= Q_ii Q_jj",
    ),
    (
        "c short",
        lambda: functions.Quadratic(Q, [1.0]),
        ValueError,
        "each coordinate), got length 1",
    ),
    ("c inf", lambda: functions.Quadratic(Q, [1.0, np.inf, 0.0]), ValueError, "inf at position 1"),
    ("labels 0/1", lambda: functions.Logistic(A, [0, 1, 0, 1]), ValueError, "-1 and 1 only, got 0"),
    ("labels text", lambda: functions.Logistic(A, list("abab")), TypeError, "must be encoded"),
    ("h", lambda: functions.LinearComposite(A, "square"), TypeError, "functions.Custom"),
    ("value length", lambda: LS.value([1.0, 2.0]), ValueError, "length 3, got length 2"),
    ("gradient length", lambda: LS.gradient(B), ValueError, "x must have length 3"),
    ("partial length", lambda: LS.partial_gradient(0, B), ValueError, "x must have length 3"),
]

PENALTIES = [
    ("alpha negative", lambda: penalties.L1(-0.5), ValueError, "alpha must be in [0, inf)"),
    ("alphas", lambda: penalties.L2([1, -3]), ValueError, "got -3 among its entries"),
    ("alpha none", lambda: penalties.L1(None), TypeError, "got None of type NoneType"),
    ("alpha string", lambda: penalties.L1("1"), TypeError, "got '1' of type str"),
    ("alpha bool", lambda: penalties.L2(True), TypeError, "got True of type bool"),
    ("alpha complex", lambda: penalties.L2(1j), TypeError, "of type complex"),
    ("alpha nan", lambda: penalties.L2(math.nan), ValueError, "got nan"),
    ("alpha empty", lambda: penalties.L1([]), ValueError, "one number for each coordinate"),
    ("alpha matrix", lambda: penalties.L1([[1.0]]), ValueError, "alpha must be a vector"),
    ("l1_ratio", lambda: penalties.ElasticNet(1, 1.5), ValueError, "l1_ratio must be in [0, 1]"),
    ("radius", lambda: penalties.L2Ball(-1), ValueError, "radius must be in [0, inf)"),
    ("group weight", lambda: penalties.GroupL2([1, np.inf]), ValueError, "inf at position 1"),
    ("box crossed", lambda: penalties.Box([0, 2], 1), ValueError, "lower = 2 > upper = 1 (entry 1"),
    ("box nan", lambda: penalties.Box(0, math.nan), ValueError, "for no bound give inf"),
    ("box none", lambda: penalties.Box(None, 1), TypeError, "for no bound give -inf"),
    ("box inf", lambda: penalties.Box(np.inf, np.inf), ValueError, "must not hold NaN or inf"),
    ("box lengths", lambda: penalties.Box([0, 0], [1, 1, 1]), ValueError, "length: 2 and 3"),
    ("box sparse", lambda: penalties.Box(sp.csr_array([[0.0]]), 1), TypeError, "got a sparse one"),
    ("step zero", lambda: penalties.L1(1).prox(X0, 0), ValueError, "positive and finite, got 0"),
    ("steps", lambda: penalties.L1(1).prox(X0, [1, 1]), ValueError, "a number or 3 of them, got 2"),
    ("length", lambda: penalties.L1([1, 1]).value(X0), ValueError, "for 2 coordinates, got 3"),
    ("index", lambda: penalties.L1([1, 1]).prox(0.0, 1.0, 2), IndexError, "in 0..1"),
    ("block index", lambda: penalties.GroupL2([1, 1]).value(X0, -1), IndexError, "got -1"),
    ("which block", lambda: penalties.L2Ball([1, 1]).value(X0), ValueError, "say which one"),
]

TERMS = [
    ("f none", lambda: solve(None), TypeError, "None has no value, partial_gradient, L"),
    ("f function", lambda: solve(lambda x: 0.0), TypeError, "Take one of apcg.functions"),
    ("f class", lambda: solve(functions.LeastSquares), TypeError, "make an object of it"),
    ("psi string", lambda: solve(psi="l1"), TypeError, "'l1' has no value, prox"),
    ("psi no prox", lambda: solve(psi=OwnF()), TypeError, "has no prox"),
    ("psi class", lambda: solve(psi=penalties.NonNegative), TypeError, "the class NonNegative"),
    ("psi length", lambda: solve(psi=penalties.L1([1, 1])), ValueError, "for 2 coordinates, but"),
    (
        "psi per block",
        lambda: solve(psi=penalties.GroupL2([1, 1]), blocks=[1, 1, 1]),
        ValueError,
        "for 2 blocks, but there are 3",
    ),
    ("psi convexity", lambda: solve(psi=OwnPsi(strong_convexity=-1)), ValueError, "got -1"),
    (
        "psi convexities",
        lambda: solve(psi=OwnPsi(strong_convexity=[1.0, 1.0])),
        ValueError,
        "for each coordinate), got length 2",
    ),
    ("psi prox none", lambda: solve(psi=OwnPsi(prox=lambda *a: None)), ValueError, "got None"),
    (
        "full gradient",
        lambda: solve(OwnF(partial_gradient=lambda i, x: A.T @ (A @ x - B))),
        ValueError,
        "f.partial_gradient(i, x) must give a number; got shape (3,)",
    ),
    (
        "gradient in an array",
        lambda: solve(OwnF(partial_gradient=lambda i, x: np.array([1.0]))),
        ValueError,
        "must give a number; got shape (1,)",
    ),
    (
        "gradient of a block",
        lambda: solve(OwnF(L=99.0, partial_gradient=lambda i, x: 1.0), blocks=[3]),
        ValueError,
        "an array of shape (3,), the entries of block i; got shape ()",
    ),
    ("L negative", lipschitz([1, -1, 1]), ValueError, "L[1] = -1"),
    ("L zero", lipschitz(0), ValueError, "L[0] = 0; L_i is a Lipschitz constant"),
    ("L nan", lipschitz([1, 1, math.nan]), ValueError, "L[2] = nan"),
    ("L inf", lipschitz(math.inf), ValueError, "L[0] = inf"),
    ("L too few", lipschitz([1, 1]), ValueError, "each of the 3 blocks, got 2 entries"),
    ("L for blocks", lipschitz([9, 9, 9], blocks=[2, 1]), ValueError, "each of the 2 blocks"),
    ("L none", lipschitz(None), TypeError, "L must be a number, got None"),
    ("mu of f", lambda: solve(OwnF(mu=2)), ValueError, "mu of f must be in [0, 1], got 2"),
    (
        "unbounded",
        lambda: solve(functions.Quadratic(np.diag([1.0, 0.0, 1.0]), [0.0, 1.0, 0.0])),
        ValueError,
        "unbounded below: block 1 has no curvature",
    ),
    (
        "unbounded under L1",
        lambda: solve(functions.Quadratic(0 * Q, [0.2, -1, 0]), penalties.L1(0.5)),
        ValueError,
        "Remove the column, or add a penalty or bounds",
    ),
]

START_AND_BLOCKS = [
    ("x0 short", lambda: solve(x0=X0[:2]), ValueError, "length 3, one entry for each column of A"),
    ("x0 column", lambda: solve(x0=X0[:, None]), ValueError, "use x0.ravel()"),
    ("x0 nan", lambda: solve(x0=[0, math.nan, 0]), ValueError, "x0 contains 1 NaN or infinite"),
    ("x0 string", lambda: solve(x0="zeros"), TypeError, "x0 must hold real numbers"),
    ("x0 complex", lambda: solve(x0=1j * X0), TypeError, "x0 must hold real numbers"),
    ("x0 empty", lambda: solve(x0=[]), ValueError, "x0 is empty"),
    ("x0 sparse", lambda: solve(x0=sp.csr_array(X0[None])), TypeError, "got a sparse one"),
    ("x0 missing", lambda: solve(OwnF(), x0=None), ValueError, "x0 is needed"),
    ("x0 not in box", lambda: solve(psi=penalties.Box([0, 1, 0], 2)), ValueError, "inf in block 1"),
    (
        "x0 not in ball",
        lambda: solve(psi=penalties.L2Ball(1), x0=2 + X0, blocks=[3]),
        ValueError,
        "start from a feasible point",
    ),
    ("blocks number", lambda: solve(blocks=3), TypeError, "a list of sizes or of index arrays"),
    ("blocks float", lambda: solve(blocks=[1.0, 2.0]), TypeError, "1.0 of dtype float64"),
    ("blocks text", lambda: solve(blocks="abc"), TypeError, "'a' of dtype <U1"),
    ("blocks nested", lambda: solve(blocks=[[[0], [1, 2]]]), TypeError, "list of sizes"),
    ("blocks none", lambda: solve(blocks=[]), ValueError, "blocks is empty"),
    ("blocks one empty", lambda: solve(blocks=[[0, 1, 2], []]), ValueError, "Block 1 of blocks is"),
    ("blocks mixed", lambda: solve(blocks=[1, [1, 2]]), ValueError, "arrays of 0, 1 dimensions"),
    ("sizes short", lambda: solve(blocks=[1, 1]), ValueError, "they add up to 2"),
    ("size zero", lambda: solve(blocks=[0, 3]), ValueError, "the smallest is 0"),
    ("overlap", lambda: solve(blocks=[[0, 1], [1, 2]]), ValueError, "coordinate 1 is in 2 of them"),
    ("missing", lambda: solve(blocks=[[0], [2]]), ValueError, "leave out coordinate 1"),
    ("out of range", lambda: solve(blocks=[[0, 1], [3]]), ValueError, "3, outside 0..2"),
    ("negative", lambda: solve(blocks=[[0, 1], [-1]]), ValueError, "-1, outside 0..2"),
]

OPTIONS = [
    ({"method": "apgc"}, ValueError, "Did you mean 'apcg'?"),
    ({"method": None}, ValueError, "one of 'apcg', 'rpcg'"),
    ({"method": "rpcg", "mu": 0.1}, ValueError, "leave out mu and gamma0"),
    ({"sampling": "permute"}, ValueError, "Did you mean 'permutation'?"),
    ({"sampling": "importance"}, ValueError, "'permutation', 'uniform'"),
    ({"mu": 1.5}, ValueError, "[0, 1], got 1.5; it is relative to the norm"),
    ({"mu": -0.1}, ValueError, "mu must be in [0, 1]"),
    ({"mu": math.nan}, ValueError, "got nan"),
    ({"mu": "auto"}, TypeError, "mu must be a number, got 'auto'"),
    ({"mu": True}, TypeError, "got True of type bool"),
    ({"method": "apcg", "mu": 0.5, "gamma0": 0.1}, ValueError, "[0.5, 1.25] for n = 3"),
    ({"method": "apcg", "mu": 0.5, "gamma0": 1.3}, ValueError, "got 1.3; leave it out"),
    ({"method": "apcg", "mu": 0.0, "gamma0": 0.0}, ValueError, "gamma0 must be positive"),
    ({"method": "apcg", "mu": 0.0, "gamma0": math.nan}, ValueError, "gamma0 must be in"),
    ({"tol": -1e-6}, ValueError, "tol must be in [0, inf)"),
    ({"tol": math.inf}, ValueError, "got inf"),
    ({"tol": "1e-6"}, TypeError, "'1e-6' of type str"),
    ({"check_every": 0}, ValueError, "check_every must be at least 1"),
    ({"check_every": 2.5}, TypeError, "got 2.5 of type float"),
    ({"time_limit": 0}, ValueError, "in seconds, and None is no limit"),
    ({"time_limit": math.nan}, ValueError, "time_limit must be in (0, inf), got nan"),
    ({"callback": 3}, TypeError, "callback must be callable, got 3 of type int"),
    ({"random_state": "seed"}, TypeError, "a numpy Generator or a RandomState, got 'seed'"),
    ({"random_state": -1}, ValueError, "a non-negative integer"),
    ({"random_state": True}, TypeError, "got True"),
    ({"verbose": "yes"}, TypeError, "verbose must be an integer, got 'yes'"),
]

TABLE = FUNCTIONS + PENALTIES + TERMS + START_AND_BLOCKS


@pytest.mark.parametrize(
    ("call", "error", "text"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_the_error_names_the_trouble(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()


@pytest.mark.parametrize(("options", "error", "text"), OPTIONS, ids=[str(r[0]) for r in OPTIONS])
def test_an_option_out_of_range(options, error, text):
    with pytest.raises(error, match=re.escape(text)):
        solve(**options)


def test_max_epochs():
    with pytest.raises(ValueError, match="max_epochs must be at least 0, got -1"):
        minimize(LS, max_epochs=-1)
    with pytest.raises(TypeError, match=r"got 1000.0 of type float; write 1000"):
        minimize(LS, max_epochs=1e3)


# ---- functions to be compiled ----------------------------------------------------------------


def square(t, b):
    return 0.5 * (t - b) ** 2


def slope(t, b):
    return t - b


def soft(v, step, a):
    return math.copysign(max(abs(v) - step * a, 0.0), v)


def returns_text(t, b):
    return "text"


def calls_python(t, b):
    return OwnF().value(t)


def looks_up_nothing(t, b):
    return math.no_such_function(t)


def one_argument(t):
    return t


WRONG_C = scipy.LowLevelCallable(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int)(lambda t: 0.0))


def composite(value=square, derivative=slope, **options):
    return functions.LinearComposite(A, functions.Custom(value, derivative, 1.0, **options))


COMPILED = [
    ("arguments", lambda: composite(derivative=one_argument), "derivative must take 2 numbers"),
    ("prox arguments", lambda: penalties.Custom(square, slope), "prox must take 3 numbers"),
    ("not a function", lambda: composite(value=3), "value must be a function, got 3"),
    ("built in", lambda: penalties.Custom(math.fabs, soft), "scipy.LowLevelCallable"),
    ("returns text", lambda: composite(value=returns_text), "numba could not compile value"),
    ("calls Python", lambda: composite(value=calls_python), "'OwnF'"),
    ("no such name", lambda: composite(value=looks_up_nothing), "no_such_function"),
    ("C signature", lambda: penalties.Custom(WRONG_C, soft), "double(double,double*), got double"),
]


@pytest.mark.parametrize(
    ("call", "text"), [row[1:] for row in COMPILED], ids=[row[0] for row in COMPILED]
)
def test_a_function_that_cannot_be_compiled(call, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        call()


def test_the_numbers_of_a_custom_function():
    with pytest.raises(ValueError, match=r"smoothness must be in \(0, inf\), got 0"):
        functions.Custom(square, slope, 0.0)
    with pytest.raises(ValueError, match="one entry for each row of A: 4, got 2"):
        composite(data=[1.0, 2.0])
    with pytest.raises(ValueError, match="strong_convexity must be in"):
        penalties.Custom(square, soft, strong_convexity=-1.0)
    with pytest.raises(ValueError, match="psi has parameters for 2 coordinates, but there are 3"):
        solve(psi=penalties.Custom(square, soft, data=[1.0, 2.0]))


def test_without_numba_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'apcg[numba]'")):
        composite()
