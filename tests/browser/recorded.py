"""Answers of the API that the pictures are drawn from: recorded once from the local stack, and then always the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, Route

ANSWERS = Path(__file__).parent / "accepted" / "answers.json"


@dataclass
class Recorded:
    """now: the instant of all pictures. ids: what addresses name. answers: by tenant, method, path and body."""

    now: str
    ids: Mapping[str, str]
    answers: dict[str, Any] = field(default_factory=dict)
    recording: bool = False
    unknown: list[str] = field(default_factory=list)

    def given_to(self, page: Page, tenant: str) -> None:
        """Answers every request of the page from now on, and stops its clock."""
        page.clock.set_fixed_time(self.now)
        page.route("**/v1/**", self._answer(tenant))
        page.route("**/oauth/token", lambda route: self._fulfil(route, *_asked(route)))

    def save(self) -> None:
        kept = {"now": self.now, "ids": self.ids, "answers": dict(sorted(self.answers.items()))}
        lines = json.dumps(kept, indent=0, ensure_ascii=False).replace("\n\n", "\n")
        ANSWERS.write_text(lines + "\n", encoding="utf-8")

    def _answer(self, tenant: str) -> Callable[[Route], None]:
        def answer(route: Route) -> None:
            url = urlsplit(route.request.url)
            path = f"{url.path}?{url.query}".rstrip("?")
            name = " ".join([tenant, route.request.method, path, route.request.post_data or ""]).rstrip()
            if self.recording:
                status, headers, text = _asked(route)
                self.answers[name] = {"status": status, "etag": headers.get("etag"), "body": json.loads(text)}
            if name not in self.answers:
                self.unknown.append(name)
                self._fulfil(route, 404, {}, '{"detail": "not recorded"}')
                return
            kept = self.answers[name]
            self._fulfil(route, kept["status"], {"etag": kept["etag"]}, json.dumps(kept["body"]))

        return answer

    def _fulfil(self, route: Route, status: int, headers: Mapping[str, str | None], text: str) -> None:
        date = format_datetime(datetime.fromisoformat(self.now), usegmt=True)
        kept = {name: value for name, value in headers.items() if name == "etag" and value}
        route.fulfill(status=status, body=text, headers=kept | {"date": date, "content-type": "application/json"})


def _asked(route: Route) -> tuple[int, Mapping[str, str], str]:
    answer = route.fetch()
    return answer.status, answer.headers, answer.text()


def recorded() -> Recorded:
    return Recorded(**json.loads(ANSWERS.read_text(encoding="utf-8")))
