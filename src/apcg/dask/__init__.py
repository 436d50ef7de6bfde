"""apcg on a Dask cluster: the same problems and estimators, the same certificates.

    APCGClassifier, APCGRegressor   as those of apcg, for dask arrays and dataframes
    ERM, solve                      the problem below them, and its solution

docs/scale.md says when to take these, and what they cost.
"""

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(f"apcg.dask needs Dask ({error}): pip install 'apcg[dask]'.") from None

from .estimators import APCGClassifier, APCGRegressor
from .problem import ERM, solve

__all__ = ["ERM", "APCGClassifier", "APCGRegressor", "solve"]
