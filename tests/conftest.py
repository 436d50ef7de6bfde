from hypothesis import settings

# The same examples on every machine and in every run; slow machines are not failures.
settings.register_profile("apcg", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("apcg")
