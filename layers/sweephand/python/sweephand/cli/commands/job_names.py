"""Finds jobs and schedules by their names, because the API takes ids."""

from __future__ import annotations

import re
from typing import Any

from sweephand.base.errors import NotFound
from sweephand.base.ids import UUID_TEXT
from sweephand.cli.commands.statuses import Unusable

PARAMETERS = frozenset({"job", "job_id"})
"""The names of the parameters that identify a job."""
MOST_NAMESAKES = 5
MOST_SEARCHED, PAGE = 1_000, 200
_END_OF_ID = re.compile("[0-9a-f]{4,12}", re.ASCII)


def id_of(client: Any, name_or_id: str) -> str:
    """Returns the id of the job that has this id or name. An id is not looked up.

    Raises NotFound for a name that no job has, and Unusable for a name that jobs in several collections have.
    """
    if UUID_TEXT.fullmatch(name_or_id.lower()):
        return name_or_id
    jobs = list(client.jobs.list(name=name_or_id, max_items=MOST_NAMESAKES))
    if not jobs:
        raise NotFound(
            f'no job has the name "{name_or_id}": `sweephand jobs list --search TEXT` finds jobs by part of it'
        )
    if len(jobs) > 1:
        ids = ", ".join(f"{each.id} in the collection {each.collection}" for each in jobs)
        raise Unusable(f'several jobs have the name "{name_or_id}": give an id instead: {ids}')
    return str(jobs[0].id)


def run_id_of(client: Any, ending: str) -> str:
    """Returns the id of the run that has this id, or whose id ends so. A whole id is not looked up.

    Raises NotFound, and Unusable if several of the latest runs match.
    """
    if not _END_OF_ID.fullmatch(ending):
        return ending
    lists = (client.runs.list(state=state, max_items=MOST_SEARCHED, page_size=PAGE) for state in (None, "SUCCESS"))
    run_ids = [each.id for runs in lists for each in runs if each.id.endswith(ending)]
    if not run_ids:
        raise NotFound(f'none of the latest runs has an id that ends with "{ending}": give a whole id')
    if len(run_ids) > 1:
        raise Unusable(f'several runs have an id that ends with "{ending}": give a whole id: {", ".join(run_ids)}')
    return str(run_ids[0])


def schedule_id_of(client: Any, job: str, name_or_id: str) -> str:
    """Returns the id of the job's schedule that has this id or name. An id is not looked up. Raises NotFound."""
    if UUID_TEXT.fullmatch(name_or_id.lower()):
        return name_or_id
    schedules = list(client.schedules.list(job))
    for each in schedules:
        if each.name == name_or_id:
            return str(each.id)
    names = ", ".join(f'"{each.name}"' for each in schedules) or "none"
    raise NotFound(f'the job has no schedule with the name "{name_or_id}"; its schedules are: {names}')
