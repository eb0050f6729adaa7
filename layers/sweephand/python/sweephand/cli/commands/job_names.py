"""Finds jobs and schedules by their names, because the API takes ids."""

from __future__ import annotations

from typing import Any

from sweephand.base.errors import NotFound
from sweephand.base.ids import UUID_TEXT
from sweephand.cli.commands.statuses import Unusable

PARAMETERS = frozenset({"job", "job_id"})
"""The names of the parameters that identify a job."""
MOST_NAMESAKES = 5


def id_of(client: Any, given: str) -> str:
    """Returns the id of the job that has this id or name. An id is not looked up.

    Raises NotFound for a name that no job has, and Unusable for a name that jobs in several collections have.
    """
    if UUID_TEXT.fullmatch(given.lower()):
        return given
    found = list(client.jobs.list(name=given, max_items=MOST_NAMESAKES))
    if not found:
        raise NotFound(f'no job has the name "{given}": `sweephand jobs list --search TEXT` finds jobs by part of it')
    if len(found) > 1:
        ids = ", ".join(f"{each.id} in the collection {each.collection}" for each in found)
        raise Unusable(f'several jobs have the name "{given}": give an id instead: {ids}')
    return str(found[0].id)


def schedule_id_of(client: Any, job: str, given: str) -> str:
    """Returns the id of the job's schedule that has this id or name. An id is not looked up. Raises NotFound."""
    if UUID_TEXT.fullmatch(given.lower()):
        return given
    found = list(client.schedules.list(job))
    for each in found:
        if each.name == given:
            return str(each.id)
    names = ", ".join(f'"{each.name}"' for each in found) or "none"
    raise NotFound(f'the job has no schedule with the name "{given}"; its schedules are: {names}')
