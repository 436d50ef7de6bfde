"""Data on disk: what is written is read, part by part, and damage is seen."""

import json
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

from apcg.data import by_row
from apcg.data.mapped import FolderError, Mapped, OnDisk, Writer


def data(kind, dtype=np.float64, n=60, d=7, seed=0):
    rng = np.random.default_rng(seed)
    M = rng.integers(-8, 9, (n, d)) / 4 * (rng.random((n, d)) < 0.6)
    M[:, 0] = 1
    X = sp.csr_array(M.astype(dtype)) if kind == "sparse" else M.astype(dtype)
    return X, rng.choice([-1.0, 1.0], n), M


def write(target, X, y, dtype=np.float64, step=13, part=400):
    with Writer(target, dtype, part=part) as out:
        for first in range(0, X.shape[0], step):
            some = slice(first, first + step)
            out.add(X[some], None if y is None else y[some])
        return out.finish("test")


def in_parts(path):
    """X of a folder, part by part, though it would fit."""
    return Mapped(OnDisk(path, memory_limit="20GB"))


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("border", [0.0, 0.5])
def test_products_are_those_of_the_matrix(tmp_path, kind, dtype, border):
    X, y, M = data(kind, dtype)
    write(tmp_path / "a.apcg", X, y, dtype)
    found = in_parts(tmp_path / "a.apcg")
    assert len(found._parts) > 3
    inside = OnDisk(tmp_path / "a.apcg").X
    for made in (found, inside):
        assert made.in_memory == (made is inside)
        made = made.bordered(border) if border else made
        A = np.hstack([M, np.full((len(M), 1), border)]) if border else M
        n, d = A.shape
        rng = np.random.default_rng(1)
        w, r, s = rng.integers(-4, 5, d) / 2, rng.integers(-4, 5, n) / 2, rng.integers(0, 3, n) / 2
        W, R = np.stack([w, -2 * w, w + 1], axis=1), np.stack([r, r + 1, -r], axis=1)
        assert made.shape == (n, d)
        assert made.sparse == (kind == "sparse")
        assert np.array_equal(made.times(w), A @ w)
        assert np.array_equal(made.adjoint(r), A.T @ r)
        assert np.array_equal(made.times(W), A @ W)
        assert np.array_equal(made.adjoint(R), A.T @ R)
        assert np.array_equal(np.triu(made.gram(s)), np.triu(A.T @ (s[:, None] * A)))
        assert np.array_equal(made.squared_norms(), (A**2).sum(axis=1))
        assert np.array_equal(made.column_squares(s), s @ A**2)
        assert made.largest() <= np.abs(M).max()
        whole = by_row(X, "X").bordered(border) if border else by_row(X, "X")
        assert np.array_equal(made.lengths, whole.lengths)
        assert made.gram_madds == whole.gram_madds
        assert np.array_equal(made.rows(np.array([50, 3, 3])).times(w), A[[50, 3, 3]] @ w)


def test_the_files_are_plain_npy(tmp_path):
    X, y, M = data("sparse")
    write(tmp_path / "a.apcg", X, y)
    load = {k: np.load(tmp_path / "a.apcg" / f"{k}.npy", mmap_mode="r") for k in
            ("data", "indices", "indptr", "y", "norms")}  # fmt: skip
    assert load["indices"].dtype == np.int32
    assert load["indptr"].dtype == np.int64
    made = sp.csr_array((load["data"], load["indices"], load["indptr"]), shape=M.shape)
    assert np.array_equal(made.toarray(), M)
    assert np.array_equal(load["y"], y)


def test_words_are_labels_too(tmp_path):
    X, y, _ = data("dense")
    words = np.where(y > 0, "yes", "no")
    header = write(tmp_path / "a.apcg", X, words)
    assert header.words == ["no", "yes"]
    assert np.array_equal(OnDisk(tmp_path / "a.apcg").y, words)


def test_columns_counted_anew(tmp_path):
    X, y, M = data("sparse")
    with Writer(tmp_path / "a.apcg", part=400) as out:
        out.add(X, y)
        out.shift_columns(1)
        out.add(sp.csr_array(np.hstack([np.ones((60, 1)), M])), y)
        out.finish()
    got = in_parts(tmp_path / "a.apcg").times(np.arange(8.0))
    assert np.array_equal(got, np.r_[M @ np.arange(1, 8), M @ np.arange(1, 8)])


@pytest.mark.parametrize("name", ["data", "indices", "indptr", "y", "norms"])
def test_a_flipped_byte_is_seen(tmp_path, name):
    X, y, _ = data("sparse")
    write(tmp_path / "a.apcg", X, y)
    path = tmp_path / "a.apcg" / f"{name}.npy"
    raw = bytearray(path.read_bytes())
    raw[200] ^= 1
    path.write_bytes(raw)

    def everything():
        opened = OnDisk(tmp_path / "a.apcg")
        return opened.X.times(np.zeros(7)), opened.y

    with pytest.raises(FolderError, match=r"damaged .* convert the data again"):
        everything()


@pytest.mark.parametrize("name", ["data.npy", "y.npy", "header.json"])
def test_a_file_that_is_cut_short_or_lost_is_seen(tmp_path, name):
    X, y, _ = data("sparse")
    write(tmp_path / "a.apcg", X, y)
    path = tmp_path / "a.apcg" / name
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FolderError, match="damaged"):
        OnDisk(tmp_path / "a.apcg")
    path.unlink()
    with pytest.raises(FolderError, match=r"damaged|not whole"):
        OnDisk(tmp_path / "a.apcg")


def test_a_header_that_was_edited_is_seen(tmp_path):
    X, y, _ = data("sparse")
    write(tmp_path / "a.apcg", X, y)
    path = tmp_path / "a.apcg" / "header.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "shape": [60, 8]}))
    with pytest.raises(FolderError, match="checksum"):
        OnDisk(tmp_path / "a.apcg")
    path.write_text(json.dumps({**said, "version": 99}))
    with pytest.raises(FolderError, match="version 99"):
        OnDisk(tmp_path / "a.apcg")


def test_half_written_starts_clean(tmp_path):
    X, y, M = data("sparse")
    target = tmp_path / "a.apcg"

    def interrupted():
        with Writer(target) as out:
            out.add(X, y)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    left = tmp_path / "a.apcg.writing"  # as a killed process leaves it
    left.mkdir()
    (left / "data.npy").write_bytes(b"half")
    with pytest.raises(FolderError, match="did not end"):
        OnDisk(left)
    write(target, X, y)
    write(target, X, y)  # over itself
    assert [each.name for each in tmp_path.iterdir()] == ["a.apcg"]
    assert np.array_equal(OnDisk(target).X.times(np.ones(7)), M.sum(axis=1))


def test_nothing_else_is_written_over(tmp_path):
    X, y, _ = data("dense")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(FolderError, match="something else"):
        write(tmp_path / "mine", X, y)
    with pytest.raises(FolderError, match="is a file"):
        write(tmp_path / "mine" / "thesis.txt", X, y)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "all of it"


def test_bad_rows_are_refused(tmp_path):
    X, y, M = data("dense")
    M[5, 2] = np.nan
    with pytest.raises(ValueError, match="row 5, column 2"):
        write(tmp_path / "a.apcg", M, y)
    with pytest.raises(ValueError, match="too large for float32"):
        write(tmp_path / "a.apcg", X * 1e300, y, np.float32)
    with Writer(tmp_path / "a.apcg") as out:
        out.add(X, y)
        with pytest.raises(ValueError, match="another kind"):
            out.add(X, y.astype(str))
    with pytest.raises(ValueError, match="no rows"), Writer(tmp_path / "a.apcg") as out:
        out.finish()
    assert not (tmp_path / "a.apcg").exists()


def test_limits_of_memory(tmp_path):
    X, y, _ = data("dense")
    write(tmp_path / "a.apcg", X, y)
    with pytest.raises(FolderError, match="too little"):
        OnDisk(tmp_path / "a.apcg", memory_limit="1MB").X  # noqa: B018
    with pytest.raises(ValueError, match="300MB"):
        OnDisk(tmp_path / "a.apcg", memory_limit="much")
    assert OnDisk(tmp_path / "a.apcg", memory_limit="2 GB").memory_limit == 2e9
    shutil.rmtree(tmp_path / "a.apcg")
    with pytest.raises(FolderError, match="no folder"):
        OnDisk(tmp_path / "a.apcg")
