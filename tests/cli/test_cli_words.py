"""What the command says: gaps by their names, passes, and our words for those of other programs."""

import json
import re
import sys

import numpy as np
import pytest

from apcg import datasets, losses
from apcg.certify.result import Status, gap_in_words, passes_in_words
from apcg.cli import common, main, problem

COMMANDS = ("info", "train", "cv", "predict", "export", "convert", "compare", "reproduce")


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


def labelled(path, labels, n=60):
    """A file whose first feature tells the label."""
    rows = [f"{labels[k % len(labels)]} {1 + k % len(labels)}:1 99:{k % 7}" for k in range(n)]
    path.write_text("\n".join(rows) + "\n")
    return path


# ---- the command line -------------------------------------------------------------------------


def test_help_teaches(apcg):
    said = apcg("--help")
    for word in (*COMMANDS, "APCG_DATA_DIR", "130"):
        assert word in said
    for command in COMMANDS:
        said = apcg(command, "--help")
        assert "--json" in said
        assert len(said.splitlines()) > 15
    for command in ([], *([name] for name in COMMANDS)):
        wide = [x for x in apcg(*command, "--help").splitlines() if len(x) > 80]
        assert wide == [], "a terminal of 80 columns breaks these"
    assert "apcg, version" in apcg("--version")


def test_the_command_line_is_checked(apcg):
    assert "No such command" in apcg("trian", code=2)
    assert "Invalid value for '--alpha'" in apcg("train", "text", "--alpha", "-1", code=2)
    assert "'sgd' is not one of auto" in apcg("compare", "text", "--methods", "sgd", code=2)
    assert "not a list of numbers" in apcg("compare", "text", "--alpha", "1e-5;1", code=2)
    assert "must be positive" in apcg("info", "text", "--alpha", "0", code=2)


def test_what_train_refuses(tmp_path, apcg):
    two, three = labelled(tmp_path / "two", (1, 4)), labelled(tmp_path / "three", (1, 2, 3))
    said = apcg("train", two, "--model", tmp_path / "no" / "m.npz", code=1)
    assert "no writable folder" in said
    said = apcg("train", two, "--test", three, "--model", "m.npz", code=1)
    assert "labels that the training data has not: 2.0, 3.0" in said
    assert not list(tmp_path.glob("*.npz"))


# ---- labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "loss"),
    [
        ((-1, 1), "smoothed_hinge"),
        (("ham", "spam"), "smoothed_hinge"),
        ((0, 1, 2), "multinomial"),
        (("red", "green", "blue"), "multinomial"),
        ((0.5, 1.25, 7.0), "squared"),
        (tuple(range(31)), "squared"),  # 31 kinds of 60 samples
    ],
)
def test_info_train_and_compare_agree_on_what_a_file_is(tmp_path, apcg, labels, loss):
    path = labelled(tmp_path / "d", labels)
    assert json.loads(apcg("info", path, "--json"))["loss"] == loss
    assert json.loads(apcg("train", path, "--json"))["loss"] == loss
    told = json.loads(apcg("compare", path, "--methods", "auto", "--no-plot", "--json"))
    assert told["loss"] == loss


def test_train_takes_many_classes_without_being_told(tmp_path, apcg):
    path = labelled(tmp_path / "d", ("red", "green", "blue"))
    for loss in ((), ("--loss", "logistic")):  # the softmax, as in the estimators
        said = apcg("train", path, *loss, "--model", "m.npz", "--test", path)
        assert "multinomial loss" in said
        assert "accuracy     1.0000" in said
    assert set(apcg("predict", "m.npz", path).split("accuracy")[0].split()) == {
        "red",
        "green",
        "blue",
    }


def test_what_is_taken_for_classes_is_said(tmp_path, apcg):
    path = labelled(tmp_path / "d", (1, 2, 3))
    said = "the 3 labels are taken for classes (for amounts give --loss squared)"
    assert said in apcg("train", path)
    assert said in apcg("compare", path, "--methods", "auto", "--no-plot")
    assert said not in apcg("train", path, "--loss", "multinomial")
    assert "squared loss" in apcg("train", path, "--loss", "squared")
    assert "labels are real numbers" in apcg("train", "diabetes")


def test_labels_that_suit_no_loss_are_refused(tmp_path, apcg):
    one = labelled(tmp_path / "one", (1,))
    assert "one class cannot be told from another" in apcg("train", one, code=1)
    real = labelled(tmp_path / "real", (0.5, 1.25, 7.0))
    said = apcg("train", real, "--loss", "logistic", code=1)
    assert "needs labels of two classes, got 3 (0.5, 1.25, 7.0)" in said
    assert "--loss squared" in said
    three = labelled(tmp_path / "three", (1, 2, 3))
    said = apcg("train", three, "--loss", "hinge", code=1)
    assert "for many classes take --loss logistic (the softmax) or multiclass_hinge" in said


def test_intercepts_are_shown_if_there_are_any(tmp_path, apcg):
    path = labelled(tmp_path / "d", (1, 1, 2, 3))
    assert "intercepts   " not in apcg("train", path, "--no-intercept")
    assert "intercepts   " in apcg("train", path)


def test_info_of_labels_that_do_not_suit_the_loss(tmp_path, apcg):
    path = labelled(tmp_path / "d", ("a", "b", "c"))
    assert "words" in json.loads(apcg("info", path, "--loss", "squared", "--json"))["note"]
    assert "words" in apcg("info", path, "--loss", "squared")


# ---- gaps and passes --------------------------------------------------------------------------


def test_gaps_have_their_names(apcg):
    said = apcg("train", "breast_cancer", "--loss", "logistic")
    (relative,) = re.findall(r"passes: relative gap (\S+) <= 1.00e-06\.", said)
    absolute, again = re.findall(r": gap (\S+), relative gap (\S+)\n", said)[0]
    dual, primal = map(float, re.findall(r"between (\S+) and (\S+):", said)[0])
    assert float(relative) == pytest.approx(float(again), rel=0.1)
    assert float(absolute) == pytest.approx(float(again) * primal, rel=0.1)
    assert float(absolute) == pytest.approx(primal - dual, rel=0.1)
    said = apcg("compare", "breast_cancer", "--methods", "auto", "--no-plot", "--alpha", "1e-3")
    assert "to a relative gap of" in said
    told = json.loads(apcg("compare", "breast_cancer", "--methods", "auto", "--no-plot", "--alpha",
                           "1e-3", "--json"))["runs"][0]  # fmt: skip
    end = re.findall(r"^auto .* (\S+)$", said, flags=re.MULTILINE)[0]
    assert float(end) == pytest.approx(told["gap"] / told["primal"], rel=0.1)


@pytest.mark.parametrize(
    ("gap", "words"),
    [(-4.62e-16, "0 to rounding"), (0.0, "0.00e+00"), (1e-7, "1.00e-07"), (-0.4, "-4.00e-01")],
)
def test_a_gap_below_zero_by_rounding_is_zero(gap, words):
    """One that is below by more is shown as it is: something is wrong then."""
    assert gap_in_words(gap) == words
    assert f"relative gap {words} <= " in Status.of("converged", 3, gap, 1e-6)


def test_one_pass_is_one_pass():
    assert [passes_in_words(k) for k in (0, 1, 2, 1000)] == [
        "0 passes", "1 pass", "2 passes", "1,000 passes"
    ]  # fmt: skip
    assert "after 1 pass:" in Status.of("converged", 1, 0.0, 1e-6)
    assert "residual 1.00e-08" in Status.of("converged", 1, 1e-8, 1e-6, "residual")


@pytest.mark.parametrize("code", ["max_epochs", "time_limit", "precision", "stuck", "interrupted"])
def test_the_command_counts_passes_only(code):
    said = Status.of(code, 7, 1e-3, 1e-6).told_to("command")
    assert "7 passes, at a relative gap 1.00e-03 (wanted 1.00e-06)" in said
    assert "epoch" not in said


def test_no_optimum_is_below_zero():
    """The losses and penalties of the command are never negative, so that 0 is a bound too."""
    assert common.optimum(-47.4, 0.0253) == (
        "optimum is between 0 (nothing here is negative; D = -47.4) and 0.0253"
    )
    assert common.optimum(0.02, 0.0253) == "optimum is between 0.02 and 0.0253"
    z = np.linspace(-3, 3, 41)
    for name in problem.LOSSES:
        loss = losses.by_name(name)
        if name in losses.names_of_classes():
            Z = np.stack([z, -z, z**2 - 4], axis=1)
            assert np.min(loss.value(Z, np.arange(z.size) % 3)) >= 0, name
        else:
            assert np.min(loss.value(z, np.where(z > 0, -1.0, 1.0))) >= 0, name


# ---- other programs ----------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--C", "-c"])
def test_c_is_answered_with_alpha(apcg, option):
    for command in ("train", "compare", "info"):
        said = apcg(command, "breast_cancer", option, "2", code=2)
        assert "there is no --C here. --alpha 1/(2 n) means the same" in said


@pytest.mark.parametrize(
    ("name", "ours"),
    [("log_loss", "logistic"), ("softmax", "multinomial"), ("crammer_singer", "multiclass_hinge")],
)
def test_names_of_losses_elsewhere(apcg, name, ours):
    assert f"Did you mean {ours!r}?" in apcg("train", "breast_cancer", "--loss", name, code=2)


# ---- help --------------------------------------------------------------------------------------


def test_no_summary_is_cut(apcg):
    said = apcg("--help")
    summaries = said.split("Commands:")[1].split("\n\n")[0]
    assert all(f"  {name} " in summaries for name in COMMANDS)
    assert "..." not in summaries


def test_a_seed_is_asked_for_only_where_something_is_random(apcg):
    for name in COMMANDS:
        assert ("--seed" in apcg(name, "--help")) == (
            name not in ("info", "predict", "export", "convert")
        )
        assert "random" not in apcg(name, "--help")


def test_the_list_says_what_there_is(apcg):
    assert json.loads(apcg("info", "--list", "--json")) == datasets.catalogue()
    said = apcg("info", "--list")
    assert re.search(r"^rcv1 +20,242 +47,236 +2 classes +the network$", said, re.MULTILINE)
    assert re.search(r"^diabetes +442 +10 +real numbers +scikit-learn$", said, re.MULTILINE)


# ---- without matplotlib, and interrupted -------------------------------------------------------


def test_reproduce_without_matplotlib_writes_the_rest(tmp_path, apcg, monkeypatch):
    (tmp_path / "DATA" / "rcv1_subsets.binary").write_text("1 1:1 2:1\n-1 1:-1\n1 2:2\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    said = apcg("reproduce", "--data", "rcv1", "--alpha", "1e-2", "--passes", "2", "--out", "p")
    assert "no figures: " in said
    assert "apcg[plot]" in said
    page = (tmp_path / "p" / "report.md").read_text()
    assert "There are no figures" in page
    assert "figure1.png" not in page
    assert (tmp_path / "p" / "curves" / "rcv1-1e-02.csv").exists()


def test_compare_says_that_it_was_interrupted(apcg, monkeypatch):
    module = sys.modules["apcg.cli.compare"]
    run = module.comparison.run
    monkeypatch.setattr(module.comparison, "run", lambda *a, **k: (run(*a, **k)[0], True))
    args = ("compare", "breast_cancer", "--methods", "auto", "--no-plot", "--alpha", "1e-2")
    said = apcg(*args, code=130)
    assert "interrupted: these are the runs until then." in said
    assert json.loads(apcg(*args, "--json", code=130))["interrupted"] is True
