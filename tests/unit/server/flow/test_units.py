"""The units that an occurrence costs the table, depending on how it ends: least writes, held to the unit."""

from __future__ import annotations

import pytest

from bench import outcomes


@pytest.mark.parametrize("name", outcomes.WAYS)
def test_an_occurrence_writes_the_documented_number_of_units(name: str) -> None:
    way = outcomes.WAYS[name]

    assert outcomes.measure(name) == (way.units, way.ends)
