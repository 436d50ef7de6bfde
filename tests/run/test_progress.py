"""The progress bar: on a terminal only."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import textwrap

import pytest

SHOW = """
    import numpy as np
    from apcg import functions, minimize
    f = functions.LeastSquares(np.eye(3) + 0.1, np.ones(3))
    minimize(f, tol=0.0, max_epochs=20, verbose={verbose}, check_every=1, random_state=0,
             callback=lambda c: __import__("time").sleep(0.001))
"""


def shown(verbose, terminal):
    """What the child writes to its standard error, a terminal or a pipe."""
    code = textwrap.dedent(SHOW.format(verbose=verbose))
    if not terminal:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")
        return done.stderr
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    child = subprocess.Popen([sys.executable, "-c", code], stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:  # Linux: the other end is closed
        pass
    finally:
        os.close(ours)
    assert child.wait() == 0
    return said.decode()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_without_a_terminal_there_is_no_bar(verbose):
    assert shown(verbose, terminal=False) == ""


def test_on_a_terminal_there_is_a_bar():
    assert shown(0, terminal=True) == ""
    bar = shown(2, terminal=True)
    assert "20/20" in bar
    assert "pass/s" in bar
    assert "residual=" in bar
    assert "/20" in shown(1, terminal=True)
