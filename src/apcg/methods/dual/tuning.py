"""The constants of the dual sweeps, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

#: What can be left out of the method, to see what it is worth.
PARTS = ("momentum", "visits", "shrinking", "settling", "blocks")


@dataclass(frozen=True)
class DualTuning:
    """The constants. Text is rcv1 and two more sets of documents; n >> d is a9a and covtype."""

    # ---- looks ----------------------------------------------------------------------------------

    #: a look pays when the estimate is below so much of what is asked for ...
    calm: float = 0.7
    #: ... and after a sweep in which it fell by rho the gap is about rho^`late` of it: each row was
    #: seen before the sweep was over (on rcv1, smooth losses, 0.6 to 0.97; a9a 0.3 to 0.7)
    late: float = 0.5
    #: with momentum the estimate, taken at moving w, is too high, by 1.2 to 1.6 (rcv1, 48 runs: 64
    #: looks with 2, 50 with 1.4, 48 with less, in equal times; on news20 a look takes 2 passes)
    hasty: float = 1.3
    #: looks are at least 1 + `pause`/sqrt(mu-hat) sweeps apart
    pause: float = 0.1
    #: a failed look of more than this many times the estimate says that rows left out are missing
    missing: float = 1.5
    #: P is guessed again after so many more passes, and so many times as many: over few rows a
    #: sweep takes less time than a guess (the second was not measured)
    guess: tuple[float, float] = (0.5, 1.25)

    # ---- momentum -------------------------------------------------------------------------------

    #: momentum starts when more than so many plain sweeps seem to be left (5 to 12 are as good) ...
    patience: float = 8.0
    #: ... seen first after this sweep, from the rate since the middle of the run
    earliest: int = 4
    #: mu-hat starts at half the rate, in these bounds; at 1 for logistic rows of one output, which
    #: have no rate yet if they start next to 0 (lambda = 1e-8 to 1e-6, with these bounds and with
    #: 1: news20 3.7 and 1.3 s, rcv1 0.41 and 0.25, another text 0.31 and 0.19; 1e-6 and 1e-7 as
    #: long; the hinge loss at 1e-8 takes 1.2 times as long with 1)
    first_mu: tuple[float, float] = (1 / 16, 1.0)
    #: with an intercept mu-hat stays above this: its centre moves at its own pace, which is not the
    #: rate that mu-hat follows (6 sparse hinge problems, 150 x 400: 103 to 395 passes; with 1e-2 66
    #: to 153, with 1e-4 72 to 1,000, without 4 not in 1,000; rcv1, 18 runs: with 1e-2 1.3 times the
    #: time, equal with the others)
    least_mu: float = 1e-3
    #: a row this near its bound, in units of the interval, is put there if the dual rises
    settle: float = 0.01

    # ---- rows -----------------------------------------------------------------------------------

    #: intercept: c^2 over the mean of |a_i|^2 (of 0.003 to 1 the best)
    constant: float = 0.01
    #: multiply-adds of one call, so that time limits are heard
    call: int = 20_000_000


@dataclass(frozen=True)
class TuningOne(DualTuning):
    """The constants of one output."""

    #: consecutive rows that are stepped on one after the other; 8 took 1.1 times longer on rcv1 ...
    block: int = 64
    #: ... but at most `fresh` over the mean cosine of neighbours: further rows would only
    #: repeat what is common to them (decision 7; 0.35 and 1 take 1.1 times as long on some text)
    fresh: float = 0.5
    #: pairs of neighbours for that mean: enough to tell 0.02 from 0.04
    pairs: int = 100
    #: the same with momentum where n >= `tall` d. Without it rows are in random order there. In
    #: blocks of 32 with the order within them random too, hinge on covtype (100,000 rows) takes 1.0
    #: to 2.4 times as long at 1e-3 and 1e-4, 0.9 at 1e-5, 300,000 rows 1.3; a9a 0.8 to 1.2
    block_tall: int = 32
    tall: float = 5.0
    #: rows of at most so many numbers are fetched into the cache four steps before their own,
    #: others two, and only where they do not follow the row before. Time of a sweep with the one
    #: and with the other, 1 without both: words (41 numbers a row) 0.73, 0.86 to 0.89; rcv1 (75)
    #: 1.00 to 1.09, 0.98; news20 (455) 1.03 to 1.07, 0.93
    short_row: int = 64
    #: with so many features w is larger than a core's own cache (1 MB), and its entries of the next
    #: row are fetched: 0.83 of the time with 2^18 and 2^20 features, 1.15 with 2^15 (text)
    far: int = 2**17
    #: but at least so many blocks: fewer would leave little to chance
    blocks: int = 64
    #: logistic: below this one step of Halley's does, whose error is its third power
    single: float = 5e-2
    #: logistic: Newton's steps of a row end here, since w moves on anyway
    enough: float = 1e-2
    #: logistic: a row with q_i below this takes one step
    easy: float = 0.5
    #: logistic: rows start at 1/2 if the mean of q_i is below this, else next to 0
    steep: float = 2.0
    #: intercept: c^2 is at least so many times gamma lambda
    constant_floor: float = 5.0
    #: the Python around a sweep takes 40 us: sweeps are made in one call, so many of them, ...
    burst: int = 32
    #: ... of at most so many numbers in all (digits, hinge: about 12 calls and not 25 to 50), ...
    short: int = 250_000
    #: ... once at most this part of the rows is left, or where there is no momentum to wait for
    few_left: float = 1 / 8


@dataclass(frozen=True)
class TuningK(DualTuning):
    """The constants of K outputs."""

    #: momentum costs two plain sweeps
    patience: float = 16.0
    least_mu: float = 0.0
    constant: float = 0.25
    #: softmax: Newton's method on a row ends with a change of pi below this
    enough_root: float = 1e-3
    #: plain sweeps: r_i is at most this
    most_visits: float = 16.0
    #: ... and 1 in so many sweeps from the start: how far a row moves in the first one tells of the
    #: start, not of what is slow (20 newsgroups, softmax, 1/n: a gap of 0.06 after the second sweep
    #: with 1, 0.004 with 2)
    even: int = 2
    #: Crammer-Singer: rows at a vertex are dropped by so much of the bound on their slopes ...
    drop: float = 0.05
    #: ... once the estimated gap is at most this part of P
    drop_from: float = 0.5
    #: bytes of W from which features are put in the order of their counts: the second cache
    large: float = 2e6


ONE, MANY = TuningOne(), TuningK()
