"""The constants of the method of working sets that tests and benchmarks vary.

What nothing varies is a constant where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SetTuning:
    """From prototypes on gene expression data, text and one-hot rows, unless it says otherwise."""

    #: the first working set has so many columns
    first: int = 100
    #: at least so many enter it when one has to, and it is chosen anew at so many times the
    #: support: dense, sparse. Paths of alon, golub and generated genes with 4, 3 and 2: 1, 0.97 and
    #: 0.94; of rcv1 1, 0.99 and 1.34
    more: int = 20
    roomy: tuple[int, int] = (2, 4)
    #: lambda falls by this factor from stage to stage: squared loss, others
    stage: tuple[float, float] = (3.0, 10.0)
    #: a stage ends at this relative gap
    rough: float = 0.5
    #: or after so many rounds
    rounds: int = 5
    #: the model is solved to this part of the gap, ...
    inner: float = 0.05
    #: ... but not beyond this part of the gap that is asked for
    enough: float = 0.3
    #: a model that is exact is solved to this part of the violation it began with, and
    exact: float = 0.3
    #: Newton's steps with one working set, where the model is not exact
    steps: int = 3
    #: sweeps between Newton's steps on the support
    sweeps: int = 30
    #: turns of sweeps and Newton's steps on one model
    turns: int = 100
    #: a support of more columns gets no Newton step
    widest: int = 2000
    #: the least curvature of a row, as part of the most there is: to begin with, and later
    floor: float = 4e-3
    least_floor: float = 1e-12
    #: so many rounds in which the gap did not fall by a tenth, nor P by this part of the gap, and
    #: it gets no further
    patience: int = 10
    slow: float = 1e-3
    #: sparse data with so few rows is taken as dense: supports are near n, and want a factor
    few_rows: int = 600
    #: so many rows a column: all columns are in the model
    tall: float = 10.0
    # ---- sweeps over dense columns ----
    #: and so many where sweeps over dense columns come first (`columns_float32.py`). 2,000 x 500
    #: (columns alike) and 1,000 x 500, to 1e-6, take 0.5 to 1.0 of the time with sets; 800 x 800
    #: 0.65 to 1.3
    tall_float32: float = 2.0
    #: they are for so many columns at least: other losses (with few a sweep saves less than a look
    #: costs), squared, where one Gram matrix is all there is: columns alike, 20,000 x 100, take 0.7
    #: to 1.6 of the time with sweeps, digits (64) up to 1.9, 3,000 x 150 0.4 to 1.0
    strip_columns: tuple[int, int] = (20, 128)
    #: and for so many numbers at most, for the copy in float32: 1 GB
    strip_room: float = 2.5e8
    #: sweeps in a round. Logistic with 4 and 6 instead: 5,000 x 300 0.85 to 1.2 and 0.8 to 1.0 of
    #: the time, 10,000 x 200 and 4,000 x 400 with a rare class 1.0 to 1.3 and 1.1 to 1.5
    float32_sweeps: int = 3
    #: ns of a number in a sweep (other losses, squared), of one in a look, and of a product in a
    #: Gram matrix of float32: 5,000 x 300, 2,000 x 500, 20,000 x 100
    float32_costs: tuple[tuple[float, float], float, float] = ((0.3, 0.15), 0.2, 0.0095)
    #: Gram matrices in float32, then they are float64. Runs to 1e-6 made 0 to 4
    float32_grams: int = 8
    #: dense data, other losses: the Gram matrix is that of the columns near to moving, if they are
    #: at most this part of all. Logistic, to 1e-6, with 0, 0.4, 0.7 and 0.9: 5,000 x 300 (columns
    #: alike) at lambda_max/10 89, 52, 44 and 39 ms, /100 95, 84, 77 and 82, /1000 126 all along;
    #: 10,320 x 164 at /10 37, 12, 11 and 12, /1000 260, 258, 232 and 280
    moving: float = 0.8
    #: paths of the squared loss on dense data: alpha falls by these factors in a stretch, at least
    #: and at most; from 1.1 for the first golub took 1.5 of the time, and with 10 for the second
    #: regressions 1.2
    stretch: tuple[float, float] = (1.5, 4.5)
    #: a column is in the set if its slope is above alpha_last plus this part of the way; 0 and 0.4
    #: took 0.9 to 1.1, 0.7 up to twice the time
    reach: float = 0.2
    #: it has no more alphas than predictions have room for: as much as X takes, or 1 MB of numbers
    stretch_room: int = 131_072
    #: sets of more columns are left to runs, for the memory; with 1,000 here, 300 x 2,000 at
    #: l1_ratio 0.5 took 2.2 to 3.3 times as long
    widest_stretch: int = 2000
    #: a point that was not good enough so often in a row is left out
    tries: int = 3
    #: with so few columns, no more than samples, the set has all from the start: one-hot rows
    #: 2,000 x 160 0.77 of the time of sets, 500 x 300 1.6
    at_once: int = 200
    #: or with so few, once a set has this part of them, or where alpha falls too far for sets, ...
    few_columns: int = 500
    part: float = 4.0
    #: ... if there are at most so many columns, and so many more for each alpha: random data to
    #: lambda_max/10 and /100, of the time of sets: 1,500 x 500 with 2 alphas 5.6 and 1.05, with 20
    #: 2.0 and 0.8; 600 x 200 with 5 1.1 and 0.4; 150 x 60 with 1 to 20 at most 0.6
    columns_for: tuple[int, int] = (100, 10)
    #: a sample has so many rows for each column, this share of all, and so many at least
    #: (logistic, one-hot, a9a and covtype at lambda_max/10 to /1000: with 40 instead of 10 rows
    #: and a gap of 0.03 instead of 0.01, 0.89 of the time to 1e-3 and 0.96 to 1e-6; 0.62 to 1.24)
    rows_per_feature: float = 40.0
    share: float = 0.05
    least_rows: int = 1000
    #: there is one where all rows are so many times as many; the second number where sweeps over
    #: dense columns come first. Logistic, 3,000 x 30 takes 0.6 to 0.8 of the time without one,
    #: columns alike, 20,000 x 100, 0.9 to 1.4
    sampled: tuple[float, float] = (2.0, 4.0)
    #: a Gram matrix serves while each step brings the gap to this part: of a sample, of all rows.
    #: Logistic, one-hot rows, a9a and covtype, 24 cells: with 0.1, 0.3, 0.5 and 0.7 for the second
    #: 1, 0.94, 0.92 and 0.91 of the time. With 0.3 single cells took 0.5 (one-hot, to 1e-5) to 1.5
    #: (covtype, the same)
    kept: tuple[float, float] = (0.3, 0.3)
    # ---- sparse columns ----
    #: a path goes by Gram matrices of sets once the support is at most so large, ...
    few_picked: int = 300
    #: ... until a set is larger than this. rcv1 and generated text, to 2e-3 and 1e-6, against no
    #: sets: 0.94 with 400, 0.85 with 800, 0.87 with 1,200
    most_picked: int = 1000
    #: below this tolerance slopes are taken from the data, for those by a copy of it in float32
    #: left gaps of 1.3e-7 at the least
    narrow: float = 3e-7
    #: looks that failed after which they are so, too
    failures: int = 2
    #: rounds on sparse columns of K classes give way to matrices after so many passes, if so many
    #: matrices cost no more: one-hot rows took up to 150 passes to 1e-4, and ten matrices or so.
    #: (1,500 sparse rows of counts, 1,400 entries: 6,000 passes, and columns are faster.)
    columns_passes: int = 150
    matrices: float = 10.0
    #: in a stage the slopes of columns above this part of a_j are taken
    near: float = 0.5
    #: sweeps over what moved, after the first one, ...
    more_sweeps: int = 3
    #: ... until the violation is this part of the first: the squared loss
    settled: float = 0.05
    #: conjugate gradients end at this part of the residual, ...
    residual: float = 0.03
    #: ... or after so many (squared loss, others); twice as many while the support is stable
    gradients: tuple[int, int] = (10, 5)
    #: it is stable if at most this part is cut, or its size changes by no more
    stable: tuple[float, float] = (0.002, 0.02)
    #: conjugate gradients have the support gathered by rows if they are expected to read so many
    #: times the entries of X: on rcv1 to gather takes 4.4 ns an entry of X, and saves 0.4 ns an
    #: entry of the support and iteration. With 4 generated text (20,000 x 50,000) took 1.2 times as
    #: long to 1e-3; with 12 text of 10,000 x 30,000 to 1e-6 1.1
    by_rows: float = 20.0
    #: and if the last ones cut at most this part of the support: without that rule the same text
    #: took 1.2 times as long to 1e-3, on supports that were not the right ones. They go on to
    #: `rest` once the support changes by no more
    few_cut: float = 0.005
    #: they then are at most so many, and end once they cut something
    long_run: int = 300
    #: or at this part of the residual: squared loss, others, whose next model is another one anyway
    rest: tuple[float, float] = (1e-5, 3e-3)
    #: sweeps after the first one then: with 3 rcv1, squared, /1000 took 1.1 of the time, with 0 1.1
    late_sweeps: int = 1
    #: a step changes no margin by more than about this, to begin with, and at least and most
    trust: float = 10.0
    trusts: tuple[float, float] = (1.0, 20.0)
    # ---- the softmax (decision 14) ----
    #: units in the last place that rounding may take from the diagonal of the matrix of second
    #: derivatives, and that are added to it: columns that are alike then still have a factor
    spare: float = 8.0
    #: these matrices are float32, and float64 after so many of them for alpha itself:
    #: runs on iris, wine, digits and random data, down to lambda_max/10,000, took 4 to 21 of them;
    #: with iris + 100, whose columns are nearly alike, float32 gets no further for hundreds
    narrow_matrices: int = 24
    #: passes that the matrix of all entries takes, over their number: a multiply-add of it takes
    #: about a tenth of one of a pass (digits, 331 entries: 4 ms, a pass 1 ms)
    product: float = 0.25 * 0.1
    #: sets of rows of W are for sparse data of at most so many numbers as a dense array: 32 MB
    dense_room: float = 4e6
