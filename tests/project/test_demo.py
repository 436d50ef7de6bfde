"""`make demo` works, and says what it should."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(example, folder):
    done = subprocess.run(
        [sys.executable, EXAMPLES / example, "--out", folder],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "Next" in done.stdout
    return done.stdout


def test_demo(tmp_path):
    out = tmp_path / "new" / "folder"
    said = run("demo.py", out)
    for name in ("breast_cancer", "text"):
        assert (out / f"{name}-convergence.png").read_bytes().startswith(b"\x89PNG")
        assert (out / f"{name}-convergence.pdf").read_bytes().startswith(b"%PDF")
        assert f"{name}-convergence.png" in said
    bounds = re.findall(r"optimum is between ([\d.]+) and (\d+\.\d+)", said)
    assert len(bounds) == 5
    for dual, primal in bounds:
        assert 0 < float(dual) <= float(primal) <= float(dual) * (1 + 1.1e-6)
    assert (out / "text.npz").exists()


def test_composite(tmp_path):
    picture = tmp_path / "new" / "folder" / "convergence.png"
    said = run("composite.py", picture.parent)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in said
    times_fewer = [float(t) for t in re.findall(r"([\d.]+) times fewer", said)]
    assert len(times_fewer) == 2
    assert min(times_fewer) > 3
    lines = said.splitlines()
    for method in (
        "apcg, gamma0 = 1 ",
        "apcg, gamma0 = mu ",
        "apcg, mu = 0 ",
        "rpcg, no momentum ",
    ):
        assert sum(line.startswith(method) for line in lines) == 2
