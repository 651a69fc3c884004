"""Names of the resource, and of what the operator makes for it."""

from __future__ import annotations

import os
from typing import Final

DEFAULT_GROUP: Final = "cache.example.com"
GROUP_VARIABLE: Final = "MEMCACHED_API_GROUP"
GROUP: Final = os.environ.get(GROUP_VARIABLE) or DEFAULT_GROUP
"""Of the kind, and before the slash of labels and annotations. An install of another group tells its operator; see
`lab.packaging.manifests.of_group`. It is no setting, as the names that are made of it are constants; programs ask
`cli.group_error` before they use one."""
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Memcached"
PLURAL: Final = "memcacheds"
CRD_FILE: Final = f"manifests/crd/{DEFAULT_GROUP}_{PLURAL}.yaml"
"""In which the checkout has the kind."""
CONTAINER: Final = "memcached"
RELOADER: Final = "reloader"
"""Names of the containers that the operator makes."""
RESTART_CONTAINER: Final = "RestartContainer"
"""`restartPolicy` in a container's `resizePolicy`: the node starts it again when that resource changes."""
MOUNTED: Final = "/etc/memcached"
"""The folder in which they have what Secrets hold."""
USER_ID: Final = 11211
"""The user and group that the official image makes for itself, on Debian and on Alpine. By number, as runAsNonRoot
cannot judge a name."""
PORT: Final = 11211
PORT_NAME: Final = "memcached"
"""Of the container's port, and by default of the Service's, so that the SRV records are `_memcached._tcp`."""
PEERS_PORT: Final = 11210
PEERS_PORT_NAME: Final = "peers"
"""On which servers that hand over answer each other and the operator, and its name in the container."""
TELL_PORT: Final = 11209
TELL_PORT_NAME: Final = "tell"
"""On which the operator tells a server that is ending its peers, if its items are to move, and its name."""
FINALIZER: Final = f"finalizer.{GROUP}"
"""Keeps a deleted Memcached until its pods are gone, with --finalizer."""

# The name is also the value of a label and fit to be a Service's: an RFC 1035 label, a letter first, at most 63
# characters. 11 of these ("-" and 10) are left for what a Deployment adds to name its ReplicaSets.
NAME_PATTERN: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
NAME_MAX_LENGTH: Final = 52
