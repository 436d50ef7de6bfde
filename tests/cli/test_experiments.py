"""What the report says follows from the curves: curves made up for each case."""

import numpy as np
import pytest

from apcg import ERM, Trace, datasets, plots, solve, theory
from apcg.experiments import comparison, generated, paper, report
from apcg.experiments.paper import Cell
from apcg.methods import registry

METHODS = paper.METHODS


def cell(alpha, rates, *, optimum=1.0, passes=50, data="rcv1", complete=True):
    """P - P* falls by the method's rate each pass; the gap is twice that."""
    made = Cell(data, alpha, complete=complete)
    for method, rate in rates.items():
        trace = Trace("epoch", "seconds", "primal", "dual", "gap")
        for k in range(passes + 1):
            e = rate**k
            trace.append(epoch=k, seconds=k, primal=optimum + e, dual=optimum - e, gap=2 * e)
        made.take(method, trace)
    made.primal = optimum
    return made


def holds(cells):
    return {c["claim"]: (c["holds"], c["holds_in"], c["cells"]) for c in report.claims(cells)}


def test_claims_that_hold():
    fast = {"apcg": 0.7, "sdca": 0.9, "afg": 0.95}
    cells = [cell(a, fast) for a in (1e-5, 1e-6, 1e-7, 1e-8)]
    cells.append(cell(1e-4, {"apcg": 0.5, "sdca": 0.45, "afg": 0.9}, passes=200))
    assert {h for h, _, _ in holds(cells).values()} == {True}
    assert [n for _, _, n in holds(cells).values()] == [4, 3, 4, 3, 1, 1]


def test_claims_that_do_not_hold_say_where():
    cells = [
        cell(1e-5, {"apcg": 0.7, "sdca": 0.6, "afg": 0.9}),
        cell(1e-6, {"apcg": 0.7, "sdca": 0.9, "afg": 0.5}),
        cell(1e-7, {"apcg": 0.7, "sdca": 0.9, "afg": 0.9}),
        cell(1e-4, {"apcg": 0.8, "sdca": 0.5, "afg": 0.7}, passes=100),
    ]
    found = report.claims(cells)
    assert [(c["holds"], c["holds_in"]) for c in found] == [
        (False, 1), (True, 2), (False, 2), (True, 2), (False, 0), (False, 0)
    ]  # fmt: skip
    assert len(found[0]["exceptions"]) == 2
    assert found[0]["exceptions"][0].startswith(
        "rcv1 at 1e-05: APCG 1.8e-08, SDCA arrived after 50"
    )
    assert "APCG 62" in found[4]["exceptions"][0]


def test_claims_of_the_methods_that_the_figures_leave_out():
    base = {"apcg": 0.7, "sdca": 0.8, "afg": 0.95}
    like = {"accelerated_sdca": 0.75, "sag": 0.85, "svrg": 0.8}
    slow = {"accelerated_sdca": 0.9, "sag": 0.98, "svrg": 0.999}
    cells = [cell(1e-6, base | rates, passes=200) for rates in (like, slow)]
    found = report.claims(cells)[6:]
    assert [(c["holds_in"], c["cells"]) for c in found] == 6 * [(1, 2)]
    assert "acc. SDCA 132, APCG 39" in found[0]["exceptions"][0]
    assert "passes" in found[0]["claim"]
    assert "seconds" in found[1]["claim"]
    assert "SVRG not reached, SDCA 62" in found[4]["exceptions"][0]
    assert len(report.claims([cell(1e-6, base)])) == 6
    never = cell(1e-6, dict.fromkeys((*base, *like), 0.9999))
    assert {c["holds"] for c in report.claims([never])[6:]} == {None}


def test_arriving_earlier_is_being_ahead():
    """Below the floor both are zero, and the smaller rounding error must not decide."""
    both = cell(1e-6, {"apcg": 0.3, "sdca": 0.4, "afg": 0.9}, passes=400)
    assert report.ahead(both, "primal", ("sdca", "afg"))
    assert not report.ahead(cell(1e-6, {"apcg": 0.4, "sdca": 0.3, "afg": 0.9}), "gap", ("sdca",))


@pytest.mark.slow
def test_cells_that_did_not_end_are_not_judged(tmp_path):
    part = cell(1e-6, {"apcg": 0.7}, complete=False)
    assert {(h, n) for h, _, n in holds([part]).values()} == {(None, 0)}
    data = datasets.Dataset(np.eye(2), np.array([1, -1]), "rcv1", "somewhere")
    path = report.write([data], [part], tmp_path, passes=3, seed=0, interrupted=True)
    assert "Incomplete" in path.read_text()
    assert "was not run" in path.read_text()
    assert report.draw([data], [part], tmp_path)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", paper.DATA)
def test_generated_data_says_what_it_is(name):
    data, again = generated.of(name, 3), generated.of(name, 3)
    assert data.source.startswith("generated")
    assert (data.X != again.X).nnz == 0
    np.testing.assert_array_equal(data.y, again.y)
    assert set(np.unique(data.y)) == {-1.0, 1.0}
    assert 0.2 < np.mean(data.y > 0) < 0.8
    if name == "covtype":
        assert data.shape[1] == paper.TABLE_1[name][1]
    else:
        np.testing.assert_allclose(np.sqrt(data.X.multiply(data.X).sum(axis=1)), 1.0)
    said = " ".join(report.sources([data]))
    assert "not the paper's file" in said


@pytest.mark.slow
def test_the_papers_claims_can_be_seen_on_generated_data():
    """As `apcg reproduce --quick` runs it, on one of its three data sets."""
    cells, _ = paper.run([generated.of("rcv1", 0)], paper.ALPHAS, passes=60, seed=0, jobs=1)
    assert [c["holds"] for c in report.claims(cells)] == 6 * [True]


def test_a_cell_is_what_the_methods_say():
    X, y = datasets.text_like(300, 60, 8)
    data = datasets.Dataset(X, y, "rcv1", "here")
    ended = []
    cells, interrupted = paper.run(
        [data], (1e-3, 1e-5), passes=15, seed=0, jobs=2, done=ended.append
    )
    assert not interrupted
    assert [c.alpha for c in cells] == [1e-3, 1e-5]
    assert set(ended) == set(cells)
    for c in cells:
        assert c.complete
        problem = ERM(X, y, alpha=c.alpha)
        best = solve(problem, tol=1e-13, max_epochs=20_000, random_state=1)
        assert c.dual <= best.primal + 1e-14
        assert c.primal >= best.dual - 1e-14
        for m in METHODS:
            alone = solve(problem, m, tol=paper.TOL, max_epochs=15, check_every=1, random_state=0)
            np.testing.assert_array_equal(c.traces[m]["primal"], alone.trace["primal"])


def test_cost_is_the_first_check_that_is_good_enough():
    X, y = datasets.text_like(300, 60, 8)
    r = comparison.run(ERM(X, y, alpha=1e-3), ["apcg"], passes=100, tol=1e-9)[0]["apcg"]
    relative = r.trace["gap"] / r.trace["primal"]
    for gap in comparison.GAPS:
        passes, _ = comparison.cost(r, gap)
        assert relative[int(passes)] <= gap < relative[int(passes) - 1]
    assert comparison.cost(r, 1e-20) is None


# ---- Theorem 2 and the pictures -----------------------------------------------------------------


def test_the_bound_of_theorem_2_holds_in_the_mean():
    X, y = datasets.text_like(200, 40, 8)
    problem = ERM(X, y, alpha=1e-4)
    best = solve(problem, tol=1e-13, max_epochs=20_000, random_state=0).primal
    options = {"tol": 0.0, "max_epochs": 30, "check_every": 1, "sampling": "uniform"}
    runs = [solve(problem, "apcg", random_state=s, **options).trace["dual"] for s in range(20)]
    error = best - np.mean(runs, axis=0)
    bound = theory.dual_bound(problem, np.arange(31))
    assert (error <= bound).all()
    k = theory.promised_passes(problem, 1e-6)
    assert theory.dual_bound(problem, k) <= 1e-6


def test_pictures_have_log_axes_units_and_one_style_a_method():
    X, y = datasets.text_like(200, 40, 8)
    problem = ERM(X, y, alpha=1e-4)
    found, _ = comparison.run(problem, METHODS, passes=20, tol=1e-9)
    traces = {m: r.trace for m, r in found.items()}
    ax = plots.convergence(traces, "gap", bound=lambda k: theory.dual_bound(problem, k), log_x=True)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "passes over the data"
    labels = [line.get_label() for line in ax.lines]
    assert labels == ["APCG", "SDCA", "AFG", "Theorem 2, bound of D* - D"]
    styles = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in ax.lines}
    assert len(styles) == 4
    alone = found["apcg"].trace.plot().lines[0]
    assert alone.get_ydata()[-1] == ax.lines[0].get_ydata()[-1]
    ax = plots.convergence(traces, "primal", x="seconds", optimum=0.0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (seconds)", "P(w) - P*")
    used = [plots.STYLES[name] for name in registry.names() if name in plots.STYLES]
    assert len({(str(s["linestyle"]), s["marker"]) for s in used}) == len(used)  # also in grey
