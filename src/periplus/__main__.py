"""`python -m periplus` runs the command line, also if its script is not on the path."""

import sys

from periplus.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
