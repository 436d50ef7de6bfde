"""What is broken or of the wrong size is refused before anything reads or writes outside an array.

SciPy makes sparse matrices of arrays that it does not look at, and a user can put other arrays into
them later. Most of what is refused here would otherwise end the process, or give an answer made of
foreign memory.
"""

import re
import subprocess
import sys
import zipfile
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, APCGClassifier, APCGRegressor, datasets, functions
from apcg.data import by_coordinate, by_row, check_sparse
from apcg.model import LinearModel

N, D = 12, 4
Y = np.tile([1.0, -1.0], N // 2)
FAR = 10**7  # an index so far outside that it is not in the memory of the process


def sound(form):
    X = sp.random_array((N, D), density=0.9, format="csr", rng=0)
    return X.tobsr((3, 2)) if form == "bsr" else X.asformat(form)


def put(name, change):
    def broken(X):
        setattr(X, name, change(getattr(X, name)))

    return broken


def entry(place, value):
    def change(a):
        a = a.copy()
        a[place] = value
        return a

    return change


#: Ways to break the arrays of a CSR, CSC or BSR matrix.
COMPRESSED = {
    "short data": put("data", lambda a: a[:1].copy()),
    "no data": put("data", lambda a: a[:0].copy()),
    "short indices": put("indices", lambda a: a[:1].copy()),
    "short indptr": put("indptr", lambda a: a[:2].copy()),
    "long indptr": put("indptr", lambda a: np.append(a, a[-1:])),
    "empty indptr": put("indptr", lambda a: a[:0].copy()),
    "indptr begins late": put("indptr", entry(0, 1)),
    "indptr begins early": put("indptr", entry(0, -1)),
    "decreasing indptr": put("indptr", lambda a: np.r_[a[:1], a[-1] - 1, a[2:]].astype(a.dtype)),
    "negative indptr": put("indptr", entry(1, -FAR)),
    "large indptr": put("indptr", entry(1, FAR)),
    "large end": put("indptr", entry(-1, FAR)),
    "negative end": put("indptr", entry(-1, -1)),
    "negative index": put("indices", entry(0, -1)),
    "very negative index": put("indices", entry(-1, -FAR)),
    "index one too large": put("indices", entry(-1, 12)),
    "large index": put("indices", entry(0, FAR)),
    "large index at the end": put("indices", entry(-1, FAR)),
    "indices of fractions": put("indices", lambda a: a + 0.5),
    "indptr of fractions": put("indptr", lambda a: a + 0.0),
    "indices of booleans": put("indices", lambda a: a > 0),
    # in 32 bits these would be right
    "indptr of 64 bits": put("indptr", lambda a: a.astype(np.int64) + 2**32 * (a == a[1])),
    "unsigned indices": put("indices", lambda a: entry(0, 2**64 - 1)(a.astype(np.uint64))),
    "data with one dimension more": put("data", lambda a: a[None]),
    "data with one dimension fewer": put("data", lambda a: a[0]),
    "indices of two dimensions": put("indices", lambda a: a[None]),
    "indptr of two dimensions": put("indptr", lambda a: a[None]),
    "a list of indices": put("indices", lambda a: a.tolist()),
    "a list of data": put("data", lambda a: a.tolist()),
}
COO = {
    "row one too large": put("coords", lambda c: (entry(0, N)(c[0]), c[1])),
    "column one too large": put("coords", lambda c: (c[0], entry(0, D)(c[1]))),
    "large row": put("coords", lambda c: (entry(0, FAR)(c[0]), c[1])),
    "large column": put("coords", lambda c: (c[0], entry(-1, FAR)(c[1]))),
    "negative row": put("coords", lambda c: (entry(0, -1)(c[0]), c[1])),
    "very negative column": put("coords", lambda c: (c[0], entry(0, -FAR)(c[1]))),
    "short data": put("data", lambda a: a[:1].copy()),
    "short row": put("coords", lambda c: (c[0][:1].copy(), c[1])),
    "short column": put("coords", lambda c: (c[0], c[1][:1].copy())),
    "one coordinate": put("coords", lambda c: c[:1]),
    "fractions": put("coords", lambda c: (c[0] + 0.5, c[1])),
    "two dimensions": put("data", lambda a: a[None]),
}
OTHER = {
    ("bsr", "blocks without columns"): put("data", lambda a: a[:, :, :0].copy()),
    ("dia", "short offsets"): put("offsets", lambda a: a[:1].copy()),
    ("dia", "flat data"): put("data", lambda a: a[0].copy()),
    ("dia", "offsets of fractions"): put("offsets", lambda a: a + 0.5),
    ("lil", "negative index"): lambda X: X.rows[3].__setitem__(0, -1),
    ("lil", "large index"): lambda X: X.rows[3].__setitem__(0, FAR),
    ("lil", "a row of more values"): lambda X: X.data[3].extend([1.0] * 1000),
    ("lil", "a row of fewer values"): lambda X: X.data[3].clear(),
    ("lil", "short rows"): put("rows", lambda a: a[:2].copy()),
    ("dok", "large index"): lambda X: X._dict.__setitem__((0, FAR), 1.0),
    ("dok", "negative index"): lambda X: X._dict.__setitem__((-1, 0), 1.0),
}
FAULTS = {
    **{(form, name): fault for form in ("csr", "csc", "bsr") for name, fault in COMPRESSED.items()},
    **{("coo", name): fault for name, fault in COO.items()},
    **OTHER,
}


def broken(form, fault):
    X = sound(form)
    FAULTS[form, fault](X)
    return X


USERS = {
    "check_sparse": lambda X: check_sparse(X, "X"),
    "by_row": lambda X: by_row(X, "X"),
    "by_coordinate": lambda X: by_coordinate(X, "X"),
    "ERM": lambda X: ERM(X, Y, "logistic"),
    "LeastSquares": lambda X: functions.LeastSquares(X, np.ones(N)),
    "classifier": lambda X: APCGClassifier().fit(X, Y),
    "decision_function": lambda X: classifier().decision_function(X),
    "predict": lambda X: classifier().predict(X),
    "predict_proba": lambda X: classifier().predict_proba(X),
    "regressor": lambda X: APCGRegressor().fit(X, Y),
    "regressor.predict": lambda X: regressor().predict(X),
    "LinearModel": lambda X: LinearModel(np.ones(D), None, "squared").predict(X),
}


@cache
def classifier():
    model = APCGClassifier("logistic", alpha=0.1, random_state=0)
    return model.fit(sound("csr"), Y)


@cache
def regressor():
    return APCGRegressor(alpha=0.1, random_state=0).fit(sound("csr"), Y)


@pytest.mark.parametrize(("form", "fault"), FAULTS)
@pytest.mark.parametrize("use", ["check_sparse", "by_row", "by_coordinate"])
def test_a_broken_sparse_matrix_is_refused_in_its_own_format(use, form, fault):
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        USERS[use](broken(form, fault))


@pytest.mark.parametrize("use", sorted(set(USERS) - {"check_sparse", "by_row", "by_coordinate"}))
@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ("csr", "short data"),
        ("csr", "short indptr"),
        ("csr", "decreasing indptr"),
        ("csr", "large index at the end"),
        ("csc", "large index"),
        ("csc", "negative index"),
        ("bsr", "large index"),
        ("coo", "large row"),
    ],
)
def test_everyone_who_takes_a_matrix_refuses_a_broken_one(use, form, fault):
    with pytest.raises(ValueError, match=r"[XA] is a broken sparse matrix"):
        USERS[use](broken(form, fault))


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
@pytest.mark.parametrize("use", sorted(USERS))
def test_a_sound_one_passes(use, form):
    USERS[use](sound(form))


@pytest.mark.parametrize("indices", [np.int32, np.int64, np.int16, np.uint32, ">i4", ">i8"])
@pytest.mark.parametrize("indptr", [np.int32, np.int64, np.int16, np.uint64, ">i4", ">i8"])
@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_integers_of_any_type_will_do(form, indices, indptr):
    X = sound(form)
    expected = X.toarray()
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indptr)
    check_sparse(X, "X")
    np.testing.assert_array_equal(by_row(X, "X").stored.toarray(), expected)
    np.testing.assert_array_equal(by_coordinate(X, "X").stored.toarray(), expected.T)


def test_the_first_and_last_index_are_inside():
    """The largest index that fits passes, and the next does not, in sorted and unsorted rows."""
    for indices in ([0, 3], [3, 0]):
        X = sp.csr_array((np.ones(2), np.array(indices), np.array([0, 2])), shape=(1, 4))
        np.testing.assert_array_equal(by_row(X, "X").times(np.arange(4.0)), [3])
        for wrong in (4, -1):
            Z = X.copy()
            Z.indices = np.where(Z.indices == 3, wrong, Z.indices).astype(np.int32)
            for check in (by_row, check_sparse):
                with pytest.raises(ValueError, match="broken sparse matrix"):
                    check(Z, "X")


@pytest.mark.parametrize("block", [(3, 3), (5, 2)])
def test_blocks_that_do_not_fill_a_matrix(block):
    """One block in a matrix of another size, though it is one in each direction."""
    X = sp.bsr_array((np.ones((1, 5, 3)), [0], [0, 1]), shape=(5, 3))
    check_sparse(X, "X")
    X.data = np.ones((1, *block))
    for check in (check_sparse, by_row, by_coordinate):
        with pytest.raises(ValueError, match="broken sparse matrix"):
            check(X, "X")


def test_what_is_stored_behind_the_last_row_does_not_count():
    X = sound("csr")
    X.data, X.indices = np.append(X.data, np.nan), np.append(X.indices, FAR).astype(np.int32)
    p = ERM(X, Y, "logistic")
    assert p.samples.nnz == X.indptr[-1]
    np.testing.assert_array_equal(p.samples.stored.toarray(), sound("csr").toarray())


# ---- files --------------------------------------------------------------------------------------


def archive(path, **changes):
    X = sound("csr")
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": [N, D], "y": Y}
    np.savez(path, **(parts | changes))
    return path


INDPTR, INDICES = sound("csr").indptr, sound("csr").indices
FILES = {
    "indices outside": {"data": np.ones(3), "indices": np.array([0, 5, -3]),
                        "indptr": np.arange(4), "shape": [3, 4], "y": Y[:3]},
    "a far index": {"indices": entry(0, 2**30)(INDICES)},
    "a negative index": {"indices": entry(-1, -1)(INDICES)},
    "a large indptr": {"indptr": entry(3, FAR)(INDPTR)},
    "a decreasing indptr": {"indptr": entry(2, INDPTR[-1])(INDPTR)},
    "a short indptr": {"indptr": INDPTR[:2]},
    "short data": {"data": np.ones(2)},
    "indices of fractions": {"indices": INDICES + 0.5},
    "indptr of fractions": {"indptr": INDPTR + 0.0},
    "indices of two dimensions": {"indices": INDICES[None]},
    "indices of words": {"indices": INDICES.astype(str)},
    "a shape of fractions": {"shape": [12.5, 4.0]},
    "a shape without dimension": {"shape": 12},
    "a shape of three": {"shape": [12, 4, 1]},
    "a negative shape": {"shape": [-12, 4]},
    "a huge shape": {"shape": np.array([12, 2**64 - 1], dtype=np.uint64)},
    "data of words": {"data": INDICES.astype(str)},
    "data of two dimensions": {"data": np.ones((1, INDICES.size))},
}  # fmt: skip


WORDS = {
    "indices outside": "its index arrays point outside its shape (3, 4).",
    "indices of fractions": "indices is no vector of integers",
    "indices of two dimensions": "indices is no vector of integers",
    "a shape of fractions": "shape is no vector of integers",
    "a shape without dimension": "shape is no vector of integers",
    "a shape of three": "its shape is (12, 4, 1)",
    "a negative shape": "its shape is (-12, 4)",
}


@pytest.mark.parametrize("fault", FILES)
def test_a_hostile_file_is_refused(tmp_path, fault):
    path = archive(tmp_path / "h.npz", **FILES[fault])
    text = rf"h\.npz.*{re.escape(WORDS.get(fault, ''))}"
    with pytest.raises(datasets.DataError, match=text):
        datasets.load(path)
    with pytest.raises(datasets.DataError, match=text):
        list(datasets.batches(path, D, False))


@pytest.mark.parametrize("member", ["X", "y", "indices"])
@pytest.mark.parametrize("content", [b"", b"some text"])
def test_a_member_that_is_no_array(tmp_path, member, content):
    path = archive(tmp_path / "h.npz", **({} if member == "indices" else {"X": np.ones((N, D))}))
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, part in (parts | {f"{member}.npy": content}).items():
            new.writestr(name, part)
    with pytest.raises(datasets.DataError, match=r"not a sound \.npz file"):
        datasets.load(path)


def run(*words):
    command = [sys.executable, "-m", "apcg", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_the_command_refuses_it_too(tmp_path):
    good, model = archive(tmp_path / "good.npz"), tmp_path / "model.npz"
    assert run("train", good, "--alpha", "0.1", "--model", model).returncode == 0
    assert len(run("predict", model, good).stdout.split()) == N
    bad = {fault: archive(tmp_path / f"{fault}.npz", **FILES[fault]) for fault in FILES}
    for words in (
        ("predict", model, bad["indices outside"]),
        ("predict", model, bad["a far index"]),
        ("predict", model, bad["a decreasing indptr"]),
        ("train", good, "--test", bad["indices outside"]),
        ("info", bad["a far index"]),
    ):
        done = run(*words)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert "point outside its shape" in done.stderr


# ---- lengths ------------------------------------------------------------------------------------

ROWS = ("combine", "dual_point", "balance", "into_domain", "best_intercept", "dual", "omega")
VECTORS = {
    "None": None,
    "a single number": 1.0,
    "too short": np.ones(1),
    "too long": np.ones(50_000),
    "two dimensions": np.ones((N, 1)),
    "complex": np.ones(N, dtype=complex),
    "NaN": np.full(N, np.nan),
    "infinite": np.full(N, np.inf),
    "words": np.full(N, "a"),
}


def problems():
    for penalty in ("l2", "l1"):
        for dtype in (np.float64, np.float32):
            for make in (sp.csr_array, np.asarray):
                X = make(sound("csr").toarray().astype(dtype))
                yield ERM(X, Y, "logistic", penalty, 0.1, intercept=True)


@pytest.mark.parametrize("given", VECTORS)
@pytest.mark.parametrize("name", ROWS)
def test_vectors_over_samples(name, given):
    for p in problems():
        if name == "omega" and not p.dual_form:
            continue
        with pytest.raises((ValueError, TypeError), match=r"^[xz] (must|contains)"):
            getattr(p, name)(VECTORS[given])


@pytest.mark.parametrize("given", VECTORS)
@pytest.mark.parametrize("name", ["predictions", "primal"])
def test_vectors_over_features(name, given):
    w = VECTORS[given]
    w = w[:D] if isinstance(w, np.ndarray) and len(w) == N else w
    for p in problems():
        with pytest.raises((ValueError, TypeError), match=r"^w (must|contains)"):
            getattr(p, name)(w)


def test_a_guess_that_is_no_number():
    for p in problems():
        for guess in (np.nan, None, "0"):
            with pytest.raises((ValueError, TypeError), match="guess must be"):
                p.best_intercept(np.zeros(N), guess)


def test_predictions_of_a_wide_problem():
    X = sp.random_array((12, 4000), density=0.9, format="csr", rng=0)
    p = ERM(X, Y, "logistic")
    for size in (1, 3999, 4001):
        with pytest.raises(ValueError, match="w must have length 4000"):
            p.predictions(np.ones(size))


def test_values_from_sums_of_another_length():
    for p in problems():
        with pytest.raises(ValueError, match="z must have length 12"):
            p.primal_from(np.zeros(D), np.zeros(50_000))
        with pytest.raises(ValueError, match="x must have length 12"):
            p.dual_from(np.zeros(50_000), np.zeros(D))
    f = functions.Logistic(sound("csr"), Y)
    with pytest.raises(ValueError, match="rows must have length 12"):
        f.value_from(np.zeros(D), np.zeros(50_000))


@pytest.mark.parametrize("make", [sp.csr_array, np.asarray, lambda X: np.asarray(X, np.float32)])
@pytest.mark.parametrize("border", [False, True])
def test_products_compare_lengths(make, border):
    plain = by_row(make(sound("csr").toarray()), "X")
    A = plain.bordered(0.5) if border else plain
    D = A.shape[1]
    for wrong in (0, 1, N - 1, N + 1, 50_000):
        for product in (A.adjoint, A.gram):
            with pytest.raises(ValueError, match=f"must have length {N}"):
                product(np.ones(wrong))
    for wrong in (0, 1, D - 1, D + 1, 50_000):
        for product in (A.times, A.squared_norms):
            with pytest.raises(ValueError, match=rf"length {D}, got .* \({wrong},\)"):
                product(np.ones(wrong))
    with pytest.raises(ValueError, match=r"R must have length 12, got an array of shape \(\)"):
        A.adjoint(None)
    for wrong in ((D - 1, 3), (50_000, 2), (D, 0), (D, 1, 1), (1, D)):
        with pytest.raises(ValueError, match="must have length"):
            A.times(np.ones(wrong))
    for wrong in ((N - 1, 3), (50_000, 2), (N, 0), (N, 1, 1), (1, N)):
        with pytest.raises(ValueError, match="must have length"):
            A.adjoint(np.ones(wrong))
    assert A.adjoint(np.ones(N)).shape == (D,)
    assert A.times(np.ones(D)).shape == (N,)
    assert A.adjoint(np.ones((N, 3))).shape == (D, 3)
    assert A.times(np.ones((D, 3))).shape == (N, 3)
