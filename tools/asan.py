"""The kernels with address and undefined-behaviour sanitizers, and the tests that are about them.

python tools/asan.py            # short, as `make asan`
python tools/asan.py tests      # all tests, for long
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import overlay

FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g",
         "-fno-omit-frame-pointer")  # fmt: skip
#: Tests that call the kernels with every storage and length, without processes of their own.
TESTS = ["test_losses.py", "test_penalties.py", "test_data.py", "test_memory_safety.py",
         "test_dual_steps.py", "test_iterates.py", "test_certificate_edges.py", "test_fuzz.py",
         "test_outputs_guard.py", "test_outputs_losses.py", "test_working_set_kernels.py",
         "test_interior.py", "test_interior_l1.py", "test_columns_float32.py", "test_rows_sweep.py",
         "test_support_cg.py", "test_group_panels.py",
         "test_group_model.py", "test_small.py", "test_newton_ids.py",
         "test_softmax_float32.py"]  # fmt: skip


def main() -> int:
    """Build, run, say how it went."""
    runtime = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    env = os.environ | {
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",
        "OPENBLAS_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = overlay.copy(folder, kernels=False)
        for kernel in overlay.KERNELS:
            overlay.build(package, kernel, FLAGS)
        # those that start a process of their own would start it with the sanitizers too
        words = sys.argv[1:] or [overlay.tests(name) for name in TESTS]
        done = overlay.pytest(folder, *words, "-k", "not command", env=env)
    print(done.stdout[-3000:])
    print(done.stderr[-6000:], file=sys.stderr)
    found = "AddressSanitizer" in done.stderr or "runtime error" in done.stderr
    print("sanitizers:", "REPORTS" if found else "no report", f"(exit code {done.returncode})")
    return 1 if found else done.returncode


if __name__ == "__main__":
    sys.exit(main())
