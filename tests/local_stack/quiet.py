"""The template on an embedded AWS where nothing happens unasked: no tick, no message taken from a queue."""

from __future__ import annotations

from contextlib import contextmanager

from sweephand.base.sources import SystemClock
from sweephand.local.aws.emulator import Emulator
from sweephand.local.folder import StateFolder
from sweephand.local.service import parameters
from tests.local_stack.runtime_emulator import ROOT, free_port


@contextmanager
def stack(folder, **chosen):
    """Yields (aws, stack). folder: for the emulator's state. chosen: parameters of the template."""
    with with_process(folder, **chosen) as (aws, deployed, _):
        yield aws, deployed


@contextmanager
def with_process(folder, **chosen):
    """Yields (aws, stack, id of the emulator's process)."""
    emulator = Emulator(StateFolder(folder), SystemClock(), port=str(free_port()))
    emulator.start()
    try:
        deployed = emulator.deploy(ROOT / "template.yaml", parameters("http://127.0.0.1:1", chosen))
        aws = emulator.credentials()
        hush(aws)
        yield aws, deployed, emulator.process_id
    finally:
        emulator.stop()


def hush(aws):
    """Stops all rules and all polling of queues."""
    events, functions = aws.client("events"), aws.client("lambda")
    for rule in events.list_rules()["Rules"]:
        events.disable_rule(Name=rule["Name"])
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        functions.delete_event_source_mapping(UUID=mapping["UUID"])


def variables(aws, stack, function):
    """Returns the environment that the template gives the function, as the emulator has it, and the address of its
    AWS.
    """
    config = aws.client("lambda").get_function_configuration(FunctionName=stack.physical[function])
    return config["Environment"]["Variables"] | {
        "AWS_ENDPOINT_URL": aws.endpoint_url,
        "AWS_REGION": aws.region,
        "AWS_DEFAULT_REGION": aws.region,
        "AWS_ACCESS_KEY_ID": aws.access_key_id,
        "AWS_SECRET_ACCESS_KEY": aws.secret_access_key,
    }
