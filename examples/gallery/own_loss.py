"""A loss of your own.

Three functions make a loss: its value, its derivative, and its conjugate for the certificate.
`losses.check` compares them by brute force. This one is the expectile loss, which punishes
predictions that are too low nine times as much as those that are too high.
"""

import matplotlib.pyplot as plt
import numpy as np

from apcg import ERM, losses, solve


class Expectile(losses.OwnLoss):
    """q r^2 where r = z - y is negative, (1 - q) r^2 elsewhere."""

    name = "expectile"

    def __init__(self, q):
        self.q, self.gamma = q, 0.5 / max(q, 1 - q)

    def value(self, z, y):
        return np.where(z < y, self.q, 1 - self.q) * (z - y) ** 2

    def derivative(self, z, y):
        return 2 * np.where(z < y, self.q, 1 - self.q) * (z - y)

    def conjugate(self, u, y):
        return u * u / (4 * np.where(u < 0, self.q, 1 - self.q)) + u * y


print("the parts fit together:", bool(losses.check(Expectile(0.9))))
rng = np.random.default_rng(0)
x = rng.uniform(0, 10, 400)
y = 1 + x / 2 + rng.exponential(1.0, 400)

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
ax.plot(x, y, ".", color="#cccccc", ms=4)
for q, color in ((0.5, "#0b3c68"), (0.9, "#b2182b")):
    r = solve(ERM(x[:, None], y, Expectile(q), alpha=1e-6, intercept=True), tol=1e-6)
    print(f"q = {q}: {r.status.code}, slope {r.w[0]:.2f}, intercept {r.intercept:.2f}")
    ax.plot([0, 10], [r.intercept, r.intercept + 10 * r.w[0]], color=color, label=f"q = {q}")
ax.set_xlabel("x")
ax.set_ylabel("y")
ax.legend(frameon=False)
figure.savefig("expectiles.png", dpi=110)
