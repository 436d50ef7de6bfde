"""Small problems of unit scale, every one from an explicit seed, shared by the tests."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from apcg import functions, penalties, theory
from apcg.problems.composite import Composite


def matrix(rows: int, columns: int, seed: int, form: str = "dense"):
    """Columns of norm about one. form: dense, sparse, and either with 32 for float32."""
    rng = np.random.default_rng(seed)
    if form.startswith("sparse"):
        A = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.3)
        A[rng.integers(rows, size=columns), np.arange(columns)] += 1.0  # no empty column
        A = sp.csc_matrix(A / np.sqrt(0.3 * rows))
    else:
        A = rng.standard_normal((rows, columns)) / np.sqrt(rows)
    return A.astype(np.float32) if form.endswith("32") else A


def array(A) -> np.ndarray:
    """The matrix as a dense float64 array."""
    return np.asarray(A.toarray() if sp.issparse(A) else A, dtype=np.float64)


def least_squares(form: str = "dense", seed: int = 0, rows: int = 30, columns: int = 20, **options):
    """(1/2)|A x - b|^2 with a b that no x attains."""
    b = np.random.default_rng(seed + 1).standard_normal(rows)
    return functions.LeastSquares(matrix(rows, columns, seed, form), b, **options)


def logistic(form: str = "dense", seed: int = 0, rows: int = 30, columns: int = 20, sigma=0.05):
    y = np.random.default_rng(seed + 1).choice([-1.0, 1.0], rows)
    return functions.Logistic(3 * matrix(rows, columns, seed, form), y, sigma)


def quadratic(given: str, form: str = "dense", seed: int = 0, rows: int = 30, columns: int = 20):
    """(1/2)x'Qx + <c, x> with Q = B'B, given by Q or by the factor B."""
    c = np.random.default_rng(seed + 1).standard_normal(columns)
    B = matrix(rows, columns, seed, form)
    return (
        functions.Quadratic(c=c, factor=B) if given == "factor" else functions.Quadratic(B.T @ B, c)
    )


def shuffled_blocks(sizes, seed: int):
    """A partition of 0..sum(sizes)-1 into index arrays with nothing contiguous about them."""
    order = np.random.default_rng(seed).permutation(sum(sizes))
    return np.split(order, np.cumsum(sizes)[:-1])


def hessian(f) -> np.ndarray:
    """Of a quadratic f: its gradient is affine."""
    origin = f.gradient(np.zeros(f.n_coordinates))
    return np.array([f.gradient(e) - origin for e in np.eye(f.n_coordinates)])


def convexity(problem: Composite) -> float:
    """The convexity parameter of f: exact if f is quadratic, else what is known."""
    if isinstance(problem.f, functions.LeastSquares | functions.Quadratic):
        return theory.convexity_parameter(hessian(problem.f), problem.per_coordinate(problem.L))
    return problem.mu


SIZES = (1, 4, 2, 5, 1, 3, 4)  # of blocks, 20 coordinates in all


def iterate_cases() -> dict[str, Composite]:
    """Lasso, group lasso, box QP and logistic regression in every form the kernels know."""
    rng = np.random.default_rng(5)
    blocks = shuffled_blocks(SIZES, 6)
    alphas = rng.uniform(0.05, 0.3, 20)
    group = penalties.GroupL2(rng.uniform(0.05, 0.3, len(SIZES)))
    box = penalties.Box(-0.3, 0.5)
    bounds = penalties.Box(-rng.random(20), np.where(rng.random(20) < 0.5, np.inf, 0.4))
    made = {
        "lasso dense": (least_squares("dense"), penalties.L1(0.1), None),
        "lasso sparse": (least_squares("sparse"), penalties.L1(alphas), None),
        "lasso float32": (least_squares("dense32"), penalties.L1(0.1), None),
        "lasso sparse float32": (least_squares("sparse32"), penalties.L1(0.1), None),
        "lasso underdetermined": (least_squares(rows=12), penalties.L1(0.1), None),
        "elastic net, sigma a vector": (
            least_squares("sparse", sigma=rng.uniform(0.1, 0.5, 20)),
            penalties.ElasticNet(alphas, 0.7),
            None,
        ),
        "group lasso, sizes": (least_squares("dense"), group, SIZES),
        "group lasso, index arrays": (least_squares("sparse"), group, blocks),
        "group lasso, given Q": (quadratic("Q"), group, blocks),
        "group lasso, float32": (least_squares("sparse32"), group, blocks),
        "balls": (least_squares("dense"), penalties.L2Ball(0.4), SIZES),
        "box QP given Q": (quadratic("Q"), box, None),
        "box QP given sparse Q": (quadratic("Q", "sparse"), bounds, None),
        "box QP given float32 Q": (quadratic("Q", "dense32"), box, None),
        "box QP by a factor": (quadratic("factor"), bounds, None),
        "box QP by a sparse factor": (quadratic("factor", "sparse"), box, None),
        "box QP in blocks": (quadratic("factor", "sparse"), bounds, blocks),
        "logistic": (logistic("dense"), penalties.L1(0.1), None),
        "logistic sparse": (logistic("sparse"), penalties.L1(alphas), None),
        "logistic float32 in blocks": (logistic("sparse32"), group, blocks),
    }
    return {name: Composite(f, psi, 20, given) for name, (f, psi, given) in made.items()}
