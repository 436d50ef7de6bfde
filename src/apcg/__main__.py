"""The command `apcg`, also `python -m apcg`: Ctrl-C is heard while the rest is being imported."""

import sys


def main() -> None:
    """Import the command and run it."""
    try:
        from .cli import main as run
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("interrupted.\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
