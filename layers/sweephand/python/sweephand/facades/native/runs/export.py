"""Runs as a file: CSV for spreadsheets, or JSON lines. A page at a time, each with the address of the next."""

from __future__ import annotations

from urllib.parse import urlencode

from sweephand.domain.runs import run_file
from sweephand.domain.runs.run_file import MEDIA_TYPES, Format
from sweephand.facades.http import Answer
from sweephand.facades.native import cursors
from sweephand.facades.native.context import Context
from sweephand.facades.native.operations.export_results import EXPORT_PATH
from sweephand.facades.native.runs import runs
from sweephand.flow.runs.run_lists import JobNames
from sweephand.ids import is_uuid

PAGE = 1_000
"""Runs."""
FORMATS = frozenset(Format)


def export_runs(ctx: Context) -> Answer:
    """A list of runs. Its pages put one behind the other are one file: the first has the line of names."""
    form = Format(ctx.choice("format", FORMATS) or Format.CSV)
    mark = cursors.read(ctx.place, ctx.query, is_uuid, is_uuid)
    limit = PAGE
    names = JobNames(ctx.world, ctx.tenant)
    while True:
        found, behind = runs.select(ctx, (mark[0], mark[1]) if mark else None, limit)
        text = ("" if mark else run_file.head(form)) + run_file.lines(form, found, names.of(found))
        headers = {}
        if behind is not None:
            query = {**ctx.query, "cursor": ctx.cursor(*behind)}
            headers["Link"] = f'<{EXPORT_PATH}?{urlencode(query)}>; rel="next"'
        answer = Answer(200, headers=headers, media_type=MEDIA_TYPES[form], raw=text)
        if not answer.too_large:
            return answer
        limit //= 4  # as for every list: what Lambda could not give back comes in shorter pages
