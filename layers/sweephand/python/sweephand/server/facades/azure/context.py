"""The context of an operation of the Azure facade, and the small steps that many operations share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from sweephand.base.errors import InvalidRequest, NotFound
from sweephand.base.records import dataclass
from sweephand.domain.collection import Collection
from sweephand.formats import strict_json
from sweephand.formats.azure.members import FACADE, VERSIONS
from sweephand.server.facades.api import RequestContext
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.job_parts.change_log import By, Operation
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.security.caller import Caller
from sweephand.server.store.views import jobs as views
from sweephand.server.store.views import tenants

MAX_BODY = 65_536
REQUEST_ID = "x-ms-client-request-id"
_SUBSCRIPTION = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_GROUP = re.compile(r"[\w.()-]{0,89}[\w()-]")
_COLLECTION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}", re.ASCII)
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Context(RequestContext):
    """The context of one request. tenant, caller: verified."""

    caller: Caller
    tenant: str

    @property
    def actor(self) -> str:
        return self.caller.client_id

    def by(self, operation: Operation = Operation.CHANGE) -> By:
        """Returns the author of a change, for the change log."""
        return By(operation, self.actor)

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters, by their names in lower case, because Azure ignores their case."""
        sent = self.request.query
        by_name = {name.lower(): value for name, value in sent.items()}
        if len(by_name) < len(sent):
            twice = next(name for name in sent if sum(name.lower() == each.lower() for each in sent) > 1)
            raise InvalidRequest(twice[:100], "is given twice (upper and lower case mean the same)")
        return by_name

    def body(self) -> Any:
        if len(self.request.body) > MAX_BODY:
            raise InvalidRequest(None, f"the body is larger than {MAX_BODY:,} bytes", code="TOO_LARGE")
        if not self.request.body:
            raise InvalidRequest(None, "a JSON body is required")
        return strict_json.loads(self.request.plain_body(), max_bytes=MAX_BODY)

    @property
    def version(self) -> str:
        return self.query["api-version"]

    def check_version(self) -> None:
        """Raises InvalidRequest unless the request has a known api-version."""
        version = self.query.get("api-version")
        if not version:
            reason = f"the parameter api-version is required: {', '.join(VERSIONS)}"
            raise InvalidRequest(None, reason, code="MissingApiVersionParameter")
        if version not in VERSIONS:
            reason = f"the api-version {version[:40]} is not known: use one of {', '.join(VERSIONS)}"
            raise InvalidRequest(None, reason, code="InvalidApiVersionParameter")

    # Names

    def check_names(self) -> None:
        """Raises InvalidRequest for names in the path that no resource can have."""
        for parameter, pattern in (
            ("subscription", _SUBSCRIPTION),
            ("group", _GROUP),
            ("collection", _COLLECTION),
            ("job", _JOB),
        ):
            name = self.parameters.get(parameter)
            if name is not None and not pattern.fullmatch(name):
                raise InvalidRequest(parameter, f"is not a valid name: {name[:100]}")

    def address(self, *parameters: str) -> str:
        """Returns the beginning of an address: names in lower case, each followed by a slash."""
        return "".join(f"{self.parameters[name].lower()}/" for name in parameters)

    @property
    def collection_address(self) -> str:
        return self.address("subscription", "group", "collection")

    def find_collection(self) -> Collection | None:
        return tenants.collection_at(self.world.table, self.tenant, FACADE, self.collection_address)

    def collection(self) -> Collection:
        """Returns the collection of the path. Raises NotFound."""
        current = self.find_collection()
        if current is None:
            raise NotFound(f"the job collection {self.parameters['collection']} does not exist")
        return current

    def find_job(self, collection: Collection) -> views.Row | None:
        """Finds the job of the path. Job names are stored in lower case."""
        filters = views.Filters(collection=collection.name, name=self.parameters["job"].lower())
        return next(iter(views.listed(self.world.table, self.tenant, filters, None, 1)), None)

    def job(self, collection: Collection) -> Planned:
        """Returns the job of the path with its schedule. Raises NotFound."""
        row = self.find_job(collection)
        try:
            if row is not None:
                return lookup.find(self.world, self.tenant, row.job_id)
        except NotFound:
            pass  # deleted since the row was read
        raise NotFound(f"the job {self.parameters['job']} does not exist")

    def once(self, request: str) -> Once | None:
        """Returns the key that identifies repetitions of this request by the client."""
        client_id = self.request.headers.get(REQUEST_ID)
        if not client_id:
            return None
        key = hashlib.sha256(f"azure {request} {client_id}".encode()).hexdigest()
        return Once(key, "")
