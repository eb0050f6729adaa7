"""Rows of parameters in which each value of a parameter meets each value of every other one at least once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

Values = Mapping[str, str]
Pair = tuple[int, int, int, int]


def pairwise(factors: Sequence[Sequence[Values]]) -> list[dict[str, str]]:
    """Returns the rows: one of the values of each factor. A value is a set of parameters that belong together."""
    left = {
        (one, mine, other, others)
        for one, other in combinations(range(len(factors)), 2)
        for mine, others in product(range(len(factors[one])), range(len(factors[other])))
    }
    rows = []
    while left:
        row = _row(factors, left)
        left -= _pairs(row)
        rows.append({name: value for n, chosen in enumerate(row) for name, value in factors[n][chosen].items()})
    return rows


def _row(factors: Sequence[Sequence[Values]], left: set[Pair]) -> list[int]:
    """Returns a row that begins with a pair that is left, and then takes what covers most."""
    one, mine, other, others = min(left)
    row: dict[int, int] = {one: mine, other: others}
    for n in range(len(factors)):
        if n not in row:
            row[n] = max(range(len(factors[n])), key=lambda chosen: len(left & _pairs_of(row | {n: chosen}, n)))
    return [row[n] for n in range(len(factors))]


def _pairs_of(row: Mapping[int, int], n: int) -> set[Pair]:
    return {(min(n, m), row[min(n, m)], max(n, m), row[max(n, m)]) for m in row if m != n}


def _pairs(row: Sequence[int]) -> set[Pair]:
    return {(one, row[one], other, row[other]) for one, other in combinations(range(len(row)), 2)}
