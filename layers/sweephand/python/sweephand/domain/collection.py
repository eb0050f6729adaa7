"""Tenants, and their groups of jobs: what these share, and what they may not exceed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


@dataclass(frozen=True)
class Tenant:
    name: str
    state: str
    description: str | None
    created_at: datetime


class CollectionState(StrEnum):
    ENABLED = "ENABLED"
    DISABLED = "DISABLED"


@dataclass(frozen=True)
class Quota:
    """None: no limit. max_runs_per_job: occurrences that a schedule may plan, in all.

    min_interval_s: between occurrences.
    """

    max_jobs: int | None = None
    max_runs_per_job: int | None = None
    min_interval_s: int | None = None


@dataclass(frozen=True)
class Collection:
    """settings: retention, events and defaults as the caller wrote them."""

    tenant: str
    name: str
    state: CollectionState = CollectionState.ENABLED
    quota: Quota = Quota()
    settings: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 1
    job_count: int = 0
    created_at: datetime | None = None
    modified_at: datetime | None = None
