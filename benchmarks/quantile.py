"""Quantile regression: apcg.linear_model.QuantileRegressor, scikit-learn's and statsmodels'.

    python benchmarks/quantile.py                    # n = 10,000 and n = 1,000,000, d = 20
    python benchmarks/quantile.py --samples 10000    # without the large one

Times are those of the processor, in seconds, one thread, in turn, the best of some rounds. "above"
is how far the objective is above the best one seen, relative to that.
"""

import argparse
import time
import warnings

import numpy as np
import sklearn.linear_model
from threadpoolctl import threadpool_limits

from apcg import linear_model


def objective(coef, intercept, X, y, q, alpha):
    """The mean pinball loss, and alpha |w|_1."""
    r = y - X @ coef - intercept
    return np.maximum(q * r, (q - 1) * r).mean() + alpha * np.abs(coef).sum()


def by_sklearn(kind):
    """What trains a class: coefficients, intercept and the model."""

    def fit(X, y, q, alpha):
        model = kind(quantile=q, alpha=alpha).fit(X, y)
        return model.coef_, model.intercept_, getattr(model, "duality_gap_", None)

    return fit


def by_statsmodels(X, y, q, alpha):
    """`QuantReg`, which has no penalty."""
    from statsmodels.regression.quantile_regression import QuantReg

    if alpha:
        return None
    A = np.column_stack([X, np.ones(len(y))])
    found = QuantReg(y, A).fit(q=q, max_iter=10_000, p_tol=1e-12).params
    return found[:-1], found[-1], None


def data(n, d=20):
    """Normal X, errors with heavy tails, whose size depends on a feature."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + (1 + 0.5 * np.abs(X[:, 0])) * rng.standard_t(3, n)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, action="append", help="10000 and 1000000")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    kinds = {
        "apcg": by_sklearn(linear_model.QuantileRegressor),
        "scikit-learn": by_sklearn(sklearn.linear_model.QuantileRegressor),
        "statsmodels": by_statsmodels,
    }
    print("| n | quantile | alpha | | seconds | above | gap |\n|---|---|---|---|---|---|---|")
    for n in given.samples or [10_000, 1_000_000]:
        X, y = data(n)
        cases = [(0.5, 0.0), (0.9, 0.0), (0.5, 0.01), (0.9, 0.01)] if n <= 100_000 else [(0.5, 0.0)]
        for q, alpha in cases:
            names = kinds if n <= 100_000 else ["apcg"]
            best, found = dict.fromkeys(names, np.inf), {}
            for _ in range(given.rounds if n <= 100_000 else 1):
                for name in names:
                    with warnings.catch_warnings(), threadpool_limits(1):
                        warnings.simplefilter("ignore")
                        began = time.process_time()
                        found[name] = kinds[name](X, y, q, alpha)
                        best[name] = min(best[name], time.process_time() - began)
            known = {k: v for k, v in found.items() if v is not None}
            values = {k: objective(v[0], v[1], X, y, q, alpha) for k, v in known.items()}
            least = min(values.values())
            for name, (_, _, gap) in known.items():
                above = f"{(values[name] - least) / least:.0e}"
                told = "" if gap is None else f"{gap:.0e}"
                print(f"| {n:,} | {q} | {alpha} | {name} | {best[name]:.3f} | {above} | {told} |",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
