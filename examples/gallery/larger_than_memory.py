"""Data larger than memory.

`datasets.convert` (in the shell: `apcg convert`) streams a file of any size into a folder. A
problem on that folder keeps to the memory that you allow: X is read part by part where it does
not fit. The file here is small, so that the page is built quickly; the code is the same for one
of 100 GB. The picture shows the gap.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import dump_svmlight_file

from apcg import ERM, datasets, solve

folder = Path(tempfile.mkdtemp())
X, y = datasets.text_like(20_000, 2_000, 30, random_state=0)
dump_svmlight_file(X, y, str(folder / "large.libsvm"), zero_based=False)

header = datasets.convert(folder / "large.libsvm", folder / "large.apcg")
data = datasets.OnDisk(folder / "large.apcg", memory_limit="400MB")
print("samples and features:", data.shape)
r = solve(ERM(data, loss="logistic", alpha=1e-4), tol=1e-6, check_every=1, random_state=0)
print(r.status.code)
print(f"the optimum is between {r.dual:.6f} and {r.primal:.6f}")

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
r.trace.plot(ax=ax)
figure.savefig("gap.png", dpi=110)
