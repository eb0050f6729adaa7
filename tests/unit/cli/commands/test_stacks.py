"""Where the address and the credential come from."""

from __future__ import annotations

import json

import pytest

from sweephand.cli.commands import stacks
from sweephand.sdk.errors import ConfigError

PROFILES = {
    "default": {"url": "https://one.example", "clientId": "one", "secret": "1"},
    "two": {"url": "https://two.example", "clientId": "two", "secret": "2"},
}


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    stacks.write(tmp_path / "deep" / "profiles.json", PROFILES)
    return {"SWEEPHAND_PROFILES": str(tmp_path / "deep" / "profiles.json")}


OTHERS = {"SWEEPHAND_URL": "https://env.example", "SWEEPHAND_CLIENT_ID": "env", "SWEEPHAND_SECRET": "3"}


@pytest.mark.parametrize(
    ("options", "more", "found"),
    [
        ({}, {}, ("https://one.example", "one")),
        ({}, {"SWEEPHAND_PROFILE": "two"}, ("https://two.example", "two")),
        ({}, OTHERS, ("https://env.example", "env")),
        ({"profile": "two"}, OTHERS, ("https://two.example", "two")),
        ({"url": "https://flag.example"}, OTHERS, ("https://flag.example", "env")),
        ({"url": "https://flag.example", "profile": "two"}, OTHERS, ("https://flag.example", "two")),
    ],
)
def test_an_option_overrides_the_environment_and_the_environment_a_profile(environment, options, more, found):
    stack = stacks.find(environment | more, **options)

    assert (stack.access.url, stack.access.client_id) == found
    assert found[1] in stack.source or "environment" in stack.source or "profile default" in stack.source


def test_an_incomplete_credential_is_never_completed_from_another_source(environment):
    with pytest.raises(ConfigError, match="only SWEEPHAND_CLIENT_ID is set"):
        stacks.find(environment | {"SWEEPHAND_CLIENT_ID": "env"})
    with pytest.raises(ConfigError, match="the address is missing"):
        stacks.find(environment | {"SWEEPHAND_CLIENT_ID": "env", "SWEEPHAND_SECRET": "3"})


def test_an_incomplete_profile_is_named(environment, tmp_path):
    path = tmp_path / "half.json"
    stacks.write(path, {"default": {"url": "https://a.example", "clientId": "a"}})

    with pytest.raises(ConfigError, match=r"the profile 'default' in .*half.json is incomplete: run `sweephand login "):
        stacks.find({"SWEEPHAND_PROFILES": str(path)})


def test_an_unknown_profile_is_named_with_the_command_that_creates_it(environment, tmp_path):
    with pytest.raises(ConfigError, match="sweephand login --profile three"):
        stacks.find(environment, profile="three")
    with pytest.raises(ConfigError, match="set SWEEPHAND_CLIENT_ID and SWEEPHAND_SECRET, or run `sweephand login`"):
        stacks.find({"SWEEPHAND_PROFILES": str(tmp_path / "none.json")})


def test_only_its_owner_can_read_the_file(environment, tmp_path):
    path = tmp_path / "deep" / "profiles.json"
    assert path.stat().st_mode & 0o777 == 0o600

    path.chmod(0o640)

    with pytest.raises(ConfigError, match=r"can be read by other users \(mode 640\): run `chmod 600"):
        stacks.find(environment)


@pytest.mark.parametrize("text", ["{", "[]", '{"default": 1}'])
def test_an_invalid_profile_file_gives_one_sentence(tmp_path, text):
    path = tmp_path / "profiles.json"
    path.write_text(text)
    path.chmod(0o600)

    with pytest.raises(ConfigError, match=r"profiles\.json"):
        stacks.find({"SWEEPHAND_PROFILES": str(path)})


def test_the_local_option_excludes_other_stacks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".local").mkdir()
    tenants = [{"tenant": each, "clientId": f"{each}.id", "secret": "s"} for each in ("a", "b")]
    (tmp_path / ".local" / "stack.json").write_text(json.dumps({"baseUrl": "http://127.0.0.1:1", "tenants": tenants}))

    assert stacks.find({}, local=True).access.client_id == "a.id"
    assert stacks.find({}, local=True, tenant="b").access.client_id == "b.id"
    with pytest.raises(ConfigError, match="--local excludes --url and --profile"):
        stacks.find({}, local=True, profile="two")


def test_profiles_are_in_the_settings_folder():
    assert str(stacks.profiles_path({"XDG_CONFIG_HOME": "/x"})) == "/x/sweephand/profiles.json"
    assert str(stacks.profiles_path({"HOME": "/h"})).endswith("/.config/sweephand/profiles.json")
