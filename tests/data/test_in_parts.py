"""Training on data that is not in memory: the answers are those of the data in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from apcg import ERM, solve
from apcg.cli import apcg
from apcg.data.mapped import FolderError, Mapped, OnDisk, Writer
from apcg.datasets import DataError, convert, load

TOL = 1e-7


def problem_data(kind="sparse", n=300, d=40, seed=0, by_label=False):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    y = np.where(M @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0.3, 1.0, -1.0)
    if by_label:
        order = np.argsort(y, kind="stable")
        M, y = M[order], y[order]
    return (sp.csr_array(M) if kind == "sparse" else M), y


def parts_of(folder, X, y, room=6000):
    """X of a folder in parts, of which few may be in memory at a time."""
    with Writer(folder, part=1500) as out:
        out.add(X, y)
        out.finish()
    made = Mapped(OnDisk(folder, memory_limit="20GB"))
    made.room = room
    return made


def agree(X, parts, y, method="auto", **more):
    """Both answers are certified, and P is the same."""
    here = solve(ERM(X, y, **more), tol=TOL, random_state=0)
    problem = ERM(parts, y, **more)
    found = solve(problem, method, tol=TOL, max_epochs=3000, random_state=0)
    assert found.converged, found.status
    assert abs(found.primal - here.primal) <= TOL * (abs(here.primal) + abs(found.primal))
    whole = ERM(X, y, **more)
    assert whole.primal(found.w, found.intercept) == pytest.approx(found.primal, rel=1e-12)
    assert whole.dual(found.x) == pytest.approx(found.dual, rel=1e-12)
    return found


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("loss", ["logistic", "smoothed_hinge", "squared"])
@pytest.mark.parametrize("intercept", [False, True])
def test_smooth_losses(tmp_path, kind, loss, intercept):
    X, y = problem_data(kind)
    parts = parts_of(tmp_path / "a.apcg", X, y)
    r = agree(X, parts, y, loss=loss, alpha=1e-2, intercept=intercept)
    assert "X comes in parts" in r.trace.notes[0]


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge", "logistic", "epsilon_insensitive"])
@pytest.mark.parametrize("intercept", [False, True])
def test_sweeps_over_parts(tmp_path, loss, intercept):
    X, y = problem_data(by_label=True)
    parts = parts_of(tmp_path / "a.apcg", X, y)
    assert len(list(parts.groups(np.random.default_rng(0)))) > 5
    weights = np.random.default_rng(1).integers(0, 3, y.size).astype(float)
    smooth = loss in ("smoothed_hinge", "logistic")
    if smooth or not intercept:
        agree(X, parts, y, "sdca", loss=loss, alpha=0.05, intercept=intercept,
              sample_weight=weights if smooth else None)  # fmt: skip


def test_penalties(tmp_path):
    X, y = problem_data()
    parts = parts_of(tmp_path / "a.apcg", X, y)
    agree(X, parts, y, loss="smoothed_hinge", penalty="elasticnet", alpha=0.02)
    agree(X, parts, y, loss="logistic", penalty="l1", alpha=0.02)
    with pytest.raises(ValueError, match="memory_limit"):
        solve(ERM(parts, y, "hinge", "l1", 0.02))
    with pytest.raises(TypeError, match='method="auto"'):
        solve(ERM(parts, y, "smoothed_hinge", "l2", 0.02), "apcg")


def test_many_classes(tmp_path):
    X, _ = problem_data()
    y = np.random.default_rng(0).integers(0, 3, X.shape[0])
    agree(X, parts_of(tmp_path / "a.apcg", X, y), y, loss="multinomial", alpha=0.05)


def test_the_same_seed_gives_the_same_bits(tmp_path):
    X, y = problem_data()
    parts = parts_of(tmp_path / "a.apcg", X, y)
    problem = ERM(parts, y, "smoothed_hinge", alpha=0.01)
    one, two = (solve(problem, "sdca", random_state=3, max_epochs=5) for _ in range(2))
    assert np.array_equal(one.w, two.w)


def test_each_group_is_within_the_room(tmp_path):
    X, y = problem_data()
    parts = parts_of(tmp_path / "a.apcg", X, y)
    groups = list(parts.groups(np.random.default_rng(0)))
    assert sorted(k for group in groups for k in group) == list(range(len(parts._parts)))
    for group in groups:
        made = parts.gather(group)
        assert sum(a.nbytes for a in made._arrays[:2]) <= parts.room
        sums = (X @ np.ones(40))[parts.rows_of(group)]
        assert np.allclose(made.times(np.ones(40)), sums, rtol=1e-13, atol=1e-13)


def test_erm_takes_a_path(tmp_path):
    X, y = problem_data()
    parts_of(tmp_path / "a.apcg", X, y)
    for data in (str(tmp_path / "a.apcg"), tmp_path / "a.apcg", OnDisk(tmp_path / "a.apcg")):
        r = solve(ERM(data, loss="logistic", alpha=0.1))
        assert r.converged
        assert r.primal == pytest.approx(solve(ERM(X, y, "logistic", alpha=0.1)).primal, rel=1e-6)
    with pytest.raises(FolderError, match="no folder"):
        ERM(tmp_path / "b.apcg", loss="logistic")


# ---- apcg convert --------------------------------------------------------------------------------

LINES = "1 1:0.5 3:1\n-1 2:2 # words\n\n1 3:-1\n-1 1:1 2:1\n"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("first", ["", "1 0:1\n"])
@pytest.mark.parametrize("last", ["", "1 0:1\n"])
def test_libsvm_text(tmp_path, dtype, first, last, monkeypatch):
    monkeypatch.setattr("apcg.datasets.conversion._PIECE", 16)
    (tmp_path / "a.svm").write_text(first + LINES + last)
    header = convert(tmp_path / "a.svm", tmp_path / "a.apcg", dtype=dtype)
    found, told = load(tmp_path / "a.apcg"), load(tmp_path / "a.svm")
    assert header.zero_based == told.zero_based == found.zero_based
    assert np.array_equal(found.X.stored.toarray(), told.X.toarray())
    assert np.array_equal(found.y, told.y)


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    (tmp_path / "a.svm").write_text(LINES + "1 1:nan\n")
    with pytest.raises(DataError, match="line 6"):
        convert(tmp_path / "a.svm", tmp_path / "a.apcg")
    (tmp_path / "a.svm").write_text(LINES + "1 2000000000:1\n")
    with pytest.raises(DataError, match="n_features"):
        convert(tmp_path / "a.svm", tmp_path / "a.apcg")
    (tmp_path / "a.svm").write_text(LINES)
    with pytest.raises(DataError, match="2 features were expected"):
        convert(tmp_path / "a.svm", tmp_path / "a.apcg", n_features=2)
    assert [each.name for each in tmp_path.iterdir()] == ["a.svm"]


def run(*args):
    result = CliRunner().invoke(apcg, [str(a) for a in args])
    return result.exit_code, result.output


def test_the_commands(tmp_path):
    X, y = problem_data()
    lines = (
        f"{'yes' if label > 0 else 'no'} "
        + " ".join(f"{j + 1}:{v}" for j, v in zip(row.indices, row.data, strict=True))
        for row, label in zip((X[[i]] for i in range(X.shape[0])), y, strict=True)
    )
    (tmp_path / "a.svm").write_text("\n".join(lines))
    code, said = run("convert", tmp_path / "a.svm", tmp_path / "a.apcg")
    assert code == 0, said
    assert "300 samples, 40 features" in said
    models = {}
    for name in ("a.svm", "a.apcg"):
        model = tmp_path / f"{name}.npz"
        code, said = run("train", tmp_path / name, "--alpha", "0.01", "--model", model)
        assert code == 0, said
        models[name] = run("predict", model, tmp_path / "a.apcg", "--memory", "20GB")
    assert models["a.svm"][0] == 0
    assert models["a.svm"] == models["a.apcg"]
    labels, score = models["a.apcg"][1].split("accuracy ")
    assert set(labels.split()) == {"yes", "no"}
    assert float(score.split()[0]) > 0.9
    with pytest.raises(FolderError, match="too little"):
        load(tmp_path / "a.apcg", memory_limit="1MB")
