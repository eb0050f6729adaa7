"""Copies job collections and jobs of Azure Scheduler from files to the Azure facade of a stack.

The import can be repeated, because names are those in the files: a second import updates differences and creates no
duplicates.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TextIO
from urllib.parse import quote

import click

from sweephand.base.errors import InvalidRequest
from sweephand.base.sources import SystemClock
from sweephand.cli.commands.call import Argument, Command
from sweephand.cli.imports import azure_form as forms
from sweephand.cli.imports.azure_file import Found, Names, Place, Problem, found_in, read_json, read_parameters
from sweephand.cli.imports.service import Failed, Service, target, target_options
from sweephand.domain.collection import Collection
from sweephand.formats.azure.members import VERSIONS

ENDING = frozenset({None, 401, 403})
"""Statuses after which every further request would also fail. None stands for no answer."""
NO_FACADE = "the stack does not serve Azure's API: its parameter AzureFacade is off"
NO_COLLECTION = "its job collection does not exist in the stack"
TWICE, TWO_OF_IT = "is in the files twice", "is in the files twice, with differences: the first was used"
IS_FINAL = "is {} in the stack, which is a final state: delete it there to import it again"
IS_OVER = "is {}: it has no runs left"


def command() -> click.Command:
    """Returns the command `import azure`."""
    options = {
        "--parameters": ("FILE", "Parameters of the templates, in ARM's format."),
        "--secrets": ("FILE", "JSON: the missing secrets, by the names that the import prints."),
        "--subscription": ("ID", "Override the subscription in ids; required for templates."),
        "--group": ("NAME", "Override the resource group in ids; required for templates."),
        "--location": ("NAME", "Value of resourceGroup().location in templates."),
    }
    disabled = "Import collections as disabled: their jobs do not run."
    to_tenant = "The tenant to import to; needs --to-credentials of provider level."
    return Command(
        "azure",
        help="Copy jobs from files: ARM templates, or answers of the API or of `az`.",
        params=[
            Argument(["files"], text="The files to read, in JSON.", metavar="FILE...", nargs=-1, required=True),
            *(click.Option([each], metavar=kind, help=about) for each, (kind, about) in options.items()),
            *target_options(),
            click.Option(["--to-tenant"], metavar="TENANT", help=to_tenant),
            click.Option(["--disabled"], is_flag=True, help=disabled),
            click.Option(["--dry-run"], is_flag=True, help="Print what would be done, and do nothing."),
        ],
        callback=lambda **members: run(SimpleNamespace(**members)),
    )


def run(options: Any) -> int:
    """Runs the command. Returns the exit status."""
    try:
        resources = list(_read(options))
        secrets = _secrets(options.secrets)
        to = target(options)
    except Failed as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    service = Service.at(to, SystemClock())
    try:
        how = {"disabled": options.disabled, "dry_run": options.dry_run}
        importing = Importing(service, options.to_tenant, secrets, **how)
        return importing.run(resources, sys.stdout, sys.stderr)
    finally:
        service.client.close()


def _read(options: Any) -> Iterator[Found | Problem]:
    """Yields the resources of all files. Raises Failed."""
    parameters = read_parameters(options.parameters) if options.parameters else None
    names = Names(options.subscription, options.group, options.location, parameters)
    for path in options.files:
        try:
            yield from found_in(read_json(path), names)
        except Failed as wrong:
            raise Failed(f"{path}: {wrong}" if not str(wrong).startswith(path) else str(wrong)) from wrong


def _secrets(path: str | None) -> dict[str, str]:
    """Returns the secrets of a file. Raises Failed."""
    secrets = read_json(path) if path else {}
    if not isinstance(secrets, dict) or not all(isinstance(each, str) for each in secrets.values()):
        raise Failed(f'{path}: must be an object such as {{"sasToken of account/queue": "sv=..."}}')
    return {name: each for name, each in secrets.items() if each}


@dataclass
class Importing:
    """One import.

    tenant: None for the credential's own. disabled: True to disable all collections. collections: of the target, None
    for one that is missing. taken: the imported resources, by place. asked: the names of missing secrets. needed: the
    names of all secrets that jobs of the files need.
    """

    service: Service
    tenant: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    disabled: bool = False
    dry_run: bool = False
    collections: dict[Place, Collection | None] = field(default_factory=dict)
    taken: dict[Place, Found] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    needed: set[str] = field(default_factory=set)

    def run(self, resources: Sequence[Found | Problem], out: TextIO, err: TextIO) -> int:
        """Imports everything, collections first. Writes a line for each resource to `out`, and one with the counts.

        Returns the exit status: 1 if something could not be imported.
        """
        counts = {"created": 0, "changed": 0, "unchanged": 0, "failed": 0}
        ended: str | None = None
        try:
            self._check_target()
            for each in sorted(resources, key=_order):
                verdict, line = self._line(each)
                counts[verdict] = counts.get(verdict, 0) + 1
                out.write(f"{verdict:<10} {line}".rstrip() + "\n")
        except Failed as failed:
            ended = str(failed)
        mood = "would be " if self.dry_run else ""
        out.write(mood + ", ".join(f"{name} {number}" for name, number in counts.items()) + "\n")
        self._ask(err)
        if ended is not None:
            err.write(f"ended early: {ended}\n")
        return 1 if counts["failed"] or ended is not None else 0

    def _check_target(self) -> None:
        """Raises Failed if the stack does not serve Azure's API, or refuses the credential."""
        try:
            self._call("GET", "/providers/Microsoft.Scheduler/operations")
        except Failed as failed:
            raise Failed(NO_FACADE, 404) if failed.status == 404 else failed from failed

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {} if self.tenant is None else {"Sweephand-Tenant": self.tenant}
        return self.service.call(method, path, body, query={"api-version": VERSIONS[0]}, headers=headers)

    def _ask(self, err: TextIO) -> None:
        """Writes which secrets are missing, in the form of the file for --secrets."""
        if self.asked:
            sample = json.dumps(dict.fromkeys(self.asked, ""), indent=2)
            err.write(f"missing secrets; give them with --secrets FILE:\n{sample}\n")
        unused = sorted(self.secrets.keys() - self.needed)
        if unused:
            err.write(f"secrets that no job needs: {', '.join(unused)}\n")

    def _line(self, each: Found | Problem) -> tuple[str, str]:
        """Imports one resource. Returns the verdict and its line. Raises Failed if further requests would also fail."""
        if isinstance(each, Problem):
            return ("failed" if each.failed else "left out"), f"{each.name}  {each.reason}"
        first = self.taken.setdefault(each.place.lower, each)
        if first is not each:
            same = first.body == each.body
            return ("left out" if same else "failed"), f"{each.place.shown}  {TWICE if same else TWO_OF_IT}"
        try:
            verdict, remarks = self._job(each) if each.place.job else self._collection(each)
        except InvalidRequest as refused:
            reason = f"{refused.field}: {refused.reason}" if refused.field else refused.reason
            return "failed", f"{each.place.shown}  {reason}"
        except Failed as failed:
            if failed.status in ENDING:
                raise
            return "failed", f"{each.place.shown}  {failed.words or failed}"
        return verdict, "  ".join([each.place.shown, *filter(None, ["; ".join(remarks)])])

    # Collections

    def _collection(self, each: Found) -> tuple[str, Sequence[str]]:
        """Imports a collection. Returns the verdict and remarks. Raises Failed, InvalidRequest."""
        if forms.state_of(each.body) == "deleted":
            return "left out", ["is deleted"]
        current = self._target_collection(each.place)
        body = forms.disabled(each.body) if self.disabled else each.body
        wanted = forms.collection_of(body, each.place)
        if current is not None and forms.shown_collection(wanted) == forms.shown_collection(current):
            return "unchanged", ()
        if not self.dry_run:
            sent = {name: body[name] for name in forms.COLLECTION_MEMBERS if body.get(name) is not None}
            self._call("PUT", path_of(each.place), sent)
        self.collections[each.place.lower] = wanted
        return ("created" if current is None else "changed"), ()

    def _target_collection(self, place: Place) -> Collection | None:
        """Returns a collection of the target. Raises Failed, InvalidRequest."""
        if place.lower not in self.collections:
            body = self._current(path_of(place))
            self.collections[place.lower] = None if body is None else forms.collection_of(body, place)
        return self.collections[place.lower]

    def _current(self, path: str) -> Any:
        try:
            return self._call("GET", path)
        except Failed as failed:
            if failed.status != 404:
                raise
            return None

    # Jobs

    def _job(self, each: Found) -> tuple[str, Sequence[str]]:
        """Imports a job. Returns the verdict and remarks. Raises Failed, InvalidRequest."""
        state = forms.state_of(each.body)
        if state in forms.FINAL:
            return "left out", [IS_OVER.format(state.capitalize())]
        collection = self._target_collection(each.place.of_collection)
        if collection is None:
            raise Failed(NO_COLLECTION, 404)
        current = self._current(path_of(each.place))
        named = forms.named(each.body)
        self.needed |= {need.name for need in forms.needs(named)}
        properties = forms.with_secrets(named, self.secrets)
        self._check_secrets(properties, current)
        wanted = forms.form(properties, each.body, collection, self.service.clock.now())
        if current is None:
            self._put(each.place, wanted)
            return "created", wanted.remarks
        return self._existing(each.place, wanted, current, collection), ()

    def _existing(self, place: Place, wanted: forms.Form, current: Mapping[str, Any], collection: Collection) -> str:
        """Changes a job of the target if it differs, and returns the verdict. Raises Failed.

        Secrets are sent each time, because no answer shows whether they are new.
        """
        shown, state = forms.shown_job(current, collection), forms.state_of(current)
        final = state in forms.FINAL
        ignored = {"state": None} if final else {}
        differs = {**shown, **ignored} != {**wanted.shown, **ignored}
        if differs and final:
            raise Failed(IS_FINAL.format(state.capitalize()), 409)
        if differs or (wanted.brings_secrets and not final):
            self._put(place, wanted)
        return "changed" if differs else "unchanged"

    def _put(self, place: Place, wanted: forms.Form) -> None:
        if not self.dry_run:
            self._call("PUT", path_of(place), {"properties": wanted.properties})

    def _check_secrets(self, properties: Mapping[str, Any], current: Any) -> None:
        """Raises Failed for secrets that neither --secrets nor the existing job has."""
        kept = {(need.slot, need.name) for need in forms.needs(forms.named(current))} if current else set()
        missing = [need.name for need in forms.needs(properties) if (need.slot, need.name) not in kept]
        if missing:
            self.asked += missing
            raise Failed(f"needs the {', the '.join(dict.fromkeys(missing))}", 400)


def path_of(place: Place) -> str:
    """Returns the path of a resource."""
    subscription, group, collection, job = (None if each is None else quote(each, safe="") for each in place)
    base = f"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Scheduler/jobCollections"
    return f"{base}/{collection}" + (f"/jobs/{job}" if job else "")


def _order(each: Found | Problem) -> int:
    """Sorts collections before jobs, and both before everything else."""
    return 2 if isinstance(each, Problem) else 1 if each.place.job else 0
