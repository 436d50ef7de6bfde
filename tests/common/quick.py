"""What `make test` leaves out: tests marked `slow`, and most examples of properties."""

from hypothesis import settings

#: Examples of a test that does not say how many it wants, in all tests and in the quick ones.
EXAMPLES, QUICK_EXAMPLES = 50, 10


def examples(count, **rest):
    """Settings with so many examples, or fewer with --hypothesis-profile=quick."""
    share = settings.default.max_examples / EXAMPLES
    return settings(max_examples=max(1, round(share * count)), deadline=None, **rest)


def quick_ones(items):
    """The tests of families marked `slow(but=k)` that are not slow: k of each, evenly chosen."""
    families = {}
    for item in items:
        mark = item.get_closest_marker("slow")
        if mark is not None and "but" in mark.kwargs:
            families.setdefault(item.nodeid.split("[")[0], []).append(item)
    quick = set()
    for family in families.values():
        k = family[0].get_closest_marker("slow").kwargs["but"]
        quick |= {family[(2 * j + 1) * len(family) // (2 * k)].nodeid for j in range(k)}
    return quick
