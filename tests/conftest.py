"""Settings for all tests: examples are drawn from a fixed seed, and no test has a deadline."""

import signal

from hypothesis import settings

import apcg  # noqa: F401  after a change this rebuilds the kernels, once, before the workers start

settings.register_profile("apcg", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("apcg")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell that starts something in the background has it, and its children, ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
