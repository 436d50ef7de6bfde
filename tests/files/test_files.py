"""What apcg writes is whole or not there, never over what it read, never in place of a device."""

import ast
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import apcg
from apcg import datasets
from apcg._base.files import check_target, replacing, replacing_folder, save_figure, write_text
from apcg.cli import main
from apcg.model import LinearModel

PACKAGE = Path(apcg.__file__).parent
LINES = "1 1:1 2:0.5\n-1 1:-1\n1 2:1\n-1 2:-0.5\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"APCG_{name}_DIR", str(tmp_path / name))
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(LINES)
    (tmp_path / "test").write_text(LINES)
    return tmp_path


def run(*args, code=0, **rest):
    done = subprocess.run(
        [sys.executable, "-m", "apcg", *map(str, args)], capture_output=True, timeout=300, **rest
    )
    assert done.returncode == code, done.stderr.decode()
    return done


def error(capsys, *args):
    with pytest.raises(SystemExit) as left:
        main([*map(str, args)])
    assert left.value.code == 1
    return capsys.readouterr().err


# ---- never over what was read ------------------------------------------------------------------


def same_file(folder, how):
    """Another name for the file `data`."""
    if how == "a link":
        (folder / "other").symlink_to("data")
    elif how == "a link to a link":
        (folder / "between").symlink_to("data")
        (folder / "other").symlink_to("between")
    elif how == "a second name":
        (folder / "other").hardlink_to(folder / "data")
    else:
        return {"its name": "data", "its path": folder / "CACHE" / ".." / "data"}[how]
    return "other"


@pytest.mark.parametrize(
    "how", ["its name", "its path", "a link", "a link to a link", "a second name"]
)
def test_a_model_never_takes_the_place_of_the_data(folder, capsys, how):
    said = error(capsys, "train", "data", "--model", same_file(folder, how))
    assert "is read from the same file, and would be lost. Give another name." in said
    assert (folder / "data").read_text() == LINES


def test_a_model_never_takes_the_place_of_the_test_data(folder, capsys):
    said = error(capsys, "train", "data", "--test", "test", "--model", "test")
    assert "test is not written: test is read from the same file" in said
    assert (folder / "test").read_text() == LINES


def test_a_model_never_takes_the_place_of_standard_input(folder):
    with (folder / "data").open("rb") as file:
        done = run("train", "-", "--model", "data", code=1, stdin=file)
    assert b"standard input is read from the same file" in done.stderr
    assert (folder / "data").read_text() == LINES


def test_a_model_never_takes_the_place_of_data_with_a_name(folder, capsys, monkeypatch):
    entry = datasets.registry.Entry("small", 4, 2)
    monkeypatch.setitem(datasets.registry.ENTRIES, "short", entry)
    (folder / "DATA" / "small").write_text(LINES)
    for args in (("short",), ("data", "--test", "short")):
        said = error(capsys, "train", *args, "--model", "DATA/small")
        assert "DATA/small is not written" in said
        assert (folder / "DATA" / "small").read_text() == LINES


def test_it_is_said_before_the_work(capsys, monkeypatch):
    module = sys.modules["apcg.cli.fit"]
    monkeypatch.setattr(module, "solve", lambda *_, **__: pytest.fail("it worked first"))
    assert "is read from" in error(capsys, "train", "data", "--model", "data")


def test_plots_never_take_the_place_of_the_data(folder, capsys):
    (folder / "out").mkdir()
    (folder / "out" / "data-convergence.png").symlink_to(folder / "data")
    said = error(capsys, "compare", "data", "--methods", "sdca", "--alpha", "0.1")
    assert "data-convergence.png is not written" in said
    assert (folder / "data").read_text() == LINES


@pytest.mark.slow
def test_reports_never_take_the_place_of_the_data(folder, capsys, monkeypatch):
    entry = datasets.registry.Entry("rcv1_train.binary.bz2", 4, 2)
    monkeypatch.setitem(datasets.registry.ENTRIES, "rcv1", entry)
    data = folder / "DATA" / "rcv1_train.binary"
    data.write_text(LINES)
    places = ("curves/rcv1-1e-01.csv", "figure1.png", "figure2.pdf", "report.md")
    for place in places:
        out = folder / Path(place).stem
        (out / place).parent.mkdir(parents=True)
        (out / place).symlink_to(data)
        args = ("--data", "rcv1", "--alpha", "0.1", "--passes", "1", "--out", out)
        assert f"{place} is not written" in error(capsys, "reproduce", *args)
        assert data.read_text() == LINES


# ---- what is no regular file -------------------------------------------------------------------


def test_a_fifo_gets_the_bytes_and_stays(folder):
    os.mkfifo("pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((folder / "pipe").read_bytes()))
    reader.start()
    w = np.arange(50_000.0)  # more than a pipe holds at a time
    LinearModel(w, np.array([0.0, 1.0]), "hinge").save("pipe")
    reader.join(60)
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)
    (folder / "m.npz").write_bytes(got[0])
    np.testing.assert_array_equal(LinearModel.load("m.npz").w, w)


@pytest.mark.slow
def test_a_model_can_go_down_a_pipe():
    command = f"{sys.executable} -m apcg train data --model /dev/fd/3 3>&1 >/dev/null | cat > m.npz"
    subprocess.run(command, shell=True, check=True, timeout=300)
    assert LinearModel.load("m.npz").n_features == 2


@pytest.mark.slow
def test_standard_output_that_goes_to_a_file_is_not_replaced(folder):
    with (folder / "all").open("wb") as file:
        inode = os.fstat(file.fileno()).st_ino
        run_to = [sys.executable, "-m", "apcg", "train", "data", "--model", "/dev/stdout"]
        subprocess.run(run_to, stdout=file, check=True, timeout=300)
    assert (folder / "all").stat().st_ino == inode
    assert b"certificate" in (folder / "all").read_bytes()


def test_devices_stay_devices():
    """/dev/null and /dev/full take bytes; as root a rename would put a file in their place."""
    write_text("/dev/null", "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    if Path("/dev/full").exists():
        with pytest.raises(OSError, match="No space left"):
            write_text("/dev/full", "too much")
        assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_pseudo_terminal_gets_the_text():
    ours, theirs = os.openpty()
    try:
        write_text(os.ttyname(theirs), "shown\n")
        assert os.read(ours, 100) == b"shown\r\n"
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("kind", ["a socket", "a folder", "a block device"])
def test_what_cannot_be_written_is_refused(folder, kind, monkeypatch):
    path = folder / "there"
    with socket.socket(socket.AF_UNIX) as bound:
        if kind == "a socket":
            bound.bind("there")
        elif kind == "a folder":
            path.mkdir()
        else:  # none is at hand that may be risked
            path.touch()
            block = os.stat_result([stat.S_IFBLK | 0o666, *range(9)])
            monkeypatch.setattr(sys.modules[write_text.__module__], "_stat", lambda _: block)
        with pytest.raises(OSError, match=f"it is {kind}. Give the name of a file"):
            write_text(path, "text")
        with pytest.raises(OSError, match=f"it is {kind}"):
            check_target(path)


def test_a_dash_is_no_file(folder):
    """The report is on standard output: a model there would be mixed with it."""
    with pytest.raises(OSError, match="- is not written: it is no name of a file"):
        write_text("-", "text")
    assert not Path("-").exists()


# ---- links -------------------------------------------------------------------------------------


def test_links_are_followed_and_stay(folder):
    (folder / "far").mkdir()
    (folder / "far" / "model").write_text("old")
    (folder / "link").symlink_to("far/model")
    write_text("link", "new")
    assert (folder / "link").is_symlink()
    assert (folder / "far" / "model").read_text() == "new"
    (folder / "dangling").symlink_to("far/later")
    write_text("dangling", "new")
    assert (folder / "dangling").is_symlink()
    assert (folder / "far" / "later").read_text() == "new"
    assert {p.name for p in (folder / "far").iterdir()} == {"model", "later"}


def test_links_that_lead_nowhere_are_refused(folder):
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    with pytest.raises(OSError, match="cannot be used: Too many levels"):
        write_text("a", "text")
    (folder / "lost").symlink_to("none/file")
    with pytest.raises(OSError, match=r"no writable folder .*none"):
        write_text("lost", "text")
    assert (folder / "lost").is_symlink()
    with pytest.raises(OSError, match="no writable folder"):
        write_text("data/below", "a file is no folder")
    with pytest.raises(OSError, match="cannot be used"):
        write_text("a\0b", "text")


# ---- whole or not there ------------------------------------------------------------------------


def test_a_file_keeps_its_permissions(folder):
    secret = folder / "secret"
    secret.write_text("old")
    secret.chmod(0o600)
    write_text(secret, "new")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert secret.read_text() == "new"


def test_a_protected_file_stays(folder, monkeypatch):
    (folder / "kept").write_text("old")
    allowed = os.access  # root may write to anything
    monkeypatch.setattr(os, "access", lambda p, m: "kept" not in str(p) and allowed(p, m))
    with pytest.raises(OSError, match="it is there, and is protected"):
        write_text("kept", "new")
    assert (folder / "kept").read_text() == "old"


def test_a_block_that_fails_sends_nothing(folder):
    def half(path):
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    os.mkfifo("pipe")
    for path in ("data", "pipe", "new"):
        with pytest.raises(KeyboardInterrupt):
            half(path)  # would wait for ever if it opened the pipe
    assert (folder / "data").read_text() == LINES
    assert not (folder / "new").exists()
    assert not list(folder.glob(".*"))


def test_a_folder_is_whole_or_as_it_was(folder):
    for number in (1, 2):
        with replacing_folder(folder / "far" / "kept") as new:
            (new / "file").write_text(str(number))
        assert (folder / "far" / "kept" / "file").read_text() == str(number)

    def half():
        with replacing_folder(folder / "far" / "kept") as new:
            (new / "file").write_text("3")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert (folder / "far" / "kept" / "file").read_text() == "2"
    assert [p.name for p in (folder / "far").iterdir()] == ["kept"]


def test_every_picture_is_checked_for_what_was_read(folder):
    class Drawn:
        def savefig(self, file, **_):
            file.write(b"picture")

    assert [p.name for p in save_figure(Drawn(), folder / "stem")] == ["stem.png", "stem.pdf"]
    with pytest.raises(OSError, match=r"stem\.pdf is not written"):
        save_figure(Drawn(), folder / "stem", read=[folder / "stem.pdf"])


# ---- one place ---------------------------------------------------------------------------------

#: Names of calls that write a file.
WRITERS = {"write_text", "write_bytes", "save", "savez", "savez_compressed", "savetxt", "savefig",
           "save_npz", "to_csv", "to_json", "tofile", "rename", "symlink_to", "touch"}  # fmt: skip
#: (file, call) that may: into a folder or file that `_base.files` gave it.
ALLOWED = {("files.py", "savefig"), ("files.py", "rename"), ("cache.py", "save"),
           ("writer.py", "rename"), ("linear.py", "savez"), ("train.py", "save"),
           ("cv.py", "save"), ("export.py", "save")}  # fmt: skip


def test_files_are_written_in_one_place():
    seen = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        from_files = "write_text" in text and "files import" in text
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "write_text" and isinstance(node.func, ast.Name) and from_files:
                continue
            if name in WRITERS:
                seen.add((path.name, name))
            if name == "open":
                modes = {a.value for a in [*node.args, *(k.value for k in node.keywords)]
                         if isinstance(a, ast.Constant) and isinstance(a.value, str)}  # fmt: skip
                writes = any(set(mode) & set("wax+") and len(mode) < 4 for mode in modes)
                assert not writes or path.name == "files.py", f"{path}:{node.lineno}"
    assert seen <= ALLOWED, "write it through _base/files.py"
    assert ("files.py", "savefig") in seen
