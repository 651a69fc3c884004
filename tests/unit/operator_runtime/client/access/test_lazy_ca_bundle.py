"""aiohttp's own TLS context, which this project's connections do not use."""

from __future__ import annotations

import subprocess
import sys

_SHOW = """
import operator_runtime.client.api_client
import ssl
from aiohttp.connector import _SSL_CONTEXT_VERIFIED as context
print(context.cert_store_stats()["x509_ca"], context.verify_mode.name, context.check_hostname)
context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="example.com")
print(context.cert_store_stats()["x509_ca"] == ssl.create_default_context().cert_store_stats()["x509_ca"])
"""


def test_the_machine_s_authorities_are_loaded_with_the_first_connection_and_not_before() -> None:
    shown = subprocess.run([sys.executable, "-c", _SHOW], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["0 CERT_REQUIRED True", "True"]
