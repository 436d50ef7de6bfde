"""The command `apcg`, as a process of its own or in this one."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from apcg.cli import main


def apcg(*args, code=0, stdin=None, inside=False):
    """The command as a process; `inside`, where that adds nothing, in this one (it is quicker)."""
    if inside:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
            main([*map(str, args)])
        assert left.value.code == code, err.getvalue()
        return subprocess.CompletedProcess(
            args, code, out.getvalue().encode(), err.getvalue().encode()
        )
    command = [sys.executable, "-m", "apcg", *map(str, args)]
    done = subprocess.run(command, capture_output=True, input=stdin, timeout=300)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done
