"""Quantiles.

The pinball loss fits quantiles: 90 % of the points are below the line for q = 0.9. Here the
noise grows with x, which a mean would not show.
"""

import matplotlib.pyplot as plt
import numpy as np

from apcg.linear_model import QuantileRegressor

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, 800)
y = 1 + x / 2 + (0.2 + x / 5) * rng.normal(size=800)

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
ax.plot(x, y, ".", color="#cccccc", ms=3)
for q, color in ((0.1, "#0b3c68"), (0.5, "#1b7837"), (0.9, "#b2182b")):
    model = QuantileRegressor(quantile=q, alpha=0).fit(x[:, None], y)
    below = np.mean(y <= model.predict(x[:, None]))
    print(f"q = {q}: {100 * below:.0f} % of the points are below, {model.status_.code}")
    at = np.array([[0.0], [10.0]])
    ax.plot(at[:, 0], model.predict(at), color=color, label=f"q = {q}")
ax.set_xlabel("x")
ax.set_ylabel("y")
ax.legend(frameon=False)
figure.savefig("quantiles.png", dpi=110)
