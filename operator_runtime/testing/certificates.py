"""A certificate for the webhooks of an operator under test, which an API server is told to trust."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

from operator_runtime.serving.self_signed import self_signed
from operator_runtime.serving.serving_tls import CERTIFICATE_FILE, KEY_FILE

_BEGIN = b"-----BEGIN CERTIFICATE"


def certificate_in(directory: Path) -> str:
    """Write a key and a certificate for 127.0.0.1, as the setting `webhook_cert_dir` names them.

    Args:
        directory: an existing folder, such as pytest's `tmp_path`.

    Returns:
        What the webhook configuration's `clientConfig.caBundle` is to say.
    """
    key, _, rest = self_signed(["127.0.0.1"], datetime.now(UTC)).partition(_BEGIN)
    (directory / KEY_FILE).write_bytes(key)
    (directory / CERTIFICATE_FILE).write_bytes(_BEGIN + rest)
    return base64.b64encode(_BEGIN + rest).decode()
