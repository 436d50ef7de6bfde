"""The options that make a problem, `apcg cv`, LIBLINEAR's model files, and plugins."""

import bz2
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from apcg import ERM, datasets, losses, solve
from apcg.cli import apcg as group
from apcg.cli import main
from apcg.model import LinearModel, encode_labels


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"APCG_{name}_DIR", str(tmp_path / name))
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def apcg(capsys):
    def run(*args, code=0):
        with pytest.raises(SystemExit) as left:
            main([*map(str, args)])
        out, err = capsys.readouterr()
        assert left.value.code == code, err
        return out + err

    return run


def problem(loss, **rest):
    data = datasets.load("breast_cancer")
    return ERM(data.X, encode_labels(data.y)[0], loss, "l2", 1e-2, **rest)


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (("--loss", "smoothed_hinge", "--gamma", "0.5"), lambda: problem(losses.SmoothedHinge(0.5),
                                                                        intercept=True)),
        (("--loss", "logistic", "--no-intercept"), lambda: problem("logistic")),
        (("--loss", "logistic", "--positive"), lambda: problem("logistic", positive=True,
                                                               intercept=True)),
        (("--loss", "logistic", "--class-weight", "0:3"), lambda: problem(
            "logistic", intercept=True,
            sample_weight=np.where(datasets.load("breast_cancer").y == 0, 3.0, 1.0))),
    ],
)  # fmt: skip
def test_options_make_the_problem(options, made, apcg):
    found = json.loads(apcg("train", "breast_cancer", "--alpha", "1e-2", *options, "--json"))
    optimum = solve(made(), tol=1e-9)
    c = found["certificate"]
    assert c["dual"] <= optimum.primal * (1 + 1e-12)
    assert c["primal"] >= optimum.dual * (1 - 1e-12)


@pytest.mark.parametrize(
    ("loss", "options", "made"),
    [
        ("huber", ("--delta", "50"), losses.Huber(50)),
        ("epsilon_insensitive", ("--epsilon", "30"), losses.EpsilonInsensitive(30)),
        ("pinball", ("--quantile", "0.9"), losses.Pinball(0.9)),
    ],
)
def test_numbers_of_losses_of_residuals(loss, options, made, apcg):
    found = json.loads(apcg("train", "diabetes", "--loss", loss, *options, "--json"))
    data = datasets.load("diabetes")
    optimum = solve(ERM(data.X, data.y, made, "l2", 1e-4, intercept=True), tol=1e-9)
    assert found["certificate"]["dual"] <= optimum.primal * (1 + 1e-12)
    assert found["certificate"]["primal"] >= optimum.dual * (1 - 1e-12)
    assert found["parameters"] == {options[0][2:]: float(options[1])}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--delta", "1"), "--delta is for the loss huber, and it is smoothed_hinge"),
        (("--loss", "logistic", "--gamma", "1"), "--gamma is for the loss smoothed_hinge and"),
        (("--l1-ratio", "0.3"), "--l1-ratio is for --penalty elasticnet, and it is l2"),
        (("--class-weight", "heavy"), "balanced, or label:weight"),
        (("--class-weight", "0:-1"), "balanced, or label:weight"),
        (("--loss", "squared", "--class-weight", "balanced"), "is for classes"),
    ],
)
def test_what_was_written_is_used_or_refused(options, said, apcg):
    assert said in apcg("train", "breast_cancer", *options, code=2)


def test_weights_of_classes_that_are_not_there(apcg):
    said = apcg("train", "breast_cancer", "--class-weight", "7:2", code=1)
    assert "names the class '7'; the classes are 0, 1" in said


def test_balanced_is_that_of_the_estimators(apcg):
    from apcg import APCGClassifier

    found = apcg("train", "breast_cancer", "--class-weight", "balanced", "--alpha", "0.1",
                 "--model", "m.npz", "--tol", "1e-10")  # fmt: skip
    assert "class weights balanced" in found
    data = datasets.load("breast_cancer")
    other = APCGClassifier(alpha=0.1, class_weight="balanced", tol=1e-10).fit(data.X, data.y)
    assert LinearModel.load("m.npz").w == pytest.approx(other.coef_[0], rel=1e-3, abs=1e-7)


# ---- cross-validation --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("breast_cancer", ("--loss", "logistic")),
        ("diabetes", ()),
        ("digits3", ()),
        ("digits3", ("--loss", "multiclass_hinge", "--gamma", "0.5")),
    ],
)
def test_cross_validation_is_that_of_the_estimators(data, options, apcg):
    from sklearn.datasets import load_digits

    from apcg import APCGClassifierCV, APCGRegressorCV, losses

    if data == "digits3":
        X, y = load_digits(n_class=3, return_X_y=True)
        np.savez("digits3.npz", X=X[:150], y=y[:150])
        data = "digits3.npz"
    found = json.loads(apcg("cv", data, "--alphas", "1,1e-1,1e-2", "--folds", "3", *options,
                            "--json"))  # fmt: skip
    given = datasets.load(data)
    rest = {"alphas": [1, 1e-1, 1e-2], "cv": 3, "random_state": 0}
    if data == "diabetes":
        other = APCGRegressorCV(**rest)
    elif "multiclass_hinge" in options:
        other = APCGClassifierCV(losses.SmoothedHinge(1.0), multi_class="crammer_singer", **rest)
    else:
        other = APCGClassifierCV("logistic", **rest)
    other.fit(given.X, given.y)
    assert found["best"] == other.alpha_
    assert [row["scores"] for row in found["alphas"]] == [s.tolist() for s in other.scores_]
    means, errors = other.scores_.mean(axis=1), other.scores_.std(axis=1, ddof=1) / np.sqrt(3)
    k = int(np.argmax(means))
    good = [a for a, m in zip(rest["alphas"], means, strict=True) if m >= means[k] - errors[k]]
    assert found["one_standard_error"] == max(good)


def test_the_model_of_a_cross_validation(apcg):
    said = apcg("cv", "breast_cancer", "--alphas", "1,1e-2", "--model", "m.npz", "--one-se")
    chosen = float(re.search(r"chosen       --alpha (\S+)", said)[1])
    assert LinearModel.load("m.npz").facts["alpha"] == chosen
    assert re.search(r"^alpha +accuracy +standard error$", said, re.MULTILINE)
    assert re.search(r"chosen$", said, re.MULTILINE)
    assert ".png, .pdf or .svg" in apcg("cv", "breast_cancer", "--alphas", "1", "--plot", "p.gif",
                                        code=2)  # fmt: skip


# ---- LIBLINEAR ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("intercept", ["--intercept", "--no-intercept"])
def test_a_liblinear_model_there_and_back(loss, intercept, apcg):
    apcg("train", "breast_cancer", "--loss", loss, intercept, "--model", "m.npz")
    apcg("export", "m.npz", "m.model")
    apcg("export", "m.model", "back.npz")
    data, mine, back = datasets.load("breast_cancer"), *map(LinearModel.load, ("m.npz", "back.npz"))
    assert np.array_equal(mine.decision(data.X), back.decision(data.X))
    assert np.array_equal(mine.classes, back.classes)
    assert apcg("predict", "m.model", "breast_cancer") == apcg("predict", "m.npz", "breast_cancer")


@pytest.mark.parametrize(("data", "loss"), [("breast_cancer", "logistic"), ("three", "multinomial"),
                                            ("diabetes", "squared")])  # fmt: skip
def test_liblinear_predicts_what_we_do(data, loss, apcg):
    util = pytest.importorskip("liblinear.liblinearutil")
    if data == "three":
        given = datasets.load("breast_cancer")
        np.savez("three.npz", X=given.X, y=np.arange(len(given.y)) % 2 + given.y)
        data = "three.npz"
    apcg("train", data, "--loss", loss, "--alpha", "1e-3", "--model", "m.npz")
    apcg("export", "m.npz", "m.model", "--format", "liblinear")
    found, mine = datasets.load(data), LinearModel.load("m.npz")
    theirs = util.load_model("m.model")
    labels, _, z = util.predict(found.y, found.X, theirs, "-q")
    if mine.classes is None:
        assert labels == pytest.approx(mine.predict(found.X))
    else:
        assert np.array_equal(labels, mine.predict(found.X))
    if mine.w.ndim == 1:
        assert np.ravel(z) == pytest.approx(mine.decision(found.X))


def test_a_model_that_liblinear_has_trained(apcg):
    util = pytest.importorskip("liblinear.liblinearutil")
    data = datasets.load("breast_cancer")
    for labels, options in (
        (data.y, "-s 0 -B 1 -q"),
        (1 - data.y, "-s 3 -q"),
        (data.y + np.arange(data.y.size) % 2, "-s 4 -q"),
    ):
        theirs = util.train(labels, data.X, options)
        util.save_model("t.model", theirs)
        expected, _, _ = util.predict(labels, data.X, theirs, "-q")
        assert np.array_equal(LinearModel.load("t.model").predict(data.X), expected)


@pytest.mark.parametrize("cut", [30, 80, 200, 400])
def test_a_liblinear_model_that_is_cut_is_refused(cut, apcg):
    apcg("train", "breast_cancer", "--model", "m.npz")
    apcg("export", "m.npz", "m.model")
    Path("m.model").write_bytes(Path("m.model").read_bytes()[:cut])
    assert "is not a sound model file" in apcg("predict", "m.model", "breast_cancer", code=1)


def test_what_export_refuses(apcg, monkeypatch):
    apcg("train", "breast_cancer", "--model", "m.npz")
    assert "does not say a format" in apcg("export", "m.npz", "m.txt", code=2)
    assert "is not written" in apcg("export", "m.npz", "m.npz", code=1)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'apcg[onnx]'" in apcg("export", "m.npz", "m.onnx", code=1)
    Path("w.svm").write_text("ham 1:1\nspam 1:-1\n")
    apcg("train", "w.svm", "--model", "w.npz")
    said = apcg("export", "w.npz", "w.model", code=1)
    assert "a LIBLINEAR model has whole numbers as labels, and the classes are ham, spam" in said


# ---- plugins -----------------------------------------------------------------------------------

PLUGIN = """
from apcg import losses
from apcg.methods import registry
from apcg.methods.registry import find


@losses.register
class Softer(losses.SmoothedHinge):
    name = "softer_for_a_test"

    def __init__(self):
        super().__init__(2.0)


class Renamed:
    intercept = True

    def __init__(self):
        self.name, self.needs = "renamed_for_a_test", ()

    def start(self, problem, *rest):
        return find("sdca", problem).start(problem, *rest)


registry.register(Renamed())
"""


@pytest.mark.slow
def test_a_plugin_brings_losses_and_methods(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    run = [sys.executable, "-m", "apcg"]
    for name in ("mine", "mine.py"):
        done = subprocess.run(
            [*run, "train", "breast_cancer", "--plugin", name, "--loss", "softer_for_a_test",
             "--method", "renamed_for_a_test", "--alpha", "1e3", "--json", "--model", "m.npz"],
            capture_output=True, check=False)  # fmt: skip
        assert done.returncode in (0, 3), done.stderr
        found = json.loads(done.stdout)
        assert (found["loss"], found["method"]) == ("softer_for_a_test", "renamed_for_a_test")
    done = subprocess.run([*run, "predict", "m.npz", "breast_cancer", "--plugin", "mine"],
                          capture_output=True, check=True)  # fmt: skip
    assert b"accuracy" in done.stderr
    done = subprocess.run([*run, "predict", "m.npz", "breast_cancer"], capture_output=True)
    assert done.returncode == 1
    assert b"if it is your own, name its module with --plugin" in done.stderr


def test_the_names_of_a_plugin_are_told(tmp_path, apcg, monkeypatch):
    monkeypatch.setattr(losses.registry, "_REGISTERED", dict(losses.registry._REGISTERED))
    (tmp_path / "told_for_a_test.py").write_text(PLUGIN.split("class Renamed")[0])
    said = apcg(
        "train", "breast_cancer", "--loss", "softr", "--plugin", "told_for_a_test.py", code=2
    )
    assert "'softer_for_a_test'" in said


def test_a_plugin_that_fails_is_one_sentence(tmp_path, apcg):
    (tmp_path / "broken_for_a_test.py").write_text("1/0\n")
    said = apcg("train", "breast_cancer", "--plugin", "broken_for_a_test.py", code=2)
    assert "could not be loaded: ZeroDivisionError" in said
    assert "could not be loaded: ModuleNotFoundError" in apcg(
        "train", "breast_cancer", "--plugin", "nothing_there", code=2)  # fmt: skip


# ---- help --------------------------------------------------------------------------------------

#: What the examples of --help call their data, and what stands in for it here.
STAND_INS = {"a9a.t": "breast_cancer", "a9a": "breast_cancer", "text": "breast_cancer"}
#: What they are given besides, so that they end soon.
SHORTER = {
    "compare": "--max-passes 3 --no-plot",
    "reproduce": "--data rcv1 --alpha 1e-4 --passes 1",
}


def examples():
    """The lines of every --help that are commands, that of `apcg` too."""
    helps = [group, *group.commands.values()]
    lines = [line.strip() for each in helps for line in (each.help or "").splitlines()]
    found = [line for line in lines if re.match(r"(zcat .*\| |\w+=\S+ )?apcg [a-z]+ ", line)]
    # a model is trained before it is used
    return sorted(found, key=lambda line: "apcg train" not in line or "huge" in line)


@pytest.fixture
def files(tmp_path):
    """Those that the examples read."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": range(60), "x": rng.random(60), "left": rng.integers(0, 2, 60)})
    table.to_csv("customers.csv", index=False)
    table.rename(columns={"left": "y"}).to_parquet("huge.parquet")
    X = rng.random((60, 3))
    lines = (f"{int(row.sum() > 1.5)} 1:{row[0]} 2:{row[1]} 3:{row[2]}\n" for row in X)
    text = "".join(lines).encode()
    Path("huge.libsvm").write_bytes(text)
    Path("mine.libsvm.bz2").write_bytes(bz2.compress(text))
    for name in ("huge.libsvm.gz", "huge.gz", "part1.gz"):
        Path(name).write_bytes(gzip.compress(text))
    Path("data").mkdir()
    Path("data", "rcv1_subsets.binary").write_bytes(text)  # ~/data
    return tmp_path


def run_example(line):
    """In this process, or if it has words for a shell, in one."""
    words = [STAND_INS.get(word, word) for word in line.split()]
    short = SHORTER.get(words[words.index("apcg") + 1], "")
    if words[0] == "apcg":
        words = words[: words.index(">")] if ">" in words else words
        with pytest.raises(SystemExit) as left:
            main([*words[1:], *short.split()])
        return left.value.code
    env = os.environ | {"HOME": str(Path.cwd())}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    command = f"set -o pipefail; {' '.join(words)} {short}"
    return subprocess.run(["bash", "-c", command], env=env, stdout=subprocess.DEVNULL).returncode


@pytest.mark.usefixtures("files")
def test_the_examples_of_help_run(apcg):
    apcg("train", "breast_cancer", "--model", "m.npz")
    apcg("export", "m.npz", "liblinear.model")
    found = [line for line in examples() if line.startswith("apcg") and "reproduce" not in line]
    assert len(found) >= 20
    for line in found:
        assert run_example(line) in (0, 3), line


@pytest.mark.slow
@pytest.mark.usefixtures("files")
def test_the_examples_of_help_with_pipes_and_of_reproduce_run(apcg):
    apcg("train", "breast_cancer", "--loss", "logistic", "--model", "a9a.npz")
    found = [line for line in examples() if not line.startswith("apcg") or "reproduce" in line]
    assert len(found) >= 5
    for line in found:
        assert run_example(line) == 0, line
