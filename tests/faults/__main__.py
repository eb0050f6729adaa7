"""The plans of the crash points: `python -m tests.faults` lists them, with a scenario's name its calls.

python -m tests.faults                          how many plans each scenario has
python -m tests.faults retry                    its calls, and what can befall each
python -m tests.faults retry 7 crash-after      plays that one (more pairs: more faults, counted from the last)
python -m tests.faults write                    counts all plans anew, into plans.txt
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.faults.crash_points import COUNTS, counts, kinds_for, written
from tests.faults.play import Plan, play
from tests.faults.scenarios import SCENARIOS


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            _print(written(counts()))
        case ["write"]:
            COUNTS.write_text(written(counts()))
        case [name] if name in SCENARIOS:
            _print(_listed(name))
        case [name, *pairs] if name in SCENARIOS and pairs and len(pairs) % 2 == 0:
            return _replay(
                name, tuple((int(number), kind) for number, kind in zip(pairs[::2], pairs[1::2], strict=True))
            )
        case _:
            _print(f"{__doc__}\nscenarios: {', '.join(SCENARIOS)}\n")
            return 2
    return 0


def _listed(name: str) -> str:
    scenario = SCENARIOS[name]
    base = play(scenario)
    lines = [f"{name}: {scenario.__doc__}"]
    lines += [
        f"{number:>4} {met}\n       {' '.join(kinds) or 'the same call on the same state as before'}"
        for number, (met, kinds) in enumerate(zip(base.calls, kinds_for(scenario, base), strict=True))
    ]
    return "\n".join(lines) + "\n"


def _replay(name: str, plan: Plan) -> int:
    played = play(SCENARIOS[name], plan)
    _print(f"{name} {plan}: {'sound' if played.met else 'did not take place'}\n")
    ends = Counter(f"{run.kind} {run.state} {run.reason}" for run in played.ledger)
    _print("".join(f"  {count} x {end}\n" for end, count in sorted(ends.items())))
    return 0 if played.met else 1


def _print(text: str) -> None:
    sys.stdout.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
