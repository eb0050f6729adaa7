"""The commands `login` and `logout`, which save and remove profiles."""

from __future__ import annotations

import os
import sys

import click

from sweephand.cli.commands import doctor, stacks
from sweephand.cli.commands.call import Call, command, connect
from sweephand.sdk.transport import config


def made(name: str) -> click.Command:
    """Returns the command `login` or `logout`."""
    if name == "logout":
        return command(name, _logout, help="Remove a profile. The credential itself stays valid.")
    parameters = [
        click.Option(["--client-id"], prompt=True, help="The client id; without it you are asked."),
        click.Option(["--secret-stdin"], is_flag=True, help="Read the secret from stdin instead of asking for it."),
    ]
    about = "Save an address (--url) and a credential as a profile, after the service has accepted them."
    return command(name, _login, parameters, help=about)


def _login(call: Call, client_id: str, secret_stdin: bool) -> int:
    url = call.url or os.environ.get(config.URL) or click.prompt("URL", err=True)
    secret = sys.stdin.readline().strip() if secret_stdin else click.prompt("Secret", hide_input=True, err=True)
    name = call.profile or stacks.DEFAULT
    path = stacks.profiles_path(os.environ)
    if not client_id or not secret:
        raise stacks.NoCredential(f"the {'secret' if client_id else 'client id'} is empty", "enter both")
    access = config.access(url, client_id, secret, os.environ)
    with connect(access, call.tenant) as client:
        caller = doctor.identity(client, stacks.Stack(access, "your input"))
    caller["source"] = f"profile {name} of {path}"
    kept = stacks.read(path)
    stacks.write(path, kept | {name: {"url": access.url, "clientId": client_id, "secret": secret}})
    if call.as_json:
        call.out.json(caller)
    else:
        call.out.line(f"saved as profile {name} in {path}: tenant {caller['tenant']}, {' '.join(caller['scopes'])}")
    return 0


def _logout(call: Call) -> int:
    path, name = stacks.profiles_path(os.environ), call.profile or stacks.DEFAULT
    kept = stacks.read(path)
    if kept.pop(name, None) is not None:
        stacks.write(path, kept)
    return 0
