"""Features of a Memcached beyond servers and their list, each in a room of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.pod import Pod
from memcached_operator.features.extstore import extstore
from memcached_operator.features.handover import handover_proxy
from memcached_operator.features.tls import secrets
from memcached_operator.features.warm_restart import warm_restart

POD_PARTS: Final[tuple[tuple[tuple[str, ...], Callable[[Pod, Spec], Pod]], ...]] = (
    (("tls", "auth"), secrets.pod),
    (("extstore",), extstore.pod),
    (("handover",), handover_proxy.pod),
    (("warmRestart",), warm_restart.pod),
)
"""What each feature adds to a pod, in this order, where one of these fields of the specification is set."""
