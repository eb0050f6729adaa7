"""Lives again: `python -m tests.year <seed> [hours|days|month|year] [how many, one after the other]`."""

from __future__ import annotations

import sys
import time

from tests.year.lives import LENGTHS, Luck, life
from tests.year.oracle import Oracle

MOST_SHOWN = 12


def told(seed: int, length: str, luck: Luck | None = None) -> str:
    """Returns an account of the life, which says what was wrong with it; empty if nothing was."""
    with life(seed, length, luck) as lived:
        lived.live()
        verdict = Oracle(lived).judge()
    if not verdict.wrong:
        return ""
    more = len(verdict.wrong) - MOST_SHOWN
    faults = dict(lived.service.faults.met)
    return "\n".join(
        [
            f"python -m tests.year {seed} {length}",
            f"{verdict.owed} owed, {verdict.rows} rows, {verdict.calls} calls, faults {faults}",
            *(
                f"{function} out {begin:%m-%d %H:%M:%S} to {end:%m-%d %H:%M:%S}"
                for function, begin, end in lived.outages
            ),
            *verdict.wrong[:MOST_SHOWN],
            *([f"and {more} more"] if more > 0 else []),
        ]
    )


def main(first: int, length: str = "hours", lives: int = 1) -> int:
    failed = 0
    for seed in range(first, first + lives):
        began = time.process_time()
        account = told(seed, length)
        failed += bool(account)
        sys.stdout.write(f"{seed} {length} {time.process_time() - began:.1f} s {account or 'sound'}\n")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case [seed]:
            sys.exit(main(int(seed)))
        case [seed, length] if length in LENGTHS:
            sys.exit(main(int(seed), length))
        case [seed, length, lives] if length in LENGTHS:
            sys.exit(main(int(seed), length, int(lives)))
    sys.exit(__doc__)
