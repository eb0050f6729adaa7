"""Tokens of another issuer through the whole local stack: the real function fetches its keys over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sweephand.base.sources import SystemClock
from sweephand.local import control
from sweephand.local.failures import LocalFailure
from sweephand.local.folder import StateFolder
from sweephand.local.settings import CHECKOUT, Settings
from tests.local_stack.conftest import start
from tests.support import issuer as issuers
from tests.support.issuer import AUDIENCE, private_key

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.emulator

CLOCK = SystemClock()
JOB = {"action": {"type": "http", "url": "http://127.0.0.1:9/"}, "schedules": [{"cron": "0 3 * * *"}]}


def place(folder: Path, **chosen: str) -> Settings:
    return Settings(StateFolder(folder), CHECKOUT / "template.yaml", port=0, aws_port="0", chosen=chosen)


def test_a_tenant_works_with_its_own_issuers_tokens_and_a_strangers_tokens_are_refused(tmp_path: Path) -> None:
    with issuers.issuer() as issuer, issuers.issuer() as stranger:
        wanted = place(
            tmp_path,
            OidcIssuers=f"{issuer.url};audience={AUDIENCE}",
            OidcClaims="tenant=tenant,scopes=scope,provider=groups=operators",
            OidcScopes="work=jobs:read+jobs:write",
        )
        running, stack = start(wanted)
        try:
            client = stack.anonymous()

            def call(method: str, path: str, token: str, **more: object) -> int:
                headers = {"authorization": f"Bearer {token}"}
                return client.request(method, path, headers=headers, **more).status_code

            mine = issuer.token(CLOCK.now(), algorithm="RS256", scope="openid work")
            assert call("POST", "/v1/jobs", mine, json=JOB) == 201
            assert call("GET", "/v1/jobs", mine) == 200
            assert call("GET", "/v1/tenants", mine) == 403
            assert call("GET", "/v1/jobs", stranger.token(CLOCK.now(), scope="work")) == 401
            assert call("GET", "/v1/jobs", issuer.token(CLOCK.now(), key=private_key("RS256", 2))) == 401
            assert stack.client().get("/v1/jobs").json()["items"] != []
            assert stranger.asked == []
            assert issuer.asked.count(issuers.KEYS) == 1
        finally:
            stack.close()
            control.release(running, wanted, CLOCK)


def test_a_parameter_missing_from_the_template_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(LocalFailure, match="the template has no parameter Nonsense"):
        start(replace(place(tmp_path), chosen={"Nonsense": "x"}))
