"""A web app in which customers choose when their report is made, see its history, and pause it.

python examples/customer_reports/app.py http://127.0.0.1:9000 [reports.db]    the app's own address and its database
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import sqlite3
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from sweephand.sdk import ApiError, Sweephand, cron, http
from sweephand.sdk.api_errors import NameTaken
from sweephand.sdk.models import Job

ADDRESS = sys.argv[1]
DATABASE = sys.argv[2] if len(sys.argv) > 2 else "reports.db"
TABLES = (
    "CREATE TABLE IF NOT EXISTS customers (name TEXT PRIMARY KEY, secret TEXT)",
    "CREATE TABLE IF NOT EXISTS reports (run TEXT PRIMARY KEY, customer TEXT)",
)
OLDEST_S = 300
PAGE = """<!doctype html><title>Your report</title><h1>Your report</h1><p>{state}</p>
<form><label>At <input type="time" name="time" value="{time}"></label>
<label>in <input name="zone" value="{zone}"></label>
<button>Preview</button> <button formmethod="post" formaction="/{customer}/save">Save</button></form>
<p>{preview}</p><form method="post"><button formaction="/{customer}/pause">Pause</button>
<button formaction="/{customer}/resume">Resume</button></form><h2>History</h2><ul>{history}</ul>"""
sh = Sweephand()


def sql(statement: str, *values: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(DATABASE, isolation_level=None)) as database:
        return database.execute(statement, values).fetchall()


def sign_up(customer: str) -> None:
    """Creates the customer's collection, with its quota and its signing key."""
    with suppress(NameTaken):
        sh.collections.create(name=customer, quota={"maxJobs": 5, "minIntervalSeconds": 3600})
    sql("INSERT INTO customers VALUES (?, ?)", customer, sh.signing_keys.create(customer).secret)


def report_of(customer: str) -> Job | None:
    return sh.jobs.list(collection=customer, name="report").first()


def timing(form: Mapping[str, str]) -> tuple[str, str]:
    """Returns the cron expression for a time from Monday to Friday, and its zone."""
    hour, minute = form["time"].split(":")
    return f"{int(minute)} {int(hour)} * * 1-5", form["zone"]


def save(customer: str, form: Mapping[str, str]) -> None:
    expression, zone = timing(form)
    schedule = cron(expression, zone=zone, name="chosen")
    if job := report_of(customer):
        sh.jobs.patch(job, schedules=[schedule])
    else:
        retry = {"type": "exponential", "maxRetries": 5}
        action = http.post(f"{ADDRESS}/{customer}/call", payload={"report": "sales"}, retry=retry)
        sh.jobs.create("report", action, schedule, collection=customer)


def page(customer: str, form: Mapping[str, str]) -> str:
    job, preview = report_of(customer), ""
    if "time" in form:
        expression, zone = timing(form)
        found = sh.schedules.preview(cron=expression, timezone=zone, limit=3)
        preview = f"{found.description} Next: " + ", ".join(each.local_time for each in found.items)
    runs = sh.runs.list(collection=customer, max_items=20)
    history = [f"<li>{run.planned_at:%Y-%m-%d %H:%M} UTC: {run.state}, {run.reason}" for run in runs]
    state = "Not planned yet." if job is None else f"{job.state}, next: {job.next_run_at}"
    known = {"time": form.get("time", "09:00"), "zone": form.get("zone", "Europe/Berlin")}
    texts = {"customer": customer, "state": state, "preview": preview, **known}
    return PAGE.format(**{name: html.escape(text) for name, text in texts.items()}, history="".join(history))


def signed(customer: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Checks that the customer's key signed this call within the last five minutes (Standard Webhooks)."""
    run, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    found = sql("SELECT secret FROM customers WHERE name = ?", customer)
    if not found or not stamp.isdigit() or abs(time.time() - int(stamp)) > OLDEST_S:
        return False
    key = base64.b64decode(found[0][0].removeprefix("whsec_"))
    wanted = base64.b64encode(hmac.digest(key, f"{run}.{stamp}.".encode() + body, hashlib.sha256))
    given = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(each, b"v1," + wanted) for each in given)


class App(BaseHTTPRequestHandler):
    """The pages of each customer, and the address that Sweephand calls. A real app knows who is logged in."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("content-length", 0))))

    def _answer(self, body: bytes) -> None:
        try:
            status, text = self._act(body)
        except (ApiError, KeyError, ValueError) as refused:
            status, text = 400, html.escape(str(refused))
        self.send_response(status)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def _act(self, body: bytes) -> tuple[int, str]:
        url = urlsplit(self.path)
        customer, _, step = url.path.strip("/").partition("/")
        if step == "call":
            if not signed(customer, self.headers, body):
                return 401, "not signed"
            sql("INSERT OR IGNORE INTO reports VALUES (?, ?)", self.headers["webhook-id"], customer)
            return 200, "made"
        form = {name: values[0] for name, values in parse_qs(body.decode() or url.query).items()}
        if step == "sign-up":
            sign_up(customer)
        elif step == "save":
            save(customer, form)
        elif step in {"pause", "resume"} and (job := report_of(customer)):
            sh.jobs.pause(job) if step == "pause" else sh.jobs.resume(job)
        elif step:
            return 404, "not found"
        return 200, page(customer, form)


if __name__ == "__main__":
    for table in TABLES:
        sql(table)
    ThreadingHTTPServer(("127.0.0.1", urlsplit(ADDRESS).port or 80), App).serve_forever()
