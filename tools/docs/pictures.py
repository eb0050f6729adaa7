"""`make docs`: draws the pictures of the concepts and of the front page on phones, with computed schedules.

tests/unit/test_docs.py fails if a picture differs from the generated one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from sweephand.domain.occurrences import misfire
from sweephand.domain.occurrences.lateness import Misfire, Policy
from sweephand.schedules import timing
from tools.docs.drawing import Picture

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 31, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def _occurrences(fields: dict[str, object], begin: datetime, end: datetime) -> list[datetime]:
    """Returns the instants of a schedule from `begin` (inclusive) to `end`, by the schedule engine."""
    rule = timing.parse(fields, now=begin - 2 * HOUR).rule
    found = []
    instant = rule.next_after(begin - timedelta(seconds=1))
    while instant is not None and instant < end:
        found.append(instant)
        instant = rule.next_after(instant)
    return found


def owners() -> str:
    picture = Picture(
        "What belongs to what",
        "A tenant has collections, a collection has jobs, a job has schedules, and a schedule has runs. Credentials"
        " belong to the tenant. Quotas, signing keys, defaults and retention belong to the collection. A job also has"
        " tags and a resource id, by which jobs of any collection are found, paused and deleted together.",
    )
    rows = [
        ("Tenant", ("its own credentials, limits and ledger;", "no other tenant can see it"), "store"),
        ("Collection", ("quotas, signing keys, defaults, retention;", "switched off and on as a whole"), "own"),
        ("Job", ("what to call; tags and a resourceId", "to find, pause and delete it with others"), "box"),
        ("Schedule", ("when to call, in its time zone",), "box"),
        ("Run", ("what became of one occurrence, and why",), "good"),
    ]
    y = 16
    for n, (name, lines, kind) in enumerate(rows):
        picture.box(20 + 26 * n, y, 340, name, *lines, kind=kind)
        below = y + 32 + 18 * len(lines)
        if n + 1 < len(rows):
            picture.arrow((60 + 26 * n, below), (60 + 26 * n, below + 22))
            picture.text(72 + 26 * n, below + 16, "has many", "sub")
        y = below + 24
    return picture.svg(y - 8)


def states() -> str:
    picture = Picture(
        "The states of a run",
        "A planned occurrence that does not begin ends as SKIPPED, MISSED, EXPIRED or CANCELLED. Otherwise it is"
        " TRIGGERED, perhaps after waiting as QUEUED or HELD. A triggered run ends as SUCCESS, or its attempt fails."
        " If attempts are left, it then waits as RETRY_WAIT and is triggered again; otherwise it ends as ERROR or"
        " REQUEST_ERROR. If the target answers 202 and reports later, the run is ACK_RECVD until the report or the"
        " deadline. A run whose end nobody knows is UNKNOWN.",
    )
    picture.box(20, 16, 150, "SCHEDULED", "planned")
    picture.box(20, 146, 150, "QUEUED, HELD", "waits for its turn", "or its consumer")
    picture.box(20, 304, 150, "TRIGGERED", "the call is made", kind="store")
    picture.box(20, 446, 130, "SUCCESS", "ON_TIME, LATE", kind="good")
    picture.box(250, 16, 210, "SKIPPED", "PAUSED, DISABLED, OVERLAP,", "CALENDAR, QUOTA", kind="own")
    picture.box(250, 96, 210, "MISSED, EXPIRED", "SERVICE_OUTAGE,", "MAX_LATENESS", kind="own")
    picture.box(250, 176, 210, "CANCELLED", "BY_USER, OWNER_GONE", kind="own")
    picture.box(250, 254, 210, "RETRY_WAIT", "until the next attempt")
    picture.box(250, 340, 210, "ACK_RECVD", "until the report")
    picture.box(236, 426, 228, "ERROR, REQUEST_ERROR", "HTTP_STATUS, CONNECT,", "NO_ANSWER, CALLBACK ...", kind="bad")
    picture.box(250, 514, 210, "UNKNOWN", "DEADLINE, EXECUTOR_LOST", kind="bad")
    picture.arrow((170, 40), (250, 40))
    picture.arrow((205, 40), (205, 122), (250, 122))
    picture.arrow((205, 122), (205, 200), (250, 200))
    picture.arrow((95, 66), (95, 146))
    picture.arrow((95, 214), (95, 304))
    picture.text(102, 264, "on the second", "sub")
    picture.arrow((170, 314), (250, 282))
    picture.arrow((250, 296), (170, 330), kind="late")
    picture.arrow((170, 342), (250, 364))
    picture.arrow((95, 354), (95, 446))
    picture.text(102, 402, "2xx", "sub")
    picture.arrow((160, 354), (160, 404), (206, 452), (236, 452))
    picture.arrow((355, 390), (355, 426))
    picture.arrow((250, 382), (150, 458), kind="late")
    picture.arrow((160, 404), (160, 538), (250, 538))
    return picture.svg(580)


def clock_changes() -> str:
    picture = Picture(
        "02:30 in Berlin on the days of the two clock changes",
        "In spring, 02:30 does not exist: next_valid runs at 03:00, shift at 03:30, and skip not at all. In autumn,"
        " 02:30 comes twice: first runs the first time, second the second time, and both twice. Each schedule has the"
        " cron expression 30 2 * * * in Europe/Berlin.",
    )
    y = 30
    for title, day, member, choices in (
        ("28 March 2027: the clock jumps from 02:00 to 03:00", SPRING, "dstGap", ("next_valid", "shift", "skip")),
        ("31 October 2027: 02:00 to 03:00 comes twice", AUTUMN, "dstOverlap", ("first", "second", "both")),
    ):
        begin = day - HOUR if day is AUTUMN else day
        picture.text(20, y, title, "name")
        picture.text(20, y + 30, "clock", "sub")
        steps = [begin + n * HOUR / 2 for n in range(7)]
        places = {step: 160 + 46 * n for n, step in enumerate(steps)}
        bottom = y + 44 + 34 * len(choices)
        for n, (step, x) in enumerate(places.items()):
            picture.line(x, y + 36, x, bottom)
            if n % 2 == 0:
                picture.text(x, y + 30, step.astimezone(BERLIN).strftime("%H:%M"), "sub", "mid")
        for n, choice in enumerate(choices):
            row = y + 62 + 34 * n
            picture.line(160, row, 160 + 46 * 6, row)
            picture.text(20, row + 5, choice)
            fields: dict[str, object] = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", member: choice}
            for instant in _occurrences(fields, begin, begin + 3 * HOUR):
                picture.mark(places[instant], row, "runs")
        y = bottom + 40
    picture.mark(28, y - 18, "runs")
    picture.text(44, y - 13, "runs; each line is a value of dstGap or dstOverlap", "sub")
    return picture.svg(y + 4)


def outage() -> str:
    every, tick = 10, datetime(2027, 1, 1, 12, 0, tzinfo=UTC)
    picture = Picture(
        "What runs after an outage",
        "A job runs every ten minutes. After an outage of 15 minutes, the policy sap runs all missed occurrences;"
        " after one of 45 minutes, only the last. The policy all runs all of them, latest only the last, and skip none."
        " Occurrences that are left out share one row in the ledger: MISSED, SERVICE_OUTAGE, with their count.",
    )
    y = 30
    for minutes, policies in ((15, (Misfire.SAP,)), (45, (Misfire.SAP, Misfire.ALL, Misfire.LATEST, Misfire.SKIP))):
        begin, back = tick, tick + minutes * MINUTE
        schedule = timing.parse({"every": f"PT{every}M", "startTime": (tick + MINUTE).isoformat()}, now=tick - HOUR)
        first = schedule.rule.next_after(begin)
        assert first is not None
        scale = 300 / 60

        def at(instant: datetime, begin: datetime = begin, scale: float = scale) -> float:
            return 130 + (instant - begin) / MINUTE * scale

        picture.text(20, y, f"The service is down for {minutes} minutes", "name")
        for n, kind in enumerate(policies):
            row = y + 34 + 36 * n
            picture.band(130, row - 14, minutes * scale, 28)
            picture.line(130, row, 130 + 60 * scale, row)
            picture.text(20, row + 5, kind)
            verdict = misfire.missed(schedule, Policy(kind), first, back, 0)
            instant: datetime | None = first
            while instant is not None and instant < begin + HOUR:
                if instant > back:
                    what = "planned"
                elif verdict is None or (verdict.caught_up and verdict.caught_up.has(instant)):
                    what = "runs"
                else:
                    what = "runs" if instant == verdict.latest else "left-out"
                picture.mark(at(instant), row, what)
                instant = schedule.rule.next_after(instant)
        y += 34 + 36 * len(policies) + 20
    picture.legend(y - 12, (28, "runs", "runs late"), (150, "left-out", "left out"), (270, "planned", "not missed"))
    return picture.svg(y + 8)


def changes() -> str:
    picture = Picture(
        "When a change, a pause and a disabled collection take effect",
        "A job runs every minute. After a change to its timing, the new plan begins with the request, and instants of"
        " the old plan run for six more seconds. A pause takes effect at once: occurrences that fall due later are"
        " SKIPPED, PAUSED and share one row with their count, until the job is resumed. Disabling a collection takes"
        " effect within two seconds: occurrences that were sent ahead, up to 150 seconds, have a row each, and the"
        " rest share one row.",
    )
    begin, x0, scale = 36, 40, 62

    def axis(y: float, title: str, request: str, marks: str, *says: tuple[float, str]) -> None:
        picture.text(20, y, title, "name")
        row = y + 44
        picture.line(20, row, 460, row)
        picture.arrow((x0 + 1.5 * scale, y + 18), (x0 + 1.5 * scale, row - 4))
        picture.text(x0 + 1.5 * scale + 8, y + 24, request, "sub")
        for n, mark in enumerate(marks):
            what = {"o": "runs", "x": "left-out", "-": "planned"}[mark]
            picture.mark(x0 + n * scale, row, what)
        for x, text in says:
            picture.text(x0 + x * scale, row + 28, text, "sub", "mid")

    axis(begin, "Timing changed", "PATCH: every 2 minutes", "oo-o-o-", (4.4, "the new plan, from the request on"))
    axis(begin + 112, "Job paused", "POST .../pause", "ooxxxoo", (3, "SKIPPED, PAUSED: one row"), (5.5, "resumed"))
    axis(
        begin + 224,
        "Collection disabled",
        "POST .../disable",
        "ooxxxxx",
        (2.6, "a row each: 150 s"),
        (5.4, "one row with a count"),
    )
    picture.legend(begin + 318, (28, "runs", "runs"), (120, "left-out", "does not run"), (260, "planned", "withdrawn"))
    return picture.svg(begin + 340)


def long_work() -> str:
    picture = Picture(
        "Work that takes longer than a call",
        "The service calls the endpoint, which answers 202 at once. The run waits as ACK_RECVD. The endpoint reports"
        " the result to the callback address with the run's token: success ends the run as SUCCESS, a failure as"
        " ERROR, CALLBACK. Without a report by the deadline, it ends as UNKNOWN, DEADLINE; if the policy onNoResult is"
        " retry, the next attempt follows instead.",
    )
    left, right = 110, 370
    picture.box(left - 80, 16, 160, "Sweephand")
    picture.box(right - 80, 16, 160, "your endpoint")
    picture.line(left, 48, left, 420)
    picture.line(right, 48, right, 420)
    picture.arrow((left, 84), (right - 2, 84))
    picture.text(240, 76, "POST, with callback address and token", "sub", "mid")
    picture.arrow((right, 122), (left + 2, 122))
    picture.text(240, 114, "202, within the answer limit", "sub", "mid")
    picture.box(left - 80, 142, 160, "ACK_RECVD", "the run waits", kind="own")
    picture.box(right - 80, 142, 160, "working", "minutes or hours", kind="store")
    picture.arrow((right, 226), (left + 2, 226))
    picture.text(240, 218, "PUT /v1/runs/{run}/result", "sub", "mid")
    picture.box(left - 80, 244, 160, "SUCCESS", "or ERROR, CALLBACK", kind="good")
    picture.arrow((left, 326), (left, 356), kind="late")
    picture.text(left + 12, 346, "no report by the deadline", "sub")
    picture.box(left - 80, 360, 160, "UNKNOWN", "DEADLINE", kind="bad")
    return picture.svg(428)


def flow_key() -> str:
    picture = Picture(
        "A flow key between jobs and their target",
        "Runs of many jobs join the line of one flow key. The key lets them through in order of arrival, at its rate"
        " and up to its number of concurrent calls. It keeps a circuit for each target: after ten failures in a row,"
        " the circuit opens and all runs wait. One call every five seconds then probes the target, and the first answer"
        " that does not count as a failure closes the circuit.",
    )
    for n, name in enumerate(("job A", "job B", "job C")):
        picture.box(20, 16 + 48 * n, 96, name)
        picture.arrow((116, 32 + 48 * n), (158, 72 if n == 1 else 58 + 14 * n))
    picture.box(160, 38, 150, "the line", "QUEUED: first come,", "first served", kind="own")
    picture.arrow((310, 72), (348, 72))
    picture.box(350, 38, 110, "target", "at its rate,", "n at once", kind="store")
    picture.text(20, 190, "Its circuit", "name")
    picture.box(20, 206, 130, "closed", "calls are made", kind="good")
    picture.box(330, 206, 130, "open", "calls wait", kind="bad")
    picture.box(165, 300, 150, "one probe", "every 5 seconds", kind="own")
    picture.arrow((150, 224), (330, 224))
    picture.text(240, 216, "10 failures in a row", "sub", "mid")
    picture.arrow((395, 256), (395, 325), (315, 325))
    picture.arrow((165, 325), (85, 325), (85, 256))
    picture.text(92, 290, "it answers", "sub")
    picture.text(322, 345, "it fails: still open", "sub")
    return picture.svg(366)


def occurrence() -> str:
    """Returns the front page's picture for phones. docs/occurrence.svg shows the same on wide screens."""
    picture = Picture(
        "The path of an occurrence",
        "1: your client creates a job, and the API writes its schedule with its next time. 2: each minute, the sweeper"
        " reads what is due within 150 seconds, sends a pointer for each occurrence to the run queue, delayed to the"
        " exact second, and advances the next time. 3: on the second, an executor claims the run, calls your endpoint"
        " and settles the run's row with state and reason. 4: your client reads the ledger.",
    )
    steps = [
        ("Your client and the API", ("write the schedule with its next time",), "own", "each minute"),
        ("Sweeper", ("reads what is due within 150 seconds,", "advances the next time"), "box", "sends a pointer"),
        ("Run queue", ("delayed to the exact second",), "store", "on the second"),
        ("Executor", ("claims the run, calls your endpoint",), "box", "settles the run's row"),
        ("Ledger", ("one row per run: state, reason, attempts",), "store", "you read what became of it, and why"),
        ("Your client", ("GET /v1/runs",), "own", ""),
    ]
    y = 16
    for name, lines, kind, then in steps:
        picture.box(70, y, 340, name, *lines, kind=kind)
        below = y + 32 + 18 * len(lines)
        if then:
            picture.arrow((120, below), (120, below + 26))
            picture.text(134, below + 18, then, "sub")
        y = below + 28
    picture.text(240, y + 4, "Each hour, the auditor compares schedules and ledger.", "sub", "mid")
    return picture.svg(y + 20)


PICTURES: dict[str, Callable[[], str]] = {
    "owners": owners,
    "states": states,
    "changes": changes,
    "long-work": long_work,
    "clock-changes": clock_changes,
    "outage": outage,
    "flow-key": flow_key,
    "occurrence": occurrence,
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw())


if __name__ == "__main__":
    main()
