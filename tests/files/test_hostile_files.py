"""Files that somebody else made: data, models, the cache. A sentence and exit code 1, or an answer.

None ends in a traceback, in numbers that nobody trained, or in memory out of proportion to them.
"""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from apcg import datasets
from apcg._base.archive import Archive
from apcg._base.files import on_terminal
from apcg.cli import main
from apcg.datasets import DataError, cache, libsvm
from apcg.model.linear import FORMAT, LinearModel, _digest

LINES = b"1 1:1 2:0.5\n-1 2:1 3:1\n1 1:2 4:1\n-1 3:1\n"


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"APCG_{name}_DIR", str(tmp_path / name))
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.svm").write_bytes(LINES)


def command(*words):
    """(exit code, standard output, standard error) of the command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main([*map(str, words)])
    return left.value.code or 0, out.getvalue(), err.getvalue()


def refused(*words):
    code, out, err = command(*words)
    assert code == 1, err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err + out
    assert "please report" not in err
    return err


# ---- models (F4) --------------------------------------------------------------------------------


def model(path="m.npz", *, arrays=None, save=np.savez, **header):
    """A sealed model file, sound but for the changes."""
    parts = {"w": np.ones(4), "classes": np.array([-1.0, 1.0])} | (arrays or {})
    parts = {k: v for k, v in parts.items() if v is not None}
    told = {"format": FORMAT, "loss": "logistic", "intercept": 0.0, "zero_based": False,
            "facts": {}, "digests": {k: _digest(a) for k, a in parts.items()}}  # fmt: skip
    text = json.dumps(told | header)
    seal = hashlib.sha256(text.encode()).hexdigest()
    save(path, header=np.array(text), seal=np.array(seal), **parts)
    return path


def test_the_sound_one_predicts():
    assert command("predict", model(), "data.svm")[0] == 0
    squared = model("r.npz", arrays={"classes": None}, loss="squared")
    assert command("predict", squared, "data.svm")[1].split()[0] == "1.5"


FAULTS = {
    "w of two dimensions": {"arrays": {"w": np.ones((4, 1))}},
    "w of text": {"arrays": {"w": np.array(list("abcd"))}},
    "w of dates": {"arrays": {"w": np.zeros(4, "M8[s]")}},
    "w of records": {"arrays": {"w": np.zeros(4, "f8,i4")}},
    "w complex": {"arrays": {"w": np.ones(4) * 1j}},
    "w with NaN": {"arrays": {"w": np.array([1, np.nan, 1, 1])}},
    "w infinite": {"arrays": {"w": np.array([1, np.inf, 1, 1])}},
    "w empty": {"arrays": {"w": np.ones(0)}},
    "no w": {"arrays": {"w": None}},
    "one class": {"arrays": {"classes": np.array([1.0])}},
    "no class": {"arrays": {"classes": np.ones(0)}},
    "three classes": {"arrays": {"classes": np.arange(3.0)}},
    "classes without dimension": {"arrays": {"classes": np.array(1.0)}},
    "classes of two dimensions": {"arrays": {"classes": np.eye(2)}},
    "equal classes": {"arrays": {"classes": np.ones(2)}},
    "classes of dates": {"arrays": {"classes": np.array(["2020", "2021"], "M8[Y]")}},
    "classes of bytes": {"arrays": {"classes": np.array([b"a", b"b"])}},
    "classes with NaN": {"arrays": {"classes": np.array([1, np.nan])}},
    "no classes": {"arrays": {"classes": None}},
    "classes of a regression": {"loss": "squared"},
    "one more array": {"arrays": {"more": np.ones(3)}},
    "intercept null": {"intercept": None},
    "intercept text": {"intercept": "1"},
    "intercept a record": {"intercept": {}},
    "intercept a list": {"intercept": [1.0]},
    "intercept true": {"intercept": True},
    "intercept NaN": {"intercept": float("nan")},
    "intercept infinite": {"intercept": float("inf")},
    "zero_based text": {"zero_based": "no"},
    "zero_based a number": {"zero_based": 0},
    "facts a list": {"facts": []},
    "an unknown loss": {"loss": "squarred"},
    "a loss that is no name": {"loss": ["squared"]},
    "another format": {"format": "apcg-model-9"},
    "something more": {"colour": "red"},
    "digests a list": {"digests": []},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_sealed_model_that_is_none(fault):
    path = model(**FAULTS[fault])
    with pytest.raises(DataError, match=r"m\.npz is not a sound model file"):
        LinearModel.load(path)
    refused("predict", path, "data.svm", "--json")


def test_compressed_parts_are_refused_before_they_are_expanded():
    path = model(save=np.savez_compressed)
    with pytest.raises(DataError, match="compressed arrays"):
        LinearModel.load(path)


def test_a_part_that_nothing_names_is_not_read(monkeypatch):
    read = []
    whole = Archive.read
    monkeypatch.setattr(Archive, "read", lambda s, n, *a: read.append(n) or whole(s, n, *a))
    path = model(arrays={"more": np.zeros(10**6)})
    with pytest.raises(DataError, match="not a sound model file"):
        LinearModel.load(path)
    assert "more" not in read


def test_what_cannot_be_a_path():
    for wrong in (None, 3, b"m.npz"):
        with pytest.raises(TypeError, match="path must be a path"):
            LinearModel.load(wrong)
    for wrong in ("a" * 5000, "m\0.npz"):
        with pytest.raises(DataError):
            LinearModel.load(wrong)
        with pytest.raises(DataError, match="neither a file nor the name"):
            datasets.load(wrong)


# ---- memory (F5) --------------------------------------------------------------------------------


def test_a_line_without_end(monkeypatch):
    monkeypatch.setattr(libsvm, "LINE", 5000)
    Path("long.svm").write_bytes(LINES + b"1 1:1" + b" " * 4000 + b"\n" + b"1" * 100_000)
    assert "long.svm, line 6 has more than 5,000 bytes" in refused("train", "long.svm")


def test_a_long_line_is_whole(monkeypatch):
    """Pieces are joined as they come; a line may be longer than many of them."""
    row = " ".join(f"{k}:{k}" for k in range(1, 2000)).encode()
    text = LINES + b"1 " + row + b"\n-1 1:1"
    parts = libsvm.pieces(io.BytesIO(text), "long", size=64)
    assert b"".join(piece for _, piece in parts) == text


def test_nul_is_no_text():
    for text, line in ((LINES + b"1 1:1\0\n", 5), (b"\0" * 100, 1)):
        Path("nul.svm").write_bytes(text)
        assert f"nul.svm, line {line}: there is a NUL byte" in refused("train", "nul.svm")


@pytest.mark.parametrize("content", [b"PK\5\6" + b"a" * 18, b"\x7fELF\x02 1:1\n", b"\xff\xd8\xff"])
def test_other_files_are_not_taken_for_words(content):
    Path("binary").write_bytes(content)
    assert "no text" in refused("predict", model(), "binary")
    assert "no text" in refused("train", "binary")


def test_what_expands_out_of_proportion(monkeypatch):
    monkeypatch.setattr(libsvm, "FREE", 10_000)
    Path("bomb.gz").write_bytes(gzip.compress(b"1\n" * (1 << 20)))
    assert "bytes expand to more than" in refused("train", "bomb.gz")
    Path("usual.gz").write_bytes(gzip.compress(LINES * 50))
    assert datasets.load("usual.gz").shape == (200, 4)


def test_an_npz_that_expands_out_of_proportion(monkeypatch):
    monkeypatch.setattr("apcg._base.archive.FREE", 10_000)
    np.savez_compressed("bomb.npz", X=np.zeros((1000, 1000)), y=np.arange(1000))
    assert "would expand to" in refused("train", "bomb.npz")
    rng = np.random.default_rng(0)
    np.savez_compressed("usual.npz", X=rng.random((100, 10)), y=rng.integers(2, size=100))
    assert datasets.load("usual.npz").shape == (100, 10)


def test_a_header_that_claims_more_than_there_is():
    for shape in ((10**15,), (3, 2**61), (-1, 4), (2, 1)):  # more than there is, and less
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            head, {"descr": "<f8", "fortran_order": False, "shape": shape}
        )
        with zipfile.ZipFile("claim.npz", "w") as made:
            made.writestr("X.npy", head.getvalue() + b"\0" * 32)
        with pytest.raises(DataError, match=r"claim\.npz is not a sound \.npz file.*X says that"):
            datasets.load("claim.npz")


def test_one_stray_index():
    Path("wide.svm").write_bytes(LINES + b"1 100000000:1\n")
    err = refused("train", "wide.svm")
    assert "100,000,000 features" in err
    assert "in sample 5 of 5" in err
    np.savez("wide.npz", data=np.ones(2), indices=np.array([0, 3]), indptr=np.arange(3),
             shape=[2, 10**15], y=np.array([1, -1]))  # fmt: skip
    assert "1,000,000,000,000,000 features" in refused("train", "wide.npz")
    assert datasets.load("wide.svm", n_features=10**8).shape == (5, 10**8)


# ---- the command (F6, F7, F12) ------------------------------------------------------------------


def test_labels_of_an_npz():
    X = np.eye(4)
    for y in (np.array([1j, 2, 1j, 2]), np.array([b"a", b"b", b"a", b"b"]),
              np.array(["2020", "2021"] * 2, "M8[Y]"), np.zeros(4, "f8,i4")):  # fmt: skip
        np.savez("y.npz", X=X, y=y)
        assert "expected numbers or words" in refused("train", "y.npz")


HEADERS = {
    "no facts": lambda h: h.pop("facts"),
    "no zero_based": lambda h: h.update(facts={}),
    "zero_based text": lambda h: h.update(facts={"zero_based": "no"}),
    "arrays a list": lambda h: h.update(arrays=[]),
    "an array fewer": lambda h: h["arrays"].pop("y"),
    "an array of another place": lambda h: h["arrays"].update({"../data": h["arrays"]["data"]}),
    "told nothing": lambda h: h["arrays"].update(data=None),
}


def cached(monkeypatch):
    monkeypatch.setattr(datasets, "WORTH_KEEPING", 0)
    found = datasets.load("data.svm")
    (place,) = (cache.folder() / "parsed").iterdir()
    return found, place


@pytest.mark.parametrize("fault", HEADERS)
def test_a_cache_header_that_is_none(fault, monkeypatch):
    found, place = cached(monkeypatch)
    header = json.loads((place / cache.HEADER).read_text())
    HEADERS[fault](header)
    (place / cache.HEADER).write_text(json.dumps(header))
    with pytest.warns(UserWarning, match="is damaged"):
        again = datasets.load("data.svm")
    np.testing.assert_array_equal(again.X.toarray(), found.X.toarray())


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("data", np.array(list("abcdefgh"))),
        ("data", np.ones(3)),
        ("indices", np.full(7, -1, dtype=np.int32)),
        ("indices", np.full(7, 0.5)),
        ("indptr", np.array([0, 2, 1, 6, 7], dtype=np.int32)),
        ("y", np.ones(9)),
        ("y", np.ones((4, 1))),
        ("y", np.ones(4) * 1j),
    ],
    ids=str,
)
def test_cache_arrays_with_right_checksums_that_are_no_matrix(name, array, monkeypatch):
    found, place = cached(monkeypatch)
    header = json.loads((place / cache.HEADER).read_text())
    header["arrays"][name] = cache._describe(array)
    np.save(place / f"{name}.npy", array)
    (place / cache.HEADER).write_text(json.dumps(header))
    with pytest.warns(UserWarning, match="is damaged"):
        again = datasets.load("data.svm")
    np.testing.assert_array_equal(again.X.toarray(), found.X.toarray())


def test_a_source_that_changes_and_keeps_its_size(monkeypatch):
    found, _ = cached(monkeypatch)
    before = Path("data.svm").stat()
    Path("data.svm").write_bytes(LINES.replace(b"4:1", b"4:9"))
    os.utime("data.svm", ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    assert Path("data.svm").stat().st_size == before.st_size
    assert datasets.load("data.svm").X.max() == 9
    assert found.X.max() == 2


def test_an_exception_that_nobody_expected_is_still_one_sentence(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(datasets, "load", broken)
    code, _, err = command("train", "data.svm")
    assert code == 1
    assert err.startswith("error: ZeroDivisionError: by nought")
    assert "please report" in err


def test_an_error_without_words_has_its_name(monkeypatch):
    def out_of_memory(*_, **__):
        raise MemoryError

    def silent(*_, **__):
        raise OSError

    monkeypatch.setattr(datasets, "load", out_of_memory)
    assert "not enough memory" in refused("train", "data.svm")
    monkeypatch.setattr(datasets, "load", silent)
    assert refused("train", "data.svm") == "error: OSError\n"


def test_numbers_of_hundreds_of_digits():
    assert (
        "max_epochs must be below 2^62"
        in command("train", "data.svm", "--max-passes", "1" * 401)[2]
    )
    assert command("train", "data.svm", "--features", "1" * 401)[0] == 2
    assert command("train", "data.svm", "--seed", "1" * 401)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_streams(closed):
    """With a stream closed the interpreter has None in its place."""
    source = "-" if closed == "<&-" else "data.svm"
    line = f"{sys.executable} -m apcg train {source} --model closed.npz {closed}"
    if subprocess.run(f"{sys.executable} -c 'import numpy.f2py' {closed}", shell=True).returncode:
        pytest.skip("this NumPy wants standard error")
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr
    if closed == "<&-":
        assert done.returncode == 1
        assert "standard input is not a stream of bytes" in done.stderr
    else:
        assert done.returncode == 0
        assert LinearModel.load("closed.npz").n_features == 4


def test_nobody_watches_a_closed_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert not on_terminal()


def test_ctrl_c_during_the_imports():
    """Whatever module is being loaded at that moment: here the first that the command needs."""
    code = (
        "import sys, runpy\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "runpy.run_module('apcg', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 130
    assert done.stderr == "interrupted.\n"


def test_the_package_loads_nothing_until_it_is_asked():
    code = (
        "import sys, apcg; print('numpy' in sys.modules); apcg.ERM; print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_json_of_predictions_that_are_not_finite():
    big = model("big.npz", arrays={"w": np.full(4, 1e308), "classes": None}, loss="squared")
    code, out, _ = command("predict", big, "data.svm", "--json")
    assert code == 0
    said = json.loads(out, parse_constant=pytest.fail)
    assert said["predictions"][2] is None


def test_json_ends_as_json_after_an_error(monkeypatch):
    monkeypatch.setattr(libsvm, "BATCH", 16)
    Path("late.svm").write_bytes(LINES + b"1 9:1\n")
    code, out, err = command("predict", model(), "late.svm", "--json")
    said = json.loads(out, parse_constant=pytest.fail)
    assert code == 1
    assert len(said["predictions"]) >= 1
    assert said["error"] in err
