"""Makes the tables of costs: the counts of docs/benchmarks.md times list prices. tests/unit/test_costs.py has budgets.

Prices are list prices of us-east-1 without taxes, of November 2026. Numbers that only a real account can provide are in
ASSUMED; `make first-deploy` measures them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

WRITE_UNIT = 0.625e-6
READ_UNIT = 0.125e-6
STORED_GB_MONTH, RECOVERY_GB_MONTH = 0.25, 0.20
SQS_REQUEST, SQS_FAIR_REQUEST = 0.40e-6, 0.10e-6
LAMBDA_GB_S, LAMBDA_REQUEST = 1 / 60_000, 0.20e-6
LOGS_GB, LOGS_GB_MONTH = 0.50, 0.03
KMS_KEY, KMS_REQUEST, KMS_RSA_REQUEST = 1.00, 3e-6, 15e-6
SECRET = 0.40
ALARM, METRIC, DASHBOARD = 0.10, 0.30, 3.00
ALARMS = 14
HTTP_REQUEST = 1.00e-6
OUT_GB, FREE_OUT_GB = 0.09, 100
NAT_H, NAT_GB = 0.045, 0.045

MONTH_H = 730
MINUTES = MONTH_H * 60
MILLION = 1_000_000
GB_OF_KB = 1e-6
FREE = {"SQS requests": 1e6, "Lambda GB-s": 400_000, "Lambda requests": 1e6, "GB of logs": 5, "GB stored": 25}
"""The permanent free tier: units that every account has free of charge each month."""


@dataclass(frozen=True)
class Assumed:
    """A figure that only a real account can provide. unknown: its number among the unknowns of a first deploy."""

    value: float
    what: str
    unknown: str


ASSUMED: Mapping[str, Assumed] = {
    "polls": Assumed(15, "empty receives a minute of an event source with `MaximumConcurrency`", "U5"),
    "tick_s": Assumed(0.10, "seconds of an idle tick (50 ms of CPU, and the table's answers)", "U7"),
    "letters_s": Assumed(0.03, "seconds that an executor looks for dead letters in a minute without any", "U7"),
    "audit_s": Assumed(1.0, "seconds of an idle audit", "U7"),
    "target_s": Assumed(0.12, "seconds that the target takes", "-"),
    "table_s": Assumed(0.04, "seconds that a batch waits for table and queue", "U7"),
    "row_kb": Assumed(1.2, "KB that a run and its index entries take", "-"),
    "log_kb": Assumed(0.4, "KB that a run's log line takes", "-"),
    "report_kb": Assumed(0.4, "KB that Lambda's own log lines about an invocation take", "-"),
    "tick_log_kb": Assumed(0.5, "KB that the log lines of a minute take, in addition to Lambda's", "-"),
    "bunched": Assumed(10, "runs per receive, if many are due at once", "U4"),
    "spread": Assumed(1, "runs per receive, if each comes alone", "U4"),
    "request_s": Assumed(0.1, "seconds of a request that creates, changes or deletes a job", "-"),
    "request_log_kb": Assumed(1.2, "KB that the log lines of a request take", "-"),
    "clean_up_s": Assumed(0.01, "seconds of the sweeper for a deleted job", "-"),
    "out_kb": Assumed(3, "KB that a call of a target sends, TLS included", "-"),
    "both_kb": Assumed(10, "KB that a call sends and receives, certificates included", "-"),
    "executors": Assumed(3, "executors that never rest for 15 minutes", "-"),
}
API_GB = 0.5
SWEEPER_GB, EXECUTOR_GB, AUDITOR_GB = 1769 / 1024, 0.5, 1769 / 1024
PROCESSOR_OF_EXECUTOR = 512 / 1769
KEPT_DAYS, ENDED_JOB_DAYS = 15, 60


@dataclass(frozen=True)
class Units:
    """Write and read units of one phase of a job's life."""

    writes: int
    reads: float


@dataclass(frozen=True)
class Life:
    """Phases of a one-time job, and the bytes of its rows until it is deleted."""

    created: Units
    ran: Units
    deleted: Units
    stored: int


@dataclass(frozen=True)
class Requests:
    """Requests about a job with one schedule. deleted: with the clean-up after it."""

    created: Units
    changed: Units
    deleted: Units


# Counted by bench/lives.py, which a test holds against these.
REQUESTS = Requests(Units(19, 3), Units(6, 5), Units(27, 10.5))
ONE_TIME = Life(Units(19, 3), Units(11, 10), Units(29, 12.5), 2_692)
WITH_SECRET = Life(Units(21, 4), Units(11, 12), Units(30, 12.5), 2_950)


def _assumed(name: str) -> float:
    return ASSUMED[name].value


@dataclass(frozen=True)
class Line:
    """One line of costs. free: how much of it the free tier covers in an account without other uses."""

    what: str
    dollars: float
    free: float = 0.0

    @property
    def with_free(self) -> float:
        return max(0.0, self.dollars - self.free)


@dataclass(frozen=True)
class Counted:
    """Figures in docs/benchmarks.md for a successful run and for an idle tick."""

    writes: float
    reads: float
    queries: int
    sweep_s: float
    run_s: float


def counted(page: str | None = None) -> Counted:
    """Returns the figures of the page. Raises ValueError if the page no longer has one of them."""
    text = page if page is not None else (ROOT / "docs" / "benchmarks.md").read_text()
    writes, reads = _found(r"^\| success \| ([\d.]+) \| ([\d.]+) \|", text)
    (queries,) = _found(r"^An idle tick over \d+ shards: (\d+) Query", text)
    (sweep_us,) = _found(r"^\| sweep, an occurrence of a minute's cron \| (\d+) \|", text)
    (run_us,) = _found(r"^\| the same without payload, TLS handshake included \| (\d+) \|", text)
    return Counted(writes, reads, int(queries), sweep_us * 1e-6, run_us * 1e-6)


def _found(pattern: str, text: str) -> tuple[float, ...]:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"docs/benchmarks.md has no line {pattern}")
    return tuple(float(each) for each in found.groups())


def million(received: float) -> list[Line]:
    """Returns the lines for a million successful runs of http jobs. received: how many messages arrive at a time."""
    figures, calls = counted(), MILLION / received
    stored = MILLION * _assumed("row_kb") * GB_OF_KB * KEPT_DAYS * 24 / MONTH_H
    executor_s = _assumed("target_s") + _assumed("table_s") + received * figures.run_s / PROCESSOR_OF_EXECUTOR
    gb_s = calls * executor_s * EXECUTOR_GB
    logs = (MILLION * _assumed("log_kb") + calls * _assumed("report_kb")) * GB_OF_KB
    # Messages are sent, received and deleted in tens or one by one. Each batch sets its visibility once.
    requests, fair = 4 * calls, 3 * calls
    # Includes reading the collection's state, if no other run did so within two seconds.
    reads = figures.reads + (1 if received == 1 else 0)
    return [
        Line(f"DynamoDB: {figures.writes:g} write units a run", MILLION * figures.writes * WRITE_UNIT),
        Line(f"DynamoDB: {reads:g} read units a run", MILLION * reads * READ_UNIT),
        Line(
            f"DynamoDB: {KEPT_DAYS} days of rows, point-in-time recovery",
            stored * (STORED_GB_MONTH + RECOVERY_GB_MONTH),
            stored * STORED_GB_MONTH,
        ),
        Line(
            "SQS: send, receive, delete, hide; fair queues",
            requests * SQS_REQUEST + fair * SQS_FAIR_REQUEST,
            min(requests, FREE["SQS requests"]) * SQS_REQUEST,
        ),
        Line(
            "Lambda: executors",
            gb_s * LAMBDA_GB_S + calls * LAMBDA_REQUEST,
            min(gb_s, FREE["Lambda GB-s"]) * LAMBDA_GB_S + min(calls, FREE["Lambda requests"]) * LAMBDA_REQUEST,
        ),
        Line("Lambda: sweeper", MILLION * figures.sweep_s * SWEEPER_GB * LAMBDA_GB_S),
        Line(
            "Logs: one line per run, and Lambda's own",
            logs * (LOGS_GB + LOGS_GB_MONTH),
            min(logs, FREE["GB of logs"]) * LOGS_GB,
        ),
    ]


def idle() -> list[Line]:
    """Returns the lines for a month in which nothing is due, in a stack with the template's defaults."""
    return [
        *running(),
        Line(f"CloudWatch: {ALARMS} alarms (not with `Alarms=off`)", ALARMS * ALARM, ALARMS * ALARM),
        Line("KMS: the key of the stack's own identity (not with `OutboundIdentity=off`)", KMS_KEY),
    ]


def running() -> list[Line]:
    """Returns the lines for an idle month without monitoring and without the key that signs tokens."""
    figures = counted()
    polls = 3 * _assumed("polls") * MINUTES
    tick_gb_s = MINUTES * _assumed("tick_s") * SWEEPER_GB
    letters_gb_s = MINUTES * _assumed("letters_s") * EXECUTOR_GB
    audit_gb_s = MONTH_H * _assumed("audit_s") * AUDITOR_GB
    # The sweeper and the check for dead letters.
    logs = MINUTES * (_assumed("tick_log_kb") + 2 * _assumed("report_kb")) * GB_OF_KB
    return [
        Line("KMS: the key of the jobs' secrets", KMS_KEY),
        Line("Secrets Manager: the stack's secret", SECRET),
        Line("SQS: pollers of three queues", polls * SQS_REQUEST, min(polls, FREE["SQS requests"]) * SQS_REQUEST),
        Line(
            "Lambda: the sweeper's ticks",
            tick_gb_s * LAMBDA_GB_S + MINUTES * LAMBDA_REQUEST,
            tick_gb_s * LAMBDA_GB_S + MINUTES * LAMBDA_REQUEST,
        ),
        Line(
            "Lambda and SQS: the check for dead letters each minute",
            letters_gb_s * LAMBDA_GB_S + MINUTES * (LAMBDA_REQUEST + SQS_REQUEST),
            letters_gb_s * LAMBDA_GB_S + MINUTES * LAMBDA_REQUEST,
        ),
        Line(f"DynamoDB: {figures.queries} queries a tick", MINUTES * figures.queries * 0.5 * READ_UNIT),
        Line("Lambda: audits", audit_gb_s * LAMBDA_GB_S + MONTH_H * LAMBDA_REQUEST, audit_gb_s * LAMBDA_GB_S),
        Line("Logs", logs * (LOGS_GB + LOGS_GB_MONTH), min(logs, FREE["GB of logs"]) * LOGS_GB),
    ]


def of_units(units: Units) -> float:
    """Returns the price of a million times these units."""
    return MILLION * (units.writes * WRITE_UNIT + units.reads * READ_UNIT)


def a_request() -> float:
    """Returns the price of a million requests to the API, without the table."""
    logs = _assumed("request_log_kb") * GB_OF_KB * (LOGS_GB + LOGS_GB_MONTH)
    return MILLION * (HTTP_REQUEST + LAMBDA_REQUEST + _assumed("request_s") * API_GB * LAMBDA_GB_S + logs)


def clean_up() -> float:
    return MILLION * _assumed("clean_up_s") * SWEEPER_GB * LAMBDA_GB_S


def secrets() -> float:
    """Returns the price of a month's requests to KMS: one in 15 minutes for each executor of a tenant."""
    return _assumed("executors") * MONTH_H * 4 * KMS_REQUEST


def one_time(life: Life, received: float) -> Line:
    """Returns the price of a million one-time jobs, from the request that creates them to their deletion."""
    stored = MILLION * life.stored / 1e9 * ENDED_JOB_DAYS * 24 / MONTH_H * (STORED_GB_MONTH + RECOVERY_GB_MONTH)
    runs = total(line for line in million(received) if not line.what.startswith("DynamoDB"))
    phases = sum(of_units(units) for units in (life.created, life.ran, life.deleted))
    rest = a_request() + phases + stored + clean_up() + (secrets() if life is WITH_SECRET else 0)
    return Line("one-time jobs", rest + runs.dollars, runs.free)


def of_a_life() -> list[tuple[str, ...]]:
    rows: list[tuple[str, Units, float, float]] = []
    for what, units, rest in (
        ("jobs created, one by one", REQUESTS.created, 0.0),
        ("jobs changed in one member", REQUESTS.changed, 0.0),
        ("jobs deleted, with the clean-up", REQUESTS.deleted, clean_up()),
    ):
        price = a_request() + of_units(units) + rest
        rows.append((what, units, price, price))
    for what, life in (("one-time jobs", ONE_TIME), ("one-time jobs with a secret", WITH_SECRET)):
        phases = (life.created, life.ran, life.deleted)
        units = Units(sum(each.writes for each in phases), sum(each.reads for each in phases))
        both = (one_time(life, _assumed(name)).dollars for name in ("bunched", "spread"))
        rows.append((f"{what}: created, run, deleted after {ENDED_JOB_DAYS} days", units, *both))
    added = Units(WITH_SECRET.ran.writes - ONE_TIME.ran.writes, WITH_SECRET.ran.reads - ONE_TIME.ran.reads)
    price = of_units(added) + secrets()
    rows.append((f"a secret in each run: added, of which KMS {_dollars(secrets())}", added, price, price))
    return [(what, f"{units.writes}", f"{units.reads:g}", *map(_dollars, prices)) for what, units, *prices in rows]


def more() -> list[Line]:
    """Returns the lines that usage adds to a month, and a dashboard beyond the free ones."""
    return [
        Line("Each other metric, in a month in which it is written each hour", METRIC, METRIC),
        Line("Metrics of a collection (`MetricsOf`): `Lateness`, `Failed`", 2 * METRIC, 2 * METRIC),
        Line("Metrics of an application (`MetricsOf`): the same, and `Open`", 3 * METRIC, 3 * METRIC),
        Line("The dashboard (`Dashboard=on`, the default), from the account's fourth on", DASHBOARD, DASHBOARD),
        Line("10,000 tokens of the stack's own identity", 10_000 * KMS_RSA_REQUEST),
        Line("A million requests to the API: API Gateway", MILLION * HTTP_REQUEST),
        _out(),
        Line("A NAT gateway, for each zone (only with `VpcSubnets`, or in a VPC of your own)", NAT_H * MONTH_H),
        Line("A million calls of targets through it", MILLION * _assumed("both_kb") * GB_OF_KB * NAT_GB),
    ]


def _out() -> Line:
    """Returns the line for data to the internet."""
    gb = MILLION * _assumed("out_kb") * GB_OF_KB
    return Line("A million calls of targets on the internet: data out", gb * OUT_GB, min(gb, FREE_OUT_GB) * OUT_GB)


def total(lines: Iterable[Line]) -> Line:
    lines = list(lines)
    return Line("total", sum(line.dollars for line in lines), sum(line.dollars - line.with_free for line in lines))


def of_a_million() -> list[tuple[str, ...]]:
    bunched, spread = million(_assumed("bunched")), million(_assumed("spread"))
    both = [*zip(bunched, spread, strict=True), (total(bunched), total(spread))]
    return [
        (_named(one.what, other.what), *map(_dollars, (one.dollars, one.with_free, other.dollars, other.with_free)))
        for one, other in both
    ]


def _named(one: str, other: str) -> str:
    return one if one == other else f"{one}; spread, {other.partition(': ')[2]}"


def of_a_month() -> list[tuple[str, ...]]:
    lines = idle()
    return [(line.what, _dollars(line.dollars), _dollars(line.with_free)) for line in [*lines, total(lines), *more()]]


def assumptions() -> list[tuple[str, ...]]:
    return [(each.what, f"{each.value:g}", each.unknown) for each in ASSUMED.values()]


def in_short() -> list[tuple[str, ...]]:
    bunched, spread, month = total(million(_assumed("bunched"))), total(million(_assumed("spread"))), total(idle())
    once = one_time(ONE_TIME, _assumed("spread"))
    return [
        ("a million successful runs, many due at once", _dollars(bunched.dollars), _dollars(bunched.with_free)),
        ("a million successful runs, each due alone", _dollars(spread.dollars), _dollars(spread.with_free)),
        ("a million one-time jobs: created, run alone and deleted", _dollars(once.dollars), _dollars(once.with_free)),
        ("a month in which nothing runs, alarms included", _dollars(month.dollars), _dollars(month.with_free)),
    ]


def _dollars(amount: float) -> str:
    return f"{amount:.2f}"


TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[], list[tuple[str, ...]]]]] = {
    "costs-of-a-million": (
        ("A million successful runs, in dollars", "bunched", "with the free tier", "spread", "with the free tier"),
        of_a_million,
    ),
    "costs-of-a-life": (("A million, in dollars", "write units", "read units", "bunched", "spread"), of_a_life),
    "costs-of-a-month": (("A month, in dollars", "list price", "with the free tier"), of_a_month),
    "costs-assumed": (("Assumed", "Value", "Answer of the first deploy"), assumptions),
    "costs-in-short": (("In dollars", "list price", "with the free tier"), in_short),
}
