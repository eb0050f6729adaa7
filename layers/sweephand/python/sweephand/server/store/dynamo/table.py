"""The models: the only schema of the table, with the names, types and serialisation of all attributes.

Instants that end in `_at` are epoch milliseconds. The ones that an index sorts or the sweep compares are epoch seconds:
next_run_at, last_planned_at, first_at, began_at, through_at, ended_at, missed_from, missed_to, left_out_to, expires_at.
Users' JSON is stored as a string. Models of rarer rows are next to the code that reads and writes them.
"""

from __future__ import annotations

from sweephand.server.store.dynamo.flat_models import (
    BooleanAttribute,
    FlatModel,
    Integer,
    UnicodeAttribute,
    UnicodeSetAttribute,
)

NEXT_RUN = "next-run"
CATALOGUE = "catalogue"
ATTENTION = "attention"


class Item(FlatModel):
    """The members of every item. The table's name belongs to conditional.Table, so two tables can be open at once."""

    class Meta:
        table_name = "sweephand"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    expires_at = Integer(null=True)


class TenantItem(Item):
    """A tenant, and its row in the stack's register.

    Only the tenant's own row contains: applications (JSON, name -> since when, or [since when, by whom]), purge (an
    operation's id), off_times (when it was disabled), silences (JSON, target -> [since, until, reason, hangs]) and
    watched (keys of applications).
    runs_per_minute, descendants: only if they differ from the defaults of domain.collection.Pace. withheld: scopes,
    separated by spaces.
    """

    tenant = UnicodeAttribute()
    state = UnicodeAttribute(default="ACTIVE")
    description = UnicodeAttribute(null=True)
    applications = UnicodeAttribute(null=True)
    purge = UnicodeAttribute(null=True)
    runs_per_minute = Integer(null=True)
    descendants = Integer(null=True)
    withheld = UnicodeAttribute(null=True)
    off_times = UnicodeAttribute(null=True)
    silences = UnicodeAttribute(null=True)
    watched = UnicodeSetAttribute(null=True)
    created_at = Integer()
    created_by = UnicodeAttribute(null=True)
    modified_at = Integer(null=True)
    modified_by = UnicodeAttribute(null=True)


class LeasingItem(Item):
    """The members of a row with a quota that leases check.

    leases: how many were granted (server/store/tenants/counts.py).
    """

    revision = Integer(null=True)
    leases = Integer(null=True)


class QuotaItem(LeasingItem):
    """A tenant's quotas. revision: raised by each change of them."""

    most_schedules = Integer(null=True)
    most_jobs = Integer(null=True)
    least_interval_s = Integer(null=True)


class CountItem(Item):
    """One of the rows of a count of jobs and schedules.

    jobs_left, schedules_left: how many may be added in this row, leased under this revision of the quota.
    """

    jobs = Integer(default=0)
    schedules = Integer(default=0)
    jobs_left = Integer(null=True)
    schedules_left = Integer(null=True)
    revision = Integer(null=True)


class CollectionItem(Item):
    name = UnicodeAttribute()
    state = UnicodeAttribute(default="ENABLED")
    settings = UnicodeAttribute(default="{}")
    revision = Integer(default=1)
    created_at = Integer()
    created_by = UnicodeAttribute(null=True)
    modified_at = Integer()
    modified_by = UnicodeAttribute(null=True)
    signing = UnicodeAttribute(null=True)
    off_times = UnicodeAttribute(null=True)


class AddressItem(Item):
    """The collection that its facade finds under an address."""

    collection = UnicodeAttribute()


class PlacesItem(Item):
    """A count of the collections that were given addresses with one beginning or that changed their kind."""

    came = Integer(default=0)


class CredentialItem(Item):
    """A credential. created_by, rotated_by: client ids. former_hash: of the former secret, until `former_until`."""

    tenant = UnicodeAttribute(null=True)
    credential_id = UnicodeAttribute()
    name = UnicodeAttribute(null=True)
    secret_hash = UnicodeAttribute()
    scopes = UnicodeAttribute()
    generation = Integer(default=1)
    created_at = Integer()
    created_by = UnicodeAttribute(null=True)
    former_hash = UnicodeAttribute(null=True)
    former_until = Integer(null=True)
    rotated_at = Integer(null=True)
    rotated_by = UnicodeAttribute(null=True)


class JobItem(Item):
    job_id = UnicodeAttribute()
    collection = UnicodeAttribute()
    name = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    facade = UnicodeAttribute()
    active = BooleanAttribute()
    start_at = Integer(null=True)
    end_at = Integer(null=True)
    resource_id = UnicodeAttribute(null=True)
    tags = UnicodeAttribute(null=True)
    action = UnicodeAttribute()
    error_action = UnicodeAttribute(null=True)
    hooks = UnicodeAttribute(null=True)
    policies = UnicodeAttribute()
    secret_version = Integer(null=True)
    revision = Integer()
    pause = UnicodeAttribute(null=True)
    state_reason = UnicodeAttribute(null=True)
    schedule_ids = UnicodeAttribute(null=True)
    many_schedules = BooleanAttribute(null=True)
    schedule_count = Integer(null=True)
    open_change = Integer(null=True)
    number = Integer(null=True)
    ordinal = Integer(null=True)
    attributes = UnicodeAttribute(null=True)
    own_runs = BooleanAttribute(null=True)
    job_set = UnicodeAttribute(null=True)
    key = UnicodeAttribute(null=True)
    created_at = Integer()
    modified_at = Integer()


class ScheduleItem(Item):
    """A schedule. shard: always set. next_run_at: set while it waits. schedule_id: set while enabled (catalogue key).

    still_due: JSON, epoch seconds. off_times: in the format of domain.occurrences.off_times.
    """

    shard = Integer()
    next_run_at = Integer(null=True)
    schedule_id = UnicodeAttribute(null=True)
    sweep = UnicodeAttribute()
    name = UnicodeAttribute()
    timing = UnicodeAttribute()
    policies = UnicodeAttribute(null=True)
    active = BooleanAttribute()
    state = UnicodeAttribute()
    state_reason = UnicodeAttribute(null=True)
    generation = Integer()
    ended_at = UnicodeAttribute(null=True)
    planned_total = Integer()
    last_planned_at = Integer(null=True)
    missed_from = Integer(null=True)
    missed_to = Integer(null=True)
    left_out_to = Integer(null=True)
    first_at = Integer(null=True)
    still_due = UnicodeAttribute(null=True)
    off_times = UnicodeAttribute(null=True)
    offset_s = Integer(null=True)
    unreachable = UnicodeAttribute(null=True)
    hooks = UnicodeAttribute(null=True)
    payload_version = Integer(null=True)
    attributes = UnicodeAttribute(null=True)
    created_at = Integer()
    modified_at = Integer()


class GenerationItem(Item):
    """A plan that a change has ended, for the audit: its packed timing and the instants that it covers."""

    packed = UnicodeAttribute()
    began_at = Integer()
    through_at = Integer()
    first_at = Integer(null=True)


class PayloadItem(Item):
    text = UnicodeAttribute()
    is_json = BooleanAttribute()


class SecretItem(Item):
    """The secrets of a job. sealed: JSON, field -> ciphertext (Base64)."""

    sealed = UnicodeAttribute()


class OwnHooksItem(Item):
    """The schedule's own hooks, by name. The row never changes.

    text: packed JSON, each hook with its payload and its secrets, field within the action -> ciphertext (Base64).
    """

    text = UnicodeAttribute()


class RevisionItem(Item):
    """A revision of a job: who made it, how and when.

    body: packed JSON (server/store/jobs/history.py): the rows of the job and of the schedules that the caller changed,
    before and after. These rows have no secrets or payloads, only their versions.
    """

    body = UnicodeAttribute()
    actor = UnicodeAttribute(null=True)
    reason = UnicodeAttribute(null=True)
    operation = UnicodeAttribute()
    at = Integer()


class IdempotencyItem(Item):
    digest = UnicodeAttribute()
    answer = UnicodeAttribute()


class WakeItem(Item):
    """A row of the next-run index.

    A job's row wakes for the end of its pause, or for schedules that follow a change.
    """

    shard = Integer()
    next_run_at = Integer()
    sweep = UnicodeAttribute()


class CatchUpItem(WakeItem):
    """A catch-up of missed occurrences, sent at a limited rate. The packed `sweep` contains everything."""


class ShardsItem(Item):
    """The greatest number of shards of the next-run index that any function has used."""

    shards = Integer(default=0)


class SuspensionItem(Item):
    """A disabled tenant or collection, in the stack's list. until: when it was enabled; set until the release ends."""

    changed_at = Integer()
    until = Integer(null=True)


class ReleaseItem(WakeItem):
    """A release of held schedules. until: as in the list. round: 1 or 2. cursor: [collection, name of the job]."""

    until = Integer()
    round = Integer(default=1)
    cursor = UnicodeAttribute(null=True)


class CleanUpItem(WakeItem):
    """The clean-up after a delete.

    owners: JSON list of the ledger partitions to clear. whole: whether the whole job is deleted, not only some of its
    schedules. collection: the job's, for events of runs that end after the delete. progress: of an unfinished clean-up.
    runs_too: whether to delete the rows of the ledger as well. deleted_at: the last epoch second that counts as before
    the delete. schedules: packed rows of the deleted schedules whose backlog has no rows in the ledger yet. why: who
    deleted them, and the reason, for the messages of their runs.
    """

    owners = UnicodeAttribute()
    whole = BooleanAttribute()
    collection = UnicodeAttribute(null=True)
    progress = UnicodeAttribute(null=True)
    runs_too = BooleanAttribute(null=True)
    deleted_at = Integer(null=True)
    schedules = UnicodeAttribute(null=True)
    why = UnicodeAttribute(null=True)


class ChangePartItem(Item):
    """Schedules that still follow a change of their job. steps: packed JSON (server/store/jobs/change_parts.py)."""

    steps = UnicodeAttribute()


class RateItem(Item):
    """The requests or runs of one minute: of a tenant, or of all callers."""

    requests = Integer(default=0)


class FamilyItem(Item):
    """The count of runs that followed from one run. It is in that run's ledger partition and is deleted with it."""

    descendants = Integer(default=0)


class StatsItem(Item):
    """The counts of runs that did not simply succeed, and of ended runs up to settled_to (planned instant, epoch ms).

    missed: never sent. missed_sent: sent and counted as planned, but too late at the executor. manual_*: manual runs,
    only with the policy `totals: all`. settled_planned: occurrences sent up to settled_to, some perhaps still open.
    late_ends: runs that ended so late that settled_to may have passed them; a change of this count makes the audit's
    write fail.
    """

    failed = Integer(default=0)
    failed_attempts = Integer(default=0)
    skipped = Integer(default=0)
    missed = Integer(default=0)
    missed_sent = Integer(default=0)
    manual_ended = Integer(default=0)
    manual_failed = Integer(default=0)
    manual_failed_attempts = Integer(default=0)
    settled_total = Integer(default=0)
    settled_planned = Integer(default=0)
    late_ends = Integer(default=0)
    settled_to = Integer(null=True)


class SlotItem(Item):
    """The slot of a schedule whose runs exclude each other, while one is active. active, queued: the runs' uuids."""

    active = UnicodeAttribute(null=True)
    queued = UnicodeAttribute(null=True)


class LastStartItem(Item):
    """The last run of a job that was started because none was active. owner: the run's schedule, or the job."""

    uuid = UnicodeAttribute()
    owner = UnicodeAttribute()


class RunItem(Item):
    """A run.

    shard, next_run_at: set only while it has a wake. attention_day, attention_at (the order of its id): set unless the
    run simply succeeded. slotted: whether it has been in its schedule's slot. flow_key: the key of its last claim.
    line_at: when it joined the line of that key, if it did. task: the ARN of its ECS task. chain: if a job started its
    job, the ids of the jobs before it. root: the run that began the chain. reported: the message of its target, until
    redacted. consumer: the consumer that it is held for; attention_day is then that consumer's partition. claims: marks
    of the workers that claimed it. posted: of a message (domain.posted); the action may be in a PostedItem.
    """

    job_id = UnicodeAttribute()
    schedule = UnicodeAttribute(null=True)
    kind = UnicodeAttribute()
    state = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)
    planned_at = Integer()
    enqueued_at = Integer(null=True)
    first_started_at = Integer(null=True)
    started_at = Integer(null=True)
    finished_at = Integer(null=True)
    attempt = Integer()
    max_attempts = Integer(null=True)
    lost_calls = UnicodeSetAttribute(null=True)
    unknown = Integer(null=True)
    owner = UnicodeAttribute(null=True)
    lease_until = Integer(null=True)
    not_before = Integer(null=True)
    generation = Integer(null=True)
    http_status = Integer(null=True)
    answer = UnicodeAttribute(null=True)
    message = UnicodeAttribute(null=True)
    reported = UnicodeAttribute(null=True)
    result_digest = UnicodeAttribute(null=True)
    deadline_at = Integer(null=True)
    parent_uuid = UnicodeAttribute(null=True)
    range_until = Integer(null=True)
    range_count = Integer(null=True)
    range_packed = UnicodeAttribute(null=True)
    notes = UnicodeSetAttribute(null=True)
    sweep = UnicodeAttribute(null=True)
    shard = Integer(null=True)
    next_run_at = Integer(null=True)
    attention_day = UnicodeAttribute(null=True)
    attention_at = Integer(null=True)
    slotted = BooleanAttribute(null=True)
    hop = Integer(null=True)
    attempt_planned_at = Integer(null=True)
    attempt_enqueued_at = Integer(null=True)
    rerun_of = UnicodeAttribute(null=True)
    rerun_by = UnicodeAttribute(null=True)
    occurrence_at = Integer(null=True)
    edited = BooleanAttribute(null=True)
    task = UnicodeAttribute(null=True)
    flow_key = UnicodeAttribute(null=True)
    line_at = Integer(null=True)
    chain = UnicodeSetAttribute(null=True)
    root = UnicodeAttribute(null=True)
    answer_headers = UnicodeAttribute(null=True)
    consumer = UnicodeAttribute(null=True)
    missed_count = Integer(null=True)
    missed_from = Integer(null=True)
    claims = UnicodeSetAttribute(null=True)
    reported_by = UnicodeAttribute(null=True)
    posted = UnicodeAttribute(null=True)


class EditItem(Item):
    """The edit of one run, which replaces values of its job. headers: JSON, name -> value, or null to remove one."""

    payload = UnicodeAttribute(null=True)
    is_json = BooleanAttribute(null=True)
    headers = UnicodeAttribute(null=True)


class PostedItem(Item):
    """The action of a message, with its payload and its sealed secrets, if it is long. The row never changes."""

    body = UnicodeAttribute()


class MessageDayItem(Item):
    """A note that a collection has messages planned on a day. In the index `catalogue` while the audit looks at it.

    schedule_id: the last part of its key.
    """

    shard = Integer()
    schedule_id = UnicodeAttribute(null=True)


class AttemptItem(Item):
    """An attempt. planned_at, enqueued_at: absent for the first attempt, which has those of the run.

    ended_as: the state, if it does not follow from the reason.
    """

    attempt = Integer()
    planned_at = Integer(null=True)
    enqueued_at = Integer(null=True)
    started_at = Integer()
    finished_at = Integer()
    reason = UnicodeAttribute(null=True)
    http_status = Integer(null=True)
    message = UnicodeAttribute(null=True)
    answer = UnicodeAttribute(null=True)
    ended_as = UnicodeAttribute(null=True)
    answer_headers = UnicodeAttribute(null=True)


class AuditItem(Item):
    """The last audit of one worker. findings: JSON, counts by name. finished: whether it left nothing."""

    at = Integer()
    findings = UnicodeAttribute()
    everything = BooleanAttribute()
    finished = BooleanAttribute(null=True)


class AuditRoundItem(Item):
    """The progress of the audit in one shard (store.tenants.audits.Round). Instants: epoch milliseconds."""

    began_at = Integer()
    after = UnicodeAttribute(null=True)
    complete = BooleanAttribute()
    compared = Integer()
    since = Integer()
    schedules = Integer()
    searched_at = Integer()


class WaitingItem(Item):
    """The attributes of a schedule, a run or another waiting row that the next-run index contains."""

    shard = Integer()
    next_run_at = Integer()
    sweep = UnicodeAttribute()
    generation = Integer(null=True)
    planned_total = Integer(null=True)


class CatalogueItem(Item):
    shard = Integer()
    schedule_id = UnicodeAttribute()


class AttentionItem(Item):
    attention_day = UnicodeAttribute()
    attention_at = Integer()
