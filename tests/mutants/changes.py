"""The code, or the template, with one decision taken away: for what no condition, ordering or property alone protects.

Each is named by the line of a table in promises.toml whose test must notice it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.conditions import PACKAGE
from tests.mutants.guards import TEMPLATE


@dataclass(frozen=True)
class Change:
    """In a function (or a whole file: ""), the text `old`, which it says once, becomes `new`."""

    path: str
    function: str
    old: str
    new: str


TEMPLATE_FILE = "template.yaml"

CHANGES = {
    # Messages
    "a-finished-run-is-run-again": Change(
        "domain/runs/admission.py", "_with_row", "return Effects()", "return TakeOver() if run.lost < 1 else Effects()"
    ),
    "runs-are-remembered-for-a-week": Change(
        "domain/runs/admission.py",
        "admit",
        "if context.run is not None:",
        "if context.run is not None and now - pointer.instant < timedelta(days=7):",
    ),
    "ids-are-of-chance": Change(
        "domain/message.py", "occurrence", "run_uuid(", '(lambda *_: str(__import__("uuid").uuid4()))('
    ),
    "a-live-lease-is-acknowledged": Change(
        "domain/runs/admission.py",
        "_with_row",
        "return Later(run.lease_until)",
        'return Acknowledge("somebody has it")',
    ),
    "an-unknown-error-fails-the-batch": Change(
        "server/flow/delivery/dispatch.py",
        "_guarded",
        "except Exception as unexpected:",
        "except AssertionError as unexpected:",
    ),
    "one-failure-fails-all": Change(
        "server/flow/delivery/dispatch.py",
        "batch",
        "if not hand.verdicts[message.receipt].acknowledged]",
        "if not all(verdict.acknowledged for verdict in hand.verdicts.values())]",
    ),
    "what-waits-for-the-table-is-acknowledged": Change(
        "server/flow/delivery/dispatch.py",
        "_guarded",
        "reason=unavailable.reason)\n        return AGAIN",
        "reason=unavailable.reason)\n        return DONE",
    ),
    "what-comes-again-runs-beside-the-others": Change(
        "server/flow/delivery/dispatch.py",
        "Hand.pieces",
        "return self.with_rows([message for message in messages if message.receive_count == 1])",
        "return self.with_rows(messages)",
    ),
    "one-call-after-the-other": Change(
        "server/threads.py", "Threads.work", "self.begin(partial(one, n, piece))", "one(n, piece)"
    ),
    "a-batch-keeps-its-visibility": Change(
        "server/flow/delivery/dispatch.py",
        "Hand.pieces",
        "self.world.settings.lease_s + LEASE_MARGIN_S",
        "self.world.settings.visibility_s",
    ),
    "messages-come-back-after-one-lease": Change("server/flow/verdict.py", "back_in_s", "* 2.0 **", "* 1.0 **"),
    "dead-letters-come-back-for-ever": Change(
        "server/flow/delivery/dead_letters.py", "_of_run", "pointer.returns < MOST_RETURNS", "True"
    ),
    "dead-letters-never-come-back": Change(
        "server/flow/delivery/dead_letters.py", "_of_run", "pointer.returns < MOST_RETURNS", "False"
    ),
    "a-letter-that-comes-back-is-fresh": Change(
        "server/flow/delivery/dead_letters.py", "_back", "pointer.sent_at or message.sent_at", "None"
    ),
    "an-outage-uses-up-claims": Change(
        "server/flow/runs/execute.py",
        "unclaimed_if_unavailable",
        "ledger.unclaim(world.table, attempt.run, attempt.before)",
        "None",
    ),
    "the-network-is-the-target-s": Change(
        "server/flow/runs/perform.py", "act", "not world.queue.can_be_reached(world.settings.lane)", "False"
    ),
    "the-next-version-of-messages-is-the-only-one": Change("domain/message.py", "", "VERSION = 1", "VERSION = 2"),
    "a-later-version-s-row-is-broken": Change(
        "server/flow/sweep/sweep.py", "_step", "except UnknownKind as later:", "except ZeroDivisionError as later:"
    ),
    # The sweep
    "no-look-ahead": Change("server/settings.py", "", "look_ahead_s: int = 150", "look_ahead_s: int = 60"),
    "nobody-says-how-old": Change(
        "server/flow/sweep/sweep.py", "_measure", '"OldestDue": total.oldest_due_s', '"OldestDue": 0'
    ),
    "a-tick-has-no-end": Change("server/flow/sweep/sweep.py", "_Tick.is_over", "> self.deadline", "> 1e9"),
    "overdue-rows-first": Change(
        "server/store/index/next_run_index.py", "fresh_first", "if more is not None and not fresh:", "if False:"
    ),
    "one-shard": Change("base/ids.py", "shard_of", "% int(shards)", "% 1"),
    "shards-are-used-before-they-are-kept": Change(
        "server/store/index/shards.py", "Shards.learn", "if kept < self.wanted:", "if False:"
    ),
    "a-sweep-reads-only-the-shards-it-wants": Change(
        "server/flow/sweep/sweep.py", "_stack", "return suspensions, shards", "return suspensions, world.shards.wanted"
    ),
    "rows-stay-in-their-shard": Change(
        "server/store/index/next_run_index.py", "_statement", "if step.row.shard is not None and", "if False and"
    ),
    "one-advance-a-call": Change("server/store/index/next_run_index.py", "", "BATCH_MOST = 25", "BATCH_MOST = 1"),
    "refused-entries-are-forgotten": Change(
        "server/messaging/run_queue.py", "RunQueue._send_batch", 'answer.get("Failed", [])', "()"
    ),
    "messages-are-nobody-s": Change(
        "server/messaging/run_queue.py", "RunQueue._entry", '"MessageGroupId": delivery.pointer.tenant,', ""
    ),
    "rows-move-without-their-message": Change(
        "server/flow/sweep/sweep.py", "_sweep_group", "if unsent.isdisjoint(step.deliveries)]", "]"
    ),
    "a-lost-race-is-taken-for-won": Change(
        "server/store/index/next_run_index.py",
        "advance",
        '(done if _own_success(step, error.get("Item")) else left)',
        "done",
    ),
    "a-refused-advance-is-left": Change("server/flow/sweep/sweep.py", "", "ADVANCE_TRIES = 4", "ADVANCE_TRIES = 1"),
    # The table
    "conflicts-are-final": Change(
        "server/store/dynamo/conditional.py", "", "TRANSACTION_TRIES = 10", "TRANSACTION_TRIES = 1"
    ),
    "left-over-keys-are-forgotten": Change(
        "server/store/dynamo/conditional.py", "Table.batch_get", "wanted = left + wanted", "pass"
    ),
    "a-failed-claim-is-a-no": Change(
        "server/flow/runs/execute.py",
        "_begin",
        "if current is None or current.lease_owner != attempt.run.lease_owner:",
        "if True:",
    ),
    "a-refused-create-is-never-its-own": Change(
        "server/flow/jobs/creation.py",
        "_not_created",
        "if jobs.read_job(world.table, tenant, job.id) is not None:",
        "if jobs.read_job(world.table, tenant, job.id) is None and once is None:",
    ),
    # Executors
    "executors-are-lost-for-ever": Change("domain/runs/admission.py", "", "MAX_LOST_LAST = 7", "MAX_LOST_LAST = 99"),
    "lost-executors-use-no-attempt": Change(
        "domain/runs/admission.py", "_after_lost", "if _attempts_left(job, run):", "if False:"
    ),
    "no-result-is-the-end": Change("domain/runs/admission.py", "_unanswered", ' == "retry" and', ' == "never" and'),
    "a-lost-executor-counts-for-all-attempts": Change(
        "domain/runs/admission.py", "_after_lost", "run.lost_in_attempt < MAX_LOST:", "run.lost < MAX_LOST:"
    ),
    "a-lost-call-leaves-no-trace": Change(
        "domain/runs/run_members.py", "attempts_of", "if run.lost_calls:", "if False:"
    ),
    "nothing-is-passed-on": Change("server/flow/runs/execute.py", "_passed_on", "if target == here:", "if True:"),
    "a-retry-stays-where-its-message-came": Change(
        "server/flow/runs/execute.py", "take", "_apply(world, message,", "_apply(world, replace(message, lane=here),"
    ),
    "a-near-deadline-has-no-wake": Change(
        "domain/runs/settlement.py", "settle", "deadline + FALLBACK if near", "deadline + 1_000 * FALLBACK if near"
    ),
    "near-deadlines-wait-for-a-sweep": Change(
        "domain/runs/settlement.py", "settle", "deadline if near else None", "None"
    ),
    "effects-are-done-once-at-most": Change(
        "server/flow/runs/execute.py",
        "_apply",
        "effects.after(world, context.run, context.job, context.schedule)",
        "effects.ledger.drop_wake(world.table, context.run)",
    ),
    "an-end-from-outside-wakes-nobody": Change(
        "server/flow/runs/results.py", "end_from_outside", "wake_at=now + WAKE", "wake_at=now + 10_000 * WAKE"
    ),
    "a-wait-takes-the-place-of-an-end": Change(
        "server/flow/runs/settle.py",
        "_write",
        "mine = ledger.own_lease(attempt.run.lease_owner)",
        "mine = ledger.RunItem.pk.exists()",
    ),
    "a-second-result-is-taken-for-the-first": Change(
        "server/flow/runs/results.py",
        "record",
        "if not same or not _agrees(current.state, state, message_counts=message_counts):",
        "if False:",
    ),
    "an-instant-ahead-runs-now": Change(
        "domain/runs/admission.py", "_without_row", "if pointer.instant > now:", "if False:"
    ),
    "late-messages-run": Change("domain/runs/admission.py", "_too_late", "if too_late is None:", "if True:"),
    "what-a-change-took-back-runs": Change(
        "domain/runs/admission.py", "_superseded", "if pointer.instant > through:", "if False:"
    ),
    "what-is-taken-back-still-counts": Change(
        "server/flow/series/replan.py", "change", "sum(each > seam.until for each in sent)", "0"
    ),
    "a-lost-executor-is-the-end": Change(
        "domain/runs/admission.py", "_after_lost", '.get("delivery") == "at_most_once":', '.get("delivery") != "x":'
    ),
    "what-has-no-owner-is-cancelled": Change(
        "domain/runs/admission.py",
        "_without_row",
        'return Drop("its schedule is gone")',
        "return End(State.CANCELLED, Reason.OWNER_GONE)",
    ),
    "ids-are-of-names": Change(
        "server/flow/jobs/requested.py",
        "_new",
        "world.chance.new_id(now + timedelta(milliseconds=n))",
        '(lambda uuid: str(uuid.uuid5(uuid.NAMESPACE_DNS, job.name or "")))(__import__("uuid"))',
    ),
    "a-manual-run-leaves-no-record": Change(
        "server/flow/manual/manual.py", "start_ops", "if once is not None:", "if False:"
    ),
    "an-unattended-holder-is-left-alone": Change(
        "server/flow/runs/overlap.py", "_wake", "if unattended(active, world.clock.now()):", "if False:"
    ),
    "a-series-is-over-once-nothing-is-open": Change(
        "server/flow/jobs/completion.py",
        "complete_if_over",
        "if before.settled_total + ended < schedule.planned_total:",
        "if ended < len(runs):",
    ),
    "a-wake-is-far": Change(
        "server/flow/sweep/steps.py", "_occurrences", "max(last, now) + WAKE_AGAIN", "max(last, now) + 100 * WAKE_AGAIN"
    ),
    "a-run-leaves-the-end-to-the-tick": Change(
        "server/flow/jobs/completion.py", "after_run", "not _ends_with(world, run, schedule)", "True"
    ),
    "what-was-not-sent-ends-a-series": Change(
        "server/flow/jobs/completion.py",
        "_ends_with",
        ".issuperset(stretch.instants)",
        ".issuperset(stretch.instants[-1:])",
    ),
    "the-audit-sends-nothing": Change(
        "server/flow/audit/reconcile.py", "repair", "_send(world, schedule, compared.pointers)", "pass"
    ),
    "the-audit-forgets-nothing": Change(
        "server/flow/audit/reconcile.py",
        "account",
        "remembered_from=_remembered_from(schedule, world.clock.now()),",
        "",
    ),
    "a-run-expires-from-its-beginning": Change(
        "server/flow/runs/execute.py",
        "_first_row",
        "generation=pointer.generation,",
        "generation=pointer.generation, expires_at=pointer.instant + timedelta(days=15),",
    ),
    "a-line-counts-what-has-a-row": Change(
        "server/flow/audit/reconcile.py", "_correct", "in compared.account.miscounted():", "in ():"
    ),
    "creates-know-no-bound": Change("domain/job.py", "", "SCHEDULES_AT_ONCE = 40", "SCHEDULES_AT_ONCE = 41"),
    "an-offset-reads-all-before-it": Change(
        "server/store/views/jobs.py", "_directory", "if skip >= live and not after:", "if False:"
    ),
    # Targets
    "a-short-retry-ignores-retry-after": Change(
        "domain/runs/retry.py",
        "next_attempt",
        "max(_delay_s(policy, attempt, chance_uniform), outcome.retry_after_s or 0)",
        "_delay_s(policy, attempt, chance_uniform)",
    ),
    "410-is-tried-again": Change("domain/runs/retry.py", "_worth_it", " and not outcome.stop", ""),
    "no-jitter": Change("domain/runs/retry.py", "_delay_s", "chance_uniform(0, min(", "max(0, min("),
    "two-levels-have-one-more": Change(
        "domain/runs/retry.py", "RetryPolicy.max_attempts", "(self.immediate + 1)", "(self.immediate + 2)"
    ),
    "ten-tries-are-ten-days": Change(
        "server/flow/lifecycle/unreachable.py",
        "is_due",
        "failed_at - streak.since >= LIMIT",
        "failed_at - streak.since >= LIMIT / 10",
    ),
    "circuits-never-open": Change("domain/flow_keys/circuits.py", "opens", "failures >= rule.failures", "False"),
    "chains-have-no-end": Change(
        "server/actions/job.py", "StartJob.perform", "call.hop > MOST_HOPS", "call.hop > 3 * MOST_HOPS"
    ),
    "loops-over-http-have-no-end": Change("server/facades/native/context.py", "", "MOST_HOPS = 3", "MOST_HOPS = 30"),
    "answers-are-kept-whole": Change("server/flow/runs/settle.py", "", "ANSWER_BYTES = 16_384", "ANSWER_BYTES = 10**9"),
    # Exceptions
    "what-is-over-its-time-is-shown": Change(
        "domain/run.py",
        "Run.is_gone",
        "return self.expires_at is not None and self.expires_at <= now",
        "return False",
    ),
    "all-runs-are-kept-alike": Change(
        "server/flow/retention.py", "run_expiry", ", retention_of(world, tenant, collection).run_days", ""
    ),
    "attempts-go-after-15-days": Change(
        "server/flow/runs/settle.py", "attempt_expiry", "now + timedelta(seconds=open_s) + LONGEST_IN_QUEUES", "now"
    ),
    "errors-expire-in-silence": Change("server/flow/errors/failures.py", "wake_up", "if soon:", "if False:"),
    "groups-stay-for-ever": Change(
        "server/flow/errors/failures.py", "wake_up", "(job_is_gone or now - group.last_at > FORGOTTEN):", "False:"
    ),
    "ended-jobs-stay": Change(
        "server/flow/lifecycle/ended_jobs.py", "wake_up", "_remove(world, job)", "_stay(world, asking, None)"
    ),
    "unused-schedules-stay": Change(
        "server/flow/job_parts/expiry.py", "", "KEPT_S = 30 * 86_400", "KEPT_S = 3_000 * 86_400"
    ),
    "operations-are-shown-for-ever": Change(
        "server/flow/operations/verbs.py",
        "find",
        "operation.expires_at <= world.clock.now()",
        "operation.expires_at < operation.started_at",
    ),
    "a-key-holds-for-ever": Change(
        "server/flow/idempotency.py", "earlier", "(item.expires_at or 0) <= epoch_s(world.clock.now())", "False"
    ),
    # The template
    "all-executions-are-the-executors": Change(
        TEMPLATE_FILE,
        "",
        "  FastConcurrency:\n    Type: Number\n    Default: 3",
        "  FastConcurrency:\n    Type: Number\n    Default: 8",
    ),
    "ticks-are-never-too-old": Change(
        TEMPLATE_FILE,
        "",
        """Input: !Sub '{"worker": 0, "workers": ${SweepWorkers}}'
          RetryPolicy: {MaximumRetryAttempts: 2, MaximumEventAgeInSeconds: 60}""",
        """Input: !Sub '{"worker": 0, "workers": ${SweepWorkers}}'
          RetryPolicy: {MaximumRetryAttempts: 2, MaximumEventAgeInSeconds: 86400}""",
    ),
}


def path_of(name: str) -> Path:
    return TEMPLATE if CHANGES[name].path == TEMPLATE_FILE else PACKAGE / CHANGES[name].path


def changed(name: str, text: str) -> str:
    """Returns the file with that change. Raises LookupError if its place is no longer there, or no longer the only
    one.
    """
    change = CHANGES[name]
    place = _source_of(change.function, text) if change.function else text
    if place.count(change.old) != 1 or text.count(place) != 1:
        raise LookupError(
            f"{name}: {change.function or change.path} says {change.old!r} {place.count(change.old)} times"
        )
    return text.replace(place, place.replace(change.old, change.new))


def _source_of(function: str, text: str) -> str:
    body = ast.parse(text).body
    *classes, name = function.split(".")
    for each in classes:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == each)
    node = next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == name), None)
    if node is None:
        raise LookupError(function)
    return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])
