"""Example bodies of requests, by the names of their schemas. Tests send each of them to the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LEAST_JOB: dict[str, Any] = {
    "action": {"type": "http", "url": "https://example.org/run"},
    "schedules": [{"cron": "0 3 * * *"}],
}
_NIGHTLY: dict[str, Any] = {
    "name": "nightly-report",
    "description": "for finance",
    "resourceId": "inv-4711",
    "tags": ["finance"],
    "action": {
        "type": "http",
        "method": "POST",
        "url": "https://example.org/run",
        "headers": {"X-Source": "sweephand"},
        "payload": {"report": 1},
        "authentication": {"type": "basic", "username": "me", "password": "a secret of yours"},
        "outcome": {"answerTimeoutSeconds": 15, "successStatuses": ["2xx"]},
        "retry": {"type": "exponential", "maxRetries": 5, "delaySeconds": 10, "maxDelaySeconds": 3_600},
    },
    "errorAction": {"type": "http", "url": "https://example.org/alarm"},
    "policies": {"misfire": {"type": "latest"}, "delivery": "at_least_once", "keepAnswer": "failures"},
    "schedules": [
        {"name": "weekdays", "cron": "30 2 * * 1-5", "timezone": "Europe/Berlin", "endTime": "2099-12-31T00:00:00Z"},
        {"name": "beat", "every": "PT10M", "align": "clock", "payload": {"report": 2}},
        {"name": "once", "at": "2099-01-01T09:00:00+01:00"},
    ],
}
_RUN = "01a400f6-36fa-71e9-9550-323b38da5e82_01a400f6-3a00-8c11-a6f2-5d1b7e0c9f43"
_ORDERS = "arn:aws:sqs:eu-west-1:123456789012:orders.fifo"
_ROLE = "arn:aws:iam::123456789012:role/jobs"
_ON_A_QUEUE: dict[str, Any] = {
    "action": {
        "type": "sqs",
        "targetArn": _ORDERS,
        "roleArn": _ROLE,
        "messageGroupId": "night",
        "payload": {"report": 1},
    },
    "errorAction": {"type": "event", "detailType": "report.late"},
    "schedules": [{"cron": "0 3 * * *"}],
}
_HOURLY = {"name": "hourly", "every": "PT1H", "align": "epoch", "jitterSeconds": 30}

REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "JobDraft": {"least": _LEAST_JOB, "onAQueue": _ON_A_QUEUE, "nightly": _NIGHTLY},
    "JobReplacement": {"withoutSchedules": {"name": "nightly-report", "action": _LEAST_JOB["action"]}},
    "JobSetDraft": {"one": {"jobs": [{"key": "nightly", "was": "midnight", **_LEAST_JOB}]}},
    "JobPatch": {"retries": {"action": {"retry": {"type": "fixed", "delaySeconds": 60}}, "description": None}},
    "ScheduleDraft": {
        "hourly": _HOURLY,
        "fromSap": {"sapCron": "* * * -1.sun 9 0 0"},
        "nextBusinessDay": {
            "cron": "0 9 1 * *",
            "timezone": "Europe/Berlin",
            "calendars": [{"name": "holidays", "mode": "exclude", "roll": "next"}],
        },
        "fromCalendar": {
            "rrule": "DTSTART;TZID=Europe/Berlin:20990105T090000\n"
            "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1\n"
            "EXDATE;VALUE=DATE:20991231"
        },
        "fromEventBridge": {"eventBridge": "cron(30 2 LW * ? *)", "timezone": "Europe/Berlin"},
        "fromAzure": {
            "recurrence": {
                "frequency": "Month",
                "interval": 3,
                "schedule": {
                    "minutes": [15, 45],
                    "hours": [5, 17],
                    "monthlyOccurrences": [{"day": "friday", "occurrence": -1}, {"day": "monday"}],
                },
            },
            "startTime": "2099-01-01T00:00:00Z",
            "count": 10,
        },
    },
    "ScheduleReplacement": {"lastDayOfMonth": {"every": "P1M", "startTime": "2099-01-31T06:00:00Z"}},
    "SchedulePatch": {"otherZone": {"timezone": "America/New_York", "count": 100}},
    "RunRequest": {
        "ofTheJob": {},
        "onlyIfNoneIsActive": {"ifActive": "drop"},
        "withAPayload": {"payload": {"invoice": 4711}, "headers": {"X-Event": "invoice.paid"}},
    },
    "MessageRequest": {
        "atOnce": {"action": {"type": "http", "url": "https://example.org/mail"}, "payload": {"order": 4711}},
        "inTenMinutes": {
            "action": {"type": "http", "url": "https://example.org/mail"},
            "delaySeconds": 600,
            "name": "reminder",
            "resourceId": "customer-4711",
        },
        "several": {
            "messages": [
                {"action": {"type": "event", "detailType": "order.due"}, "at": "2099-01-05T06:00:00Z"},
                {"action": {"type": "event", "detailType": "order.late"}, "at": "2099-01-06T06:00:00Z"},
            ]
        },
    },
    "PauseRequest": {
        "holidays": {"note": "holidays", "until": "2099-01-05T06:00:00Z"},
        "forNow": {"note": "the target is being moved"},
    },
    "Nothing": {"empty": {}},
    "PreviewRequest": {
        "gapOfTheClock": {
            "cron": "30 2 * * *",
            "timezone": "Europe/Berlin",
            "after": "2027-03-27T00:00:00Z",
            "limit": 3,
        },
        "inAFormatOfYourOwn": {"time": {"date": "20 Oct 2098 4.30 pm", "format": "D MMM YYYY h.mm a"}},
        "daily": {"repeatAt": "4.40pm", "timezone": "Europe/Berlin"},
        "anInstantExplained": {
            "cron": "0 9 31 * *",
            "timezone": "America/New_York",
            "after": "2027-01-01T00:00:00Z",
            "limit": 2,
            "explain": "2027-02-28T09:00:00",
        },
    },
    "RerunRequest": {
        "asItIs": {},
        "edited": {"payload": {"report": 2}, "headers": {"X-Source": "by hand", "X-Trial": None}},
    },
    "NoteDraft": {"cause": {"text": "the certificate had run out; renewed"}},
    "RedirectDraft": {"toAnotherJob": {"to": "01a400f6-3a00-7c11-a6f2-5d1b7e0c9f43"}},
    "ArchiveRequest": {"known": {"reason": "the target is being moved"}},
    "RedriveRequest": {
        "howMany": {"runs": [_RUN], "dryRun": True},
        "selection": {"runs": [_RUN], "ratePerMinute": 30, "expectedCount": 0},
    },
    "ExportRequest": {"failed": {"format": "jsonl", "state": "ERROR"}, "asUsual": {}},
    "ApplicationRequest": {"itsWorkersOfOneVersion": {"version": "2"}},
    "ClaimRequest": {
        "asAWorker": {
            "message": '{"v":1,"kind":"manual","tenant":"acme","job":"01a400f6-36fa-71e9-9550-323b38da5e82"}',
            "owner": "host-1/4711/1",
            "application": "billing",
            "version": "2",
            "leaseSeconds": 60,
        }
    },
    "Heartbeat": {"keep": {"owner": "host-1/4711/1", "leaseSeconds": 60}},
    "TaskReport": {
        "success": {"owner": "host-1/4711/1", "attempt": 1, "outcome": "success", "message": "4,711 rows"},
        "again": {"owner": "host-1/4711/1", "attempt": 1, "outcome": "success", "reschedule": {"afterSeconds": 900}},
        "failure": {
            "owner": "host-1/4711/1",
            "attempt": 1,
            "outcome": "failure",
            "exception": "ValueError",
            "message": "no such month",
            "details": "Traceback ...",
            "retry": False,
        },
    },
    "Nack": {"first": {"attempt": 1}},
    "Result": {"success": {"success": True, "message": "4,711 rows", "reschedule": {"afterSeconds": 900}}},
    "CollectionDraft": {
        "reports": {
            "name": "reports",
            "redirects": {"acme/orders": {"targetArn": _ORDERS, "roleArn": _ROLE, "format": "raw"}},
            "quota": {"maxJobs": 100, "minIntervalSeconds": 60},
            "retention": {"runDays": 30, "endedJobDays": 0},
            "events": "all",
            "defaults": {
                "timezone": "Europe/Berlin",
                "retry": {"type": "fixed", "delaySeconds": 60},
                "policies": {"keepAnswer": "all"},
            },
            "callbackTimeoutSeconds": 3_600,
        }
    },
    "CollectionReplacement": {"asUsual": {}},
    "CollectionPatch": {"fewer": {"quota": {"maxJobs": 10, "minIntervalSeconds": None}, "events": "none"}},
    "CalendarDraft": {
        "hours": {
            "name": "business-hours",
            "weekly": [{"days": ["MON", "TUE", "WED"], "from": "08:00", "to": "18:00"}],
        },
        "holidays": {
            "name": "holidays",
            "description": "when nobody is there",
            "timezone": "Europe/Berlin",
            "dates": ["01-01", "12-25", "2099-04-10"],
            "ranges": [
                {"from": "2099-07-01", "to": "2099-07-14"},
                {"from": "2099-12-24T12:00:00", "to": "2099-12-27T00:00:00"},
            ],
            "weekly": [{"days": ["SAT", "SUN"]}],
        },
    },
    "CalendarReplacement": {
        "imported": {
            "iCalendar": "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20991225\r\n"
            "DTEND;VALUE=DATE:20991227\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        },
        "fewer": {"dates": ["01-01", "12-25"], "weekly": [{"days": ["SAT", "SUN"]}]},
    },
    "FlowKeyDraft": {
        "erp": {
            "name": "erp",
            "description": "one machine, used by many jobs",
            "rate": {"limit": 30, "periodSeconds": 60},
            "parallelism": 2,
            "circuit": {"failures": 5, "probeSeconds": 10},
        },
        "circuitsOnly": {"name": "partners"},
    },
    "FlowKeyReplacement": {"oneAtATime": {"parallelism": 1, "circuit": {"enabled": False}}},
    "FlowKeyPatch": {"faster": {"rate": {"limit": 120, "periodSeconds": 60}, "description": None}},
    "LeaseRequest": {"aMinute": {"holder": "host-1", "seconds": 60}},
    "StartRequest": {"one": {"holder": "host-1"}},
    "FlowKeyPause": {"forAWhile": {"note": "their release, until noon"}},
    "CredentialRotation": {"within an hour": {"overlapSeconds": 3_600}},
    "CredentialDraft": {"reader": {"name": "dashboard", "scopes": ["jobs:read"]}},
    "TenantDraft": {"initech": {"tenant": "initech", "description": "an example", "quota": {"maxSchedules": 1_000}}},
    "TenantPatch": {"more": {"quota": {"maxSchedules": 5_000}}},
    "TokenRequest": {"byBasic": {"grant_type": "client_credentials", "scope": "jobs:read"}},
}
