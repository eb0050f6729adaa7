"""The TypeScript of the pages is compiled strictly and run by Node.js against the running stack."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sweephand.local.settings import CHECKOUT
from sweephand.server.facades.native.document import FILE
from tests.local_stack.conftest import LocalStack
from tests.local_stack.pages import FIRST, bash, environment, free_port, moved, program_of
from tests.local_stack.test_generated_clients import INSTALLED, MAKES_S, output
from tests.local_stack.waiting import until

pytestmark = pytest.mark.emulator

STRICT = ("--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable")
OF_NODE = "declare const process: { env: Record<string, string | undefined>; argv: string[] };\n"
"""The part of @types/node that the programs need."""
SERVER = """
import { createServer } from "node:http";
import { receive } from "./receiver.js";

createServer(async (message, answer) => {
  const parts = [];
  for await (const part of message) parts.push(part);
  const request = new Request("http://here/", { method: "POST", headers: message.headers, body: Buffer.concat(parts) });
  const response = await receive(request, process.env.SECRET);
  answer.writeHead(response.status).end(await response.text());
}).listen(Number(process.argv[2]), "127.0.0.1", () => console.log("listening"));
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "node_modules").symlink_to(INSTALLED / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node.d.ts").write_text(OF_NODE)
    return tmp_path


def node() -> str:
    return (INSTALLED / "node").read_text().strip()


def compiled(project: Path, program: str) -> None:
    output(node(), INSTALLED / "node_modules/typescript/bin/tsc", *STRICT, "node.d.ts", program, cwd=project)


def identity(stack: LocalStack) -> dict[str, str]:
    found = stack.file.tenants["acme"]
    names = {"URL": stack.base_url, "CLIENT_ID": found.client_id, "SECRET": found.secret}
    return {**environment(), **{f"SWEEPHAND_{name}": value for name, value in names.items()}}


def said(project: Path, program: str, stack: LocalStack) -> str:
    command = [node(), program]
    done = subprocess.run(
        command, cwd=project, env=identity(stack), capture_output=True, text=True, timeout=MAKES_S, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def endpoint(folder: Path) -> Iterator[int]:
    port = free_port()
    with bash(f"exec python3 examples/own_endpoint/endpoint.py --port {port}", folder) as listening:
        listening.stdout.readline()
        yield port


def test_the_first_steps_in_typescript_run_unchanged(project: Path, folder: Path, stack: LocalStack):
    with endpoint(folder) as port:
        program = moved(program_of(FIRST, "TypeScript", "typescript"), stack, port, free_port())
        (project / "first.ts").write_text(f"{program}\nexport {{}};\n")
        compiled(project, "first.ts")
        lines = said(project, "first.js", stack).splitlines()

    assert re.search(r" SUCCESS (ON_TIME|LATE) ", lines[1])
    assert lines[3:] == ["PAUSED", "ACTIVE", "resume"]


def test_the_typed_client_reads_the_outcome_of_its_run(project: Path, folder: Path, stack: LocalStack):
    with endpoint(folder) as port:
        program = (CHECKOUT / "examples" / "typescript" / "report.ts").read_text()
        (project / "report.ts").write_text(moved(program, stack, port, free_port()))
        output(
            node(), INSTALLED / "node_modules/openapi-typescript/bin/cli.js", FILE, "-o", "sweephand.d.ts", cwd=project
        )
        compiled(project, "report.ts")

        assert re.fullmatch(r'SUCCESS (ON_TIME|LATE) \{"done": true\}\n', said(project, "report.js", stack))


def test_the_receiver_accepts_only_signed_calls(project: Path, folder: Path, stack: LocalStack):
    shutil.copy(CHECKOUT / "examples" / "verify_signature" / "receiver.ts", project)
    compiled(project, "receiver.ts")
    (project / "server.mjs").write_text(SERVER)
    client, port = stack.client(), free_port()
    client.post("/v1/collections", json={"name": "typescript"}).raise_for_status()
    keys = "/v1/collections/typescript/signing-keys"
    old, new = (client.post(keys).raise_for_status().json() for _ in range(2))
    action = {"type": "http", "url": f"http://127.0.0.1:{port}/", "payload": {"report": 1}}
    body = {"name": "typescript", "collection": "typescript", "action": action}
    job = client.post("/v1/jobs", json=body).raise_for_status().json()["id"]

    def outcome(secret: str) -> str:
        with bash(f"cd {project} && SECRET={secret} exec {node()} server.mjs {port}", folder) as server:
            assert server.stdout.readline() == "listening\n"
            run = client.post(f"/v1/jobs/{job}/run").raise_for_status().json()["runId"]
            return until(lambda: _ended(client.get(f"/v1/runs/{run}").json()))

    # During the rotation each of the two keys fits. A call of another key, or changed on its way, is refused.
    assert outcome(old["secret"]) == "SUCCESS"
    assert outcome(new["secret"]) == "SUCCESS"
    assert outcome("whsec_" + "A" * 44) == "REQUEST_ERROR"
    client.delete(f"/v1/jobs/{job}").raise_for_status()


def _ended(run: dict[str, str]) -> str | None:
    return run["state"] if run["status"] == "COMPLETED" else None


def test_the_receiver_refuses_old_changed_and_unsigned_calls(project: Path):
    shutil.copy(CHECKOUT / "examples" / "verify_signature" / "receiver.ts", project)
    compiled(project, "receiver.ts")
    # The example of the standard itself: its secret, its body and its signature.
    (project / "tries.mjs").write_text(
        """
import { verified } from "./receiver.js";
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", at = 1614265330;
const body = new TextEncoder().encode('{"test": 2432232314}').buffer;
const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const headers = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": `${at}`,
  "webhook-signature": signature,
};
const tried = (more, now = at, bytes = body) =>
  verified(secret, new Headers({ ...headers, ...more }), bytes, now * 1000);
console.log(
  await tried({}),
  await tried({ "webhook-signature": `v1,AAAA ${signature}` }),
  await tried({}, at + 301),
  await tried({}, at - 301),
  await tried({}, at, new TextEncoder().encode("{}").buffer),
  await tried({ "webhook-id": "msg_other" }),
  await tried({ "webhook-signature": signature.replace("v1,", "v1a,") }),
  await tried({ "webhook-signature": "v1,%%%" }),
  await tried({ "webhook-signature": "" }),
);
"""
    )

    assert output(node(), "tries.mjs", cwd=project) == "true true" + " false" * 7 + "\n"
