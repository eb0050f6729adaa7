"""Secrets of a tenant's jobs, sealed to a key pair of the tenant. Only a process that may decrypt its private key with
KMS opens them.

The API, which seals, holds a public key and never the private one again. Executors, which open, ask KMS once for a key,
not once for a secret (decision 0210).
"""

from __future__ import annotations

from datetime import datetime

from sweephand.base.errors import InvalidRequest, NotFound
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.base.sources import Chance, Clock
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.server.security.key_service import SECRETS, KeyService
from sweephand.server.shared_reads import SharedReads
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.flat_models import Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item
from sweephand.server.store.tenants import tenants

with lazy():
    from sweephand.server.security import sealing

LARGEST = 16_384
"""The most bytes of a secret: a private key with its certificates. All others are shorter."""
KEPT_S = 900.0
"""How long a process remembers a private key."""
KEPT_KEYS = 512


class SecretKeyItem(Item):
    """A key pair. public: Base64. sealed: the private key, encrypted by the key service."""

    public = UnicodeAttribute()
    sealed = UnicodeAttribute()
    created_at = Integer()


@dataclass(frozen=True)
class SecretKey:
    """A key pair of a tenant; see SecretKeyItem."""

    public: str
    sealed: str
    created_at: datetime


class SecretBox:
    """Sealing and opening of secrets; safe for threads."""

    def __init__(self, table: Table, key_service: KeyService, clock: Clock, chance: Chance) -> None:
        self._table = table
        self._key_service = key_service
        self._clock = clock
        self._chance = chance
        self._private = SharedReads(self._private_key, clock, KEPT_KEYS)

    def encrypt(self, tenant: str, job: str, field: str, plaintext: str) -> str:
        """Returns the sealed secret, after the name of its key: `1767225600000.` and Base64.

        Raises InvalidRequest over 16,384 bytes, and Unavailable if the table does not answer, or if KMS does not while
        the tenant has no key of this year.
        """
        plain = plaintext.encode()
        if len(plain) > LARGEST:
            raise InvalidRequest(field, f"must have at most {LARGEST:,} bytes")
        key = self._current(tenant)
        return f"{epoch_ms(key.created_at)}.{sealing.seal(key.public, (tenant, job, field), plain)}"

    def decrypt(self, tenant: str, job: str, field: str, sealed: str) -> str:
        """Returns the plaintext. Raises NotFound for a wrong ciphertext or place, or a lost key; Unavailable."""
        name, _, text = sealed.partition(".")
        try:
            return sealing.unseal(self._private.get((tenant, name), KEPT_S), (tenant, job, field), text).decode()
        except NotFound as wrong:
            raise NotFound(f"the secret {field} cannot be opened") from wrong

    def _current(self, tenant: str) -> SecretKey:
        """Returns the tenant's key of this year; makes it if there is none.

        It is read each time: a secret that is sealed to a key that no longer exists would be lost.
        """
        now = self._clock.now()
        if (stored := _read(self._table, tenant, now)) is None:
            private = self._chance.token(sealing.SIZE)
            sealed = self._key_service.encrypt(tenant, SECRETS, private)
            _put_first(self._table, tenant, SecretKey(sealing.public_half(private), sealed, now))
            stored = _read(self._table, tenant, now)
        if stored is None:
            raise tenants.leaving(self._table, tenant)
        return stored

    def _private_key(self, place: tuple[str, str]) -> bytes:
        tenant, name = place
        try:
            created_at = from_ms(int(name))
        except (ValueError, OverflowError) as wrong:
            raise NotFound("no key has this name") from wrong
        key = _read(self._table, tenant, created_at)
        if key is None or key.created_at != created_at:
            raise NotFound("the key does not exist any more")
        return self._key_service.decrypt(tenant, SECRETS, key.sealed)


# Rows: one for each year in which a secret was written


def _read(table: Table, tenant: str, at: datetime) -> SecretKey | None:
    """Returns the key of the year of `at`, or None if there is none."""
    item = table.get(SecretKeyItem, keys.tenant(tenant), _sort_key(at))
    return None if item is None else SecretKey(item.public, item.sealed, from_ms(item.created_at))


def _put_first(table: Table, tenant: str, key: SecretKey) -> None:
    """Writes the key of its year if there is none and the tenant stays. If another process was first, its key stays."""
    item = SecretKeyItem(
        pk=keys.tenant(tenant),
        sk=_sort_key(key.created_at),
        public=key.public,
        sealed=key.sealed,
        created_at=epoch_ms(key.created_at),
    )
    table.transact([table.put_op("key", item, SecretKeyItem.pk.does_not_exist()), tenants.stays_op(table, tenant)])


def _sort_key(at: datetime) -> str:
    return keys.secret_key(str(at.year))
