"""`make demo` works, and says what it should."""

import re
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).resolve().parents[1] / "examples" / "demo.py"


def test_the_demo(tmp_path):
    done = subprocess.run(
        [sys.executable, DEMO, "--out", tmp_path / "new" / "folder"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    picture = tmp_path / "new" / "folder" / "convergence.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in done.stdout
    assert "Next:" in done.stdout
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
