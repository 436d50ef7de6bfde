"""Settings for all tests: examples are drawn from a fixed seed, and no test has a deadline."""

from hypothesis import settings

settings.register_profile("apcg", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("apcg")
