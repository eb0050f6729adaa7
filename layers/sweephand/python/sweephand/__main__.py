"""`python -m sweephand`: commands for a user's machine."""

from __future__ import annotations

import sys

from sweephand.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
