from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.base.sources import SystemClock
from sweephand.domain.run import Reason
from sweephand.server.security.guard import (
    MAX_URL,
    CallFailed,
    Deadline,
    GuardSettings,
    Outbound,
    allowed,
    check_url,
    is_public,
    loopback_ports,
    networks,
    resolve,
    unwrapped,
)

CLOCK = SystemClock()
STRICT = GuardSettings()
OPEN = GuardSettings(private=networks("10.0.0.0/8, fc00::/7"), plain_http=True)
LOCAL = GuardSettings(private=networks("127.0.0.0/8,::1/128"), plain_http=True)
EVERYTHING = GuardSettings(private=networks("0.0.0.0/0,::/0"), plain_http=True)


def refused(url: str, settings: GuardSettings = STRICT) -> str:
    with pytest.raises(InvalidRequest) as caught:
        check_url(url, settings)
    assert caught.value.code == "INVALID_FIELD"
    return caught.value.reason


def outbound(*addresses: str, settings: GuardSettings = STRICT) -> Outbound:
    """Makes a resolver that knows these addresses for every name."""

    def lookup(_host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    return Outbound(settings, lookup)


def soon(seconds: float = 5.0) -> Deadline:
    return Deadline(CLOCK.monotonic() + seconds, CLOCK.monotonic)


def resolved(url: str, out: Outbound, *, with_credentials: bool = False) -> list[str]:
    return [
        str(found) for found in resolve(check_url(url, out.settings), out, soon(), with_credentials=with_credentials)
    ]


@pytest.mark.parametrize(
    ("url", "host", "port", "target"),
    [
        ("https://example.org", "example.org", 443, "/"),
        ("HTTPS://Example.ORG/", "example.org", 443, "/"),
        ("https://example.org.", "example.org", 443, "/"),
        ("https://example.org:8443/a?b=c&d=%20#part", "example.org", 8443, "/a?b=c&d=%20"),
        ("https://example.org?x", "example.org", 443, "/?x"),
        ("https://8.8.8.8/x", "8.8.8.8", 443, "/x"),
        ("https://[2606:4700::1111]:444/", "2606:4700::1111", 444, "/"),
        ("https://[2606:4700:0:0::1111]/", "2606:4700::1111", 443, "/"),
        ("https://[::ffff:8.8.8.8]/", "8.8.8.8", 443, "/"),
        ("https://b\u00fccher.example/\u00e4?\u00fc={x}", "xn--bcher-kva.example", 443, "/%C3%A4?%C3%BC=%7Bx%7D"),
        ("https://\uff45xample.org/", "example.org", 443, "/"),
        ("https://example\u3002org/", "example.org", 443, "/"),
        ("https://a_b.example.org/../x//y", "a_b.example.org", 443, "/../x//y"),
        ("https://1.example.org/", "1.example.org", 443, "/"),
    ],
)
def test_a_url_becomes_a_target(url: str, host: str, port: int, target: str) -> None:
    found = check_url(url, STRICT)

    assert (found.scheme, found.host, found.port, found.target) == ("https", host, port, target)
    assert (found.literal is not None) == (host[0] in "82" and host != "8.example")


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("https://example.org/", "example.org"),
        ("https://example.org:443/", "example.org"),
        ("https://example.org:444/", "example.org:444"),
        ("http://example.org:443/", "example.org:443"),
        ("https://[2606:4700::1111]:444/", "[2606:4700::1111]:444"),
    ],
)
def test_the_host_header_names_the_port_only_where_it_differs(url: str, header: str) -> None:
    assert check_url(url, OPEN).host_header == header


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "//example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "https:/example.org",
        "https:example.org",
        "javascript:alert(1)",
        "https://",
        "https:///x",
        "https://?x",
        "https://user@example.org/",
        "https://user:pass@example.org/",
        "https://example.org@evil.org/",
        "https://example.org\\@evil.org/",
        "https://example.org:/",
        "https://example.org:0/",
        "https://example.org:65536/",
        "https://example.org:65558/",
        "https://example.org:080/",
        "https://example.org:8e1/",
        "https://example.org:+80/",
        "https://example.org:\u0663/",
        "https://example.org:80:80/",
        "https://[2606:4700::1111/",
        "https://2606:4700::1111/",
        "https://[2606:4700::1111]x/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[8.8.8.8]/",
        "https://[]/",
        "https://exa mple.org/",
        "https://example.org/a b",
        "https://example.org/\n",
        "https://example.org/\x00",
        "https://example.org/\r\nX: y",
        "https://example.org/\x7f",
        "https://example.org/\x85",
        "https://example.org/\u2028",
        "https://example.org/\ud800",
        "https://exa%6dple.org/",
        "https://a..b.org/",
        "https://.example.org/",
        "https://example.org../",
        "https://-a.example.org/",
        "https://a-.example.org/",
        "https://" + "a" * 64 + ".org/",
        "https://" + ".".join(["a" * 60] * 5) + "/",
        "https://xn--\u00fc/",
        "https://\u00ad.org/",
        "https://xn--/",
        "https://xn--.org/",
        "https://example.org/" + "x" * MAX_URL,
    ],
)
def test_an_invalid_url_is_refused(url: str) -> None:
    assert refused(url, EVERYTHING)
    assert refused(url, STRICT)


@pytest.mark.parametrize(
    "host",
    [
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "1.2.3.4.5",
        "256.1.1.1",
        "example.1",
        "example.0x",
        "\u2460\u2461\u2466.0.0.1",
        "127\u30020\u30020\u30021",
        "\uff11\uff12\uff17.0.0.1",
        "\u0661\u0662\u0667.0.0.1",
    ],
)
def test_spellings_that_only_some_programs_read_as_an_address_are_refused(host: str) -> None:
    assert refused(f"https://{host}/", STRICT)


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "0177.0.0.1"])
def test_they_are_refused_even_where_loopback_is_allowed(host: str) -> None:
    assert refused(f"http://{host}/", LOCAL)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254"),
        *("169.254.170.2", "169.254.100.1", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.9", "192.0.0.192"),
        *("192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"),
        *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16"),
        *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1"),
        *("100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254"),
        *("fd00:ec2::23", "fe80::1", "fec0::1", "ff02::1"),
    ],
)
def test_no_address_of_the_list_is_public(address: str) -> None:
    host = f"[{address}]" if ":" in address else address

    assert not is_public(ipaddress.ip_address(address))
    assert "not public" in refused(f"https://{host}/")


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_ordinary_addresses_are_public(address: str) -> None:
    assert allowed(ipaddress.ip_address(address), STRICT)


@given(st.ip_addresses())
def test_nothing_that_python_knows_as_private_is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if is_public(address):
        address = unwrapped(address)
        assert not address.is_private
        assert not address.is_multicast
        assert not address.is_reserved
        assert not address.is_link_local


@pytest.mark.parametrize(
    "address",
    [
        *(
            "0.0.0.0",
            "169.254.169.254",
            "169.254.170.23",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
        ),
        *(
            "::",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "::ffff:169.254.169.254",
        ),
    ],
)
def test_metadata_services_are_never_allowed(address: str) -> None:
    assert not allowed(ipaddress.ip_address(address), EVERYTHING)


def test_allowed_private_networks_open_just_themselves() -> None:
    assert check_url("http://10.1.2.3/", OPEN).host == "10.1.2.3"
    assert check_url("http://[fc00::1]/", OPEN).host == "fc00::1"
    assert refused("http://127.0.0.1/", OPEN)
    assert refused("http://192.168.0.1/", OPEN)
    assert check_url("http://[::ffff:127.0.0.1]:81/", LOCAL).host == "127.0.0.1"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "a.localhost"])
def test_localhost_needs_an_allowed_loopback(host: str) -> None:
    assert "private network" in refused(f"https://{host}/", STRICT)
    assert "private network" in refused(f"https://{host}/", OPEN)
    assert check_url(f"http://{host}:8/", LOCAL).port == 8


@pytest.mark.parametrize(
    "host", ["intranet", "a.local", "a.internal", "a.b.localdomain", "router.home.arpa", "metadata.google.internal"]
)
def test_names_of_private_networks_need_an_allowed_one(host: str) -> None:
    assert "private network" in refused(f"https://{host}/", STRICT)
    assert "private network" in refused(f"https://{host}/", LOCAL)
    assert check_url(f"https://{host}/", OPEN).host == host


def test_plain_http_needs_its_parameter() -> None:
    assert "PlainHttpTargets" in refused("http://example.org/")
    assert check_url("http://example.org/", OPEN).port == 80


def test_the_stacks_own_ports_are_closed_although_loopback_is_open() -> None:
    ports = loopback_ports(
        ["http://127.0.0.1:4570", "127.0.0.1:9001", "localhost", "https://sqs.eu-west-1.amazonaws.com"]
    )
    settings = GuardSettings(LOCAL.private, plain_http=True, closed_loopback_ports=ports)
    out = outbound("127.0.0.1", settings=settings)

    assert ports == {4570, 9001, 80}
    assert "own" in refused("http://127.0.0.1:9001/", settings)
    with pytest.raises(CallFailed) as caught:
        resolved("http://localhost:4570/", out)
    assert caught.value.reason is Reason.GUARD
    assert resolved("http://localhost:4571/", out) == ["127.0.0.1"]


@given(
    st.text(max_size=60)
    | st.text("htps:/[]@.0123456789abcdefx%-\u3002\u2460 \\?#", max_size=60).map(lambda rest: "https://" + rest)
)
def test_any_text_raises_only_invalid_request(url: str) -> None:
    try:
        target = check_url(url, STRICT)
    except InvalidRequest:
        return
    assert target.host.isascii()
    assert target.target.startswith("/")
    assert target.target.isascii()
    assert not set(target.target) & set(" \r\n\t\\")
    if target.literal is None:
        with pytest.raises(ValueError, match="does not appear"):
            ipaddress.ip_address(target.host)


@given(st.sampled_from("https://example.org/\u00e4?x={}[]|^`<>\"'"), st.text(max_size=10))
def test_checking_is_stable(url: str, tail: str) -> None:
    """A URL that was accepted once is accepted in its checked form, and means the same."""
    try:
        first = check_url(f"https://example.org/{url}{tail}", STRICT)
    except InvalidRequest:
        return

    again = check_url(f"https://{first.host}:{first.port}{first.target}", STRICT)

    assert again == first


def test_a_name_is_looked_up_once_and_all_its_addresses_are_judged() -> None:
    assert resolved("https://example.org/", outbound("8.8.8.8", "2606:4700::1111", "8.8.8.8")) == [
        "8.8.8.8",
        "2606:4700::1111",
    ]

    with pytest.raises(CallFailed) as caught:
        resolved("https://example.org/", outbound("8.8.8.8", "10.0.0.1"))

    assert caught.value.reason is Reason.GUARD
    assert "10.0" not in caught.value.message


def test_a_mapped_answer_of_the_resolver_is_judged_by_what_is_inside() -> None:
    with pytest.raises(CallFailed):
        resolved("https://example.org/", outbound("::ffff:10.0.0.1"))
    assert resolved("https://example.org/", outbound("::ffff:8.8.8.8")) == ["8.8.8.8"]


def test_an_address_is_not_looked_up() -> None:
    def lookup(*_: object, **__: object) -> list[tuple[Any, ...]]:
        raise AssertionError("looked up")

    assert resolved("https://8.8.8.8/", Outbound(STRICT, lookup)) == ["8.8.8.8"]


def test_credentials_never_go_over_plain_http_to_a_public_address() -> None:
    public = outbound("8.8.8.8", settings=OPEN)
    private = outbound("10.0.0.1", settings=OPEN)

    with pytest.raises(CallFailed, match="credentials"):
        resolved("http://example.org/", public, with_credentials=True)
    assert resolved("http://example.org/", public) == ["8.8.8.8"]
    assert resolved("https://example.org/", public, with_credentials=True) == ["8.8.8.8"]
    assert resolved("http://example.org/", private, with_credentials=True) == ["10.0.0.1"]


@pytest.mark.parametrize("failure", [socket.gaierror(-2, "no"), OSError("x"), UnicodeError("label too long")])
def test_a_failing_resolver_is_a_dns_failure(failure: Exception) -> None:
    def lookup(*_: object, **__: object) -> Iterator[tuple[Any, ...]]:
        raise failure

    with pytest.raises(CallFailed) as caught:
        resolved("https://example.org/", Outbound(STRICT, lookup))

    assert caught.value.reason is Reason.DNS
    assert not caught.value.timed_out


def test_a_name_without_addresses_is_a_dns_failure() -> None:
    with pytest.raises(CallFailed) as caught:
        resolved("https://example.org/", outbound())

    assert caught.value.reason is Reason.DNS


def test_a_hanging_resolver_ends_with_the_deadline() -> None:
    release = threading.Event()

    def lookup(*_: object, **__: object) -> list[tuple[Any, ...]]:
        release.wait(10)
        return []

    begun = CLOCK.monotonic()
    with pytest.raises(CallFailed) as caught:
        resolve(check_url("https://example.org/", STRICT), Outbound(STRICT, lookup), soon(0.1), with_credentials=False)
    took_s = CLOCK.monotonic() - begun
    release.set()

    assert caught.value.reason is Reason.DNS
    assert took_s < 9  # it would give up after ten


def test_the_origin_tells_destinations_apart() -> None:
    def origin(url: str) -> tuple[str, str, int]:
        return check_url(url, OPEN).origin

    assert origin("https://Example.org/a") == origin("https://example.org.:443/b?c")
    assert len({origin("https://example.org"), origin("http://example.org"), origin("https://example.org:444")}) == 3


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "nonsense", "10.0.0.0/8;11.0.0.0/8"])
def test_a_wrong_network_parameter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        networks(text)


def test_no_networks_are_no_networks() -> None:
    assert networks("") == networks(" , ") == ()


@pytest.mark.parametrize(
    "url", ["https://" + "a." * 1_000, "https://" + "[" * 2_000, "https://x/" + "%" * 2_000, "https://" + "-" * 2_000]
)
def test_no_text_takes_long(url: str) -> None:
    begun = time.process_time()
    for _ in range(20):
        with contextlib.suppress(InvalidRequest):
            check_url(url, STRICT)
    assert time.process_time() - begun < 1
