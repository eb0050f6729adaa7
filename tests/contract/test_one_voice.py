"""One voice for all refusals: each names the member, repeats the value, and says what to write instead.

A row is a mistake in one kind of member of one facade, with the sentence that its caller reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from sweephand.schedules.zones.localtime import IANA_VERSION
from tests.contract.azure.api import COLLECTION, Azure, azure
from tests.contract.azure.api import JOB as AZURE_JOB
from tests.contract.native.api import JOB, Api, api
from tests.contract.sap.api import JOB as SAP_JOB
from tests.contract.sap.api import Sap, sap

URL = "https://example.org/run"


def job(**members: Any) -> tuple[str, str, dict[str, Any]]:
    return "POST", "/v1/jobs", {**JOB, **members}


def action(**members: Any) -> tuple[str, str, dict[str, Any]]:
    return job(action={"type": "http", "url": URL, **members})


def schedule(**members: Any) -> tuple[str, str, dict[str, Any]]:
    return job(schedules=[members])


def collection(**members: Any) -> tuple[str, dict[str, Any]]:
    return COLLECTION, {"location": "West US", **members}


def request(**members: Any) -> dict[str, Any]:
    return {"type": "Http", "request": {"uri": URL, "method": "GET", **members}}


def azure_job(**members: Any) -> tuple[str, dict[str, Any]]:
    return AZURE_JOB, {"properties": {"action": request(), **members}}


def sap_schedule(**members: Any) -> dict[str, Any]:
    return {"schedules": [{"active": True, **members}]}


NATIVE = [
    (
        job(state=5),
        (
            "state: is not a known member; known are action, active, collection, description, "
            "endTime, errorAction, hooks, name, policies, resourceId, schedules, startTime, tags"
        ),
    ),
    (job(descripton="x"), "descripton: is not a known member; did you mean `description`?"),
    (job(active="yes"), 'active: must be true or false, not "yes"'),
    (job(tags="nightly"), 'tags: must be a list of strings, not "nightly"'),
    (job(tags=["a"] * 11), "tags: must have at most 10 members, not 11"),
    (job(startTime="soon"), 'startTime: must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not "soon"'),
    (
        job(policies={"overlap": "Allow"}),
        'policies.overlap: must be one of allow, skip, queue_one, replace, not "Allow" (did you mean "allow"?)',
    ),
    (
        job(policies={"misfire": {"ratePerMinute": 0}}),
        "policies.misfire.ratePerMinute: must be a whole number from 1 to 6,000, not 0",
    ),
    (
        job(policies={"hooks": "failed"}),
        'policies.hooks: must be a list of onSuccess, onFailure, onMissed, not "failed"',
    ),
    (job(hooks={"onFire": {}}), "hooks.onFire: is not a known member; did you mean `onFailure`?"),
    (
        action(retry={"delaySeconds": "x"}),
        'action.retry.delaySeconds: must be a whole number from 0 to 47,347,200, not "x"',
    ),
    (
        action(retry={"type": "linear"}),
        'action.retry.type: must be one of none, fixed, exponential, two_level, not "linear"',
    ),
    (action(retries=3), "action.retries: is not a known member; did you mean `retry`?"),
    (action(method=5), "action.method: must be one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS, not 5"),
    (
        action(method="FETCH"),
        'action.method: must be one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS, not "FETCH"',
    ),
    (
        action(outcome={"answerTimeoutSeconds": 0}),
        "action.outcome.answerTimeoutSeconds: must be a whole number from 1 to 60, not 0",
    ),
    (
        action(outcome={"successStatuses": "2xx"}),
        'action.outcome.successStatuses: must be a list of strings such as "2xx", not "2xx"',
    ),
    (action(headers=["a"]), "action.headers: must be an object, not a list"),
    (
        action(authentication={"type": "digest"}),
        (
            "action.authentication.type: must be one of none, basic, bearer, apiKey, oauth2, sigv4, "
            "sweephand, clientCertificate"
        ),
    ),
    (
        job(action={"type": "pigeon"}),
        (
            "action.type: must be one of http, sqs, sns, events, lambda, states, ecs, event, "
            "azure_storage_queue, azure_service_bus_queue, azure_service_bus_topic, job, queue, not "
            '"pigeon"'
        ),
    ),
    (job(action=URL), 'action: must be an object, not "https://example.org/run"'),
    (
        schedule(every="PT1H", count="a"),
        'schedules[0].count: must be a whole number from 1 to 2,147,483,647, not "a"',
    ),
    (
        schedule(every="PT1H", jitterSeconds=1.5),
        "schedules[0].jitterSeconds: must be a whole number from 0 to 86,400, not 1.5",
    ),
    (schedule(every=5), 'schedules[0].every: must be a duration such as "5m", "10 seconds" or "PT10S", not 5'),
    (
        schedule(every="10 fortnights"),
        'schedules[0].every: the unit must be seconds, minutes, hours, days or weeks, not "fortnights"',
    ),
    (
        schedule(every="PT1H", align="week"),
        'schedules[0].align: must be one of start, clock, epoch, actual_start, not "week"',
    ),
    (schedule(cron="61 * * * *"), 'schedules[0].cron: minute must be 0 to 59, not "61"'),
    (
        schedule(cron="0 0 9 * * *"),
        (
            "schedules[0].cron: must have 5 fields (minute, hour, day of the month, month, weekday), "
            'not 6 as in "0 0 9 * * *"; write "cron": "0 9 * * *"'
        ),
    ),
    (schedule(cron="*/0 * * * *"), 'schedules[0].cron: the step of minute must be 1 or more, not "0"'),
    (
        schedule(cron="@every"),
        (
            "schedules[0].cron: must be one of @yearly, @annually, @monthly, @weekly, @daily, "
            '@midnight, @hourly, not "@every"'
        ),
    ),
    (schedule(at=5), "schedules[0].at: must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not 5"),
    (schedule(at="2027-13-01T00:00:00Z"), 'schedules[0].at: month must be 1 to 12, not "13"'),
    (
        schedule(time="tomorrow at"),
        'schedules[0].time: must continue with a time of day such as 4.40pm, 18:40 or 17.20:30 after "tomorrow at"',
    ),
    (schedule(time={"date": "2027", "format": "MM"}), 'schedules[0].time.date: month must be 1 to 12, not "20"'),
    (
        schedule(time={"date": "2027", "fromat": "MM"}),
        "schedules[0].time.fromat: is not a known member; did you mean `format`?",
    ),
    (
        schedule(rrule="FREQ=HOURLI"),
        (
            "schedules[0].rrule: FREQ must be one of SECONDLY, MINUTELY, HOURLY, DAILY, WEEKLY, "
            'MONTHLY, YEARLY, not "HOURLI"'
        ),
    ),
    (schedule(rrule="FREQ=DAILY;BYHOUR=25"), 'schedules[0].rrule: BYHOUR must be 0 to 23, not "25"'),
    (schedule(sapCron="* * 32 * 0 0 0"), 'schedules[0].sapCron: day must be -31 to -1, or 1 to 31, not "32"'),
    (
        schedule(eventBridge="rate(5 weeks)"),
        'schedules[0].eventBridge: must be a number of minutes, hours or days, as in "rate(5 minutes)", not "5 weeks"',
    ),
    (
        schedule(repeatAt="soon"),
        (
            "schedules[0].repeatAt: must be a time of day such as 4.40pm, 18:40 or 17.20:30, or a "
            'date of ISO 8601 or RFC 2822, not "soon"'
        ),
    ),
    (
        schedule(cron="0 9 * * *", timezone="Berlin"),
        (
            'schedules[0].timezone: must be an IANA zone such as "Europe/Berlin", not '
            '"Berlin"; did you mean "Europe/Berlin"?'
        ),
    ),
    (
        schedule(cron="0 9 * * *", dstGap="later"),
        'schedules[0].dstGap: must be one of skip, next_valid, shift, not "later"',
    ),
    (
        schedule(recurrence={"frequency": "fortnight"}),
        'schedules[0].recurrence.frequency: must be one of minute, hour, day, week, month, year, not "fortnight"',
    ),
    (
        schedule(recurrence={"frequency": "day", "interval": 0}),
        "schedules[0].recurrence.interval: must be a whole number from 1 to 548, not 0",
    ),
    (
        schedule(recurrence={"frequency": "day", "schedule": {"days": [1]}}),
        (
            "schedules[0].recurrence.schedule.days: is not a known member; known are hours, minutes, "
            "monthDays, monthlyOccurrences, weekDays"
        ),
    ),
    (
        schedule(every="PT1H", calendars="holidays"),
        'schedules[0].calendars: must be a list of calendars such as [{"name": "holidays"}], not "holidays"',
    ),
    (
        schedule(every="PT1H", calendars=[{"name": 5, "use": "x"}]),
        "schedules[0].calendars[0].use: is not a known member; known are mode, name, roll",
    ),
    (
        schedule(every="PT1H", calendars=[{"name": "x", "mode": "only"}]),
        'schedules[0].calendars[0].mode: must be one of exclude, include, not "only"',
    ),
    (schedule(every="PT1H", evry="PT1H"), "schedules[0].evry: is not a known member; did you mean `every`?"),
    (("POST", "/v1/calendars", {"name": "x", "dates": "2026-12-25"}), 'dates: must be a list, not "2026-12-25"'),
    (
        ("POST", "/v1/calendars", {"name": "x", "dates": ["25.12.2026"]}),
        'dates[0]: must be a date such as "2026-12-25", or "12-25" for each year, not "25.12.2026"',
    ),
    (
        ("POST", "/v1/calendars", {"name": "x", "weekly": [{"days": ["Monday"]}]}),
        'weekly[0].days[0]: must be one of MON, TUE, WED, THU, FRI, SAT, SUN, not "Monday"',
    ),
    (
        ("POST", "/v1/calendars", {"name": "x", "ranges": [{"from": "2026-01-01", "until": "x"}]}),
        "ranges[0].until: is not a known member; known are from, to",
    ),
    (
        ("POST", "/v1/collections", {"name": "x", "quota": {"maxJobs": "all"}}),
        'quota.maxJobs: must be a whole number from 1 to 1,000,000, not "all"',
    ),
    (
        ("POST", "/v1/collections", {"name": "x", "defaults": {"timezone": "Berlin"}}),
        'defaults.timezone: must be an IANA zone such as "Europe/Berlin", not "Berlin"; did you mean "Europe/Berlin"?',
    ),
    (
        ("POST", "/v1/flow-keys", {"name": "x", "concurrency": 0}),
        "concurrency: is not a known member; known are circuit, description, name, parallelism, rate",
    ),
    (("GET", "/v1/jobs", {"limit": "many"}), 'limit: must be a whole number from 1 to 200, not "many"'),
    (("GET", "/v1/jobs", {"limit": "201"}), "limit: must be a whole number from 1 to 200, not 201"),
    (
        ("GET", "/v1/jobs", {"state": "asleep"}),
        'state: must be one of ACTIVE, COMPLETED, FAULTED, INACTIVE, PAUSED, not "asleep"',
    ),
    (
        ("GET", "/v1/jobs", {"include": "schedule"}),
        'include: must be one of lastRuns, schedules, total, not "schedule" (did you mean "schedules"?)',
    ),
    (
        ("GET", "/v1/runs", {"from": "yesterday"}),
        'from: must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not "yesterday"',
    ),
    (("GET", "/v1/jobs", {"stat": "x"}), "stat: is not a parameter of this path; did you mean `state`?"),
]
BY_AZURE = [
    (collection(location=5), "location: must be a string, not a number"),
    (
        collection(properties={"sku": {"name": "Gold"}}),
        'properties.sku.name: must be one of Free, Standard, P10Premium, P20Premium, not "Gold"',
    ),
    (
        collection(properties={"quota": {"maxJobCount": "x"}}),
        'properties.quota.maxJobCount: must be a whole number from 1 to 1,000, not "x"',
    ),
    (collection(properties=[]), "properties: must be an object, not a list"),
    (
        azure_job(action={"type": "Ftp"}),
        'properties.action.type: must be one of Http, Https, StorageQueue, ServiceBusQueue, ServiceBusTopic, not "Ftp"',
    ),
    (
        azure_job(startTime="soon"),
        'properties.startTime: must be an RFC 3339 instant such as 2027-01-01T09:00:00Z, not "soon"',
    ),
    (azure_job(state="Paused"), 'properties.state: must be one of Enabled, Disabled, not "Paused"'),
    (
        azure_job(recurrence={"frequency": "Fortnight"}),
        'properties.recurrence.frequency: must be one of Minute, Hour, Day, Week, Month, Year, not "Fortnight"',
    ),
    (
        azure_job(recurrence={"frequency": "Day", "count": 0}),
        "properties.recurrence.count: must be a whole number from 1 to 2,147,483,647, not 0",
    ),
    (
        azure_job(recurrence={"frequency": "Day", "interval": "x"}),
        'properties.recurrence.interval: must be a whole number from 1 to 548, not "x"',
    ),
    (
        azure_job(recurrence={"frequency": "Day", "schedule": {"hours": [25]}}),
        "properties.recurrence.schedule.hours[0]: must be a whole number from 0 to 23, not 25",
    ),
    (
        azure_job(action={**request(), "retryPolicy": {"retryType": "Fixed", "retryInterval": "PT1S"}}),
        'properties.action.retryPolicy.retryInterval: must be a duration of 15 to 47,347,200 seconds, not "PT1S"',
    ),
    (
        azure_job(action={**request(), "retryPolicy": {"retryType": "Fixed", "retryCount": 21}}),
        "properties.action.retryPolicy.retryCount: must be a whole number from 0 to 20, not 21",
    ),
    (
        azure_job(action=request(method="FETCH")),
        'properties.action.request.method: must be one of GET, PUT, POST, DELETE, PATCH, HEAD, OPTIONS, not "FETCH"',
    ),
    (azure_job(action=request(uri=5)), "properties.action.request.uri: must be a string, not a number"),
    (azure_job(action=request(headers=["a"])), "properties.action.request.headers: must be an object, not a list"),
]
BY_SAP = [
    ({"name": 5}, "name: must be a string, not a number"),
    ({"httpMethod": "PATCH"}, 'httpMethod: must be one of GET, POST, PUT, DELETE, not "PATCH"'),
    ({"active": "x"}, 'active: must be true or false, not "x"'),
    (
        {"startTime": "soon"},
        (
            "startTime: must be a date of ISO 8601 such as 2027-02-08T09:30:00Z or of RFC 2822 such "
            'as Mon, 08 Feb 2027 09:30:00 GMT, not "soon"'
        ),
    ),
    ({"action": 5}, "action: must be a string, not a number"),
    ({"description": 5}, "description: must be a string, not a number"),
    ({"jobType": "X"}, 'jobType: must be HTTP_ENDPOINT, not "X"'),
    ({"schedules": [5]}, "schedules[0]: must be an object, not 5"),
    (
        sap_schedule(cron=5),
        (
            'Invalid cron specified (xscron: schedules[0].cron: must be seven fields "Year Month Day '
            'DayOfWeek Hour Minute Second", such as "* * * mon:fri 2 30 0", not 5)'
        ),
    ),
    (
        sap_schedule(cron="* * 32 * * * 0"),
        'Invalid cron specified (xscron: schedules[0].cron: day must be -31 to -1, or 1 to 31, not "32")',
    ),
    (
        sap_schedule(repeatInterval="5 minuts"),
        (
            "schedules[0].repeatInterval: must be a number of seconds, minutes, hours, days, weeks, "
            'months or years, such as "2 hours", not "5 minuts"'
        ),
    ),
    (
        sap_schedule(repeatAt="soon"),
        (
            "schedules[0].repeatAt: must be a time of day such as 4.40pm, 18:40 or 17.20:30, or a "
            'date of ISO 8601 or RFC 2822, not "soon"'
        ),
    ),
    (
        sap_schedule(time="in two hours"),
        'schedules[0].time: must continue with a number in digits after "in", not "two hours"',
    ),
    (
        sap_schedule(time={"date": "2027", "fromat": "MM"}),
        "schedules[0].time.fromat: is not a known member; did you mean `format`?",
    ),
    (sap_schedule(cron="* * * * * 0 0", data=5), "schedules[0].data: must be an object, not 5"),
]


@pytest.fixture(scope="module")
def native() -> Iterator[Api]:
    with api() as made:
        yield made


@pytest.fixture(scope="module")
def by_azure() -> Iterator[Azure]:
    with azure() as made:
        made.collection()
        yield made


@pytest.fixture(scope="module")
def by_sap() -> Iterator[Sap]:
    with sap() as made:
        yield made


@pytest.mark.parametrize(("asked", "sentence"), NATIVE)
def test_the_native_api_refuses_a_mistake_in_the_one_voice(
    native: Api, asked: tuple[str, str, dict[str, Any]], sentence: str
) -> None:
    method, path, given = asked

    reply = native(method, path, query=urlencode(given)) if method == "GET" else native(method, path, given)

    first = reply.json["errors"][0]
    assert f"{first['field']}: {first['reason']}".replace(f" (data {IANA_VERSION})", "") == sentence


@pytest.mark.parametrize(("asked", "sentence"), BY_AZURE)
def test_azures_api_refuses_a_mistake_in_the_one_voice(
    by_azure: Azure, asked: tuple[str, dict[str, Any]], sentence: str
) -> None:
    reply = by_azure("PUT", *asked)

    assert (reply.status, reply.json["error"]["message"]) == (400, sentence)


@pytest.mark.parametrize(("change", "sentence"), BY_SAP)
def test_saps_api_refuses_a_mistake_in_the_one_voice(by_sap: Sap, change: dict[str, Any], sentence: str) -> None:
    reply = by_sap("POST", "/jobs", {**SAP_JOB, **sap_schedule(cron="* * * * * 0 0"), **change})

    assert (reply.status, reply.json["message"]) == (400, f"Error while creating job: {sentence}")


def test_no_sentence_of_the_table_says_what_it_expected_or_ends_twice() -> None:
    sentences = [sentence for _, sentence in (*NATIVE, *BY_AZURE, *BY_SAP)]

    assert not [each for each in sentences if "expected" in each or each.count(", not ") > 1]
