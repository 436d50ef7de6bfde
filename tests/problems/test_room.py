"""Memory is asked for before the work: K outputs take n K and d K numbers."""

import math
from pathlib import Path

import numpy as np
import pytest

from apcg import ERM, APCGClassifier, APCGClassifierCV
from apcg._base import memory
from apcg.cli import main

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
CLASSES = np.arange(40) % 8


@pytest.fixture
def small(monkeypatch):
    """A machine with room for so many bytes."""

    def change(size):
        monkeypatch.setattr(memory, "SMALL", 0.0)
        monkeypatch.setattr(memory, "available", lambda: float(size))

    return change


def need(n, d, K):
    return 8 * K * (memory.BY_SAMPLE * n + memory.BY_FEATURE * d)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ERM(X, CLASSES, "multinomial"),
        lambda: ERM(X, RNG.standard_normal((40, 8)), "squared"),
        lambda: APCGClassifier("logistic").fit(X, CLASSES),
        lambda: APCGClassifier("hinge").fit(X, CLASSES),
        lambda: APCGClassifierCV("hinge", alphas=[0.1]).fit(X, CLASSES),
    ],
)
def test_outputs_are_refused_where_there_is_no_room(ask, small):
    small(need(40, 3, 8))
    ask()
    small(need(40, 3, 8) - 1)
    with pytest.raises(MemoryError) as error:
        ask()
    said = str(error.value)
    assert "8 classes or outputs with 40 samples and 3 features" in said
    assert memory.gigabytes(need(40, 3, 8)) in said
    assert "are free. Give fewer" in said


def test_one_output_and_two_classes_are_not_asked_about(small):
    small(0)
    ERM(X, X[:, 0], "squared")
    APCGClassifier("hinge").fit(X, CLASSES > 3)


def test_what_is_small_is_not_asked_about(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1 / 0)
    ERM(X, CLASSES, "multinomial")


def test_a_number_for_each_sample_is_no_class(small):
    """20,000 of them asked for 20 GB and more, of 320 kB of data."""
    small(20e9)
    big = RNG.standard_normal((20_000, 2))
    for loss in ("logistic", "hinge"):
        with (
            pytest.warns(UserWarning, match="could represent a regression"),
            pytest.raises(MemoryError, match="are for a regression"),
        ):
            APCGClassifier(loss, max_epochs=1).fit(big, np.arange(20_000))


def test_the_command_says_it_too(small, tmp_path, capsys):
    """150 labels and one index of ten millions."""
    small(10e9)
    lines = [f"{k} 1:1 10000000:1" for k in range(150)]
    (tmp_path / "data").write_text("\n".join(lines))
    given = [str(tmp_path / "data"), "--loss", "multinomial", "--features", "10000000"]
    with pytest.raises(SystemExit, match="1"):
        main(["train", *given])
    said = capsys.readouterr().err
    assert said.startswith("error: 150 classes or outputs with 150 samples and 10,000,000 feat")
    assert "are free" in said


# ---- what there is ------------------------------------------------------------------------------


def files(monkeypatch, texts):
    """A machine with these files, and no others."""

    def read(path):
        if str(path) not in texts:
            raise FileNotFoundError(path)
        return texts[str(path)]

    monkeypatch.setattr(Path, "read_text", read)


def test_the_least_of_machine_group_and_process(monkeypatch):
    monkeypatch.setattr(memory, "_process", lambda: math.inf)
    files(monkeypatch, {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    4000 kB\n"})
    assert memory.available() == 4000 * 1024
    limit = {"/sys/fs/cgroup/memory.max": "3000000", "/sys/fs/cgroup/memory.current": "1000000"}
    files(monkeypatch, {"/proc/meminfo": "MemAvailable: 4000 kB", **limit})
    assert memory.available() == 2e6
    files(monkeypatch, {"/proc/meminfo": "MemAvailable: 4000 kB", **limit,
                        "/sys/fs/cgroup/memory.max": "max\n"})  # fmt: skip
    assert memory.available() == 4000 * 1024
    monkeypatch.setattr(memory, "_process", lambda: 5.0)
    assert memory.available() == 5.0


def test_an_older_group(monkeypatch):
    folder = "/sys/fs/cgroup/memory/memory."
    files(monkeypatch, {folder + "limit_in_bytes": "50", folder + "usage_in_bytes": "70"})
    assert memory._group() == 0.0


def test_ulimit(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10**9, 10**9))
    files(monkeypatch, {"/proc/self/statm": "1000 2 3"})
    assert memory._process() == 10**9 - 1000 * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY,) * 2)
    assert memory._process() == math.inf


def test_nothing_is_known(monkeypatch):
    files(monkeypatch, {})
    monkeypatch.setattr(memory.os, "sysconf", lambda name: 1 / 0 if name == "x" else 7)
    assert memory._machine() == 49.0
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory._machine() == math.inf
