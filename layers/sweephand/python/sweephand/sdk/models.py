"""The answers of the service. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sweephand.sdk.model import Model, instant, instants


class Retry(Model):
    __slots__ = ()
    type: Any
    immediate: int | None
    delayed: int | None
    increase_seconds: int | None
    retry_on: str | None
    never_on: tuple[str, ...] | None
    max_age_seconds: int | None
    max_retries: int | None
    delay_seconds: int | None
    max_delay_seconds: int | None
    members = {
        "type": ("type", None),
        "immediate": ("immediate", None),
        "delayed": ("delayed", None),
        "increase_seconds": ("increaseSeconds", None),
        "retry_on": ("retryOn", None),
        "never_on": ("neverOn", tuple),
        "max_age_seconds": ("maxAgeSeconds", None),
        "max_retries": ("maxRetries", None),
        "delay_seconds": ("delaySeconds", None),
        "max_delay_seconds": ("maxDelaySeconds", None),
    }


class AuthenticationCertificate(Model):
    __slots__ = ()
    subject: str
    not_before: datetime
    not_after: datetime
    thumbprint: str
    members = {
        "subject": ("subject", None),
        "not_before": ("notBefore", instant),
        "not_after": ("notAfter", instant),
        "thumbprint": ("thumbprint", None),
    }


class Authentication(Model):
    __slots__ = ()
    type: Any
    pem: Any
    certificate: AuthenticationCertificate | None
    service: str | None
    region: str | None
    role_arn: str | None
    token_url: str | None
    client_id: str | None
    secret: Any
    scope: str | None
    audience: str | None
    resource: str | None
    credentials_in: str | None
    header: str | None
    value: Any
    token: Any
    username: str | None
    password: Any
    members = {
        "type": ("type", None),
        "pem": ("pem", None),
        "certificate": ("certificate", AuthenticationCertificate.of),
        "service": ("service", None),
        "region": ("region", None),
        "role_arn": ("roleArn", None),
        "token_url": ("tokenUrl", None),
        "client_id": ("clientId", None),
        "secret": ("secret", None),
        "scope": ("scope", None),
        "audience": ("audience", None),
        "resource": ("resource", None),
        "credentials_in": ("credentialsIn", None),
        "header": ("header", None),
        "value": ("value", None),
        "token": ("token", None),
        "username": ("username", None),
        "password": ("password", None),
    }


class BrokeredMessageProperties(Model):
    __slots__ = ()
    content_type: str | None
    correlation_id: str | None
    label: str | None
    reply_to: str | None
    to: str | None
    message_id: str | None
    partition_key: str | None
    reply_to_session_id: str | None
    session_id: str | None
    via_partition_key: str | None
    force_persistence: bool | None
    scheduled_enqueue_time_utc: str | None
    time_to_live_seconds: int | None
    members = {
        "content_type": ("contentType", None),
        "correlation_id": ("correlationId", None),
        "label": ("label", None),
        "reply_to": ("replyTo", None),
        "to": ("to", None),
        "message_id": ("messageId", None),
        "partition_key": ("partitionKey", None),
        "reply_to_session_id": ("replyToSessionId", None),
        "session_id": ("sessionId", None),
        "via_partition_key": ("viaPartitionKey", None),
        "force_persistence": ("forcePersistence", None),
        "scheduled_enqueue_time_utc": ("scheduledEnqueueTimeUtc", None),
        "time_to_live_seconds": ("timeToLiveSeconds", None),
    }


class Outcome(Model):
    __slots__ = ()
    answer_timeout_seconds: int
    success_statuses: tuple[str, ...]
    on202: str
    on_no_answer: str
    callback_timeout_seconds: int | None
    members = {
        "answer_timeout_seconds": ("answerTimeoutSeconds", None),
        "success_statuses": ("successStatuses", tuple),
        "on202": ("on202", None),
        "on_no_answer": ("onNoAnswer", None),
        "callback_timeout_seconds": ("callbackTimeoutSeconds", None),
    }


class Missed(Model):
    __slots__ = ()
    mode: str
    keep_seconds: int
    limit: int
    members = {
        "mode": ("mode", None),
        "keep_seconds": ("keepSeconds", None),
        "limit": ("limit", None),
    }


class Action(Model):
    __slots__ = ()
    type: Any
    application: str | None
    task: str | None
    version: str | None
    retry: Retry | None
    payload: Any
    body: str | None
    job_id: str | None
    namespace: str | None
    topic_path: str | None
    authentication: Authentication | None
    transport_type: str | None
    brokered_message_properties: BrokeredMessageProperties | None
    custom_message_properties: Mapping[str, Any] | None
    outcome: Outcome | None
    queue_name: str | None
    storage_account: str | None
    sas_token: Any
    region: str | None
    detail_type: str | None
    consumer: str | None
    missed: Missed | None
    task_definition: str | None
    container: str | None
    command: tuple[str, ...] | None
    environment: Mapping[str, Any] | None
    role_arn: str | None
    cpu_units: int | None
    memory_mi_b: int | None
    disk_gi_b: int | None
    target_arn: str | None
    invocation: str | None
    envelope: bool | None
    source: str | None
    subject: str | None
    message_group_id: str | None
    method: str | None
    url: str | None
    headers: Mapping[str, Any] | None
    members = {
        "type": ("type", None),
        "application": ("application", None),
        "task": ("task", None),
        "version": ("version", None),
        "retry": ("retry", Retry.of),
        "payload": ("payload", None),
        "body": ("body", None),
        "job_id": ("jobId", None),
        "namespace": ("namespace", None),
        "topic_path": ("topicPath", None),
        "authentication": ("authentication", Authentication.of),
        "transport_type": ("transportType", None),
        "brokered_message_properties": ("brokeredMessageProperties", BrokeredMessageProperties.of),
        "custom_message_properties": ("customMessageProperties", None),
        "outcome": ("outcome", Outcome.of),
        "queue_name": ("queueName", None),
        "storage_account": ("storageAccount", None),
        "sas_token": ("sasToken", None),
        "region": ("region", None),
        "detail_type": ("detailType", None),
        "consumer": ("consumer", None),
        "missed": ("missed", Missed.of),
        "task_definition": ("taskDefinition", None),
        "container": ("container", None),
        "command": ("command", tuple),
        "environment": ("environment", None),
        "role_arn": ("roleArn", None),
        "cpu_units": ("cpuUnits", None),
        "memory_mi_b": ("memoryMiB", None),
        "disk_gi_b": ("diskGiB", None),
        "target_arn": ("targetArn", None),
        "invocation": ("invocation", None),
        "envelope": ("envelope", None),
        "source": ("source", None),
        "subject": ("subject", None),
        "message_group_id": ("messageGroupId", None),
        "method": ("method", None),
        "url": ("url", None),
        "headers": ("headers", None),
    }


class Application(Model):
    __slots__ = ()
    name: str
    version: str | None
    queue_url: str
    region: str | None
    visibility_seconds: int
    tasks: tuple[str, ...]
    created_at: datetime
    since: datetime | None
    away_at: datetime | None
    waiting: int
    members = {
        "name": ("name", None),
        "version": ("version", None),
        "queue_url": ("queueUrl", None),
        "region": ("region", None),
        "visibility_seconds": ("visibilitySeconds", None),
        "tasks": ("tasks", tuple),
        "created_at": ("createdAt", instant),
        "since": ("since", instant),
        "away_at": ("awayAt", instant),
        "waiting": ("waiting", None),
    }


class Attempt(Model):
    __slots__ = ()
    attempt: int
    state: str
    planned_at: datetime | None
    enqueued_at: datetime | None
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    reason: str | None
    http_status: int | None
    message: str | None
    answer: str | None
    members = {
        "attempt": ("attempt", None),
        "state": ("state", None),
        "planned_at": ("plannedAt", instant),
        "enqueued_at": ("enqueuedAt", instant),
        "started_at": ("startedAt", instant),
        "finished_at": ("finishedAt", instant),
        "duration_ms": ("durationMs", None),
        "reason": ("reason", None),
        "http_status": ("httpStatus", None),
        "message": ("message", None),
        "answer": ("answer", None),
    }


class AttentionItemNextStep(Model):
    __slots__ = ()
    verb: str
    words: str
    href: str
    members = {
        "verb": ("verb", None),
        "words": ("words", None),
        "href": ("href", None),
    }


class AttentionItem(Model):
    __slots__ = ()
    kind: str
    id: str
    name: str
    job_id: str | None
    since: datetime | None
    last_at: datetime | None
    count: int
    reason: str | None
    sentence: str
    next_step: AttentionItemNextStep
    members = {
        "kind": ("kind", None),
        "id": ("id", None),
        "name": ("name", None),
        "job_id": ("jobId", None),
        "since": ("since", instant),
        "last_at": ("lastAt", instant),
        "count": ("count", None),
        "reason": ("reason", None),
        "sentence": ("sentence", None),
        "next_step": ("nextStep", AttentionItemNextStep.of),
    }


class Attention(Model):
    __slots__ = ()
    now: datetime
    oldest_due_at: datetime | None
    behind_seconds: int
    items: tuple[AttentionItem, ...]
    items_left_out: int
    read_units: float
    ask_again_after_seconds: int
    members = {
        "now": ("now", instant),
        "oldest_due_at": ("oldestDueAt", instant),
        "behind_seconds": ("behindSeconds", None),
        "items": ("items", AttentionItem.all_of),
        "items_left_out": ("itemsLeftOut", None),
        "read_units": ("readUnits", None),
        "ask_again_after_seconds": ("askAgainAfterSeconds", None),
    }


class Away(Model):
    __slots__ = ()
    kind: str
    tenant: str
    name: str
    version: str | None
    since: datetime
    away_at: datetime | None
    waiting: int | None
    members = {
        "kind": ("kind", None),
        "tenant": ("tenant", None),
        "name": ("name", None),
        "version": ("version", None),
        "since": ("since", instant),
        "away_at": ("awayAt", instant),
        "waiting": ("waiting", None),
    }


class Backlog(Model):
    __slots__ = ()
    ready: int
    delayed: int
    in_flight: int
    members = {
        "ready": ("ready", None),
        "delayed": ("delayed", None),
        "in_flight": ("inFlight", None),
    }


class OperationProgress(Model):
    __slots__ = ()
    done: int
    total: int | None
    failed: int
    waits_for: str | None
    members = {
        "done": ("done", None),
        "total": ("total", None),
        "failed": ("failed", None),
        "waits_for": ("waitsFor", None),
    }


class Operation(Model):
    __slots__ = ()
    id: str
    kind: str
    state: str
    progress: OperationProgress
    cause: str | None
    request: Mapping[str, Any]
    result: Mapping[str, Any] | None
    actor: str | None
    started_at: datetime
    ended_at: datetime | None
    expires_at: datetime | None
    members = {
        "id": ("id", None),
        "kind": ("kind", None),
        "state": ("state", None),
        "progress": ("progress", OperationProgress.of),
        "cause": ("cause", None),
        "request": ("request", None),
        "result": ("result", None),
        "actor": ("actor", None),
        "started_at": ("startedAt", instant),
        "ended_at": ("endedAt", instant),
        "expires_at": ("expiresAt", instant),
    }


class BulkDelete(Model):
    __slots__ = ()
    count: int
    deleted: int
    operation: Operation | None
    members = {
        "count": ("count", None),
        "deleted": ("deleted", None),
        "operation": ("operation", Operation.of),
    }


class BulkSwitch(Model):
    __slots__ = ()
    count: int
    changed: int
    refused: int
    operation: Operation | None
    members = {
        "count": ("count", None),
        "changed": ("changed", None),
        "refused": ("refused", None),
        "operation": ("operation", Operation.of),
    }


class CalendarRange(Model):
    __slots__ = ()
    from_: str
    to: str
    members = {
        "from_": ("from", None),
        "to": ("to", None),
    }


class CalendarWeekly(Model):
    __slots__ = ()
    days: tuple[str, ...]
    from_: str | None
    to: str | None
    members = {
        "days": ("days", tuple),
        "from_": ("from", None),
        "to": ("to", None),
    }


class Calendar(Model):
    __slots__ = ()
    name: str
    description: str | None
    version: int
    used_by: int
    replanning: bool
    created_at: datetime
    modified_at: datetime
    timezone: str | None
    dates: tuple[str, ...]
    ranges: tuple[CalendarRange, ...]
    weekly: tuple[CalendarWeekly, ...]
    members = {
        "name": ("name", None),
        "description": ("description", None),
        "version": ("version", None),
        "used_by": ("usedBy", None),
        "replanning": ("replanning", None),
        "created_at": ("createdAt", instant),
        "modified_at": ("modifiedAt", instant),
        "timezone": ("timezone", None),
        "dates": ("dates", tuple),
        "ranges": ("ranges", CalendarRange.all_of),
        "weekly": ("weekly", CalendarWeekly.all_of),
    }


class CalendarVersionRange(Model):
    __slots__ = ()
    from_: str
    to: str
    members = {
        "from_": ("from", None),
        "to": ("to", None),
    }


class CalendarVersionWeekly(Model):
    __slots__ = ()
    days: tuple[str, ...]
    from_: str | None
    to: str | None
    members = {
        "days": ("days", tuple),
        "from_": ("from", None),
        "to": ("to", None),
    }


class CalendarVersion(Model):
    __slots__ = ()
    version: int
    description: str | None
    created_at: datetime
    actor: str | None
    timezone: str | None
    dates: tuple[str, ...]
    ranges: tuple[CalendarVersionRange, ...]
    weekly: tuple[CalendarVersionWeekly, ...]
    members = {
        "version": ("version", None),
        "description": ("description", None),
        "created_at": ("createdAt", instant),
        "actor": ("actor", None),
        "timezone": ("timezone", None),
        "dates": ("dates", tuple),
        "ranges": ("ranges", CalendarVersionRange.all_of),
        "weekly": ("weekly", CalendarVersionWeekly.all_of),
    }


class ChangedMember(Model):
    __slots__ = ()
    schedule_id: str | None
    path: str | None
    old: Any
    new: Any
    cut: bool
    members = {
        "schedule_id": ("scheduleId", None),
        "path": ("path", None),
        "old": ("old", None),
        "new": ("new", None),
        "cut": ("cut", None),
    }


class JobBeforeHooks(Model):
    __slots__ = ()
    on_success: Action | None
    on_failure: Action | None
    on_missed: Action | None
    members = {
        "on_success": ("onSuccess", Action.of),
        "on_failure": ("onFailure", Action.of),
        "on_missed": ("onMissed", Action.of),
    }


class PoliciesMisfire(Model):
    __slots__ = ()
    type: str
    rate_per_minute: int | None
    max_lateness_seconds: int | None
    members = {
        "type": ("type", None),
        "rate_per_minute": ("ratePerMinute", None),
        "max_lateness_seconds": ("maxLatenessSeconds", None),
    }


class Policies(Model):
    __slots__ = ()
    misfire: PoliciesMisfire
    overlap: str
    on_past_start: str
    on_enable: str
    on_create: str
    on_nothing_left: str
    on_unreachable: str
    on_no_result: str
    after_end: str
    delivery: str
    keep_answer: str
    totals: str
    callback_token: bool
    hooks: tuple[str, ...]
    flow_key: str | None
    members = {
        "misfire": ("misfire", PoliciesMisfire.of),
        "overlap": ("overlap", None),
        "on_past_start": ("onPastStart", None),
        "on_enable": ("onEnable", None),
        "on_create": ("onCreate", None),
        "on_nothing_left": ("onNothingLeft", None),
        "on_unreachable": ("onUnreachable", None),
        "on_no_result": ("onNoResult", None),
        "after_end": ("afterEnd", None),
        "delivery": ("delivery", None),
        "keep_answer": ("keepAnswer", None),
        "totals": ("totals", None),
        "callback_token": ("callbackToken", None),
        "hooks": ("hooks", tuple),
        "flow_key": ("flowKey", None),
    }


class ScheduleBeforeHooks(Model):
    __slots__ = ()
    on_success: Action | None
    on_failure: Action | None
    on_missed: Action | None
    members = {
        "on_success": ("onSuccess", Action.of),
        "on_failure": ("onFailure", Action.of),
        "on_missed": ("onMissed", Action.of),
    }


class OwnPoliciesMisfire(Model):
    __slots__ = ()
    type: str | None
    rate_per_minute: int | None
    max_lateness_seconds: int | None
    members = {
        "type": ("type", None),
        "rate_per_minute": ("ratePerMinute", None),
        "max_lateness_seconds": ("maxLatenessSeconds", None),
    }


class OwnPolicies(Model):
    __slots__ = ()
    misfire: OwnPoliciesMisfire | None
    overlap: str | None
    on_past_start: str | None
    on_enable: str | None
    on_create: str | None
    on_nothing_left: str | None
    on_unreachable: str | None
    on_no_result: str | None
    after_end: str | None
    delivery: str | None
    keep_answer: str | None
    totals: str | None
    callback_token: bool | None
    hooks: tuple[str, ...] | None
    flow_key: str | None
    members = {
        "misfire": ("misfire", OwnPoliciesMisfire.of),
        "overlap": ("overlap", None),
        "on_past_start": ("onPastStart", None),
        "on_enable": ("onEnable", None),
        "on_create": ("onCreate", None),
        "on_nothing_left": ("onNothingLeft", None),
        "on_unreachable": ("onUnreachable", None),
        "on_no_result": ("onNoResult", None),
        "after_end": ("afterEnd", None),
        "delivery": ("delivery", None),
        "keep_answer": ("keepAnswer", None),
        "totals": ("totals", None),
        "callback_token": ("callbackToken", None),
        "hooks": ("hooks", tuple),
        "flow_key": ("flowKey", None),
    }


class RecurrenceScheduleMonthlyOccurrence(Model):
    __slots__ = ()
    day: str
    occurrence: int | None
    members = {
        "day": ("day", None),
        "occurrence": ("occurrence", None),
    }


class RecurrenceSchedule(Model):
    __slots__ = ()
    minutes: Any
    hours: Any
    week_days: tuple[str, ...] | None
    month_days: Any
    monthly_occurrences: tuple[RecurrenceScheduleMonthlyOccurrence, ...] | None
    members = {
        "minutes": ("minutes", None),
        "hours": ("hours", None),
        "week_days": ("weekDays", tuple),
        "month_days": ("monthDays", None),
        "monthly_occurrences": ("monthlyOccurrences", RecurrenceScheduleMonthlyOccurrence.all_of),
    }


class Recurrence(Model):
    __slots__ = ()
    frequency: str
    interval: int | None
    schedule: RecurrenceSchedule | None
    members = {
        "frequency": ("frequency", None),
        "interval": ("interval", None),
        "schedule": ("schedule", RecurrenceSchedule.of),
    }


class ScheduleBeforeCalendar(Model):
    __slots__ = ()
    name: str
    mode: str | None
    roll: str | None
    members = {
        "name": ("name", None),
        "mode": ("mode", None),
        "roll": ("roll", None),
    }


class ScheduleBefore(Model):
    __slots__ = ()
    id: str
    name: str
    active: bool
    payload: Any
    hooks: ScheduleBeforeHooks | None
    policies: OwnPolicies
    at: str | None
    every: str | None
    cron: str | None
    event_bridge: str | None
    sap_cron: str | None
    time: Any
    rrule: str | None
    repeat_at: str | None
    recurrence: Recurrence | None
    align: str | None
    timezone: str | None
    dst_gap: str | None
    dst_overlap: str | None
    month_overflow: str | None
    start_time: str | None
    end_time: str | None
    count: int | None
    jitter_seconds: int | None
    calendars: tuple[ScheduleBeforeCalendar, ...] | None
    members = {
        "id": ("id", None),
        "name": ("name", None),
        "active": ("active", None),
        "payload": ("payload", None),
        "hooks": ("hooks", ScheduleBeforeHooks.of),
        "policies": ("policies", OwnPolicies.of),
        "at": ("at", None),
        "every": ("every", None),
        "cron": ("cron", None),
        "event_bridge": ("eventBridge", None),
        "sap_cron": ("sapCron", None),
        "time": ("time", None),
        "rrule": ("rrule", None),
        "repeat_at": ("repeatAt", None),
        "recurrence": ("recurrence", Recurrence.of),
        "align": ("align", None),
        "timezone": ("timezone", None),
        "dst_gap": ("dstGap", None),
        "dst_overlap": ("dstOverlap", None),
        "month_overflow": ("monthOverflow", None),
        "start_time": ("startTime", None),
        "end_time": ("endTime", None),
        "count": ("count", None),
        "jitter_seconds": ("jitterSeconds", None),
        "calendars": ("calendars", ScheduleBeforeCalendar.all_of),
    }


class JobBeforePause(Model):
    __slots__ = ()
    since: datetime
    note: str | None
    until: datetime | None
    members = {
        "since": ("since", instant),
        "note": ("note", None),
        "until": ("until", instant),
    }


class JobBefore(Model):
    __slots__ = ()
    name: str | None
    description: str | None
    collection: str | None
    active: bool
    resource_id: str | None
    tags: tuple[str, ...]
    start_time: datetime | None
    end_time: datetime | None
    action: Action
    error_action: Action | None
    hooks: JobBeforeHooks | None
    policies: Policies
    schedules: tuple[ScheduleBefore, ...]
    pause: JobBeforePause | None
    members = {
        "name": ("name", None),
        "description": ("description", None),
        "collection": ("collection", None),
        "active": ("active", None),
        "resource_id": ("resourceId", None),
        "tags": ("tags", tuple),
        "start_time": ("startTime", instant),
        "end_time": ("endTime", instant),
        "action": ("action", Action.of),
        "error_action": ("errorAction", Action.of),
        "hooks": ("hooks", JobBeforeHooks.of),
        "policies": ("policies", Policies.of),
        "schedules": ("schedules", ScheduleBefore.all_of),
        "pause": ("pause", JobBeforePause.of),
    }


class Change(Model):
    __slots__ = ()
    revision: int
    at: datetime
    actor: str | None
    operation: str
    reason: str | None
    changes: tuple[ChangedMember, ...]
    omitted_schedules: int
    before: JobBefore | None
    members = {
        "revision": ("revision", None),
        "at": ("at", instant),
        "actor": ("actor", None),
        "operation": ("operation", None),
        "reason": ("reason", None),
        "changes": ("changes", ChangedMember.all_of),
        "omitted_schedules": ("omittedSchedules", None),
        "before": ("before", JobBefore.of),
    }


class Task(Model):
    __slots__ = ()
    run_id: str
    job_id: str
    schedule_id: str | None
    name: str
    kind: str
    planned_at: datetime
    attempt: int
    max_attempts: int
    lease_until: datetime | None
    payload: Any
    body: str | None
    resource_id: str | None
    tags: tuple[str, ...]
    members = {
        "run_id": ("runId", None),
        "job_id": ("jobId", None),
        "schedule_id": ("scheduleId", None),
        "name": ("name", None),
        "kind": ("kind", None),
        "planned_at": ("plannedAt", instant),
        "attempt": ("attempt", None),
        "max_attempts": ("maxAttempts", None),
        "lease_until": ("leaseUntil", instant),
        "payload": ("payload", None),
        "body": ("body", None),
        "resource_id": ("resourceId", None),
        "tags": ("tags", tuple),
    }


class ClaimVerdict(Model):
    __slots__ = ()
    verdict: str
    wait_seconds: int | None
    task: Task | None
    members = {
        "verdict": ("verdict", None),
        "wait_seconds": ("waitSeconds", None),
        "task": ("task", Task.of),
    }


class CollectionQuota(Model):
    __slots__ = ()
    max_jobs: int | None
    max_runs_per_job: int | None
    min_interval_seconds: int | None
    members = {
        "max_jobs": ("maxJobs", None),
        "max_runs_per_job": ("maxRunsPerJob", None),
        "min_interval_seconds": ("minIntervalSeconds", None),
    }


class CollectionRetention(Model):
    __slots__ = ()
    run_days: int
    ended_job_days: int
    members = {
        "run_days": ("runDays", None),
        "ended_job_days": ("endedJobDays", None),
    }


class CollectionDefaults(Model):
    __slots__ = ()
    timezone: str | None
    retry: Retry | None
    policies: OwnPolicies
    members = {
        "timezone": ("timezone", None),
        "retry": ("retry", Retry.of),
        "policies": ("policies", OwnPolicies.of),
    }


class Collection(Model):
    __slots__ = ()
    name: str
    facade: str
    attributes: Mapping[str, Any]
    state: str
    quota: CollectionQuota
    retention: CollectionRetention
    events: str
    defaults: CollectionDefaults
    callback_timeout_seconds: int | None
    redirects: Mapping[str, Any]
    flow_key: str | None
    job_count: int
    revision: int
    created_at: datetime
    created_by: str | None
    modified_at: datetime
    modified_by: str | None
    members = {
        "name": ("name", None),
        "facade": ("facade", None),
        "attributes": ("attributes", None),
        "state": ("state", None),
        "quota": ("quota", CollectionQuota.of),
        "retention": ("retention", CollectionRetention.of),
        "events": ("events", None),
        "defaults": ("defaults", CollectionDefaults.of),
        "callback_timeout_seconds": ("callbackTimeoutSeconds", None),
        "redirects": ("redirects", None),
        "flow_key": ("flowKey", None),
        "job_count": ("jobCount", None),
        "revision": ("revision", None),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
        "modified_at": ("modifiedAt", instant),
        "modified_by": ("modifiedBy", None),
    }


class Consumer(Model):
    __slots__ = ()
    name: str
    state: str
    holder: str | None
    lease_until: datetime | None
    held: int
    oldest_held_at: datetime | None
    members = {
        "name": ("name", None),
        "state": ("state", None),
        "holder": ("holder", None),
        "lease_until": ("leaseUntil", instant),
        "held": ("held", None),
        "oldest_held_at": ("oldestHeldAt", instant),
    }


class Credential(Model):
    __slots__ = ()
    client_id: str
    name: str | None
    scopes: tuple[str, ...]
    created_at: datetime
    created_by: str | None
    rotated_at: datetime | None
    rotated_by: str | None
    former_secret_until: datetime | None
    members = {
        "client_id": ("clientId", None),
        "name": ("name", None),
        "scopes": ("scopes", tuple),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
        "rotated_at": ("rotatedAt", instant),
        "rotated_by": ("rotatedBy", None),
        "former_secret_until": ("formerSecretUntil", instant),
    }


class ErrorGroupNote(Model):
    __slots__ = ()
    text: str
    by: str | None
    at: datetime
    members = {
        "text": ("text", None),
        "by": ("by", None),
        "at": ("at", instant),
    }


class ErrorGroupArchived(Model):
    __slots__ = ()
    at: datetime
    by: str | None
    reason: str | None
    members = {
        "at": ("at", instant),
        "by": ("by", None),
        "reason": ("reason", None),
    }


class ErrorGroup(Model):
    __slots__ = ()
    id: str
    state: str
    job_id: str
    job_name: str | None
    action: str
    run_state: str
    reason: str | None
    http_status: int | None
    message: str
    count: int
    count_is_least: bool
    first_seen_at: datetime
    last_seen_at: datetime
    last_run_id: str
    last_message: str | None
    expires_at: datetime | None
    notes: tuple[ErrorGroupNote, ...]
    archived: ErrorGroupArchived | None
    members = {
        "id": ("id", None),
        "state": ("state", None),
        "job_id": ("jobId", None),
        "job_name": ("jobName", None),
        "action": ("action", None),
        "run_state": ("runState", None),
        "reason": ("reason", None),
        "http_status": ("httpStatus", None),
        "message": ("message", None),
        "count": ("count", None),
        "count_is_least": ("countIsLeast", None),
        "first_seen_at": ("firstSeenAt", instant),
        "last_seen_at": ("lastSeenAt", instant),
        "last_run_id": ("lastRunId", None),
        "last_message": ("lastMessage", None),
        "expires_at": ("expiresAt", instant),
        "notes": ("notes", ErrorGroupNote.all_of),
        "archived": ("archived", ErrorGroupArchived.of),
    }


class ErrorRunArchived(Model):
    __slots__ = ()
    at: datetime
    by: str | None
    reason: str | None
    members = {
        "at": ("at", instant),
        "by": ("by", None),
        "reason": ("reason", None),
    }


class ErrorRun(Model):
    __slots__ = ()
    run_id: str
    open: bool
    seen_at: datetime | None
    rerun_by: str | None
    actor: str | None
    operation_id: str | None
    archived: ErrorRunArchived | None
    expires_at: datetime | None
    members = {
        "run_id": ("runId", None),
        "open": ("open", None),
        "seen_at": ("seenAt", instant),
        "rerun_by": ("rerunBy", None),
        "actor": ("actor", None),
        "operation_id": ("operationId", None),
        "archived": ("archived", ErrorRunArchived.of),
        "expires_at": ("expiresAt", instant),
    }


class ErrorSum(Model):
    __slots__ = ()
    value: str | None
    job_name: str | None
    count: int
    count_is_least: bool
    jobs: int
    groups: int
    first_seen_at: datetime
    last_seen_at: datetime
    errors: tuple[str, ...]
    members = {
        "value": ("value", None),
        "job_name": ("jobName", None),
        "count": ("count", None),
        "count_is_least": ("countIsLeast", None),
        "jobs": ("jobs", None),
        "groups": ("groups", None),
        "first_seen_at": ("firstSeenAt", instant),
        "last_seen_at": ("lastSeenAt", instant),
        "errors": ("errors", tuple),
    }


class ErrorSummary(Model):
    __slots__ = ()
    group_by: str
    items: tuple[ErrorSum, ...]
    complete: bool
    members = {
        "group_by": ("groupBy", None),
        "items": ("items", ErrorSum.all_of),
        "complete": ("complete", None),
    }


class ExplanationRange(Model):
    __slots__ = ()
    from_: datetime
    until: datetime
    count: int
    members = {
        "from_": ("from", instant),
        "until": ("until", instant),
        "count": ("count", None),
    }


class ExplanationSwitchedOff(Model):
    __slots__ = ()
    since: datetime | None
    until: datetime | None
    by: str | None
    note: str | None
    members = {
        "since": ("since", instant),
        "until": ("until", instant),
        "by": ("by", None),
        "note": ("note", None),
    }


class ExplanationReason(Model):
    __slots__ = ()
    code: str
    message: str
    field: str | None
    members = {
        "code": ("code", None),
        "message": ("message", None),
        "field": ("field", None),
    }


class ExplanationMovedBy(Model):
    __slots__ = ()
    rule: str
    local_time: str
    timezone: str | None
    effect: str
    members = {
        "rule": ("rule", None),
        "local_time": ("localTime", None),
        "timezone": ("timezone", None),
        "effect": ("effect", None),
    }


class Explanation(Model):
    __slots__ = ()
    at: datetime
    local_time: str
    occurs: bool
    state: str | None
    reason: str | None
    range: ExplanationRange | None
    switched_off: ExplanationSwitchedOff | None
    reasons: tuple[ExplanationReason, ...]
    moved_by: ExplanationMovedBy | None
    previous: datetime | None
    next: datetime | None
    run_id: str | None
    members = {
        "at": ("at", instant),
        "local_time": ("localTime", None),
        "occurs": ("occurs", None),
        "state": ("state", None),
        "reason": ("reason", None),
        "range": ("range", ExplanationRange.of),
        "switched_off": ("switchedOff", ExplanationSwitchedOff.of),
        "reasons": ("reasons", ExplanationReason.all_of),
        "moved_by": ("movedBy", ExplanationMovedBy.of),
        "previous": ("previous", instant),
        "next": ("next", instant),
        "run_id": ("runId", None),
    }


class FlowKeyRate(Model):
    __slots__ = ()
    limit: int
    period_seconds: int
    members = {
        "limit": ("limit", None),
        "period_seconds": ("periodSeconds", None),
    }


class FlowKeyCircuit(Model):
    __slots__ = ()
    enabled: bool
    failures: int
    probe_seconds: int
    members = {
        "enabled": ("enabled", None),
        "failures": ("failures", None),
        "probe_seconds": ("probeSeconds", None),
    }


class FlowKeyPause(Model):
    __slots__ = ()
    since: datetime
    note: str | None
    members = {
        "since": ("since", instant),
        "note": ("note", None),
    }


class FlowKeyLiveCircuit(Model):
    __slots__ = ()
    id: str
    target: str
    state: str
    failures: int
    since: datetime | None
    last_failure_at: datetime | None
    last_failure: str | None
    next_probe_at: datetime | None
    members = {
        "id": ("id", None),
        "target": ("target", None),
        "state": ("state", None),
        "failures": ("failures", None),
        "since": ("since", instant),
        "last_failure_at": ("lastFailureAt", instant),
        "last_failure": ("lastFailure", None),
        "next_probe_at": ("nextProbeAt", instant),
    }


class FlowKeyLive(Model):
    __slots__ = ()
    waiting: int
    running: int | None
    next_call_at: datetime | None
    circuits: tuple[FlowKeyLiveCircuit, ...]
    members = {
        "waiting": ("waiting", None),
        "running": ("running", None),
        "next_call_at": ("nextCallAt", instant),
        "circuits": ("circuits", FlowKeyLiveCircuit.all_of),
    }


class FlowKey(Model):
    __slots__ = ()
    name: str
    description: str | None
    rate: FlowKeyRate | None
    parallelism: int | None
    circuit: FlowKeyCircuit
    state: str
    pause: FlowKeyPause | None
    used_by: int
    revision: int
    created_at: datetime
    created_by: str | None
    modified_at: datetime
    modified_by: str | None
    live: FlowKeyLive
    members = {
        "name": ("name", None),
        "description": ("description", None),
        "rate": ("rate", FlowKeyRate.of),
        "parallelism": ("parallelism", None),
        "circuit": ("circuit", FlowKeyCircuit.of),
        "state": ("state", None),
        "pause": ("pause", FlowKeyPause.of),
        "used_by": ("usedBy", None),
        "revision": ("revision", None),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
        "modified_at": ("modifiedAt", instant),
        "modified_by": ("modifiedBy", None),
        "live": ("live", FlowKeyLive.of),
    }


class HealthBacklog(Model):
    __slots__ = ()
    fast: Backlog
    slow: Backlog
    operations: Backlog
    members = {
        "fast": ("fast", Backlog.of),
        "slow": ("slow", Backlog.of),
        "operations": ("operations", Backlog.of),
    }


class LastAudit(Model):
    __slots__ = ()
    at: datetime
    everything: bool
    finished: bool
    schedules: int
    stopped: int
    lost: int
    expired: int
    corrected: int
    unreadable: int
    waiting: int
    members = {
        "at": ("at", instant),
        "everything": ("everything", None),
        "finished": ("finished", None),
        "schedules": ("schedules", None),
        "stopped": ("stopped", None),
        "lost": ("lost", None),
        "expired": ("expired", None),
        "corrected": ("corrected", None),
        "unreadable": ("unreadable", None),
        "waiting": ("waiting", None),
    }


class Health(Model):
    __slots__ = ()
    status: Any
    version: str
    oldest_due_at: datetime | None
    behind_seconds: int | None
    backlog: HealthBacklog | None
    away: tuple[Away, ...] | None
    last_audit: LastAudit | None
    unaudited: int | None
    audited_since: datetime | None
    members = {
        "status": ("status", None),
        "version": ("version", None),
        "oldest_due_at": ("oldestDueAt", instant),
        "behind_seconds": ("behindSeconds", None),
        "backlog": ("backlog", HealthBacklog.of),
        "away": ("away", Away.all_of),
        "last_audit": ("lastAudit", LastAudit.of),
        "unaudited": ("unaudited", None),
        "audited_since": ("auditedSince", instant),
    }


class IssuedCredential(Model):
    __slots__ = ()
    client_id: str
    name: str | None
    scopes: tuple[str, ...]
    created_at: datetime
    created_by: str | None
    rotated_at: datetime | None
    rotated_by: str | None
    former_secret_until: datetime | None
    secret: str
    members = {
        "client_id": ("clientId", None),
        "name": ("name", None),
        "scopes": ("scopes", tuple),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
        "rotated_at": ("rotatedAt", instant),
        "rotated_by": ("rotatedBy", None),
        "former_secret_until": ("formerSecretUntil", instant),
        "secret": ("secret", None),
    }


class IssuedSigningKey(Model):
    __slots__ = ()
    id: str
    created_at: datetime
    created_by: str | None
    secret: str
    members = {
        "id": ("id", None),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
        "secret": ("secret", None),
    }


class JobPause(Model):
    __slots__ = ()
    since: datetime
    note: str | None
    until: datetime | None
    members = {
        "since": ("since", instant),
        "note": ("note", None),
        "until": ("until", instant),
    }


class JobHeld(Model):
    __slots__ = ()
    by: str
    name: str
    since: datetime
    members = {
        "by": ("by", None),
        "name": ("name", None),
        "since": ("since", instant),
    }


class JobHooks(Model):
    __slots__ = ()
    on_success: Action | None
    on_failure: Action | None
    on_missed: Action | None
    members = {
        "on_success": ("onSuccess", Action.of),
        "on_failure": ("onFailure", Action.of),
        "on_missed": ("onMissed", Action.of),
    }


class Totals(Model):
    __slots__ = ()
    planned: int
    open: int
    succeeded: int
    failed: int
    failed_attempts: int
    skipped: int
    missed: int
    exact: bool
    members = {
        "planned": ("planned", None),
        "open": ("open", None),
        "succeeded": ("succeeded", None),
        "failed": ("failed", None),
        "failed_attempts": ("failedAttempts", None),
        "skipped": ("skipped", None),
        "missed": ("missed", None),
        "exact": ("exact", None),
    }


class ScheduleHeld(Model):
    __slots__ = ()
    by: str
    name: str
    since: datetime
    members = {
        "by": ("by", None),
        "name": ("name", None),
        "since": ("since", instant),
    }


class ScheduleCalendar(Model):
    __slots__ = ()
    name: str
    mode: str
    roll: str
    members = {
        "name": ("name", None),
        "mode": ("mode", None),
        "roll": ("roll", None),
    }


class ScheduleHooks(Model):
    __slots__ = ()
    on_success: Action | None
    on_failure: Action | None
    on_missed: Action | None
    members = {
        "on_success": ("onSuccess", Action.of),
        "on_failure": ("onFailure", Action.of),
        "on_missed": ("onMissed", Action.of),
    }


class ScheduleLastRun(Model):
    __slots__ = ()
    id: str
    state: str
    members = {
        "id": ("id", None),
        "state": ("state", None),
    }


class Schedule(Model):
    __slots__ = ()
    id: str
    job_id: str
    name: str
    active: bool
    state: str
    state_reason: str | None
    held: ScheduleHeld | None
    type: str
    summary: str
    at: str | None
    every: str | None
    cron: str | None
    event_bridge: str | None
    sap_cron: str | None
    time: Any
    rrule: str | None
    repeat_at: str | None
    recurrence: Recurrence | None
    align: str | None
    timezone: str
    dst_gap: str | None
    dst_overlap: str | None
    month_overflow: str | None
    start_time: str | None
    end_time: str | None
    count: int | None
    jitter_seconds: int
    calendars: tuple[ScheduleCalendar, ...]
    payload: Any
    hooks: ScheduleHooks
    policies: OwnPolicies
    created_at: datetime
    modified_at: datetime
    next_run_at: datetime | None
    next_runs: tuple[datetime, ...]
    last_run: ScheduleLastRun | None
    totals: Totals
    members = {
        "id": ("id", None),
        "job_id": ("jobId", None),
        "name": ("name", None),
        "active": ("active", None),
        "state": ("state", None),
        "state_reason": ("stateReason", None),
        "held": ("held", ScheduleHeld.of),
        "type": ("type", None),
        "summary": ("summary", None),
        "at": ("at", None),
        "every": ("every", None),
        "cron": ("cron", None),
        "event_bridge": ("eventBridge", None),
        "sap_cron": ("sapCron", None),
        "time": ("time", None),
        "rrule": ("rrule", None),
        "repeat_at": ("repeatAt", None),
        "recurrence": ("recurrence", Recurrence.of),
        "align": ("align", None),
        "timezone": ("timezone", None),
        "dst_gap": ("dstGap", None),
        "dst_overlap": ("dstOverlap", None),
        "month_overflow": ("monthOverflow", None),
        "start_time": ("startTime", None),
        "end_time": ("endTime", None),
        "count": ("count", None),
        "jitter_seconds": ("jitterSeconds", None),
        "calendars": ("calendars", ScheduleCalendar.all_of),
        "payload": ("payload", None),
        "hooks": ("hooks", ScheduleHooks.of),
        "policies": ("policies", OwnPolicies.of),
        "created_at": ("createdAt", instant),
        "modified_at": ("modifiedAt", instant),
        "next_run_at": ("nextRunAt", instant),
        "next_runs": ("nextRuns", instants),
        "last_run": ("lastRun", ScheduleLastRun.of),
        "totals": ("totals", Totals.of),
    }


class Job(Model):
    __slots__ = ()
    id: str
    name: str
    description: str | None
    collection: str
    facade: str
    job_set: str | None
    key: str | None
    revision: int
    created_at: datetime
    modified_at: datetime
    active: bool
    state: str
    state_reason: str | None
    pause: JobPause | None
    held: JobHeld | None
    pending_change: bool
    resource_id: str | None
    tags: tuple[str, ...]
    start_time: datetime | None
    end_time: datetime | None
    next_run_at: datetime | None
    action: Action
    error_action: Action | None
    hooks: JobHooks
    policies: Policies
    totals: Totals
    schedules: tuple[Schedule, ...] | None
    members = {
        "id": ("id", None),
        "name": ("name", None),
        "description": ("description", None),
        "collection": ("collection", None),
        "facade": ("facade", None),
        "job_set": ("jobSet", None),
        "key": ("key", None),
        "revision": ("revision", None),
        "created_at": ("createdAt", instant),
        "modified_at": ("modifiedAt", instant),
        "active": ("active", None),
        "state": ("state", None),
        "state_reason": ("stateReason", None),
        "pause": ("pause", JobPause.of),
        "held": ("held", JobHeld.of),
        "pending_change": ("pendingChange", None),
        "resource_id": ("resourceId", None),
        "tags": ("tags", tuple),
        "start_time": ("startTime", instant),
        "end_time": ("endTime", instant),
        "next_run_at": ("nextRunAt", instant),
        "action": ("action", Action.of),
        "error_action": ("errorAction", Action.of),
        "hooks": ("hooks", JobHooks.of),
        "policies": ("policies", Policies.of),
        "totals": ("totals", Totals.of),
        "schedules": ("schedules", Schedule.all_of),
    }


class JobSetJob(Model):
    __slots__ = ()
    key: str
    job_id: str
    state: str
    changes: tuple[Change, ...] | None
    members = {
        "key": ("key", None),
        "job_id": ("jobId", None),
        "state": ("state", None),
        "changes": ("changes", Change.all_of),
    }


class RunFiguresLatenessSeconds(Model):
    __slots__ = ()
    p50: float | None
    p99: float | None
    members = {
        "p50": ("p50", None),
        "p99": ("p99", None),
    }


class RunFiguresCriticalSeconds(Model):
    __slots__ = ()
    p50: float | None
    p99: float | None
    members = {
        "p50": ("p50", None),
        "p99": ("p99", None),
    }


class RunFigures(Model):
    __slots__ = ()
    from_: datetime
    complete: bool
    runs: int
    failed: int
    retried: int
    lateness_seconds: RunFiguresLatenessSeconds
    critical_seconds: RunFiguresCriticalSeconds
    limit_seconds: int | None
    breach_in_seconds: int | None
    members = {
        "from_": ("from", instant),
        "complete": ("complete", None),
        "runs": ("runs", None),
        "failed": ("failed", None),
        "retried": ("retried", None),
        "lateness_seconds": ("latenessSeconds", RunFiguresLatenessSeconds.of),
        "critical_seconds": ("criticalSeconds", RunFiguresCriticalSeconds.of),
        "limit_seconds": ("limitSeconds", None),
        "breach_in_seconds": ("breachInSeconds", None),
    }


class JobSet(Model):
    __slots__ = ()
    name: str
    applied_at: datetime
    applied_by: str | None
    owner: str | None
    jobs: tuple[JobSetJob, ...]
    figures: RunFigures | None
    members = {
        "name": ("name", None),
        "applied_at": ("appliedAt", instant),
        "applied_by": ("appliedBy", None),
        "owner": ("owner", None),
        "jobs": ("jobs", JobSetJob.all_of),
        "figures": ("figures", RunFigures.of),
    }


class PlannedMember(Model):
    __slots__ = ()
    schedule: str | None
    path: str | None
    old: Any
    new: Any
    cut: bool
    members = {
        "schedule": ("schedule", None),
        "path": ("path", None),
        "old": ("old", None),
        "new": ("new", None),
        "cut": ("cut", None),
    }


class JobSetChange(Model):
    __slots__ = ()
    key: str
    job_id: str | None
    name: str | None
    was: str | None
    runs: int | None
    open_runs: int | None
    changes: tuple[PlannedMember, ...] | None
    next_run_at_before: datetime | None
    next_run_at: datetime | None
    members = {
        "key": ("key", None),
        "job_id": ("jobId", None),
        "name": ("name", None),
        "was": ("was", None),
        "runs": ("runs", None),
        "open_runs": ("openRuns", None),
        "changes": ("changes", PlannedMember.all_of),
        "next_run_at_before": ("nextRunAtBefore", instant),
        "next_run_at": ("nextRunAt", instant),
    }


class JobSetPlanFailed(Model):
    __slots__ = ()
    key: str
    code: str
    reason: str
    members = {
        "key": ("key", None),
        "code": ("code", None),
        "reason": ("reason", None),
    }


class JobSetPlan(Model):
    __slots__ = ()
    set: str
    created: tuple[JobSetChange, ...]
    updated: tuple[JobSetChange, ...]
    repaired: tuple[JobSetChange, ...]
    deleted: tuple[JobSetChange, ...]
    unchanged: int
    failed: tuple[JobSetPlanFailed, ...]
    remaining: int
    token: str | None
    members = {
        "set": ("set", None),
        "created": ("created", JobSetChange.all_of),
        "updated": ("updated", JobSetChange.all_of),
        "repaired": ("repaired", JobSetChange.all_of),
        "deleted": ("deleted", JobSetChange.all_of),
        "unchanged": ("unchanged", None),
        "failed": ("failed", JobSetPlanFailed.all_of),
        "remaining": ("remaining", None),
        "token": ("token", None),
    }


class KnownJob(Model):
    __slots__ = ()
    job_id: str
    revision: int
    state: str
    members = {
        "job_id": ("jobId", None),
        "revision": ("revision", None),
        "state": ("state", None),
    }


class LanePause(Model):
    __slots__ = ()
    since: datetime
    note: str | None
    until: datetime | None
    members = {
        "since": ("since", instant),
        "note": ("note", None),
        "until": ("until", instant),
    }


class LaneHeld(Model):
    __slots__ = ()
    by: str
    name: str
    since: datetime
    members = {
        "by": ("by", None),
        "name": ("name", None),
        "since": ("since", instant),
    }


class LaneSchedule(Model):
    __slots__ = ()
    id: str
    name: str
    state: str
    summary: str
    timezone: str
    next_run_at: datetime | None
    members = {
        "id": ("id", None),
        "name": ("name", None),
        "state": ("state", None),
        "summary": ("summary", None),
        "timezone": ("timezone", None),
        "next_run_at": ("nextRunAt", instant),
    }


class Mark(Model):
    __slots__ = ()
    run_id: str
    job_id: str
    schedule_id: str | None
    kind: str
    planned_at: datetime
    state: str
    reason: str | None
    http_status: int | None
    sentence: str
    until: datetime | None
    count: int
    members = {
        "run_id": ("runId", None),
        "job_id": ("jobId", None),
        "schedule_id": ("scheduleId", None),
        "kind": ("kind", None),
        "planned_at": ("plannedAt", instant),
        "state": ("state", None),
        "reason": ("reason", None),
        "http_status": ("httpStatus", None),
        "sentence": ("sentence", None),
        "until": ("until", instant),
        "count": ("count", None),
    }


class LaneNoFailure(Model):
    __slots__ = ()
    since: datetime
    seconds: tuple[int, ...]
    left_out: int
    members = {
        "since": ("since", instant),
        "seconds": ("seconds", tuple),
        "left_out": ("leftOut", None),
    }


class LaneNoRow(Model):
    __slots__ = ()
    seconds: tuple[int, ...]
    left_out: int
    members = {
        "seconds": ("seconds", tuple),
        "left_out": ("leftOut", None),
    }


class LanePlanned(Model):
    __slots__ = ()
    seconds: tuple[int, ...]
    left_out: int
    members = {
        "seconds": ("seconds", tuple),
        "left_out": ("leftOut", None),
    }


class Lane(Model):
    __slots__ = ()
    job_id: str
    name: str
    collection: str
    revision: int
    state: str
    state_reason: str | None
    sentence: str | None
    pause: LanePause | None
    held: LaneHeld | None
    next_run_at: datetime | None
    due_since: datetime | None
    schedules: tuple[LaneSchedule, ...]
    schedules_left_out: int
    marks: tuple[Mark, ...]
    marks_left_out: int
    no_failure: LaneNoFailure
    no_row: LaneNoRow
    planned: LanePlanned
    members = {
        "job_id": ("jobId", None),
        "name": ("name", None),
        "collection": ("collection", None),
        "revision": ("revision", None),
        "state": ("state", None),
        "state_reason": ("stateReason", None),
        "sentence": ("sentence", None),
        "pause": ("pause", LanePause.of),
        "held": ("held", LaneHeld.of),
        "next_run_at": ("nextRunAt", instant),
        "due_since": ("dueSince", instant),
        "schedules": ("schedules", LaneSchedule.all_of),
        "schedules_left_out": ("schedulesLeftOut", None),
        "marks": ("marks", Mark.all_of),
        "marks_left_out": ("marksLeftOut", None),
        "no_failure": ("noFailure", LaneNoFailure.of),
        "no_row": ("noRow", LaneNoRow.of),
        "planned": ("planned", LanePlanned.of),
    }


class LastRun(Model):
    __slots__ = ()
    run_id: str
    planned_at: datetime
    kind: str
    state: str
    reason: str | None
    duration_ms: int | None
    count: int
    members = {
        "run_id": ("runId", None),
        "planned_at": ("plannedAt", instant),
        "kind": ("kind", None),
        "state": ("state", None),
        "reason": ("reason", None),
        "duration_ms": ("durationMs", None),
        "count": ("count", None),
    }


class LeaseEnd(Model):
    __slots__ = ()
    lease_until: datetime
    members = {
        "lease_until": ("leaseUntil", instant),
    }


class ListedAction(Model):
    __slots__ = ()
    type: Any
    application: str | None
    task: str | None
    version: str | None
    retry: Retry | None
    job_id: str | None
    namespace: str | None
    topic_path: str | None
    authentication: Authentication | None
    transport_type: str | None
    brokered_message_properties: BrokeredMessageProperties | None
    custom_message_properties: Mapping[str, Any] | None
    outcome: Outcome | None
    queue_name: str | None
    storage_account: str | None
    sas_token: Any
    region: str | None
    detail_type: str | None
    consumer: str | None
    missed: Missed | None
    task_definition: str | None
    container: str | None
    command: tuple[str, ...] | None
    environment: Mapping[str, Any] | None
    role_arn: str | None
    cpu_units: int | None
    memory_mi_b: int | None
    disk_gi_b: int | None
    target_arn: str | None
    invocation: str | None
    envelope: bool | None
    source: str | None
    subject: str | None
    message_group_id: str | None
    method: str | None
    url: str | None
    headers: Mapping[str, Any] | None
    members = {
        "type": ("type", None),
        "application": ("application", None),
        "task": ("task", None),
        "version": ("version", None),
        "retry": ("retry", Retry.of),
        "job_id": ("jobId", None),
        "namespace": ("namespace", None),
        "topic_path": ("topicPath", None),
        "authentication": ("authentication", Authentication.of),
        "transport_type": ("transportType", None),
        "brokered_message_properties": ("brokeredMessageProperties", BrokeredMessageProperties.of),
        "custom_message_properties": ("customMessageProperties", None),
        "outcome": ("outcome", Outcome.of),
        "queue_name": ("queueName", None),
        "storage_account": ("storageAccount", None),
        "sas_token": ("sasToken", None),
        "region": ("region", None),
        "detail_type": ("detailType", None),
        "consumer": ("consumer", None),
        "missed": ("missed", Missed.of),
        "task_definition": ("taskDefinition", None),
        "container": ("container", None),
        "command": ("command", tuple),
        "environment": ("environment", None),
        "role_arn": ("roleArn", None),
        "cpu_units": ("cpuUnits", None),
        "memory_mi_b": ("memoryMiB", None),
        "disk_gi_b": ("diskGiB", None),
        "target_arn": ("targetArn", None),
        "invocation": ("invocation", None),
        "envelope": ("envelope", None),
        "source": ("source", None),
        "subject": ("subject", None),
        "message_group_id": ("messageGroupId", None),
        "method": ("method", None),
        "url": ("url", None),
        "headers": ("headers", None),
    }


class ListedCalendar(Model):
    __slots__ = ()
    name: str
    description: str | None
    version: int
    used_by: int
    replanning: bool
    created_at: datetime
    modified_at: datetime
    members = {
        "name": ("name", None),
        "description": ("description", None),
        "version": ("version", None),
        "used_by": ("usedBy", None),
        "replanning": ("replanning", None),
        "created_at": ("createdAt", instant),
        "modified_at": ("modifiedAt", instant),
    }


class ListedCalendarVersion(Model):
    __slots__ = ()
    version: int
    description: str | None
    created_at: datetime
    actor: str | None
    members = {
        "version": ("version", None),
        "description": ("description", None),
        "created_at": ("createdAt", instant),
        "actor": ("actor", None),
    }


class ListedFlowKeyRate(Model):
    __slots__ = ()
    limit: int
    period_seconds: int
    members = {
        "limit": ("limit", None),
        "period_seconds": ("periodSeconds", None),
    }


class ListedFlowKeyCircuit(Model):
    __slots__ = ()
    enabled: bool
    failures: int
    probe_seconds: int
    members = {
        "enabled": ("enabled", None),
        "failures": ("failures", None),
        "probe_seconds": ("probeSeconds", None),
    }


class ListedFlowKeyPause(Model):
    __slots__ = ()
    since: datetime
    note: str | None
    members = {
        "since": ("since", instant),
        "note": ("note", None),
    }


class ListedFlowKey(Model):
    __slots__ = ()
    name: str
    description: str | None
    rate: ListedFlowKeyRate | None
    parallelism: int | None
    circuit: ListedFlowKeyCircuit
    state: str
    pause: ListedFlowKeyPause | None
    used_by: int
    revision: int
    created_at: datetime
    created_by: str | None
    modified_at: datetime
    modified_by: str | None
    members = {
        "name": ("name", None),
        "description": ("description", None),
        "rate": ("rate", ListedFlowKeyRate.of),
        "parallelism": ("parallelism", None),
        "circuit": ("circuit", ListedFlowKeyCircuit.of),
        "state": ("state", None),
        "pause": ("pause", ListedFlowKeyPause.of),
        "used_by": ("usedBy", None),
        "revision": ("revision", None),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
        "modified_at": ("modifiedAt", instant),
        "modified_by": ("modifiedBy", None),
    }


class ListedJobPause(Model):
    __slots__ = ()
    since: datetime
    note: str | None
    until: datetime | None
    members = {
        "since": ("since", instant),
        "note": ("note", None),
        "until": ("until", instant),
    }


class ListedJobHeld(Model):
    __slots__ = ()
    by: str
    name: str
    since: datetime
    members = {
        "by": ("by", None),
        "name": ("name", None),
        "since": ("since", instant),
    }


class ListedJobHooks(Model):
    __slots__ = ()
    on_success: ListedAction | None
    on_failure: ListedAction | None
    on_missed: ListedAction | None
    members = {
        "on_success": ("onSuccess", ListedAction.of),
        "on_failure": ("onFailure", ListedAction.of),
        "on_missed": ("onMissed", ListedAction.of),
    }


class ListedScheduleHeld(Model):
    __slots__ = ()
    by: str
    name: str
    since: datetime
    members = {
        "by": ("by", None),
        "name": ("name", None),
        "since": ("since", instant),
    }


class ListedScheduleCalendar(Model):
    __slots__ = ()
    name: str
    mode: str
    roll: str
    members = {
        "name": ("name", None),
        "mode": ("mode", None),
        "roll": ("roll", None),
    }


class ListedScheduleLastRun(Model):
    __slots__ = ()
    id: str
    state: str
    members = {
        "id": ("id", None),
        "state": ("state", None),
    }


class ListedSchedule(Model):
    __slots__ = ()
    id: str
    job_id: str
    name: str
    active: bool
    state: str
    state_reason: str | None
    held: ListedScheduleHeld | None
    type: str
    summary: str
    at: str | None
    every: str | None
    cron: str | None
    event_bridge: str | None
    sap_cron: str | None
    time: Any
    rrule: str | None
    repeat_at: str | None
    recurrence: Recurrence | None
    align: str | None
    timezone: str
    dst_gap: str | None
    dst_overlap: str | None
    month_overflow: str | None
    start_time: str | None
    end_time: str | None
    count: int | None
    jitter_seconds: int
    calendars: tuple[ListedScheduleCalendar, ...]
    policies: OwnPolicies
    created_at: datetime
    modified_at: datetime
    next_run_at: datetime | None
    next_runs: tuple[datetime, ...]
    last_run: ListedScheduleLastRun | None
    totals: Totals
    members = {
        "id": ("id", None),
        "job_id": ("jobId", None),
        "name": ("name", None),
        "active": ("active", None),
        "state": ("state", None),
        "state_reason": ("stateReason", None),
        "held": ("held", ListedScheduleHeld.of),
        "type": ("type", None),
        "summary": ("summary", None),
        "at": ("at", None),
        "every": ("every", None),
        "cron": ("cron", None),
        "event_bridge": ("eventBridge", None),
        "sap_cron": ("sapCron", None),
        "time": ("time", None),
        "rrule": ("rrule", None),
        "repeat_at": ("repeatAt", None),
        "recurrence": ("recurrence", Recurrence.of),
        "align": ("align", None),
        "timezone": ("timezone", None),
        "dst_gap": ("dstGap", None),
        "dst_overlap": ("dstOverlap", None),
        "month_overflow": ("monthOverflow", None),
        "start_time": ("startTime", None),
        "end_time": ("endTime", None),
        "count": ("count", None),
        "jitter_seconds": ("jitterSeconds", None),
        "calendars": ("calendars", ListedScheduleCalendar.all_of),
        "policies": ("policies", OwnPolicies.of),
        "created_at": ("createdAt", instant),
        "modified_at": ("modifiedAt", instant),
        "next_run_at": ("nextRunAt", instant),
        "next_runs": ("nextRuns", instants),
        "last_run": ("lastRun", ListedScheduleLastRun.of),
        "totals": ("totals", Totals.of),
    }


class ListedJob(Model):
    __slots__ = ()
    id: str
    name: str
    description: str | None
    collection: str
    facade: str
    job_set: str | None
    key: str | None
    revision: int
    created_at: datetime
    modified_at: datetime
    active: bool
    state: str
    state_reason: str | None
    pause: ListedJobPause | None
    held: ListedJobHeld | None
    pending_change: bool
    resource_id: str | None
    tags: tuple[str, ...]
    start_time: datetime | None
    end_time: datetime | None
    next_run_at: datetime | None
    action: ListedAction
    error_action: ListedAction | None
    hooks: ListedJobHooks
    policies: Policies
    totals: Totals | None
    schedules: tuple[ListedSchedule, ...] | None
    last_runs: tuple[LastRun, ...] | None
    members = {
        "id": ("id", None),
        "name": ("name", None),
        "description": ("description", None),
        "collection": ("collection", None),
        "facade": ("facade", None),
        "job_set": ("jobSet", None),
        "key": ("key", None),
        "revision": ("revision", None),
        "created_at": ("createdAt", instant),
        "modified_at": ("modifiedAt", instant),
        "active": ("active", None),
        "state": ("state", None),
        "state_reason": ("stateReason", None),
        "pause": ("pause", ListedJobPause.of),
        "held": ("held", ListedJobHeld.of),
        "pending_change": ("pendingChange", None),
        "resource_id": ("resourceId", None),
        "tags": ("tags", tuple),
        "start_time": ("startTime", instant),
        "end_time": ("endTime", instant),
        "next_run_at": ("nextRunAt", instant),
        "action": ("action", ListedAction.of),
        "error_action": ("errorAction", ListedAction.of),
        "hooks": ("hooks", ListedJobHooks.of),
        "policies": ("policies", Policies.of),
        "totals": ("totals", Totals.of),
        "schedules": ("schedules", ListedSchedule.all_of),
        "last_runs": ("lastRuns", LastRun.all_of),
    }


class ListedJobSet(Model):
    __slots__ = ()
    name: str
    applied_at: datetime
    applied_by: str | None
    owner: str | None
    members = {
        "name": ("name", None),
        "applied_at": ("appliedAt", instant),
        "applied_by": ("appliedBy", None),
        "owner": ("owner", None),
    }


class Load(Model):
    __slots__ = ()
    computed_at: datetime
    age_seconds: int
    from_: datetime
    slot_seconds: int
    slots: tuple[int, ...]
    jobs: int
    jobs_left_out: int
    read_units: float
    ask_again_after_seconds: int
    members = {
        "computed_at": ("computedAt", instant),
        "age_seconds": ("ageSeconds", None),
        "from_": ("from", instant),
        "slot_seconds": ("slotSeconds", None),
        "slots": ("slots", tuple),
        "jobs": ("jobs", None),
        "jobs_left_out": ("jobsLeftOut", None),
        "read_units": ("readUnits", None),
        "ask_again_after_seconds": ("askAgainAfterSeconds", None),
    }


class NextRun(Model):
    __slots__ = ()
    next_run_at: datetime | None
    schedule_id: str | None
    members = {
        "next_run_at": ("nextRunAt", instant),
        "schedule_id": ("scheduleId", None),
    }


class OccurrenceMovedBy(Model):
    __slots__ = ()
    rule: str
    local_time: str
    timezone: str | None
    effect: str
    members = {
        "rule": ("rule", None),
        "local_time": ("localTime", None),
        "timezone": ("timezone", None),
        "effect": ("effect", None),
    }


class Occurrence(Model):
    __slots__ = ()
    schedule_id: str
    planned_at: datetime
    state: str
    reason: str | None
    run_id: str | None
    moved_by: OccurrenceMovedBy | None
    calendar: str | None
    members = {
        "schedule_id": ("scheduleId", None),
        "planned_at": ("plannedAt", instant),
        "state": ("state", None),
        "reason": ("reason", None),
        "run_id": ("runId", None),
        "moved_by": ("movedBy", OccurrenceMovedBy.of),
        "calendar": ("calendar", None),
    }


class PreviewItemMovedBy(Model):
    __slots__ = ()
    rule: str
    local_time: str
    timezone: str | None
    effect: str
    members = {
        "rule": ("rule", None),
        "local_time": ("localTime", None),
        "timezone": ("timezone", None),
        "effect": ("effect", None),
    }


class PreviewItem(Model):
    __slots__ = ()
    planned_at: datetime
    local_time: str
    moved_by: PreviewItemMovedBy | None
    members = {
        "planned_at": ("plannedAt", instant),
        "local_time": ("localTime", None),
        "moved_by": ("movedBy", PreviewItemMovedBy.of),
    }


class PreviewDroppedMovedBy(Model):
    __slots__ = ()
    rule: str
    local_time: str
    timezone: str | None
    effect: str
    members = {
        "rule": ("rule", None),
        "local_time": ("localTime", None),
        "timezone": ("timezone", None),
        "effect": ("effect", None),
    }


class PreviewDropped(Model):
    __slots__ = ()
    at: datetime
    moved_by: PreviewDroppedMovedBy | None
    members = {
        "at": ("at", instant),
        "moved_by": ("movedBy", PreviewDroppedMovedBy.of),
    }


class PreviewLeftOut(Model):
    __slots__ = ()
    planned_at: datetime
    calendar: str
    members = {
        "planned_at": ("plannedAt", instant),
        "calendar": ("calendar", None),
    }


class PreviewGaps(Model):
    __slots__ = ()
    smallest_seconds: int
    largest_seconds: int
    until: datetime
    members = {
        "smallest_seconds": ("smallestSeconds", None),
        "largest_seconds": ("largestSeconds", None),
        "until": ("until", instant),
    }


class PreviewWarning(Model):
    __slots__ = ()
    code: str
    message: str
    members = {
        "code": ("code", None),
        "message": ("message", None),
    }


class Preview(Model):
    __slots__ = ()
    type: str
    summary: str
    description: str
    items: tuple[PreviewItem, ...]
    dropped: tuple[PreviewDropped, ...]
    left_out: tuple[PreviewLeftOut, ...]
    gaps: PreviewGaps | None
    warnings: tuple[PreviewWarning, ...]
    explained: Explanation | None
    next_cursor: Any
    searched_until: datetime
    iana_version: str
    members = {
        "type": ("type", None),
        "summary": ("summary", None),
        "description": ("description", None),
        "items": ("items", PreviewItem.all_of),
        "dropped": ("dropped", PreviewDropped.all_of),
        "left_out": ("leftOut", PreviewLeftOut.all_of),
        "gaps": ("gaps", PreviewGaps.of),
        "warnings": ("warnings", PreviewWarning.all_of),
        "explained": ("explained", Explanation.of),
        "next_cursor": ("nextCursor", None),
        "searched_until": ("searchedUntil", instant),
        "iana_version": ("ianaVersion", None),
    }


class Redirect(Model):
    __slots__ = ()
    from_: str
    to: str
    actor: str | None
    created_at: datetime
    members = {
        "from_": ("from", None),
        "to": ("to", None),
        "actor": ("actor", None),
        "created_at": ("createdAt", instant),
    }


class Redrive(Model):
    __slots__ = ()
    count: int
    operation: Operation | None
    members = {
        "count": ("count", None),
        "operation": ("operation", Operation.of),
    }


class RunRange(Model):
    __slots__ = ()
    until: datetime
    count: int
    members = {
        "until": ("until", instant),
        "count": ("count", None),
    }


class Run(Model):
    __slots__ = ()
    id: str
    job_id: str
    job_name: str | None
    schedule_id: str | None
    kind: str
    status: str
    state: str
    reason: str | None
    http_status: int | None
    planned_at: datetime
    enqueued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    lateness_ms: int | None
    attempt: int
    max_attempts: int
    next_attempt_at: datetime | None
    callback_deadline_at: datetime | None
    answer: str | None
    message: str | None
    parent_run_id: str | None
    rerun_of: str | None
    rerun_by: str | None
    reported_by: str | None
    error_group_id: str | None
    range: RunRange | None
    attempts: tuple[Attempt, ...]
    notes: tuple[str, ...]
    expires_at: datetime | None
    members = {
        "id": ("id", None),
        "job_id": ("jobId", None),
        "job_name": ("jobName", None),
        "schedule_id": ("scheduleId", None),
        "kind": ("kind", None),
        "status": ("status", None),
        "state": ("state", None),
        "reason": ("reason", None),
        "http_status": ("httpStatus", None),
        "planned_at": ("plannedAt", instant),
        "enqueued_at": ("enqueuedAt", instant),
        "started_at": ("startedAt", instant),
        "finished_at": ("finishedAt", instant),
        "lateness_ms": ("latenessMs", None),
        "attempt": ("attempt", None),
        "max_attempts": ("maxAttempts", None),
        "next_attempt_at": ("nextAttemptAt", instant),
        "callback_deadline_at": ("callbackDeadlineAt", instant),
        "answer": ("answer", None),
        "message": ("message", None),
        "parent_run_id": ("parentRunId", None),
        "rerun_of": ("rerunOf", None),
        "rerun_by": ("rerunBy", None),
        "reported_by": ("reportedBy", None),
        "error_group_id": ("errorGroupId", None),
        "range": ("range", RunRange.of),
        "attempts": ("attempts", Attempt.all_of),
        "notes": ("notes", tuple),
        "expires_at": ("expiresAt", instant),
    }


class RunStarted(Model):
    __slots__ = ()
    run_id: str
    started: bool
    members = {
        "run_id": ("runId", None),
        "started": ("started", None),
    }


class SigningKey(Model):
    __slots__ = ()
    id: str
    created_at: datetime
    created_by: str | None
    members = {
        "id": ("id", None),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
    }


class Subscription(Model):
    __slots__ = ()
    tenant: str
    application: str
    created_at: datetime
    created_by: str | None
    members = {
        "tenant": ("tenant", None),
        "application": ("application", None),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
    }


class TenantQuota(Model):
    __slots__ = ()
    max_schedules: int | None
    max_jobs: int | None
    min_interval_seconds: int | None
    runs_per_minute: int | None
    max_descendants: int
    members = {
        "max_schedules": ("maxSchedules", None),
        "max_jobs": ("maxJobs", None),
        "min_interval_seconds": ("minIntervalSeconds", None),
        "runs_per_minute": ("runsPerMinute", None),
        "max_descendants": ("maxDescendants", None),
    }


class TenantUsage(Model):
    __slots__ = ()
    schedules: int
    jobs: int
    members = {
        "schedules": ("schedules", None),
        "jobs": ("jobs", None),
    }


class Tenant(Model):
    __slots__ = ()
    tenant: str
    description: str | None
    state: str
    quota: TenantQuota
    usage: TenantUsage
    withheld_scopes: tuple[str, ...]
    deleted_by: str | None
    created_at: datetime
    created_by: str | None
    modified_at: datetime | None
    modified_by: str | None
    members = {
        "tenant": ("tenant", None),
        "description": ("description", None),
        "state": ("state", None),
        "quota": ("quota", TenantQuota.of),
        "usage": ("usage", TenantUsage.of),
        "withheld_scopes": ("withheldScopes", tuple),
        "deleted_by": ("deletedBy", None),
        "created_at": ("createdAt", instant),
        "created_by": ("createdBy", None),
        "modified_at": ("modifiedAt", instant),
        "modified_by": ("modifiedBy", None),
    }


class TimelineChanges(Model):
    __slots__ = ()
    now: datetime
    marks_from: datetime
    marks: tuple[Mark, ...]
    jobs: tuple[KnownJob, ...] | None
    since: str
    read_units: float
    ask_again_after_seconds: int
    members = {
        "now": ("now", instant),
        "marks_from": ("marksFrom", instant),
        "marks": ("marks", Mark.all_of),
        "jobs": ("jobs", KnownJob.all_of),
        "since": ("since", None),
        "read_units": ("readUnits", None),
        "ask_again_after_seconds": ("askAgainAfterSeconds", None),
    }
