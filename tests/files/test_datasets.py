"""Data sets by name, the cache, and generated data."""

import bz2
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apcg import ERM, datasets, solve
from apcg.datasets import DataError, cache, registry
from apcg.datasets.generate import BUILT_IN, text_like

TEXT = b"".join(b"%d 1:%f 5:1\n" % (1 + k % 2, k / 7) for k in range(1, 200))


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Data and cache folders of the test's own."""
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"APCG_{name}_DIR", str(tmp_path / name))
        (tmp_path / name).mkdir()
    return tmp_path


def put(name, content=TEXT):
    path = Path(os.environ["APCG_DATA_DIR"]) / name
    path.write_bytes(bz2.compress(content) if name.endswith("bz2") else content)
    return path


def same(a, b):
    assert a.shape == b.shape
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(a.X, part), getattr(b.X, part))
    np.testing.assert_array_equal(a.y, b.y)


# ---- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rcv1_subsets.binary.bz2", "rcv1_subsets.binary"])
def test_a_stand_in_is_found_and_named(name):
    path = put(name)
    data = datasets.load("rcv1")
    assert data.stand_in
    assert data.source == str(path)
    assert str(data) == f"rcv1 (stand-in {name})"


def test_the_file_itself_comes_before_a_stand_in(monkeypatch):
    monkeypatch.setitem(
        registry.ENTRIES, "rcv1", registry.Entry("rcv1_train.binary.bz2", 199, 7, "other")
    )
    put("other.bz2")
    path = put("rcv1_train.binary.bz2")
    data = datasets.load("rcv1")
    assert not data.stand_in
    assert data.source == str(path)
    assert data.shape == (199, 7)  # the collection's number of features, not the largest index


def test_a_file_of_the_wrong_size_is_refused():
    path = put("a9a")
    with pytest.raises(DataError, match=f"{path} has 199 samples, and a9a has 32561"):
        datasets.load("a9a")
    put("a9a", b"1 124:1\n")
    with pytest.raises(DataError, match="has a feature 124, and 123 features"):
        datasets.load("a9a")


def test_without_file_and_network_the_error_says_what_to_put_where(monkeypatch):
    monkeypatch.setattr(registry, "BASE", "http://127.0.0.1:9/")  # nobody listens
    with pytest.raises(DataError) as caught:
        datasets.load("rcv1")
    said = str(caught.value)
    for words in ("rcv1_train.binary.bz2", "rcv1_subsets.binary.bz2", "set APCG_DATA_DIR",
                  os.environ["APCG_DATA_DIR"], "http://127.0.0.1:9/rcv1_train"):  # fmt: skip
        assert words in said
    monkeypatch.delenv("APCG_DATA_DIR")
    with pytest.raises(DataError, match="APCG_DATA_DIR is not set"):
        datasets.load("a9a")


@pytest.fixture
def server(folders, monkeypatch):
    """A collection of one file, served from a folder by a server of our own."""
    shelf = folders / "served"
    shelf.mkdir()
    (shelf / "tiny").write_bytes(TEXT)
    monkeypatch.setitem(registry.ENTRIES, "tiny", registry.Entry("tiny", 199, 5))
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    run = subprocess.Popen(command, cwd=shelf, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = run.stdout.readline().decode()
    monkeypatch.setattr(registry, "BASE", said.split("(")[1].split(")")[0])
    yield shelf
    run.kill()
    run.wait()
    run.stdout.close()


def test_a_download_is_kept_and_held_to_its_checksum(server):
    first = datasets.load("tiny")
    kept = Path(first.source)
    assert kept.parent == cache.folder() / "downloads"
    assert kept.read_bytes() == TEXT
    (server / "tiny").unlink()
    same(datasets.load("tiny"), first)  # not asked for again
    kept.write_bytes(TEXT[:-50])
    with pytest.raises(DataError, match="could not be downloaded"):
        datasets.load("tiny")  # not taken as it is
    (server / "tiny").write_bytes(TEXT.replace(b"1:", b"2:"))
    with pytest.raises(DataError, match=r"could not be downloaded.*hash"):
        datasets.load("tiny")  # another file than at first
    (server / "tiny").write_bytes(TEXT)
    same(datasets.load("tiny"), first)


def test_half_a_download_without_a_checksum_is_not_trusted(server):
    place = cache.folder() / "downloads"
    place.mkdir()
    (place / "tiny").write_bytes(TEXT[: len(TEXT) // 2])
    assert datasets.load("tiny").shape == (199, 5)


# ---- the cache --------------------------------------------------------------------------------


def entry():
    (found,) = (cache.folder() / "parsed").iterdir()
    return found


def test_the_cache_is_used_and_mapped(monkeypatch):
    put("rcv1_subsets.binary.bz2")
    first = datasets.load("rcv1")
    monkeypatch.setattr(datasets.libsvm, "read", None)  # it must not be called again
    again = datasets.load("rcv1")
    same(first, again)
    assert not again.X.data.flags.writeable
    assert not again.X.data.flags.owndata
    assert not list((cache.folder() / "parsed").glob(".*"))


def test_mapped_data_can_be_solved():
    put("rcv1_subsets.binary")
    for _ in range(2):
        data = datasets.load("rcv1")
        r = solve(ERM(data.X, np.where(data.y == 1, 1, -1), alpha=0.1), random_state=0)
        assert r.converged


def test_a_changed_source_is_read_again():
    path = put("rcv1_subsets.binary")
    datasets.load("rcv1")
    path.write_bytes(TEXT + b"1 9:1\n")
    assert datasets.load("rcv1").shape == (200, 9)


@pytest.mark.parametrize("part", ["header.json", "data.npy", "indices.npy", "indptr.npy", "y.npy"])
@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "gone"])
def test_a_damaged_entry_is_named_and_made_again(part, harm):
    put("rcv1_subsets.binary")
    first = datasets.load("rcv1")
    path = entry() / part
    content = bytearray(path.read_bytes())
    if harm == "gone":
        path.unlink()
    else:
        middle = len(content) - 30 if part.endswith("npy") else content.index(b'"crc32"') + 10
        content[middle] ^= 1 if harm == "flip" else 0
        path.write_bytes(content if harm == "flip" else content[: middle * (harm == "cut")])
    with pytest.warns(UserWarning, match="is damaged") as caught:
        same(datasets.load("rcv1"), first)
    assert str(path.parent) in str(caught[0].message)
    same(datasets.load("rcv1"), first)  # without a warning


def test_a_cache_that_cannot_be_written_is_only_a_warning(folders, monkeypatch):
    blocked = folders / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("APCG_CACHE_DIR", str(blocked))
    put("rcv1_subsets.binary")
    with pytest.warns(UserWarning, match="APCG_CACHE_DIR"):
        assert datasets.load("rcv1").shape == (199, 5)


def test_small_files_with_a_path_are_not_kept(monkeypatch):
    path = put("mine.txt")
    datasets.load(path)
    assert not (cache.folder() / "parsed").exists()
    monkeypatch.setattr(datasets, "WORTH_KEEPING", 100)
    datasets.load(path)
    assert json.loads((entry() / "header.json").read_text())["source"]["path"] == str(path)


REAL = Path(os.environ.get("APCG_DATA_DIR", ".")) / "covtype.libsvm.binary.scale.bz2"
LOAD = """
import resource, time
from apcg import datasets
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
data = datasets.load("covtype")
spent = time.process_time() - start
more = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
arrays = sum(a.nbytes for a in (data.X.data, data.X.indices, data.X.indptr, data.y))
print(spent, more / arrays)
"""


@pytest.mark.skipif(not REAL.exists(), reason="no covtype in APCG_DATA_DIR")
def test_covtype_from_the_cache(monkeypatch):
    """Under a second of CPU, and no more memory than the arrays (5 % is for Python's own)."""
    monkeypatch.setenv("APCG_DATA_DIR", str(REAL.parent))
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", LOAD], capture_output=True, text=True, check=True
        )
    spent, share = map(float, done.stdout.split())
    assert spent < 1
    assert share < 1.05


# ---- generated --------------------------------------------------------------------------------


@given(
    n=st.integers(1, 60),
    d=st.integers(1, 80),
    share=st.floats(0, 1),
    condition=st.floats(1, 1e6),
    noise=st.floats(0, 2),
    seed=st.integers(0, 1000),
)
def test_text_like_is_what_was_asked_for(n, d, share, condition, noise, seed):
    k = max(1, round(share * d))
    X, y = text_like(n, d, k, condition=condition, noise=noise, random_state=seed)
    assert X.shape == (n, d)
    assert (np.diff(X.indptr) == k).all()
    assert (X.data > 0).all()
    for row in np.split(X.indices, X.indptr[1:-1]):
        assert np.unique(row).size == k
        assert row.min() >= 0
        assert row.max() < d
    np.testing.assert_allclose((X * X).sum(axis=1), 1)
    assert np.isin(y, (-1, 1)).all()
    again, _ = text_like(n, d, k, condition=condition, noise=noise, random_state=seed)
    np.testing.assert_array_equal(X.data, again.data)


def test_condition_is_the_spread_of_the_frequencies():
    d = 50
    for condition in (1.0, 100.0, 10_000.0):
        X, _ = text_like(40_000, d, 1, condition=condition)
        counts = np.bincount(X.indices, minlength=d)
        expected = np.log(condition) * np.log(d // 2 + 1) / np.log(d)
        np.testing.assert_allclose(np.log(counts[0] / counts[d // 2]), expected, atol=0.5)
    spread = []
    for condition in (1.0, 30.0, 1000.0):
        X, _ = text_like(20_000, 30, 5, condition=condition)
        spread.append(np.linalg.cond((X.T @ X).toarray()))
    assert spread == sorted(spread)


def test_noise_and_separability():
    X, y = text_like(500, 100, 10, noise=0.0)
    problem = ERM(X, y, "squared_hinge", alpha=1e-7)
    assert solve(problem, random_state=0).primal < 1e-3
    noisy = text_like(500, 100, 10, noise=1.0)[1]  # of the same samples
    assert 0.6 < np.mean(y == noisy) < 0.9


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="nonzeros must be at most d = 5, got 6"):
        text_like(3, 5, 6)
    with pytest.raises(ValueError, match="condition must be in"):
        text_like(condition=0.5)


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_data(name):
    data = datasets.load(name)
    assert data.source == data.name == str(data) == name
    assert data.y.shape == (data.shape[0],)
    assert name in datasets.names()
    (listed,) = [entry for entry in datasets.catalogue() if entry["name"] == name]
    assert (listed["n"], listed["d"]) == data.shape
    assert (listed["labels"] == "2 classes") == (np.unique(data.y).size == 2)


def test_the_catalogue_says_where_data_would_be_from(monkeypatch, tmp_path):
    def source(name):
        return {entry["name"]: entry["source"] for entry in datasets.catalogue()}[name]

    assert [entry["name"] for entry in datasets.catalogue()] == datasets.names()
    assert source("rcv1") == source("a9a") == "the network"
    monkeypatch.setenv("APCG_DATA_DIR", str(tmp_path))
    (tmp_path / "rcv1_subsets.binary").touch()
    assert source("rcv1") == f"{tmp_path / 'rcv1_subsets.binary'} (a stand-in)"
    (tmp_path / "rcv1_train.binary").touch()
    assert source("rcv1") == str(tmp_path / "rcv1_train.binary")
    downloads = cache.folder() / "downloads"
    downloads.mkdir(parents=True)
    (downloads / "a9a.sha256").touch()
    assert source("a9a") == "downloaded before"


def test_without_a_network_the_reason_is_a_sentence(monkeypatch):
    import pooch
    import requests

    answer = requests.Response()
    answer.status_code, answer.reason = 404, "Not Found"
    host = "www.csie.ntu.edu.tw"
    for error, why in (
        (requests.ConnectionError("HTTPSConnectionPool(<object>)"), f"no connection to {host}"),
        (requests.ConnectTimeout("HTTPSConnectionPool(<object>)"), f"{host} does not answer"),
        (requests.HTTPError(response=answer), f"{host} says 404 Not Found"),
        (requests.TooManyRedirects(), "TooManyRedirects"),
    ):

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr(pooch, "retrieve", fail)
        with pytest.raises(DataError, match=f"{why}. Put the file in a folder") as caught:
            datasets.load("a9a")
        assert "Pool" not in str(caught.value)
