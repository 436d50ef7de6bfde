"""The command, as a process of its own; tests/cli/test_cli_words.py has what is quick."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest
from command import apcg

from apcg import ERM, datasets
from apcg.model import LinearModel

FOREVER = ("--max-passes", "10000000", "--tol", "1e-15", "--alpha", "1e-9", "--method", "sdca",
           "--loss", "hinge")  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"APCG_{name}_DIR", str(tmp_path / name))
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)


def answer(*args, **rest):
    """The JSON that the command prints, and nothing else."""
    done = apcg(*args, "--json", **rest)
    assert done.stderr == b""
    return json.loads(done.stdout, parse_constant=pytest.fail)


def error(*args, code=1, **rest):
    done = apcg(*args, code=code, **rest)
    assert done.stdout == b""
    return done.stderr.decode()


def text(labels, n=120, d=30):
    X, y = datasets.text_like(n, d, 5)
    lines = []
    for k in range(n):
        row = slice(X.indptr[k], X.indptr[k + 1])
        pairs = zip(X.indices[row] + 1, X.data[row].tolist(), strict=True)
        lines.append(f"{labels[int(y[k] > 0)]} " + " ".join(f"{j}:{v!r}" for j, v in pairs))
    return "\n".join(lines) + "\n"


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text(text((-1, 1)))
    return path


# ---- info -------------------------------------------------------------------------------------


def test_info(data):
    said = apcg("info", data).stdout.decode()
    assert "120 samples, 30 features, 600 nonzeros" in said
    found = answer("info", data, "--alpha", "1e-3,1e-6", "--loss", "logistic")
    assert found["row_norms"]["max"] == pytest.approx(1)
    assert found["sparsity"] == pytest.approx(600 / 3600)
    loaded = datasets.load(data)
    for row in found["alphas"]:
        problem = ERM(loaded.X, loaded.y, "logistic", alpha=row["alpha"])
        assert row["condition_number"] == pytest.approx(problem.condition_number)
        assert row["auto"]["side"] == "dual"
        assert row["auto"]["newton_passes"] > 0  # 30 features: it is an option
    hard = found["alphas"][1]["promised_passes"]
    assert hard["apcg"] < hard["sdca"]
    primal = answer("info", data, "--penalty", "l1")["alphas"][0]
    assert primal["auto"]["side"] == "primal"
    assert primal["auto"]["method"] == "working_set"
    tall = answer("info", "digits", "--alpha", "1e-4")["alphas"][0]["auto"]
    assert (tall["side"], tall["method"]) == ("primal", "newton")  # as train says
    assert primal["promised_passes"]["apcg"] is None


def test_a_stand_in_is_named_in_every_output(tmp_path):
    stand_in = tmp_path / "DATA" / "rcv1_subsets.binary"
    stand_in.write_text(text((-1, 1)))
    for command in ("info", "train", "compare"):
        assert b"stand-in rcv1_subsets.binary" in apcg(command, "rcv1", inside=True).stdout
        found = answer(command, "rcv1", inside=True)
        found = found.get("data", found)
        assert found["stand_in"] is True
        assert found["source"] == str(stand_in)


# ---- train and predict ------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [(-1, 1), (0, 1), (1, 2), ("ham", "spam"), (-0.5, 0.5)])
def test_train_and_predict_in_any_labels(labels, tmp_path):
    path, model = tmp_path / "t.svm", tmp_path / "m.npz"
    path.write_text(text(labels))
    found = answer("train", path, "--loss", "logistic", "--alpha", "1e-5", "--model", model,
                   "--test", path, "--intercept")  # fmt: skip
    c = found["certificate"]
    assert c["converged"]
    assert found["intercept"] == LinearModel.load(model).intercept != 0
    assert 0 <= c["gap"] <= 1e-6 * c["primal"]
    assert found["scores"]["measure"] == "accuracy"
    assert found["scores"]["test"] == found["scores"]["train"] > 0.8
    # to the labels of the file, and as accurate as was said
    said = apcg("predict", model, path).stdout.decode().split("\n")[:-1]
    given = [line.split()[0] for line in path.read_text().splitlines()]
    assert set(said) == set(map(str, labels))
    assert np.mean(np.array(said) == given) == pytest.approx(found["scores"]["test"])


def test_the_answer_is_that_of_the_library_bit_for_bit(data, tmp_path):
    loaded = datasets.load(data)
    apcg("train", data, "--loss", "logistic", "--alpha", "1e-4", "--model", "m.npz", "--seed", 3)
    apcg("train", data, "--loss", "logistic", "--alpha", "1e-4", "--model", "n.npz", "--seed", 3)
    model = LinearModel.load(tmp_path / "m.npz")
    assert model.w.tobytes() == LinearModel.load(tmp_path / "n.npz").w.tobytes()
    p = np.array(apcg("predict", "m.npz", data, "--probabilities").stdout.split(), dtype=float)
    assert p.tobytes() == model.probabilities(loaded.X).tobytes()
    z = answer("predict", "m.npz", data, "--decision")["predictions"]
    assert np.array(z, dtype=float).tobytes() == model.decision(loaded.X).tobytes()
    problem = ERM(loaded.X, loaded.y, "logistic", alpha=1e-4, intercept=True)
    assert problem.primal(model.w, model.intercept) == model.facts["certificate"]["primal"]


def test_regression_from_an_npz(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    np.savez(tmp_path / "r.npz", X=X, y=X @ [1, 2, 3, 4])
    found = answer("train", "r.npz", "--loss", "squared", "--alpha", "1e-8", "--model", "m.npz")
    assert found["scores"] == {"measure": "r2", "train": pytest.approx(1)}
    said = np.array(apcg("predict", "m.npz", "r.npz").stdout.split(), dtype=float)
    model = LinearModel.load("m.npz")
    np.testing.assert_array_equal(said, X @ model.w + model.intercept)
    np.savez(tmp_path / "wide.npz", X=np.ones((2, 5)))
    assert "has 5 features, and the model was trained with 4" in error(
        "predict", "m.npz", "wide.npz"
    )


def test_standard_input(data, tmp_path):
    content = data.read_bytes()
    found = answer("train", "-", "--model", "m.npz", stdin=content)
    assert found["data"]["n"] == 120
    direct = apcg("predict", "m.npz", data).stdout
    assert apcg("predict", "m.npz", "-", stdin=content).stdout == direct
    np.savez(tmp_path / "d.npz", X=datasets.load(data).X.toarray())
    npz = (tmp_path / "d.npz").read_bytes()
    assert apcg("predict", "m.npz", "-", stdin=npz).stdout == direct


def test_a_pipe_with_a_name(data):
    """As the shell makes it: apcg info <(zcat data.gz)"""
    command = f"{sys.executable} -m apcg info <(cat {data}) --json"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert json.loads(done.stdout)["n"] == 120


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_progress_bar_on_a_terminal_only(command, data):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    args = [sys.executable, "-m", "apcg", command, str(data), "--alpha", "1e-7"]
    run = subprocess.run(args, stdout=subprocess.PIPE, stderr=slave)
    shown = os.read(master, 100_000) if select.select([master], [], [], 0)[0] else b""
    os.close(slave)
    os.close(master)
    assert run.returncode == 0
    assert b"pass" in shown  # in pipes all other tests see nothing


def test_predictions_come_as_the_lines_do(data):
    """An answer to the first lines before there are more."""
    apcg("train", data, "--model", "m.npz")
    command = [sys.executable, "-m", "apcg", "predict", "m.npz", "-"]
    run = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for line in (b"0 1:1\n", b"0 2:1 3:1\n"):
        run.stdin.write(line)
        run.stdin.flush()
        assert run.stdout.readline().strip() in {b"1", b"-1"}
    rest, _ = run.communicate(timeout=60)
    assert rest == b""
    assert run.returncode == 0


def test_features_that_the_model_does_not_know(data):
    apcg("train", data, "--model", "m.npz")
    said = apcg("predict", "m.npz", "-", stdin=b"0 1:1\n\n0 30:1 31:1\n", code=1).stderr.decode()
    assert "standard input, line 3: feature 31 is not one of the model's" in said
    said = error("train", data, "--test", "-", stdin=b"1 99:1\n")
    assert "has a feature 99, and 30 features" in said
    found = answer("train", data, "--features", 99, "--test", "-", stdin=b"1 99:1\n")
    assert found["data"]["d"] == 99


@pytest.mark.parametrize("command", [("info",), ("train",), ("compare", "--max-passes", "2")])
def test_bad_data_is_one_sentence(command, tmp_path):
    first, *rest = command
    bad = tmp_path / "bad.svm"
    bad.write_text(text((0, 1)) + "1 4:x\n")
    assert error(first, bad, *rest).startswith(f"error: {bad}, line 121: '4:x' is not index:value")
    bad.write_bytes(b"BZh91AY&SY garbage")
    assert "damaged or cut short" in error(first, bad, *rest)
    assert "no file" in error(first, tmp_path / "missing.svm", *rest)
    assert "is a folder" in error(first, tmp_path, *rest)
    if os.geteuid():  # everything is readable to root
        bad.chmod(0)
        assert "cannot be read" in error(first, bad, *rest)


def test_bad_models(data, tmp_path):
    apcg("train", data, "--model", "m.npz")
    whole = (tmp_path / "m.npz").read_bytes()
    for content in (whole[:-20], whole[:500], b""):
        (tmp_path / "m.npz").write_bytes(content)
        assert "not a sound model file" in error("predict", "m.npz", data)
    assert "No such file" in error("predict", "none.npz", data)


def test_a_tolerance_not_reached_is_code_3(data, tmp_path):
    found = answer("train", data, "--max-passes", 1, "--tol", "1e-12", "--model", "m.npz", code=3)
    assert found["status"] == "max_epochs"
    assert LinearModel.load(tmp_path / "m.npz").facts["status"] == "max_epochs"


# ---- compare ----------------------------------------------------------------------------------


def test_compare(data, tmp_path):
    found = answer("compare", data, "--alpha", "1e-2,1e-4", "--out", "pictures", "--bound")
    assert [(r["alpha"], r["method"]) for r in found["runs"]] == [
        (a, m) for a in (1e-2, 1e-4) for m in ("auto", "apcg", "sdca", "afg")
    ]
    for alpha in (1e-2, 1e-4):
        rows = [r for r in found["runs"] if r["alpha"] == alpha]
        best, proof = min(r["primal"] for r in rows), max(r["dual"] for r in rows)
        assert proof <= best * (1 + 1e-15)
        for row in rows:
            assert row["primal"] - best <= row["gap"] + 1e-15
            passes = [p for p in row["passes"].values() if p is not None]
            assert passes == sorted(passes)
    for path, head in zip(found["plots"], (b"\x89PNG", b"%PDF"), strict=True):
        assert (tmp_path / path).read_bytes().startswith(head)
    done = apcg("compare", data, "--methods", "auto,afg", "--no-plot", "--loss", "hinge",
                "--alpha", "1e-2")  # fmt: skip
    assert b"afg is left out" in done.stderr
    said = done.stdout.decode()
    assert "passes (seconds) to a relative gap of" in said
    assert "The optimum is between" in said
    assert not (tmp_path / "out").exists()


# ---- reproduce --------------------------------------------------------------------------------


@pytest.fixture
def stand_ins(tmp_path):
    for name in ("rcv1_subsets.binary", "news20_bigram.binary"):
        (tmp_path / "DATA" / name).write_text(text((-1, 1), n=300, d=60))


def test_reproduce(tmp_path, stand_ins):
    found = answer("reproduce", "--data", "rcv1,news20", "--passes", 40, "--out", "p")
    assert [row["stand_in"] for row in found["table_1"]] == [True, True]
    assert [row["n"] for row in found["table_1"]] == [300, 300]
    assert len(found["claims"]) == 6
    page = (tmp_path / "p" / "report.md").read_text()
    assert "rcv1 is not the paper's file" in page
    assert "rcv1_subsets.binary (stand-in)" in page
    for claim in found["claims"]:
        assert claim["claim"] in page
        assert claim["holds_in"] + len(claim["exceptions"]) == claim["cells"]
    curves = sorted((tmp_path / "p" / "curves").iterdir())
    assert len(curves) == 10
    for path in curves:
        table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
        assert set(table["method"]) == {"apcg", "sdca", "afg"}
        assert (table["primal_minus_best"] >= 0).all()
        assert (table["gap"] >= table["primal_minus_best"] - 1e-12).all()
    for name in ("figure1", "figure2"):
        assert (tmp_path / "p" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "p" / f"{name}.pdf").read_bytes().startswith(b"%PDF")


# ---- Ctrl-C and broken pipes ------------------------------------------------------------------


def interrupt(*args):
    """Start, wait for the first line of output, let it work a while, send Ctrl-C."""
    command = [sys.executable, "-m", "apcg", *map(str, args)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = run.stdout.readline()
    time.sleep(2)
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    rest, err = run.communicate(timeout=120)
    assert run.returncode == 130, err.decode()
    assert b"Traceback" not in err
    return (first + rest).decode()


def test_interrupted_training_keeps_the_model(tmp_path):
    said = interrupt("train", "text", "--model", "m.npz", *FOREVER)
    assert "interrupted by the user" in said
    assert "certificate" in said
    model = LinearModel.load(tmp_path / "m.npz")
    assert model.facts["status"] == "interrupted"
    data = datasets.load("text")
    problem = ERM(data.X, data.y, "hinge", alpha=1e-9)
    assert problem.primal(model.w) < problem.primal(np.zeros(problem.d))


def test_interrupted_comparison_shows_what_there_is(tmp_path):
    said = interrupt("compare", "text", "--alpha", "1e-3,1e-9", "--max-passes", "10000000",
                     "--loss", "hinge", "--methods", "sdca,auto")  # fmt: skip
    assert "lambda = 0.001" in said
    assert (tmp_path / "out" / "text-convergence.png").exists()


def test_interrupted_reproduction_keeps_what_there_is(tmp_path, stand_ins):
    said = interrupt("reproduce", "--data", "rcv1", "--passes", "10000000", "--alpha", "1e-5,1e-12",
                     "--jobs", "1", "--out", "p")  # fmt: skip
    page = (tmp_path / "p" / "report.md").read_text()
    assert "Incomplete" in page
    assert list((tmp_path / "p" / "curves").iterdir())
    assert "The report is" in said


@pytest.mark.parametrize("what", ["info", "train", "compare"])
def test_ctrl_c_before_there_is_anything(what):
    command = [sys.executable, "-m", "apcg", what, "-"]  # waits for more input
    run = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdin.write(b"1 1:1\n")
    run.stdin.flush()
    left = b"."
    while left.strip(b"\0"):  # until it has read that, and has thus begun
        time.sleep(0.1)
        left = fcntl.ioctl(run.stdin, termios.FIONREAD, b"\0" * 4)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert b"Traceback" not in err


def test_ctrl_c_keeps_the_predictions(data):
    apcg("train", data, "--model", "m.npz", inside=True)
    command = [sys.executable, "-m", "apcg", "predict", "m.npz", "-"]
    run = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)  # fmt: skip
    run.stdin.write(b"0 1:1\n")
    run.stdin.flush()
    first = run.stdout.readline()
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=60) == 130
    assert first in {b"1\n", b"-1\n"}
    assert run.communicate() == (b"", b"interrupted.\n")


@pytest.mark.parametrize("what", ["predict", "info", "train", "compare", "reproduce"])
def test_a_broken_pipe_is_quiet(what, data, stand_ins):
    """The reader is gone before the first line is written."""
    apcg("train", data, "--model", "m.npz", inside=True)
    args = {
        "predict": ["m.npz", data],
        "compare": [data, "--no-plot"],
        "reproduce": ["--data", "rcv1", "--passes", "2"],
    }.get(what, [data])
    command = [sys.executable, "-m", "apcg", what, *map(str, args)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""
