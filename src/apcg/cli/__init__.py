"""The command `apcg`: parse, call, print. Exit codes are in EPILOG."""

from __future__ import annotations

import os
import sys
import warnings

import click

from .. import __version__
from .._base import memory
from .compare import compare
from .convert import convert
from .cv import cv
from .export import export
from .info import info
from .predict import predict
from .reproduce import reproduce
from .train import train

EPILOG = """\b
Exit codes
  0    done
  1    something is wrong with the data, a file or the problem
  2    the command line is wrong
  3    trained, but stopped before the tolerance was reached
  130  interrupted by Ctrl-C; what there was is kept
  141  whoever read the output went away

\b
DATA is one of
  a name      rcv1, covtype, news20, a9a, ... (see `apcg info --list`)
  a file      LIBSVM text or CSV (plain, .bz2, .gz, .xz), Parquet, or an .npz
              with X and y
  a folder    written by `apcg convert`
  -           standard input: LIBSVM text, an .npz, or CSV with a --target

\b
Environment
  APCG_DATA_DIR   a folder where data sets are looked for before downloading
  APCG_CACHE_DIR  where downloads and parsed data are kept
"""


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="apcg")
def apcg() -> None:
    """Linear models on large, sparse, weakly regularised data, with a certificate.

    \b
    Look at data, choose alpha, train, predict:
      apcg info a9a
      apcg cv a9a --loss logistic
      apcg train a9a --loss logistic --alpha 1e-6 --test a9a.t --model a9a.npz
      apcg predict a9a.npz a9a.t
    The same with a table, and a model for other programs:
      apcg train customers.csv --target left --model left.npz
      apcg export left.npz left.onnx
    Data that does not fit into memory:
      apcg convert huge.libsvm huge.apcg
      apcg train huge.apcg --memory 2GB
    Compare methods, and redo the paper's figures:
      apcg compare text --alpha 1e-5,1e-6
      apcg reproduce --quick
    """


for command in (info, train, cv, predict, export, convert, compare, reproduce):
    apcg.add_command(command)


def main(argv: list[str] | None = None) -> None:
    """Run the command and leave with its exit code; an error is one sentence, not a traceback."""
    if "_APCG_COMPLETE" in os.environ:  # a shell asks how a word could go on
        apcg.main(prog_name="apcg")
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        sys.exit(_run(sys.argv[1:] if argv is None else argv))


def _run(argv: list[str]) -> int:
    try:
        # not apcg.main: it turns broken pipes and Ctrl-C into exit code 1
        with apcg.make_context("apcg", list(argv)) as context:
            code = apcg.invoke(context) or 0
        if sys.stdout is not None:  # it may be closed
            sys.stdout.flush()
        return code
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted.", err=True)
        return 130
    except BrokenPipeError:
        # the interpreter flushes standard output once more at its end, and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        said = f"there is not enough memory for this data or model{why}."
        own = isinstance(error, memory.NoRoom)  # which says what to do
        click.echo(f"error: {error if own else said}", err=True)
        return 1
    except (ValueError, TypeError, OSError, ImportError) as error:
        click.echo(f"error: {str(error) or type(error).__name__}", err=True)
        return 1
    except Exception as error:
        click.echo(
            f"error: {type(error).__name__}: {error}. This should have been a clear message; "
            "please report it, with the command and the data.",
            err=True,
        )
        return 1


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    click.echo(f"warning: {message}", err=True)
