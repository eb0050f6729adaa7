"""Keys of the table.

Each part is encoded, so that no name can forge a key. Every partition key begins with the tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from urllib.parse import unquote
from zlib import crc32

JOB = "JOB"
TENANT = "TENANT"
USAGE = "USAGE"
LAST_NUMBER = "LAST"
STACK_TENANTS = "STACK#TENANTS"
STACK_AUDIT = "STACK#AUDIT"
LAST = "LAST"
STACK_ORDINALS = "STACK#ORDINALS"
ORDINAL = "ORDINAL"
STACK_RATE = "STACK#RATE"
STACK_KEYS = "STACK#KEYS"
CALLBACK_KEY = "CALLBACK"
POINTER_KEY = "POINTER"
STACK_SWEEP = "STACK#SWEEP"
"""The partition that each tick reads: the number of shards, and the disabled tenants and collections."""
SHARDS = "#SHARDS"
LOOK = "#LOOK"
"""Not the key of a tenant, because # is encoded in names."""
STACK_AWAY = "STACK#AWAY"
APPLICATION = "APP"
TARGET = "TARGET"
CONSUMER = "CONSUMER"
SPREAD = "SPREAD"
CALENDAR_TEXT = "CALV"
LAST_START = "LASTSTART"
TURN = "TURN"
MESSAGE_DAY = "DAY"
IDEMPOTENCY_PARTS = 8
"""Partitions of a tenant's idempotency records."""


def part(text: str) -> str:
    """Returns a user's string as part of a key: % and # are percent-encoded."""
    return text.replace("%", "%25").replace("#", "%23")


def parts(key: str) -> list[str]:
    return [unquote(piece) for piece in key.split("#")]


def _of(prefix: str) -> Callable[[str], str]:
    """Returns a function from a user's string to a key with this prefix."""
    return lambda text: f"{prefix}#{part(text)}"


def _of_tenant(prefix: str) -> Callable[[str, str], str]:
    """Returns a function from a tenant's name and a user's string to a partition with this prefix."""
    return lambda tenant_name, text: f"TENANT#{part(tenant_name)}#{prefix}#{part(text)}"


# Partitions, by a tenant's name and a name or an id within it

job = _of_tenant("JOB")
runs = _of_tenant("SCH")
"""The ledger partition of a schedule, or of a job for runs without a schedule."""
names = _of_tenant("COL")
tag = _of_tenant("TAG")
resource = _of_tenant("RES")
calendar_rows = _of_tenant("CAL")
"""The partition of a calendar's versions and users."""
calendar_text = _of_tenant("CALV")
"""The partition of the content of one version."""
flow = _of_tenant("KEY")
"""The partition of a flow key's turnstile, line and circuits."""
error_runs = _of_tenant("ERROR")
"""The partition of a group's failed runs."""
job_set_rows = _of_tenant("SET")
"""The partition of a job set's members."""
consumer_rows = _of_tenant(CONSUMER)
"""The partition of a consumer's wake and of its dropped occurrences; in the index `attention`, of its held runs."""

# The tenant's own partition, and sort keys, by a name or an id

tenant = _of("TENANT")
collection = _of("COL")
calendar = _of("CAL")
calendar_use = _of("USE")
replan = _of("REPLAN")
flow_key = _of("KEY")
turnstile = _of("TURN")
credential = _of("CRED")
secret_key = _of("SECRETS")
"""The key of the key pair for secrets that are written in a year."""
schedule = _of("SCH")
stats = _of("STATS")
slot = _of("SLOT")
name = _of("NAME")
operation = _of("OP")
error_group = _of("GROUP")
redirect = _of("REDIRECT")
job_set = _of("SET")
member = _of("MEMBER")
"""The key of a job set's member: the key of its job in the set."""
consumer = _of(CONSUMER)
dropped = _of("DROPPED")
"""The key of the count of a job's occurrences that its consumer will not get."""
unpublished = _of("TELL")
"""The prefix of the keys of such counts that an event has yet to publish."""
clean_up = _of("CLEAN")
unused = _of("UNUSED")
"""The key of the wake of a one-time schedule that is switched off."""


def owner_of_runs(pk: str) -> str:
    """Returns the owner of the runs of a partition: the schedule's id, or the job's for runs without a schedule."""
    return parts(pk)[3]


def directory(tenant_name: str) -> str:
    """Returns the partition of the last number assigned."""
    return f"{tenant(tenant_name)}#DIR"


def directory_part(tenant_name: str, part_number: int) -> str:
    return f"{directory(tenant_name)}#{part_number:07d}"


def directory_counts(tenant_name: str, number: int) -> str:
    """Returns one of the partitions of the blocks' counts."""
    return f"{directory(tenant_name)}#COUNT#{number}"


def stripe(tenant_name: str, number: int) -> str:
    """Returns the partition of one of the rows of each count of a tenant (server/store/tenants/counts.py)."""
    return f"{tenant(tenant_name)}#STRIPE#{number:02d}"


def idempotency(tenant_name: str, key: str) -> str:
    """Returns the partition of the record under this key; every request that makes something writes one."""
    return idempotency_part(tenant_name, crc32(key.encode()) % IDEMPOTENCY_PARTS)


def idempotency_part(tenant_name: str, number: int) -> str:
    return f"{tenant(tenant_name)}#IDEM#{number}"


def attention_day(tenant_name: str, day: date) -> str:
    """Returns the partition of the attention index for a tenant's day in UTC."""
    return f"{tenant(tenant_name)}#{day.strftime('%Y-%m-%d')}"


def address(facade: str, text: str) -> str:
    """Returns the key under which a facade finds a collection.

    For the beginning of an address, returns a key prefix.
    """
    return f"ADDRESS#{part(facade)}#{part(text)}"


def places(facade: str, beginning: str) -> str:
    """Returns the key of the count of collections that were given addresses with this beginning."""
    return f"PLACES#{part(facade)}#{part(beginning)}"


def application(name: str, version: str | None) -> str:
    """Returns the key of an application, or of one of its versions."""
    return watched("application", (name, version or ""))


def watched(noun: str, names: Iterable[str]) -> str:
    """Returns the key of the row of something that may be away, by its noun."""
    prefix = {"application": APPLICATION, "consumer": CONSUMER, "target": TARGET}[noun]
    return "#".join([prefix, *map(part, names)])


def away(tenant_name: str, sk: str) -> str:
    """Returns the key in the stack's list of what is away. sk: the key of its row in the tenant's partition."""
    return f"{part(tenant_name)}#{sk}"


def away_parts(key: str) -> tuple[str, str]:
    """Returns the tenant and the key of the row, from a key in the stack's list of what is away."""
    tenant_name, _, sk = key.partition("#")
    return unquote(tenant_name), sk


def calendar_version(number: int) -> str:
    return f"VERSION#{number:08d}"


def line(order: str) -> str:
    """Returns the key of an entry in the line or, for the order "", the prefix of all entries."""
    return f"LINE#{order}"


def look(worker: int) -> str:
    """Returns the key of a worker's look through what is due soon under newer time-zone data."""
    return f"{LOOK}#{worker}"


def last_audit(worker: int) -> str:
    """Returns the key of the last audit of one worker."""
    return f"{LAST}#{worker}"


def audit_round(shard: int | str) -> str:
    return f"ROUND#{shard}"


def circuit(target_hash: str) -> str:
    return f"CIRCUIT#{target_hash}"


def generation(schedule_id: str, number: int) -> str:
    return f"GEN#{part(schedule_id)}#{number:08d}"


def payload(owner: str, version: int) -> str:
    return f"PAY#{part(owner)}#{version}"


def own_hooks(schedule_id: str, version: int) -> str:
    """Returns the key of the schedule's own hooks."""
    return f"HOOKS#{part(schedule_id)}#{version}"


def secret(version: int) -> str:
    return f"SECRET#{version}"


def revision(number: int) -> str:
    return f"REV#{number:08d}"


def job_entry(number: int) -> str:
    """Returns a job's key in the directory, under a tag or under a resource. Its number gives the order of creation."""
    return f"JOB#{number:012d}"


def block_count(block: int, facade: str, number: int) -> str:
    """Returns the key of one of the rows that count the jobs of a facade in a block."""
    return f"BLOCK#{block:06d}#{part(facade)}#{number}"


def catch_up(first_s: int | str) -> str:
    return f"CATCHUP#{first_s}"


def ordinal(number: int) -> str:
    return f"ORDINAL#{number:09d}"


def rate(minute: int, counted: str) -> str:
    """Returns the key of a minute's count.

    counted: `requests` and `targets` for all facades, "" for the SAP facade's own limits, `runs` for runs.
    """
    return f"RATE#{counted}#{minute}" if counted else f"RATE#{minute}"


def family(root_uuid: str) -> str:
    """Returns the key of the count of runs that followed from this one, in its ledger partition."""
    return f"FAMILY#{root_uuid}"


def suspended(tenant_name: str, collection_name: str | None) -> str:
    """Returns the key in the stack's list of disabled collections. collection_name: None for the whole tenant."""
    return part(tenant_name) + ("" if collection_name is None else f"#{part(collection_name)}")


def releasing(tenant_name: str, collection_name: str | None) -> str:
    return f"{tenant(tenant_name)}#RELEASE#{part(collection_name or '')}"


def release(collection_name: str | None) -> str:
    return f"RELEASE#{part(collection_name or '')}"


def operations(tenant_name: str | None) -> str:
    """Returns the partition of a tenant's operations.

    tenant_name: None for the provider's, which outlive any tenant.
    """
    return "STACK#provider#OPS#" if tenant_name is None else f"{tenant(tenant_name)}#OPS#"


def operation_place(kind: str, number: int) -> str:
    """Returns the key of one of the places that limit how many operations of a kind are open."""
    return f"PLACE#{part(kind)}#{number}"


def message_days(tenant_name: str) -> str:
    """Returns the partition of the days for which a tenant has messages."""
    return f"{tenant(tenant_name)}#MSGDAYS"


def message_day(day: date | str, tenant_name: str = "", collection_name: str = "") -> str:
    """Returns the key of the note that a collection has messages on a day; for a day alone, a key before all of it.

    Its last part is unique among all tenants, so that the audit finds the note like a schedule.
    """
    return f"{MESSAGE_DAY}#{day}~{part(tenant_name)}~{part(collection_name)}" if tenant_name else f"{MESSAGE_DAY}#{day}"


def message_day_parts(key: str) -> tuple[date, str, str]:
    """Returns the day, the tenant and the collection from such a key."""
    day, tenant_name, collection_name = parts(key)[1].split("~")
    return date.fromisoformat(day), tenant_name, collection_name


def files(tenant_name: str) -> str:
    """Returns the prefix of a tenant's files in the bucket."""
    return f"{part(tenant_name)}/"


def errors(tenant_name: str) -> str:
    """Returns the partition of a tenant's error groups and redirects."""
    return f"{tenant(tenant_name)}#ERRORS#"


def pause() -> str:
    return "PAUSE#end"


def change(revision_number: int) -> str:
    return f"CHANGE#{revision_number:08d}"


def change_part(revision_number: int, number: int | str) -> str:
    """Returns the key of a part of a change or, for the number "", the prefix of all its parts."""
    return f"PART#{revision_number:08d}#{number}"


def run(uuid: str) -> str:
    return f"RUN#{uuid}"


def edit(uuid: str) -> str:
    """Returns the key of a run's edit, which replaces values of its job."""
    return f"RUN#{uuid}#EDIT"


def body(uuid: str) -> str:
    """Returns the key of the action of a message that is too long for the row of its run."""
    return f"RUN#{uuid}#BODY"


def attempt(uuid: str, number: int) -> str:
    return f"RUN#{uuid}#A#{number:02d}"
