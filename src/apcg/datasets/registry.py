"""Data sets by name: those of the LIBSVM collection, and where their files are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .._base.files import on_terminal, write_text
from . import cache
from .errors import DataError

BASE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
SUFFIXES = ("", ".bz2", ".gz", ".xz")


@dataclass(frozen=True)
class Entry:
    """A file of the collection: its name there, and the samples and features it has.

    A stand-in is the stem of another file that may take its place where the file itself is not to
    be had. It is never mistaken for it: whoever loads the data is told.
    """

    file: str
    n: int
    d: int
    stand_in: str = ""

    @property
    def stem(self) -> str:
        """The name of the file without the suffix of its compression."""
        path = Path(self.file)
        return path.stem if path.suffix in SUFFIXES else path.name


ENTRIES = {
    "rcv1": Entry("rcv1_train.binary.bz2", 20_242, 47_236, "rcv1_subsets.binary"),
    "covtype": Entry("covtype.libsvm.binary.scale.bz2", 581_012, 54),
    "news20": Entry("news20.binary.bz2", 19_996, 1_355_191, "news20_bigram.binary"),
    "a9a": Entry("a9a", 32_561, 123),
    "a9a.t": Entry("a9a.t", 16_281, 123),
    "w8a": Entry("w8a", 49_749, 300),
    "w8a.t": Entry("w8a.t", 14_951, 300),
    "real-sim": Entry("real-sim.bz2", 72_309, 20_958),
    "rcv1.t": Entry("rcv1_test.binary.bz2", 677_399, 47_236),
    "ijcnn1": Entry("ijcnn1.bz2", 49_990, 22),
    "gisette": Entry("gisette_scale.bz2", 6_000, 5_000),
    "epsilon": Entry("epsilon_normalized.bz2", 400_000, 2_000),
    "mushrooms": Entry("mushrooms", 8_124, 112),
    "phishing": Entry("phishing", 11_055, 68),
}


def locate(name: str) -> tuple[Path, bool]:
    """(file, whether it is a stand-in): from APCG_DATA_DIR, else downloaded before or now."""
    return _given(name) or (download(name), False)


def whereabouts(name: str) -> str:
    """Where the file of a data set would be taken from, in words."""
    given = _given(name)
    if given is not None:
        path, stand_in = given
        return f"{path}{' (a stand-in)' * stand_in}"
    kept = cache.folder() / "downloads" / f"{ENTRIES[name].file}.sha256"
    return "downloaded before" if kept.is_file() else "the network"


def _given(name: str) -> tuple[Path, bool] | None:
    """(file, whether it is a stand-in) in APCG_DATA_DIR, if there is one."""
    wanted, chosen = ENTRIES[name], os.environ.get("APCG_DATA_DIR")
    for stem in filter(None, (wanted.stem, wanted.stand_in)):
        for suffix in SUFFIXES if chosen else ():
            path = Path(chosen or "") / (stem + suffix)
            if path.is_file():
                return path, stem != wanted.stem
    return None


def download(name: str) -> Path:
    """The file in the cache folder, fetched if it is not there or is not what it was.

    The collection publishes no checksums. So the SHA-256 of the first download is written beside
    the file, and the file is held to it ever after; the numbers of samples and features are
    checked when it is read.
    """
    import pooch
    import requests

    wanted = ENTRIES[name]
    place = cache.folder() / "downloads"
    pinned = place / f"{wanted.file}.sha256"
    known = pinned.read_text(encoding="ascii").strip() if pinned.is_file() else None
    path, url = place / wanted.file, BASE + wanted.file
    try:
        if known is None:
            path.unlink(missing_ok=True)  # nothing vouches for it
        pooch.retrieve(
            url,
            known_hash=known,
            fname=wanted.file,
            path=place,
            downloader=pooch.HTTPDownloader(timeout=(10, 60), progressbar=on_terminal()),
        )
        if known is None:
            write_text(pinned, cache.sha256(path) + "\n")
    except requests.RequestException as error:
        raise DataError(_help(name, url, _why(error))) from None
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(_help(name, url, why)) from None
    return path


def _why(error: Exception) -> str:
    """What went wrong with a download, without the objects that requests prints."""
    import requests

    host = BASE.split("/")[2]
    if isinstance(error, requests.Timeout):
        return f"{host} does not answer"
    if isinstance(error, requests.ConnectionError):
        return f"there is no connection to {host}"
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{host} says {error.response.status_code} {error.response.reason}"
    return type(error).__name__


def _help(name: str, url: str, why: str) -> str:
    wanted, chosen = ENTRIES[name], os.environ.get("APCG_DATA_DIR")
    folder = f" in {chosen} (APCG_DATA_DIR)" if chosen else " (APCG_DATA_DIR is not set)"
    other = f", nor the stand-in {wanted.stand_in}.bz2" if wanted.stand_in and chosen else ""
    return (
        f"{name}: there is no file {wanted.file}{folder}{other}, and it could not be downloaded "
        f"from {url}: {why}. Put the file in a folder and set APCG_DATA_DIR to that folder."
    )
