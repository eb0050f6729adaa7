"""A stack's life: start, restart, kill, attach, stop, and each way to fail."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys

import pytest

from sweephand.local import control, stack_file
from sweephand.local.aws.template import data_shape, load
from sweephand.local.dev import CANNOT_START
from sweephand.local.failures import DeployFailed, EmulatorFailed, NotRunning
from sweephand.local.folder import held, holder, read_json, write_private
from sweephand.local.settings import PACKAGE_ROOT, Settings
from tests.local_stack.conftest import SAMPLE
from tests.local_stack.waiting import CLOCK, until

pytestmark = pytest.mark.emulator


def children_of(process):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(text) for text in listed.stdout.split()]


def lives(process):
    """Tells whether it runs; one that is dead and only waits for its parent's notice does not."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return listed.stdout.strip()[:1] not in {"", "Z"}


START, STOP = (("sweephand", "dev", option) for option in ("--detach", "--stop"))


def command(sample, *arguments, **environment):
    place = sample.place
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(PACKAGE_ROOT),
            "SWEEPHAND_STATE": str(place.folder.root),
            "SWEEPHAND_TEMPLATE": str(place.template),
            "SWEEPHAND_PORT": "0",
            "SWEEPHAND_AWS_PORT": "0",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_stack_json_has_every_member_and_private_permissions(probe):
    value = json.loads(probe.folder.stack_file.read_text())
    assert set(value) == {
        *("baseUrl", "consoleUrl", "awsEndpointUrl", "region", "stackName", "tableName", "runQueueUrl", "slowQueueUrl"),
        *("deadLetterQueueUrl", "eventBusName", "provider", "functions", "tenants"),
    }
    assert set(value["functions"]) == {
        "api",
        "sapApi",
        "azureApi",
        "console",
        "sweeper",
        "executor",
        "executorSlow",
        "auditor",
    } | {"operations"}
    assert [tenant["tenant"] for tenant in value["tenants"]] == ["acme", "globex"]
    assert all(set(tenant) == {"tenant", "clientId", "secret"} for tenant in value["tenants"])
    assert value["consoleUrl"] == f"{value['baseUrl']}/console"
    assert value["provider"]["clientId"] == "provider.admin"
    assert value["runQueueUrl"].startswith(value["awsEndpointUrl"] + "/")
    for path in (probe.folder.stack_file, probe.folder.secrets_file):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert probe.client("globex").get("/v1/jobs").status_code == 200
    assert probe.anonymous().get("/v1/jobs").status_code == 401


def test_each_start_sweeps_and_audits_once(probe):
    items = probe.boto("dynamodb").scan(TableName=probe.file.table_name)["Items"]

    events = {item["pk"]["S"] for item in items if item["pk"]["S"].startswith("event")}
    assert events >= {'event {"worker": 0, "workers": 1}', 'event {"all": true}'}


def test_the_stack_listens_only_on_loopback(probe):
    service = holder(probe.folder)
    ours = {service, *children_of(service)}

    listed = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()

    sockets = [line.split()[3] for line in listed if any(f"pid={process}," in line for process in ours)]
    assert len(sockets) == 2
    assert all(address.startswith("127.0.0.1:") for address in sockets)


def test_no_function_sees_the_users_environment(probe):
    environment = probe.invoke("sweeper", {})["environment"]

    assert not {"AWS_PROFILE", "MY_TOKEN", "HTTP_PROXY", "PYTHONPATH"} & set(environment)
    assert environment["AWS_ACCESS_KEY_ID"] == "000000000000"
    assert environment["AWS_ENDPOINT_URL"] == probe.file.aws_endpoint_url
    assert environment["PUBLIC_BASE_URL"] == probe.base_url


def test_a_restart_keeps_data_credentials_and_routes_and_loads_new_code(sample):
    stack = sample.start()
    stack.client().put("/v1/note", content=b"kept", headers={"Content-Type": "text/plain"})
    before = stack.file
    assert stack.invoke("sweeper", {})["words"] == "first code"
    stack.close()
    sample.stop()
    assert not sample.place.folder.stack_file.exists()
    (sample.project / "layers/code/python/greeting/__init__.py").write_text('WORDS = "second code"\n')

    stack = sample.start()

    assert stack.client().get("/v1/note").json() == {"text": "kept"}
    assert stack.file.tenants == before.tenants
    assert stack.file.provider == before.provider
    assert stack.file.table_name == before.table_name
    assert stack.invoke("sweeper", {})["words"] == "second code"
    stack.boto("sqs").send_message(QueueUrl=stack.file.run_queue_url, MessageBody="at another port")
    key = {"pk": {"S": "got at another port"}}
    until(lambda: "Item" in stack.boto("dynamodb").get_item(TableName=stack.file.table_name, Key=key))
    stack.close()


def test_acknowledged_writes_survive_a_kill(sample):
    stack = sample.start()
    client, notes = stack.client(), [f"note {number}" for number in range(100)]
    for note in notes:
        assert client.put("/v1/note", content=note.encode(), headers={"Content-Type": "text/plain"}).status_code < 300
    before = stack.file
    entries = [{"Id": "1", "MessageBody": "sent in a batch", "DelaySeconds": 2}]
    stack.boto("sqs").send_message_batch(QueueUrl=before.run_queue_url, Entries=entries)
    stack.boto("sqs").send_message(QueueUrl=before.run_queue_url, MessageBody="sent alone", DelaySeconds=2)
    stack.close()
    service = holder(sample.place.folder)
    everything = [
        service,
        *children_of(service),
        *[work for child in children_of(service) for work in children_of(child)],
    ]
    assert len(everything) >= 3

    for process in everything:
        os.kill(process, signal.SIGKILL)
    until(lambda: not held(sample.place.folder))
    stack = sample.start()

    assert stack.client().get("/v1/note").json() == {"text": notes[-1]}
    assert stack.file.tenants == before.tenants
    for sent in ("sent in a batch", "sent alone"):
        key = {"pk": {"S": f"got {sent}"}}
        until(lambda key=key: "Item" in stack.boto("dynamodb").get_item(TableName=stack.file.table_name, Key=key))
    stack.close()


def test_an_emulator_that_lost_its_service_saves_and_ends_before_the_next_start(sample):
    stack = sample.start()
    stack.client().put("/v1/note", content=b"kept", headers={"Content-Type": "text/plain"})
    stack.close()
    service = holder(sample.place.folder)
    emulator = children_of(service)[0]

    os.kill(service, signal.SIGKILL)
    stack = sample.start()

    assert not lives(emulator)
    assert stack.client().get("/v1/note").json() == {"text": "kept"}
    stack.close()


def test_a_stack_ends_with_its_owner(sample):
    sample.start()
    service = holder(sample.place.folder)
    emulator = children_of(service)[0]

    os.close(sample.running.owner)

    until(lambda: not held(sample.place.folder))
    assert not lives(emulator)


def test_a_stack_whose_emulator_dies_reports_it_and_ends(sample):
    sample.start()
    service = holder(sample.place.folder)

    os.kill(children_of(service)[0], signal.SIGKILL)

    until(lambda: not held(sample.place.folder))
    assert "The emulator stopped unexpectedly." in sample.place.folder.service_log.read_text()
    assert not sample.place.folder.stack_file.exists()


def test_a_second_start_attaches_and_leaves_the_stack_running(probe):
    place = Settings(folder=probe.folder, template=SAMPLE / "template.yaml", port=0, aws_port="0")

    second = control.start(place, CLOCK, lambda _: None, owned=True)
    control.release(second, place, CLOCK)

    assert not second.ours
    assert second.stack == probe.file
    assert probe.client().get("/v1/jobs").status_code == 200


def test_the_commands_start_one_stack_in_the_background_and_stop_it(sample):
    up = command(sample, *START)
    again = command(sample, *START)
    state = stack_file.read(sample.place.folder)
    down = command(sample, *STOP)
    nothing = command(sample, *STOP)

    assert (up.returncode, again.returncode, down.returncode, nothing.returncode) == (0, 0, 0, 0)
    assert state is not None
    assert state.base_url in up.stdout
    assert state.base_url in again.stdout
    assert not held(sample.place.folder)
    assert "No stack runs" in nothing.stdout


def one_line(result):
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_a_port_in_use_gives_one_line_and_its_own_status(sample):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        front = command(sample, *START, SWEEPHAND_PORT=port)
        aws = command(sample, *START, SWEEPHAND_AWS_PORT=port)

    assert (front.returncode, aws.returncode) == (CANNOT_START, CANNOT_START)
    assert f"Port {port} on 127.0.0.1 is taken" in one_line(front)
    assert "SWEEPHAND_PORT=" in one_line(front)
    assert "SWEEPHAND_AWS_PORT=" in one_line(aws)
    assert not held(sample.place.folder)


@pytest.mark.parametrize(
    "change", [{"emulator": "1.5.32"}, {"dataShape": "0"}, {"format": 0}], ids=["emulator", "keys", "format"]
)
def test_a_state_of_another_version_is_refused_with_the_command_that_clears_it(sample, change):
    sample.place.folder.stamp(data_shape(load(sample.place.template)))
    manifest = sample.place.folder.manifest_file
    write_private(manifest, {**read_json(manifest), **change})

    result = command(sample, *START)

    assert result.returncode == CANNOT_START
    assert one_line(result).endswith(f"To start empty: rm -rf {sample.place.folder.root}")


def test_a_template_that_cannot_be_deployed_gives_one_line_and_its_own_status(sample):
    text = sample.place.template.read_text()
    sample.place.template.write_text(text.replace("Type: AWS::Events::EventBus", "Type: AWS::Nonsense::Thing"))

    result = command(sample, *START)

    assert result.returncode == DeployFailed.status
    assert "AWS::Nonsense::Thing" in one_line(result)
    assert not held(sample.place.folder)

    sample.place.template.write_text(text)
    assert command(sample, *START).returncode == 0


def test_an_emulator_that_cannot_start_gives_one_line_and_its_own_status(sample):
    sample.place.folder.emulator.mkdir(parents=True)
    (sample.place.folder.emulator / "state").write_text("a file where a folder should be")

    result = command(sample, *START)

    assert result.returncode == EmulatorFailed.status
    assert one_line(result)


def test_a_stopped_stack_cannot_be_attached_to(sample):
    assert control.attach(sample.place, CLOCK) is None
    with pytest.raises(NotRunning):
        control.stop(sample.place, CLOCK)


def test_new_code_can_be_loaded_into_a_running_stack(sample):
    stack = sample.start()
    (sample.project / "layers/code/python/greeting/__init__.py").write_text('WORDS = "third code"\n')

    result = command(sample, "sweephand.local", "deploy")

    assert (result.returncode, result.stderr) == (0, "")
    assert stack.invoke("sweeper", {})["words"] == "third code"
