"""Settings for all tests: examples are drawn from a fixed seed, and no test has a deadline."""

import signal

import pytest
from hypothesis import settings
from quick import EXAMPLES, QUICK_EXAMPLES, quick_ones

import apcg  # noqa: F401  after a change this rebuilds the kernels, once, before the workers start

for name, count in (("apcg", EXAMPLES), ("quick", QUICK_EXAMPLES)):
    settings.register_profile(name, deadline=None, derandomize=True, max_examples=count)
settings.load_profile("apcg")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell that starts something in the background has it, and its children, ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items):
    """Of a family marked `slow(but=k)` the k that are not slow lose the mark."""
    quick = quick_ones(items)
    for item in items:
        if item.nodeid in quick:
            item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "slow"]
