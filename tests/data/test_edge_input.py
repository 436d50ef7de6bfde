"""Unusual input that is accepted, each kind with what was decided for it."""

import hashlib
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from apcg import functions, minimize, penalties

RNG = np.random.default_rng(7)
A = np.round(RNG.standard_normal((30, 12)) * (RNG.random((30, 12)) < 0.4), 2)
B = np.round(RNG.standard_normal(30), 2)
PSI = penalties.ElasticNet(0.5, 0.8)


def answer(matrix=A, b=B, **options):
    return minimize(functions.LeastSquares(matrix, b), PSI, random_state=3, **options)


@pytest.fixture(scope="module")
def usual():
    result = answer()
    assert result.converged
    return result


def same(result, usual):
    """Bit for bit: the same arithmetic on the same numbers."""
    np.testing.assert_array_equal(result.x, usual.x)
    assert result.epochs == usual.epochs


# ---- matrices in every form ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", ["csc", "csr", "coo", "dia", "lil", "dok", "bsr"])
def test_sparse_formats(form, kind, usual):
    found, expected = answer(getattr(sp, f"{form}_{kind}")(A)), answer(sp.csc_array(A))
    if form == "dia":  # some versions of SciPy keep its rows in another order
        np.testing.assert_allclose(found.x, expected.x, atol=1e-9)
    else:
        same(found, expected)
    np.testing.assert_allclose(answer(sp.csc_array(A)).x, usual.x, atol=1e-9)


@pytest.mark.parametrize("index", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("value", [np.float32, np.float64])
def test_index_types_give_the_same_bits(index, value):
    plain = sp.csc_matrix(A.astype(value))
    other = plain.copy()
    other.indices, other.indptr = other.indices.astype(index), other.indptr.astype(np.int64)
    same(answer(other), answer(plain))


def unsorted_with_duplicates(matrix):
    """The same, in CSC form, each column backwards and each entry split in two equal halves."""
    plain = sp.csc_matrix(matrix)
    indices, data = [], []
    for a, b in pairwise(plain.indptr):
        indices += [plain.indices[a:b][::-1]] * 2
        data += [plain.data[a:b][::-1] / 2] * 2
    parts = np.concatenate(data), np.concatenate(indices), 2 * plain.indptr
    for part in parts:
        part.setflags(write=False)
    return sp.csc_matrix(parts, shape=matrix.shape)


@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
def test_duplicates_are_summed_and_the_users_matrix_is_left_alone(form):
    twice = {
        "csc": lambda: unsorted_with_duplicates(A),
        "csr": lambda: unsorted_with_duplicates(A.T).T,
        "coo": lambda: unsorted_with_duplicates(A).tocoo(),
    }[form]()
    assert (twice.format, twice.nnz) == (form, 2 * np.count_nonzero(A))
    same(answer(twice), answer(sp.csc_matrix(A)))
    assert twice.nnz == 2 * np.count_nonzero(A)


def test_explicit_zeros_are_harmless():
    full = sp.csc_matrix(np.ones_like(A))
    full.data = A.T.ravel().copy()
    assert full.nnz == A.size
    np.testing.assert_allclose(answer(full).x, answer(sp.csc_matrix(A)).x, atol=1e-12)


LAYOUTS = {
    "fortran": np.asfortranarray,
    "big-endian": lambda m: m.astype(">f8"),
    "long double": lambda m: m.astype(np.longdouble),
    "strided": lambda m: np.repeat(np.repeat(m, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda m: m[::-1].copy()[::-1],
    "list": lambda m: m.tolist(),
    "nothing masked": np.ma.masked_invalid,
    "frame": pd.DataFrame,
    "named frame": lambda m: pd.DataFrame(m, columns=list("abcdefghijkl"), index=range(100, 130)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_layouts_give_the_same_bits(layout, usual):
    same(answer(LAYOUTS[layout](A)), usual)


@pytest.mark.parametrize("change", [lambda b: b.astype(">f8"), list, pd.Series, lambda b: b[::1]])
def test_vectors_in_any_form(change, usual):
    same(answer(b=change(B)), usual)


def test_big_endian_sparse():
    plain = sp.csc_matrix(A)
    same(
        answer(sp.csc_matrix((plain.data.astype(">f8"), plain.indices, plain.indptr))),
        answer(plain),
    )


@pytest.mark.parametrize("wrap", [np.asarray, sp.csc_matrix])
def test_float32_data_is_kept_and_reaches_a_tight_residual(wrap):
    narrow = wrap(A.astype(np.float32))
    f = functions.LeastSquares(narrow, B)
    assert f.columns.stored.dtype == np.float32
    r = minimize(f, PSI, tol=1e-12, random_state=0)
    assert r.converged  # of the problem with the rounded A; the state is in double precision
    np.testing.assert_allclose(
        answer(A.astype(np.float32).astype(float), tol=1e-12).x, r.x, atol=1e-10
    )


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.longdouble])
@pytest.mark.parametrize("wrap", [np.asarray, sp.csc_matrix])
def test_other_numbers_are_taken_as_float64(dtype, wrap):
    given = np.abs(np.round(3 * A)).astype(dtype)
    same(answer(wrap(given), B > 0), answer(wrap(given.astype(float)), (B > 0).astype(float)))


def test_read_only_and_memory_mapped(tmp_path, usual):
    frozen, target = A.copy(), B.copy()
    frozen.setflags(write=False)
    target.setflags(write=False)
    same(answer(frozen, target), usual)
    np.save(tmp_path / "A.npy", np.asfortranarray(A))
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    f = functions.LeastSquares(mapped, B)
    assert np.shares_memory(f.columns.stored, mapped)  # by coordinate already: not read into memory
    same(minimize(f, PSI, random_state=3), usual)


# ---- rows and columns of zeros ---------------------------------------------------------------


def test_zero_rows_change_nothing():
    longer = np.insert(A, [0, 9, 30], 0.0, axis=0)
    np.testing.assert_allclose(
        answer(longer, np.insert(B, [0, 9, 30], 5.0), method="apcg").x,
        answer(method="apcg").x,
        rtol=0,
        atol=1e-12,
    )


class AbsoluteAroundTwo:
    """psi_i(x) = |x - 2|, in Python."""

    def value(self, x, i):
        return float(np.sum(np.abs(x - 2)))

    def prox(self, v, step, i):
        return 2 + np.sign(v - 2) * np.maximum(np.abs(v - 2) - step, 0)


class SmoothAbsolute:
    """psi_i(x) = sqrt(1 + (x - 1)^2), whose prox is only as good as a Newton iteration."""

    def value(self, x, i):
        return float(np.sqrt(1 + (x - 1) ** 2))

    def prox(self, v, step, i):
        x = float(v)
        for _ in range(60):
            r = np.sqrt(1 + (x - 1) ** 2)
            x -= (x - v + step * (x - 1) / r) / (1 + step / r**3)
        return x


@pytest.mark.parametrize(
    ("psi", "minimiser"),
    [
        (penalties.L1(0.3), 0.0),
        (penalties.L2(0.3), 0.0),
        (penalties.L2(1e-13), 0.0),
        (penalties.ElasticNet(0.3, 0.5), 0.0),
        (penalties.Box(0.5, 2.0), 1.25),
        (penalties.NonNegative(), 1.25),
        (penalties.Zero(), 1.25),
        (penalties.GroupL2(0.2), 0.0),
        (AbsoluteAroundTwo(), 2.0),
        (SmoothAbsolute(), 1.0),
    ],
    ids=lambda p: type(p).__name__ if not isinstance(p, float) else str(p),
)
def test_a_zero_column_goes_to_the_minimiser_of_psi_at_once(psi, minimiser):
    holes = A.copy()
    holes[:, [0, 5]] = 0.0
    start = np.full(12, 1.25)
    seen = []
    r = minimize(
        functions.LeastSquares(holes, B),
        psi,
        start,
        random_state=0,
        check_every=1,
        max_epochs=5,
        callback=lambda check: seen.append(check.x[[0, 5]]),
        blocks=[1] * 12 if isinstance(psi, penalties.GroupL2) else None,
    )
    np.testing.assert_allclose(r.x[[0, 5]], minimiser, atol=1e-12)
    np.testing.assert_array_equal(np.unique(seen, axis=0).shape[0], 1)  # it is not sampled
    assert (start == 1.25).all()


@pytest.mark.parametrize(
    ("psi", "minimiser"),
    [
        (penalties.L2(0.5), [2.0, -4.0]),
        (penalties.ElasticNet(1.0, 0.5), [1.0, -3.0]),
        (penalties.Box(-1.0, 3.0), [3.0, -1.0]),
    ],
    ids=["L2", "ElasticNet", "Box"],
)
def test_a_zero_column_with_a_linear_term(psi, minimiser):
    Q = np.diag([0.0, 1.0, 0.0])
    r = minimize(functions.Quadratic(Q, [-1.0, 0.3, 2.0]), psi, random_state=0)
    assert r.converged
    np.testing.assert_allclose(r.x[[0, 2]], minimiser, rtol=1e-12)


@pytest.mark.parametrize("blocks", [None, [2, 2], [[3, 0], [1, 2]]])
@pytest.mark.parametrize("zero", [np.zeros((3, 4)), sp.csr_array((3, 4))], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", ["apcg", "rpcg"])
def test_all_columns_zero(zero, blocks, method):
    f = functions.LeastSquares(zero, np.ones(3))
    r = minimize(f, penalties.L1(1.0), np.ones(4), blocks=blocks, method=method, tol=0.0)
    assert r.converged
    assert (r.epochs, r.fun) == (0, 1.5)
    assert not r.x.any()


# ---- very small problems and limits ----------------------------------------------------------


@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mu": 0.5},
        {"mu": 1.0},
        {"method": "apcg", "mu": 0.3, "gamma0": 0.7},
        {"method": "rpcg"},
    ],
)
def test_one_coordinate(options, sampling):
    f = functions.LeastSquares([[2.0]], [3.0])
    r = minimize(f, penalties.L1(1.0), random_state=0, sampling=sampling, tol=1e-10, **options)
    assert r.converged
    assert r.x[0] == pytest.approx(1.25)  # (6 - 1)/4


@pytest.mark.parametrize("options", [{"mu": 0.05}, {"mu": 0.0}, {"method": "rpcg"}])
@pytest.mark.parametrize("blocks", [[12], [list(range(11, -1, -1))]])
def test_one_block_of_everything(options, blocks, usual):
    r = answer(blocks=blocks, max_epochs=20_000, tol=1e-7, **options)
    assert r.converged
    np.testing.assert_allclose(r.x, usual.x, atol=1e-5)


def test_no_epochs_gives_the_start_back():
    start = np.full(12, 0.25)
    r = minimize(functions.LeastSquares(A, B), PSI, start, max_epochs=0)
    assert (r.status.code, r.epochs, len(r.trace)) == ("max_epochs", 0, 1)
    np.testing.assert_array_equal(r.x, start)
    assert r.x is not start


def test_no_tolerance_runs_to_the_end():
    r = answer(tol=0.0, max_epochs=37, sampling="uniform")
    assert (r.status.code, r.epochs) == ("max_epochs", 37)


def test_a_start_at_the_solution_takes_no_epoch(usual):
    # tol is relative to the gradient at the start, which is smaller here
    r = minimize(functions.LeastSquares(A, B), PSI, usual.x, tol=1e-5)
    assert (r.epochs, r.converged) == (0, True)


# ---- randomness and the user's arrays --------------------------------------------------------


@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
def test_the_same_seed_gives_the_same_bits_and_another_does_not(sampling):
    first, again, other = (answer_of(seed, sampling=sampling, max_epochs=3) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.trace["fun"], again.trace["fun"])
    assert (first.x != other.x).any()


def answer_of(seed, **options):
    return minimize(functions.LeastSquares(A, B), PSI, random_state=seed, **options)


def test_every_kind_of_random_state(usual):
    for make in (np.random.default_rng, np.random.RandomState):
        np.testing.assert_array_equal(
            answer_of(make(4), max_epochs=5).x, answer_of(make(4), max_epochs=5).x
        )
    for state in (None, 0, np.int64(3), np.random.default_rng(1), np.random.RandomState(1)):
        np.testing.assert_allclose(answer_of(state, tol=1e-9).x, usual.x, atol=1e-5)
    shared = np.random.default_rng(0)
    assert (answer_of(shared, max_epochs=2).x != answer_of(shared, max_epochs=2).x).any()


def digest(*objects):
    """A hash of every byte of the arrays, and of the flags that say how they may be used."""
    state = hashlib.sha256()
    for o in objects:
        arrays = (o.data, o.indices, o.indptr) if sp.issparse(o) else (np.asarray(o),)
        for a in arrays:
            state.update(pickle.dumps((a.dtype.str, a.shape, a.flags.writeable)) + a.tobytes())
        if sp.issparse(o):
            state.update(str((o.has_sorted_indices, o.nnz, o.format)).encode())
    return state.hexdigest()


@pytest.mark.parametrize("matrix", [A, np.asfortranarray(A), sp.csc_array(A), sp.csr_matrix(A)])
@pytest.mark.parametrize("options", [{}, {"mu": 0.0, "blocks": [5, 7]}, {"method": "rpcg"}])
def test_nothing_the_user_gave_is_changed(matrix, options):
    b, x0, alpha, sigma = B.copy(), np.full(12, 0.1), np.full(12, 0.3), np.full(12, 0.01)
    mine = (matrix, b, x0, alpha, sigma)
    before = digest(*mine)
    psi = penalties.L1(alpha)
    r = minimize(functions.LeastSquares(matrix, b, sigma), psi, x0, random_state=0, **options)
    r.x[:] = 99.0  # the answer is the user's own
    psi.alpha[:] = 7.0
    assert digest(*mine) == before


def test_no_input_of_the_other_functions_is_changed():
    Q, c, y = A.T @ A, np.ones(12), np.where(B > 0, 1, -1)
    lower, upper, groups = np.zeros(12), np.ones(12), np.array([2, 10])
    mine = (Q, A, c, y, lower, upper, groups)
    before = digest(*mine)
    box = penalties.Box(lower, upper)
    for f in (
        functions.Quadratic(Q, c),
        functions.Quadratic(factor=A, c=c),
        functions.Logistic(A, y),
    ):
        minimize(f, box, lower, random_state=0, max_epochs=10)
        minimize(f, penalties.GroupL2(groups * 0.1), lower, blocks=groups, max_epochs=10)
    assert digest(*mine) == before
