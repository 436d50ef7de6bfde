"""`apcg.patch_sklearn`: programs for scikit-learn with the solvers of apcg."""

import pickle
import runpy
import subprocess
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest
import sklearn.ensemble
import sklearn.linear_model
import sklearn.svm
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

import apcg
from apcg import linear_model
from apcg.linear_model.answers import Answers

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    apcg.unpatch_sklearn()


def test_names_are_put_in_place_and_taken_back():
    theirs = sklearn.linear_model.LogisticRegression
    with apcg.patch_sklearn() as patched:
        assert patched.names == sorted(linear_model.__all__)
        for name in linear_model.__all__:
            home = sklearn.svm if hasattr(sklearn.svm, name) else sklearn.linear_model
            assert getattr(home, name) is getattr(linear_model, name)
        # where scikit-learn uses them itself
        stacking = sys.modules["sklearn.ensemble._stacking"]
        assert stacking.LogisticRegression is linear_model.LogisticRegression
    assert sklearn.linear_model.LogisticRegression is theirs
    assert stacking.LogisticRegression is theirs


def test_some_names_only():
    theirs = sklearn.linear_model.Lasso
    apcg.patch_sklearn("Ridge")
    assert sklearn.linear_model.Ridge is linear_model.Ridge
    assert sklearn.linear_model.Lasso is theirs
    apcg.patch_sklearn(["Ridge", "Lasso"])
    assert sklearn.linear_model.Lasso is linear_model.Lasso
    apcg.unpatch_sklearn("Ridge")
    assert sklearn.linear_model.Ridge is not linear_model.Ridge
    assert sklearn.linear_model.Lasso is linear_model.Lasso
    with pytest.raises(ValueError, match=r"apcg\.linear_model has no SVC; it has"):
        apcg.patch_sklearn("SVC")


def test_a_block_inside_a_block_leaves_the_outer_one():
    with apcg.patch_sklearn():
        with apcg.patch_sklearn() as inner:
            assert inner.names == []
        assert sklearn.linear_model.Ridge is linear_model.Ridge
    assert sklearn.linear_model.Ridge is not linear_model.Ridge


def test_patching_twice_is_patching_once():
    X, y = load_iris(return_X_y=True)
    apcg.patch_sklearn()
    apcg.patch_sklearn()
    model = sklearn.linear_model.LogisticRegression().fit(X, y)  # it calls scikit-learn's `fit`
    assert model.status_.code == "converged"
    apcg.unpatch_sklearn()
    assert not hasattr(sklearn.linear_model.LogisticRegression(max_iter=999).fit(X, y), "status_")


def test_pickles_from_before_and_after():
    X, y = load_iris(return_X_y=True)
    before = sklearn.linear_model.Ridge().fit(X, y)
    stored = pickle.dumps(before)
    with apcg.patch_sklearn():
        assert (pickle.loads(stored).predict(X) == before.predict(X)).all()
        assert pickle.loads(pickle.dumps(before)).coef_.shape == (4,)
        ours = sklearn.linear_model.Ridge().fit(X, y)
        stored = pickle.dumps(ours)
    again = pickle.loads(stored)
    assert type(again) is linear_model.Ridge
    assert (again.predict(X) == ours.predict(X)).all()
    assert again.status_.code == "converged"


def test_worker_processes_get_our_models():
    X, y = load_iris(return_X_y=True)
    with apcg.patch_sklearn():
        model = sklearn.linear_model.LogisticRegression()
        told = cross_val_score(model, X, y, scoring=_solved_by_us, cv=2, n_jobs=2)
    assert told.tolist() == [1.0, 1.0]


def _solved_by_us(model, X, y):
    return float(model.status_.code == "converged")


SCRIPT = """
import sys
from sklearn.linear_model import Lasso
from sklearn.datasets import load_diabetes
print(sys.argv[1:], __name__, Lasso().fit(*load_diabetes(return_X_y=True)).status_.code)
"""


def _run(*arguments, cwd):
    command = [sys.executable, "-m", "apcg.patch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_a_script_runs_unchanged(tmp_path):
    (tmp_path / "beside.py").write_text("HERE = True\n")
    (tmp_path / "script.py").write_text("from beside import HERE\n" + SCRIPT)
    done = _run("script.py", "--flag", "2", cwd=tmp_path)
    assert done.stdout.strip() == "['--flag', '2'] __main__ converged", done.stderr
    done = _run("-m", "script", "x", cwd=tmp_path)
    assert done.stdout.strip() == "['x'] __main__ converged", done.stderr


def test_without_a_script_it_says_how(tmp_path):
    done = _run(cwd=tmp_path)
    assert done.returncode == 2
    assert "usage: python -m apcg.patch" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text", "path", "robust"])
def test_programs_written_for_scikit_learn_print_the_same(name, monkeypatch, capsys):
    script = str(ROOT / "examples" / "scikit_learn" / f"{name}.py")
    solved, take = [], Answers.take
    monkeypatch.setattr(Answers, "take", lambda *given: (solved.append(1), take(*given))[1])
    printed = []
    for patched in (False, True):
        with warnings.catch_warnings(), apcg.patch_sklearn() if patched else nullcontext():
            warnings.simplefilter("ignore")
            runpy.run_path(script, run_name="__main__")
        printed.append(capsys.readouterr().out)
        assert bool(solved) == patched
    assert printed[0] == printed[1]


@pytest.mark.slow
def test_a_text_classifier_runs_by_the_command(tmp_path):
    done = _run(ROOT / "examples" / "scikit_learn" / "text.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "softmax: accuracy 0.9" in done.stdout


@pytest.mark.parametrize("what", [["nothing.py"], ["-m", "nothing_here"], ["-m", "no.thing"]])
def test_what_is_not_there_is_told(what):
    done = subprocess.run(
        [sys.executable, "-m", "apcg.patch", *what], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"there is no {'module' if '-m' in what else 'file'} {what[-1]!r}" in done.stderr
    assert "Traceback" not in done.stderr
