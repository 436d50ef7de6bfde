"""Random problems and random files, small in number here. APCG_FUZZ=20 makes twenty times as many.

Problems: every method that fits, P and D computed again in extended precision by their definition
(benchmarks/fuzz has them; nothing of the library is used for it). Files: LIBSVM text,
.npz, models and the cache, cut, flipped and made of odd parts; each is read right, or refused with
a DataError.
"""

import contextlib
import io
import json
import math
import os
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from quick import examples

from apcg import ERM, datasets, losses, penalties, solve
from apcg.datasets import DataError, cache, libsvm
from apcg.methods import registry
from apcg.model import LinearModel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz"))
from k_outputs import random_outputs
from kinds import KINDS
from one_output import Case, Own, Phi, random_penalty, stored

MORE = int(os.environ.get("APCG_FUZZ", "1"))
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def fuzz(count):
    return examples(count * MORE, derandomize=MORE == 1, suppress_health_check=QUIET, database=None)


# ---- problems -----------------------------------------------------------------------------------

POSITIVE = st.floats(1e-3, 1e2)


@st.composite
def a_loss(draw):
    kind = draw(st.integers(0, 8))
    g = draw(POSITIVE)
    inf = math.inf
    return [
        (losses.Hinge(), Phi((1.0, 0.0, 0.0, 0.0, 1.0))),
        (losses.SmoothedHinge(g), Phi((1.0, 0.0, g, 0.0, 1.0))),
        (losses.SquaredHinge(), Phi((1.0, 0.0, 0.5, 0.0, inf))),
        (losses.Logistic(), Phi(None)),
        (losses.Squared(), Phi((0.0, 0.0, 1.0, -inf, inf))),
        (losses.Huber(g), Phi((0.0, 0.0, 1.0, -g, g))),
        (losses.EpsilonInsensitive(g), Phi((0.0, g, 0.0, -1.0, 1.0))),
        (losses.StronglyConvex("logistic", g), Phi(None, g)),
        (Own((-g, 2 * g), 0.3, 0.2), Phi((0.0, 0.2, 0.3, -g, 2 * g))),
    ][kind]


@st.composite
def a_case(draw):
    loss, phi = draw(a_loss())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    X = rng.standard_normal((n, d)) * draw(st.sampled_from([1e-3, 1.0, 1.0, 1e3]))
    X += draw(st.sampled_from([0.0, 0.0, 10.0, 1e3]))
    X *= rng.random((n, d)) < draw(st.sampled_from([0.1, 0.6, 1.0]))
    z = X @ rng.standard_normal(d) + rng.standard_normal(n)
    y = np.where(z > np.median(z), 1.0, -1.0) if loss.margin else z
    if loss.margin and abs(y.sum()) == n:
        y[0] *= -1
    weight = None
    if draw(st.booleans()):
        weight = 10 ** rng.uniform(-3, 0, n) * (rng.random(n) < 0.8)
        weight[:2] = 1.0
    penalty, g, options = random_penalty(rng, d)
    alpha = 10 ** draw(st.floats(-7, 1))
    return Case(stored(X, rng), y, weight, loss, phi, penalty, g, options, alpha,
                draw(st.booleans()))  # fmt: skip


@fuzz(30)
@given(a_case(), st.floats(-10, -2), st.sampled_from([1, 10, 300]), st.integers(0, 2**31))
def test_certificates_of_random_problems(case, power, epochs, seed):
    try:
        problem = case.problem()
    except ValueError:
        return
    tol, best, least = 10.0**power, -math.inf, math.inf
    for method in registry.fitting(problem):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            r = solve(problem, method, tol=tol, max_epochs=epochs, random_state=seed)
        P, D, room = case.values(r.w, r.x, r.intercept, case.alpha)
        where = f"{method} {problem!r}"
        assert D is not None, f"x is infeasible: {where}"
        assert abs(r.primal - P) <= 20 * room, where
        assert abs(r.dual - D) <= 20 * room, where
        assert r.gap >= -20 * room, where
        if r.converged:
            assert tol * abs(P) + 40 * room >= P - D, where
        best, least = max(best, D - 20 * room), min(least, P + 20 * room)
    assert best <= least * (1 + 1e-15) + 1e-300


@fuzz(25)
@given(st.integers(0, 2**32), st.floats(-10, -2), st.sampled_from([1, 10, 300]))
def test_certificates_of_random_problems_with_k_outputs(seed, power, epochs):
    case, tol = random_outputs(np.random.default_rng(seed)), 10.0**power
    try:
        problem = case.problem()
    except ValueError:
        return
    before = None
    for method in registry.fitting(problem):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            r = solve(problem, method, tol=tol, max_epochs=epochs, x0=before, random_state=0)
        P, D, room = case.values(r.w, r.x, r.intercept, case.alpha)
        where = f"{method} {problem!r}"
        assert D is not None, f"x is infeasible: {where}"
        assert abs(r.primal - P) <= 64 * room, where
        assert abs(r.dual - D) <= 64 * room, where
        if r.converged:
            assert tol * abs(P) + 64 * room >= P - D, where
        before = r if before is None else None  # a start for every other method


def test_a_gap_of_nothing_ends_newtons_method():
    """One row, whose gap is 0 after a step: no rate is computed from it."""
    problem = random_outputs(np.random.default_rng(9100542)).problem()
    assert solve(problem, "newton", tol=2.4e-4, max_epochs=400, check_every=7).converged


# ---- files --------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("APCG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def read(path):
    """The data set of a file, or None if it is refused as it should be."""
    with contextlib.suppress(DataError):
        found = datasets.load(path)
        n, d = found.shape
        assert found.X.shape == (n, d)
        if not isinstance(found.X, np.ndarray):
            assert found.X.indices.min(initial=0) >= 0
            assert found.X.indices.max(initial=0) < d
            found.X.check_format(full_check=True)
        assert found.y is None or found.y.shape == (n,)
        return found
    return None


TOKENS = st.sampled_from(
    ["1", "-1", "0", "1.5", "nan", "inf", "1e999", "spam", "1:1", "2:0.5", "3:nan", "1:", ":1",
     "a:b", "0:1", "-1:1", "99999999999:1", "100000000:1", "#", "qid:3", "1,2", "é", "\0", "\x07",
     "2:1e308", "1:1:1", "+1", "0x10:1", "1_0:1", "١:1"]
)  # fmt: skip


@fuzz(60)
@given(st.lists(st.lists(TOKENS, max_size=5), max_size=6), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_libsvm_text_is_read_or_refused(rows, end):
    text = end.join(" ".join(row) for row in rows).encode()
    Path("t.svm").write_bytes(text)
    found = read("t.svm")
    if found is None:
        return
    # what was read is what is there
    lines = [line.split("#")[0].split() for line in text.decode().split("\n")]
    lines = [line for line in lines if line]
    assert len(lines) == found.shape[0]
    first = 0 if found.zero_based else 1
    for row, line in zip(found.X.toarray(), lines, strict=True):
        told = {int(k) - first: float(v) for k, v in
                (t.split(":") for t in line[1:] if not t.startswith("qid"))}  # fmt: skip
        assert {j: v for j, v in enumerate(row) if v} == {j: v for j, v in told.items() if v}


@fuzz(60)
@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"BZh9", b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"PK\3\4"]),
)
def test_bytes_are_read_or_refused(content, head):
    Path("b").write_bytes(head + content)
    read("b")
    with pytest.raises(DataError):
        LinearModel.load("b")


def whole_npz():
    out = io.BytesIO()
    np.savez(out, data=np.ones(3), indices=np.array([0, 2, 1]), indptr=np.array([0, 1, 3]),
             shape=np.array([2, 3]), y=np.array([1, -1]))  # fmt: skip
    return out.getvalue()


def harmed(whole, cut, flips):
    """The bytes with some of them changed, and the end cut off."""
    made = bytearray(whole)
    for place, bit in flips:
        made[place % len(made)] ^= 1 << bit
    return bytes(made[: len(made) - cut % len(made)] if cut else made)


FLIPS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), max_size=3)


@fuzz(80)
@given(st.one_of(st.just(0), st.integers(0, 10**6)), FLIPS)
def test_a_harmed_npz_is_read_or_refused(cut, flips):
    Path("h.npz").write_bytes(harmed(whole_npz(), cut, flips))
    found = read("h.npz")
    if found is not None:
        assert found.shape == (2, 3)
        assert found.X.data.tolist() == [1, 1, 1]


ARRAYS = st.sampled_from(
    [np.ones(3), np.array([0, 2, 1]), np.array([0, 1, 3]), np.array([2, 3]), np.array([1, -1]),
     np.array([-1, 5, 10**9]), np.array([0, 3, 1]), np.array(3), np.ones((2, 3)), np.ones(0),
     np.array(["a", "b"]), np.array([np.nan, 1.0]), np.ones(2) * 1j, np.array([2, 10**15]),
     np.array([2**63, 3], dtype=np.uint64), np.zeros(2, "f8,i4"), np.array([b"x", b"y"])]
)  # fmt: skip


@fuzz(120)
@given(
    st.dictionaries(st.sampled_from(["X", "y", "data", "indices", "indptr", "shape", "z"]), ARRAYS)
)
def test_an_npz_of_odd_parts_is_read_or_refused(parts):
    np.savez("o.npz", **parts)
    read("o.npz")


def saved_model():
    LinearModel(np.arange(1.0, 5.0), np.array([-1.0, 1.0]), "logistic", 0.5, False, {}).save(
        "m.npz"
    )
    return Path("m.npz").read_bytes()


@fuzz(80)
@given(st.one_of(st.just(0), st.integers(0, 10**6)), FLIPS)
def test_a_harmed_model_is_the_same_or_refused(cut, flips):
    Path("m.npz").write_bytes(harmed(saved_model(), cut, flips))
    with contextlib.suppress(DataError):
        model = LinearModel.load("m.npz")
        np.testing.assert_array_equal(model.w, np.arange(1.0, 5.0))
        assert (model.intercept, model.loss) == (0.5, "logistic")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.mark.slow
@fuzz(60)
@given(st.sampled_from(["format", "source", "facts", "arrays", "data", "zero_based", None]), JSON)
def test_a_cache_header_of_anything(name, value):
    Path("c.svm").write_bytes(b"1 1:1 2:0.5\n-1 2:1\n")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(datasets, "WORTH_KEEPING", 0)
        datasets.load("c.svm")
        header = cache.entry(Path("c.svm")) / cache.HEADER
        told = json.loads(header.read_text())
        inside = {"data": "arrays", "zero_based": "facts"}.get(name)
        if name is None:
            told = value
        elif inside:
            told[inside][name] = value
        else:
            told[name] = value
        header.write_text(json.dumps(told))
        found = datasets.load("c.svm")
    np.testing.assert_array_equal(found.X.toarray(), [[1, 0.5], [0, 1]])


@fuzz(30)
@given(st.binary(max_size=60), st.integers(1, 9))
def test_pieces_are_the_whole(text, size):
    text = text.replace(b"\0", b"")
    parts = list(libsvm.pieces(io.BytesIO(text), "t", size=size))
    assert b"".join(piece for _, piece in parts) == text
    assert all(piece.endswith(b"\n") for _, piece in parts[:-1])
    assert [line for line, _ in parts] == [
        1 + b"".join(piece for _, piece in parts[:k]).count(b"\n") for k in range(len(parts))
    ]


def test_the_strategies_make_every_kind():
    """A fuzzer that refuses everything would pass."""
    rng = np.random.default_rng(0)
    kinds = {type(random_penalty(rng, 3)[0]) for _ in range(200)}
    assert {str, penalties.L1, penalties.Box} <= kinds
    assert ERM(np.eye(2), [1, -1], losses.Hinge()).n == 2
    assert zipfile.is_zipfile(io.BytesIO(whole_npz()))


# ---- every kind of benchmarks/fuzz --------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_short_run_of_each_kind_has_no_violation(kind, capsys):
    fuzz = KINDS[kind]()
    for seed in range(90_000, 90_000 + 12 * MORE):
        fuzz.problem(seed)
    assert not fuzz.kinds, capsys.readouterr().out
    assert fuzz.solves > 0
