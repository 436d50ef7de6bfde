"""Few genes out of many.

Sixty patients, five thousand genes, of which ten matter: the lasso leaves 47 weights that
are not zero, many of them beside the ten. The data is generated, with genes in
correlated groups as they are in cells. The picture shows the weights beside the true ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from apcg import ERM, solve

rng = np.random.default_rng(0)
pathways = rng.normal(size=(60, 200))
X = np.repeat(pathways, 25, axis=1) + 0.7 * rng.normal(size=(60, 5000))
truth = np.zeros(5000)
truth[::500] = [3, -2, 2, -3, 2, 3, -2, 2, -2, 3]
y = X @ truth + rng.normal(size=60)
X, y = (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()

largest = np.abs(X.T @ y).max() / len(y)  # from this alpha on all weights are zero
r = solve(ERM(X, y, "squared", "l1", alpha=largest / 10), tol=1e-8)
print(r.status.code, np.count_nonzero(r.w), "of 5000 weights are not zero")
print("relative gap below 1e-8:", r.gap <= 1e-8 * r.primal)

figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for w, name, mark in ((truth, "true", {"marker": "_", "s": 200}), (r.w, "found", {"s": 12})):
    ax.scatter(np.flatnonzero(w), w[w != 0], label=name, **mark)
ax.axhline(0, color="black", lw=0.5)
ax.set_xlabel("gene")
ax.set_ylabel("weight")
figure.legend(loc="outside upper right", ncols=2, frameon=False)
figure.savefig("genes.png", dpi=110)
