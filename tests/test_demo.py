"""`make demo` works, and says what it should."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(example, picture):
    done = subprocess.run(
        [sys.executable, EXAMPLES / example, "--out", picture.parent],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in done.stdout
    assert "Next:" in done.stdout
    return done


def test_training(tmp_path):
    done = run("training.py", tmp_path / "new" / "folder" / "training.png")
    bounds = re.findall(r"between ([\d.]+) and ([\d.]+)\.$", done.stdout, flags=re.MULTILINE)
    assert len(bounds) == 3
    for dual, primal in bounds:
        assert 0 < float(dual) <= float(primal) <= float(dual) * (1 + 1e-8)


def test_composite(tmp_path):
    done = run("composite.py", tmp_path / "new" / "folder" / "convergence.png")
    times_fewer = [float(t) for t in re.findall(r"([\d.]+) times fewer", done.stdout)]
    assert len(times_fewer) == 2
    assert min(times_fewer) > 3
    lines = done.stdout.splitlines()
    for method in (
        "apcg, gamma0 = 1 ",
        "apcg, gamma0 = mu ",
        "apcg, mu = 0 ",
        "rpcg, no momentum ",
    ):
        assert sum(line.startswith(method) for line in lines) == 2
