"""The settings of an operator that serves webhooks, beside those that every operator has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from operator_runtime.process.knobs import Knob
from operator_runtime.process.setting_values import ADDRESS_IN_WORDS, address, not_empty
from operator_runtime.process.settings import RuntimeSettings


class WebhookSettings(RuntimeSettings):
    """Where webhooks are served; `config.ConfigWithWebhooks` is what the operator's process takes of it."""

    webhook_bind_address: Annotated[
        str,
        AfterValidator(address),
        Field(description="Where webhooks are answered, by HTTPS. 0 turns them off."),
        Knob(
            "Webhooks",
            why="The port that controller-runtime's operators and their manifests have.",
            metavar="ADDRESS",
            allowed=ADDRESS_IN_WORDS,
        ),
    ] = ":9443"
    webhook_cert_dir: Annotated[
        Path | None,
        BeforeValidator(not_empty),
        Field(
            description="Folder with tls.crt and tls.key for webhooks, as a mounted Secret has them; read again when "
            "they change. The webhook configuration's caBundle must trust them."
        ),
        Knob(
            "Webhooks",
            why="The API server trusts a certificate that its configuration names, which no default can know.",
            metavar="DIR",
            allowed="a folder's path",
            unset="no webhook can be served",
        ),
    ] = None
