"""python -m apcg"""

from .cli import main

main()
