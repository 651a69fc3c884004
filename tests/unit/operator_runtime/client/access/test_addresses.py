"""What can be the address of a server, and what would end in something that is no error of the network."""

from __future__ import annotations

import pytest

from operator_runtime.client.access.addresses import is_host, server_url

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://api.test:6443", "https://api.test:6443"),
        ("https://api.test:6443/", "https://api.test:6443"),
        ("HTTPS://api.test/k8s/clusters/c-1/", "https://api.test/k8s/clusters/c-1"),
        ("http://[fd00::1]:8080", "http://[fd00::1]:8080"),
        ("https://[fe80::1%25eth0]:6443", "https://[fe80::1%25eth0]:6443"),
        ("https://bücher.test", "https://bücher.test"),
        ("https://under_score.test.", "https://under_score.test."),
        (f"https://{'a' * 63}.test", f"https://{'a' * 63}.test"),
        ("https://api.test/a@b", "https://api.test/a@b"),
        ("https://api.test:6443/a%40b", "https://api.test:6443/a%40b"),
    ],
)
def test_a_url_with_a_place_and_a_path_is_taken(url: str, taken: str) -> None:
    assert server_url(url) == taken


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "names no host"),
        (f"{SECRET}", "names no host"),
        ("https://:6443", "names no host"),
        (f"ftp://{SECRET}.test", "neither http nor https"),
        (f"https://{SECRET}.test:port", "its port is no number"),
        (f"https://[{SECRET}]", "no IPv6 address"),
        (f"https://{SECRET}.test\n", "white space or control"),
        (f"https://{SECRET}\ud800.test", "control characters"),
        (f"https://{SECRET}{'a' * 64}.test", "no host of such a name"),
        (f"https://{SECRET}\\b", "no host of such a name"),
        (f"https://admin:{SECRET}@api.test", "user name or a password"),
        (f"https://@{SECRET}", "user name or a password"),
        (f"https://admin:{SECRET}/x@api.test", "its port is no number"),
        (f"https://https//admin:{SECRET}@api.test", "two slashes after the scheme"),
        (f"https://https:/{SECRET}@api.test", "two slashes after the scheme"),
        (f"https://admin:12/{SECRET}@api.test", "within a password as %2F"),
        (f"https://admin:12#{SECRET}@api.test", "within a password as %2F"),
        ("https://api.test:6443/a@b", "an @ of a path as %40"),
        (f"https://api.test?token={SECRET}", "a query or a fragment"),
    ],
)
def test_what_is_more_or_less_than_that_is_refused_and_never_quoted(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as failure:
        server_url(url)
    assert SECRET not in str(failure.value)
    assert failure.value.__suppress_context__ or failure.value.__context__ is None


@pytest.mark.parametrize("name", ["api.test", "10.0.0.1", "::1", "fe80::1%eth0", "localhost.", "bücher"])
def test_names_and_addresses_are_hosts(name: str) -> None:
    assert is_host(name)


@pytest.mark.parametrize("name", ["", ".a", "a..b", "a" * 64, "a\0b", "a b", "a/b", "\u2100", "\ud800"])
def test_what_the_network_cannot_be_asked_for_is_no_host(name: str) -> None:
    assert not is_host(name)
