"""The guide's programs run against the whole service, block after block."""

from __future__ import annotations

import re
from pathlib import Path

from sweephand import sdk
from tests.contract.sdk.stack import connected, connected_async
from tests.support.endpoint import WRONG

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "sdk.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_programs_of_the_guide_run(api, monkeypatch, capsys):
    client, _ = connected(api)
    monkeypatch.setattr(sdk, "Sweephand", lambda: client, raising=False)
    monkeypatch.setattr(sdk, "AsyncSweephand", lambda: connected_async(api), raising=False)
    known: dict[str, object] = {}
    for _ in range(101):
        client.jobs.create(None, sdk.http.post("https://example.org/run"), tags=["old"])

    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"{GUIDE}, block {number}", "exec"), known)
        if number == 0:
            api.stage.endpoint.script = [WRONG]
            client.jobs.run(known["job"])
            api.stage.run(60)

    told = capsys.readouterr().out.splitlines()
    assert len(BLOCKS) == 7
    assert told[0] == "2027-03-02 01:30:00+00:00"
    assert "101 of 101" in told
    assert "NAME_TAKEN 409" in "\n".join(told)
