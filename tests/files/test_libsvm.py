"""LIBSVM text and .npz: what is read, what is refused and how it is named."""

import bz2
import gzip
import io
import lzma
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from apcg import datasets
from apcg.datasets import DataError, libsvm

TEXT = b"+1 1:0.5 3:2 # a comment\n\n-1 2:1e-3\n1\n"


def dump(X, y):
    """LIBSVM text that loses nothing (scikit-learn writes 16 digits, and 17 may be needed)."""
    rows = []
    for label, row in zip(y.tolist(), sp.csr_array(X), strict=True):
        row = sp.coo_array(row)
        pairs = sorted(zip(row.coords[-1].tolist(), row.data.tolist(), strict=True))
        rows.append(" ".join([repr(label), *(f"{j + 1}:{v!r}" for j, v in pairs)]))
    return ("\n".join(rows) + "\n").encode()


def write(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("pack", [bytes, bz2.compress, gzip.compress, lzma.compress])
def test_plain_and_compressed_are_the_same(pack, tmp_path):
    # what counts is the content, not the name
    data = datasets.load(write(tmp_path / "some.file", pack(TEXT)))
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 2], [0, 1e-3, 0], [0, 0, 0]])
    np.testing.assert_array_equal(data.y, [1, -1, 1])
    assert data.zero_based is False
    assert data.source == str(tmp_path / "some.file")


@given(
    X=st.integers(0, 2**32 - 1).map(
        lambda s: sp.random(9, 7, 0.4, format="csr", rng=np.random.default_rng(s))
    ),
    size=st.integers(1, 200),
)
def test_pieces_of_any_size_give_the_rows(X, size):
    """Every value comes back bit for bit, wherever the text is cut."""
    y = np.arange(9.0)
    whole, parser = dump(X, y), libsvm.Parser("file")
    for at_once in (False, True):
        stream = io.BufferedReader(io.BytesIO(whole))
        got = list(libsvm.pieces(stream, "file", size=size, at_once=at_once))
        assert b"".join(text for _, text in got) == whole
        assert [line for line, _ in got] == [
            1 + sum(t.count(b"\n") for _, t in got[:k]) for k in range(len(got))
        ]
        parts = [p for piece in got if (p := parser(*piece)) is not None]
        rows = libsvm.join(parts)
        again = libsvm.matrix(rows, 7, False if X.nnz else None, "file")
        assert (abs(again - sp.csr_array(X)) != 0).nnz == 0
        np.testing.assert_array_equal(rows.y, y)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"1 3:x", "'3:x' is not index:value"),
        (b"1 3:", "'3:' is not index:value"),
        (b"1 3", r"'3' is not index:value. If this is CSV, .* --target NAME"),
        (b"1 1:1 qid:3 2:1", "'qid:3' must come right after the label"),
        (b"1 a:1", "'a:1' is not index:value"),
        (b"1 -2:1", "'-2:1' is not index:value"),
        (b"1 3:1 2:1", "feature 2 comes after 3. Sort .*`Data` of the documentation"),
        (b"1 3:1 3:1", "feature 3 comes after 3"),
        (b"1 3:nan", "not finite"),
        (b"1 3:1e999", "not finite"),
        (b"1 99999999999:1", "too large"),
        (b"nan 3:1", "label 'nan' is not a finite number"),
        (b"spam 3:1", "label 'spam' is not a finite number"),
        (b"2:1 3:1", "put one first"),
        (b"1,2 3:1", r"not one label. If this is CSV, .* --target NAME"),
        (b"\xff\xfe 3:1", "which is no text"),
    ],
)
def test_a_malformed_line_is_named(line, words, tmp_path):
    path = write(tmp_path / "bad.txt", TEXT + line + b"\n1 1:1\n")
    with pytest.raises(DataError, match=words) as caught:
        datasets.load(path)
    assert f"{path}, line 5: " in str(caught.value)


def test_lines_that_are_no_text_are_counted_right(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm, "_row_fault", lambda *_: "")  # what it does not know
    with pytest.raises(DataError, match="lines 1 to 2 are not LIBSVM text"):
        datasets.load(write(tmp_path / "bad.txt", b"1 1:1\n1 x\n"))


def test_the_line_is_right_in_a_late_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm.pieces, "__kwdefaults__", {"size": 64, "at_once": False})
    path = write(tmp_path / "bad.txt", b"1 1:1\n" * 500 + b"1 1:y\n")
    with pytest.raises(DataError, match="line 501: '1:y'"):
        datasets.load(path)


def test_labels_may_be_words(tmp_path):
    data = datasets.load(write(tmp_path / "w", b"spam 1:1\nham 2:3 # x\n\nspam\n"))
    assert data.y.tolist() == ["spam", "ham", "spam"]
    np.testing.assert_array_equal(data.X.toarray(), [[1, 0], [0, 3], [0, 0]])
    with pytest.raises(DataError, match="line 2: '2:x'"):
        datasets.load(write(tmp_path / "w", b"spam 1:1\nham 2:x\n"))
    with pytest.raises(DataError, match="line 2: it begins with '1:1'"):
        datasets.load(write(tmp_path / "w", b"spam 1:1\n1:1 2:1\n"))
    with pytest.raises(DataError, match="line 1: 'a,b,c' is not one label"):
        datasets.load(write(tmp_path / "w", b"a,b,c\n1,2,3\n"))


def test_counting_from_zero(tmp_path):
    path = write(tmp_path / "z", b"1 0:1 2:5\n-1 1:1\n")
    assert datasets.load(path).shape == (2, 3)
    assert datasets.load(path).zero_based is True
    with pytest.raises(DataError, match="from 0, and from 1 was expected"):
        datasets.load(path, zero_based=False)
    path = write(tmp_path / "one", b"1 1:1 2:5\n")
    np.testing.assert_array_equal(datasets.load(path, zero_based=True).X.toarray(), [[0, 1, 5]])
    assert datasets.load(path, n_features=9).shape == (1, 9)
    with pytest.raises(DataError, match="has a feature 2, and 1 features, numbered from 1"):
        datasets.load(path, n_features=1)


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress, lzma.compress])
@pytest.mark.parametrize("harm", ["cut", "flip"])
def test_a_damaged_file_is_named(pack, harm, tmp_path):
    rng = np.random.default_rng(0)
    text = b"".join(b"1 1:%f\n" % v for v in rng.random(20_000))
    packed = bytearray(pack(text))
    if harm == "cut":
        packed = packed[: len(packed) // 2]
    else:
        packed[len(packed) // 2] ^= 0xFF
    path = write(tmp_path / "packed", bytes(packed))
    with pytest.raises(DataError, match="damaged or cut short") as caught:
        datasets.load(path)
    assert str(path) in str(caught.value)


def test_what_is_no_data(tmp_path):
    with pytest.raises(DataError, match="has no samples"):
        datasets.load(write(tmp_path / "empty", b"\n# nothing\n"))
    with pytest.raises(DataError, match="is a folder"):
        datasets.load(tmp_path)
    with pytest.raises(DataError, match="no file"):
        datasets.load(tmp_path / "missing.svm")
    with pytest.raises(DataError, match="Did you mean 'rcv1'"):
        datasets.load("rcv")


def test_npz(tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.array(["a", "b", "a"])
    path = tmp_path / "dense.npz"
    np.savez(path, X=X, y=y)
    data = datasets.load(path)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    path = tmp_path / "sparse.npz"
    sp.save_npz(path, sp.csr_matrix(X))
    data = datasets.load(path)
    np.testing.assert_array_equal(data.X.toarray(), X)
    assert data.y is None


def test_npz_that_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    for arrays, words in (
        ({"A": np.eye(2)}, "has the arrays A; expected X and y"),
        ({"X": np.array([{}], dtype=object)}, "not a sound"),
        ({"X": np.eye(2), "y": np.ones(3)}, r"y of shape \(3,\)"),
        ({"X": np.array([["a"]])}, "a matrix of numbers"),
        ({"X": np.array([[np.nan]])}, "not finite"),
        ({"X": np.ones(3)}, "a matrix of numbers"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(DataError, match=words):
            datasets.load(path)
    np.savez(path, X=np.random.default_rng(0).random((50, 50)), y=np.ones(50))
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:5000] + b"XX" + whole[5002:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a sound"):
            datasets.load(path)


def test_batches_read_through_a_file(tmp_path, monkeypatch):
    X, y = datasets.text_like(300, 50, 5)
    path = write(tmp_path / "x.svm", dump(X, y))
    monkeypatch.setattr(libsvm, "BATCH", 1000)
    parts = list(datasets.batches(path, 50, zero_based=False))
    assert len(parts) > 5
    assert abs(sp.vstack([x for x, _ in parts]) - X).max() == 0
    assert np.array_equal(np.concatenate([labels for _, labels in parts]), y)
    with pytest.raises(DataError, match=r"x.svm, line \d+: feature \d+ is not one of the model's"):
        list(datasets.batches(path, 20, zero_based=False))
    Path(path).write_bytes(b"1 1:1\n\n1 0:1\n")
    with pytest.raises(DataError, match="line 3: feature 0"):
        list(datasets.batches(path, 20, zero_based=False))
