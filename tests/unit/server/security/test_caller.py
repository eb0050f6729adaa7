from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import HOW_TO_IDENTIFY, Forbidden, InvalidRequest, Unauthenticated
from sweephand.base.sources import SystemChance
from sweephand.server.security import caller as caller_module
from sweephand.server.security.caller import (
    TENANT_SCOPES,
    BearerToken,
    Caller,
    ClientSecret,
    Credential,
    Door,
    client_secret,
    is_tenant_name,
    new_credential,
    new_secret,
    parse_authorization,
)
from sweephand.server.security.memory import REMEMBERED
from sweephand.server.security.tokens import AccessClaims, derive_keys, issue

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
FIRST_SECRET = "f" * 48
KEYS = derive_keys("sweephand", FIRST_SECRET)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


class Register:
    """Credentials, and who asked for them."""

    def __init__(self, *credentials: Credential) -> None:
        self.credentials = {(credential.tenant, credential.id): credential for credential in credentials}
        self.asked: list[tuple[str | None, str]] = []

    def __call__(self, tenant: str | None, name: str) -> Credential | None:
        self.asked.append((tenant, name))
        return self.credentials.get((tenant, name))


@pytest.fixture
def made() -> tuple[Credential, str]:
    return new_credential("acme", {"jobs:read", "jobs:write"}, SystemChance())


@pytest.fixture
def register(made: tuple[Credential, str]) -> Register:
    return Register(made[0])


@pytest.fixture
def door(register: Register) -> Door:
    return Door(KEYS, FIRST_SECRET, register)


def test_a_new_credential_has_256_bits_and_only_its_hash_is_kept(made: tuple[Credential, str]) -> None:
    credential, secret = made

    assert len(base64.urlsafe_b64decode(secret + "=")) == 32
    assert credential.secret_hash == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in repr(credential)
    assert credential.client_id == f"acme.{credential.id}"
    assert client_secret(credential.client_id, secret) == ClientSecret("acme", credential.id, secret)


def test_a_valid_credential_is_accepted(door: Door, made: tuple[Credential, str]) -> None:
    credential, secret = made

    caller = door.identify(basic(credential.client_id, secret), NOW)

    assert caller == Caller("acme", credential.id, frozenset({"jobs:read", "jobs:write"}))
    assert not caller.provider


def test_the_first_credential_is_the_stacks_secret_and_is_not_looked_up(door: Door, register: Register) -> None:
    caller = door.identify(basic("provider.admin", FIRST_SECRET), NOW)

    assert caller.provider
    assert caller.allows("jobs:write")
    assert register.asked == []
    with pytest.raises(Unauthenticated):
        door.identify(basic("provider.admin", "wrong"), NOW)
    with pytest.raises(Unauthenticated):
        door.identify(basic("acme.admin", FIRST_SECRET), NOW)


def test_every_refusal_of_a_credential_reads_the_same(door: Door, made: tuple[Credential, str]) -> None:
    credential, secret = made
    wrong = [
        basic(credential.client_id, secret[:-1]),
        basic(credential.client_id, secret.swapcase()),
        basic("acme.unknown", secret),
        basic(f"globex.{credential.id}", secret),
        basic(f"provider.{credential.id}", secret),
        basic(credential.client_id, ""),
    ]

    reasons = set()
    for header in wrong:
        with pytest.raises(Unauthenticated) as caught:
            door.identify(header, NOW)
        reasons.add(caught.value.reason)

    assert reasons == {Unauthenticated().reason}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (None, "is missing"),
        *[(each, "cannot be read") for each in ("", "nonsense", "Basic %%%", "ApiKey abc", "Bearer", "Basic bm8=")],
        ("Basic " + "a" * 8_300, "cannot be read"),
    ],
)
def test_a_header_without_a_credential_is_refused_by_its_form_alone(door: Door, header: str | None, why: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        door.identify(header, NOW)

    assert caught.value.reason == f"the header Authorization {why}: {HOW_TO_IDENTIFY}"


@pytest.mark.parametrize(
    "header",
    [
        *("Basic", "Basic ", "Basic x", "Basic !!!!", "Basic " + base64.b64encode(b"\xff:\xff").decode(), "Digest abc"),
        *(
            "Basic YWI6Yw==\n",
            " Basic YWI6Yw==",
            "Basic  YWI6Yw==",
            "Basic\tYWI6Yw==",
            "Basic YWI6Yw==, Basic YWI6Yw==",
        ),
        *(
            "Bearer",
            "Bearer ",
            "Bearer a b",
            "Bearer \u00e4",
            "Bearer " + "a" * 9_000,
            "Basic " + "a" * 9_000,
            "a" * 100_000,
        ),
        *(
            basic(client, "x")
            for client in ("", "acme", "acme.", ".x", "a#b.x", "acme.x y", "acme.\u00e4", "a" * 65 + ".x", "-a.x")
        ),
        *(basic("acme.x", secret) for secret in ("", "a b", "\x00", "\u00e4", "x" * 257)),
    ],
)
def test_the_form_is_judged_before_anything_is_looked_up(header: str, register: Register) -> None:
    door = Door(KEYS, FIRST_SECRET, register)

    with pytest.raises(Unauthenticated):
        door.identify(header, NOW)

    assert register.asked == []


@given(st.text(max_size=60) | st.binary(max_size=40).map(lambda raw: "Basic " + base64.b64encode(raw).decode()))
def test_any_header_raises_only_a_refusal(header: str) -> None:
    try:
        given = parse_authorization(header)
    except Unauthenticated:
        return
    assert isinstance(given, ClientSecret | BearerToken)


def test_the_scheme_is_read_without_its_case() -> None:
    header = basic("acme.x7", "s:e:c")

    assert parse_authorization(header.replace("Basic", "bASIC")) == ClientSecret("acme", "x7", "s:e:c")
    assert parse_authorization("BEARER a.b.c") == BearerToken("a.b.c")


def test_secrets_do_not_show_in_prints() -> None:
    assert "s3cret" not in repr(ClientSecret("acme", "x", "s3cret")) + repr(BearerToken("s3cret"))


# ---- What is remembered ----------------------------------------------------------------------------------------------


def test_a_known_credential_is_read_once_a_minute(door: Door, register: Register, made: tuple[Credential, str]) -> None:
    header = basic(made[0].client_id, made[1])

    for after_s in (0, 30, 59.9):
        door.identify(header, NOW + seconds(after_s))
    assert len(register.asked) == 1

    door.identify(header, NOW + seconds(60))
    assert len(register.asked) == 2


def test_an_unknown_one_is_read_once_in_ten_seconds(door: Door, register: Register) -> None:
    for after_s in (0, 5, 9.9):
        with pytest.raises(Unauthenticated):
            door.identify(basic("acme.nobody", "x"), NOW + seconds(after_s))
    assert len(register.asked) == 1

    with pytest.raises(Unauthenticated):
        door.identify(basic("acme.nobody", "x"), NOW + seconds(10))
    assert len(register.asked) == 2


def test_a_deleted_credential_is_refused_within_a_minute(
    door: Door, register: Register, made: tuple[Credential, str]
) -> None:
    header = basic(made[0].client_id, made[1])
    door.identify(header, NOW)
    register.credentials.clear()

    with pytest.raises(Unauthenticated):
        door.identify(header, NOW + seconds(60))


def test_a_new_secret_holds_after_at_most_ten_seconds(
    door: Door, register: Register, made: tuple[Credential, str]
) -> None:
    credential, secret = made
    door.identify(basic(credential.client_id, secret), NOW)
    renewed, fresh = new_secret(credential, None, SystemChance())
    register.credentials[("acme", credential.id)] = renewed

    with pytest.raises(Unauthenticated):
        door.identify(basic(credential.client_id, fresh), NOW + seconds(9))
    assert door.identify(basic(credential.client_id, fresh), NOW + seconds(10)).generation == 2
    with pytest.raises(Unauthenticated):
        door.identify(basic(credential.client_id, secret), NOW + seconds(11))


def test_wrong_secrets_for_a_known_id_read_it_at_most_every_ten_seconds(
    door: Door, register: Register, made: tuple[Credential, str]
) -> None:
    for step in range(100):
        with pytest.raises(Unauthenticated):
            door.identify(basic(made[0].client_id, f"guess{step}"), NOW + seconds(step / 10))

    assert len(register.asked) == 1


def test_guessed_ids_do_not_push_out_real_ones(
    register: Register, made: tuple[Credential, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door(KEYS, FIRST_SECRET, register)
    header = basic(made[0].client_id, made[1])
    door.identify(header, NOW)
    for number in range(REMEMBERED + 50):
        with pytest.raises(Unauthenticated):
            door.identify(basic(f"acme.guess{number}", "x"), NOW)
    register.asked.clear()

    door.identify(header, NOW)

    assert register.asked == []
    assert len(door._stored._unknown) == REMEMBERED


# ---- Tokens ----------------------------------------------------------------------------------------------------------


def test_a_credential_is_exchanged_for_a_token(door: Door, made: tuple[Credential, str]) -> None:
    caller = door.identify(basic(made[0].client_id, made[1]), NOW)

    token, scopes = door.issue(caller, NOW)

    assert scopes == {"jobs:read", "jobs:write"}
    assert door.identify(f"Bearer {token}", NOW + seconds(3_599)) == caller
    with pytest.raises(Unauthenticated):
        door.identify(f"Bearer {token}", NOW + seconds(3_600))


def test_a_token_may_have_less_than_its_credential_but_never_more(door: Door, made: tuple[Credential, str]) -> None:
    caller = door.identify(basic(made[0].client_id, made[1]), NOW)

    token, scopes = door.issue(caller, NOW, ["jobs:read"])

    assert scopes == door.identify(f"Bearer {token}", NOW).scopes == {"jobs:read"}
    with pytest.raises(Forbidden):
        door.issue(caller, NOW, ["jobs:read", "admin"])
    with pytest.raises(InvalidRequest):
        door.issue(door.identify(basic("provider.admin", FIRST_SECRET), NOW), NOW, ["a b"])


def test_a_provider_token_is_still_a_providers(door: Door, register: Register) -> None:
    token, _ = door.issue(door.identify(basic("provider.admin", FIRST_SECRET), NOW), NOW)

    caller = door.identify(f"Bearer {token}", NOW)

    assert caller.provider
    assert caller.allows("provider:admin")
    assert register.asked == []


@pytest.mark.parametrize("change", ["deleted", "renewed"])
def test_a_token_ends_with_its_credential(
    door: Door, register: Register, made: tuple[Credential, str], change: str
) -> None:
    credential, secret = made
    token, _ = door.issue(door.identify(basic(credential.client_id, secret), NOW), NOW)
    if change == "deleted":
        register.credentials.clear()
    else:
        register.credentials[("acme", credential.id)] = new_secret(credential, None, SystemChance())[0]

    with pytest.raises(Unauthenticated):
        door.identify(f"Bearer {token}", NOW + seconds(60))


def test_a_scope_taken_from_the_credential_is_taken_from_its_tokens(
    door: Door, register: Register, made: tuple[Credential, str]
) -> None:
    credential, secret = made
    token, _ = door.issue(door.identify(basic(credential.client_id, secret), NOW), NOW)
    register.credentials[("acme", credential.id)] = Credential(
        "acme", credential.id, credential.secret_hash, frozenset({"jobs:read"})
    )

    assert door.identify(f"Bearer {token}", NOW + seconds(60)).scopes == {"jobs:read"}


def test_a_token_for_one_tenant_is_invalid_for_another(
    door: Door, register: Register, made: tuple[Credential, str]
) -> None:
    foreign = issue(KEYS, AccessClaims("globex", made[0].id, 1, frozenset({"jobs:read"})), NOW)

    with pytest.raises(Unauthenticated):
        door.identify(f"Bearer {foreign}", NOW)
    assert register.asked == [("globex", made[0].id)]


# ---- What a caller may do --------------------------------------------------------------------------------------------


def test_scopes_are_required() -> None:
    caller = Caller("acme", "x", frozenset({"jobs:read"}))

    caller.require("jobs:read")
    with pytest.raises(Forbidden, match="jobs:write"):
        caller.require("jobs:write")


def test_a_tenant_gains_nothing_from_a_star() -> None:
    caller = Caller("acme", "x", frozenset({"provider:*"}))

    assert not any(caller.allows(scope) for scope in TENANT_SCOPES | {"provider:admin"})


def test_a_provider_without_the_star_has_just_its_scopes() -> None:
    caller = Caller(None, "x", frozenset({"provider:admin"}))

    assert caller.allows("provider:admin")
    assert not caller.allows("jobs:read")


def test_a_tenant_acts_for_itself_and_a_provider_for_whom_it_names() -> None:
    tenant = Caller("acme", "x", frozenset())
    provider = Caller(None, "admin", frozenset({"provider:*"}))

    assert tenant.acting_for(None) == tenant.acting_for("acme") == "acme"
    with pytest.raises(Forbidden):
        tenant.acting_for("globex")
    assert provider.acting_for("acme") == "acme"
    for wrong in (None, "", "provider", "a#b", "a" * 65, "\u00e4"):
        with pytest.raises(InvalidRequest) as caught:
            provider.acting_for(wrong)
        assert caught.value.code == "INVALID_QUERY"


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("acme", True),
        ("4f2c-9_A", True),
        ("provider", False),
        ("", False),
        ("a.b", False),
        ("a/b", False),
        ("_a", False),
        ("a\n", False),
    ],
)
def test_tenant_names(name: str, valid: bool) -> None:
    assert is_tenant_name(name) is valid


def test_importing_the_door_imports_no_token_library() -> None:
    assert "jwt" not in vars(caller_module)
