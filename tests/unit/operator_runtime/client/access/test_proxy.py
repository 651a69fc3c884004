"""Which proxy is used, as Go programs decide it, and which are refused in plain words."""

from __future__ import annotations

import pytest

from operator_runtime.client.access.addresses import check_proxy, environment_proxy
from operator_runtime.client.access.credentials import NoClusterAccess

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api:6443", {}, None),
        ("https://api:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api:6443", {"https_proxy": PROXY}, PROXY),
        ("https://api:6443", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://api:6443", {"HTTP_PROXY": PROXY, "ALL_PROXY": PROXY}, None),
        ("http://api:8080", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
    ],
)
def test_the_variable_for_the_scheme_is_used_but_never_for_the_loopback(
    server: str, environ: dict[str, str], proxy: str | None
) -> None:
    assert environment_proxy(server, environ) == proxy


@pytest.mark.parametrize(
    ("server", "no_proxy", "direct"),
    [
        ("https://api.example.com", "*", True),
        ("https://api.example.com", "example.com", True),
        ("https://api.example.com", " other.test , EXAMPLE.com ", True),
        ("https://api.example.com", ".example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://notexample.com", "example.com", False),
        ("https://api.example.com", "example.com:443", True),
        ("https://api.example.com:6443", "example.com:443", False),
        ("https://api.example.com", ",", False),
        ("https://10.96.0.1", "10.0.0.0/8", True),
        ("https://10.96.0.1", "10.1.0.0/16", False),
        ("https://10.96.0.1", "10.0.0.0/99", False),
        ("https://10.96.0.1", "10.96.0.1", True),
        ("https://10.96.0.1:6443", "10.96.0.1:443", False),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://[fd00::1]:443", "fd00:0::1", True),
        ("https://[fd00::1]:443", "[fd00::1]:443", True),
    ],
)
def test_no_proxy_takes_domains_addresses_networks_and_ports(server: str, no_proxy: str, direct: bool) -> None:
    proxy = environment_proxy(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy})
    assert proxy == (None if direct else PROXY)


@pytest.mark.parametrize("url", ["socks5://u:hunter2@p:1080", "socks5h://u:hunter2@p:1080", "socks4://u:hunter2@p"])
def test_a_socks_proxy_is_refused_with_the_remedy_and_without_its_password(url: str) -> None:
    with pytest.raises(NoClusterAccess, match=r"the proxy-url of cluster c is a SOCKS .*put an HTTP proxy") as failure:
        check_proxy(url, "the proxy-url of cluster c")
    assert "hunter2" not in str(failure.value)
    with pytest.raises(NoClusterAccess, match="the variable HTTPS_PROXY is a SOCKS proxy"):
        environment_proxy("https://api", {"HTTPS_PROXY": url})


@pytest.mark.parametrize(
    "url", ["ftp://u:hunter2@p", "http://", "http://u:hunter2@p:port", "hunter2", "http://[hunter2"]
)
def test_what_is_no_proxy_url_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(NoClusterAccess, match="is not the URL of a proxy: write http://HOST:PORT") as failure:
        check_proxy(url, "the proxy-url of cluster c")
    assert "hunter2" not in str(failure.value)
