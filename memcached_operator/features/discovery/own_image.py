"""The image that the operator itself runs, as its own pod has it."""

from __future__ import annotations

import os
import socket
from typing import Final

from memcached_operator.about import PROGRAM
from operator_runtime import Client, Forbidden, NotFound, ObjectKey, plain

_PODS: Final = plain("v1", "Pod", "pods")


class OwnImage:
    """Image of the operator; see `find`."""

    def __init__(self, client: Client, namespace: str, given: str) -> None:
        """
        Args:
            given: by the settings, "" for none.
        """
        self._client = client
        self._namespace = namespace
        self._found = given

    async def find(self) -> str:
        """Find the image; "" where this is no pod, or the operator may not get its own.

        Raises:
            KubeError: the API server could not be reached, or failed.
        """
        if not self._found and self._namespace:
            try:
                name = os.environ.get("POD_NAME") or socket.gethostname()
                pod = (await self._client.get(_PODS, ObjectKey(self._namespace, name))).body
            except (Forbidden, NotFound):
                return ""
            # Others may have been injected.
            images = {each["name"]: each["image"] for each in pod["spec"]["containers"]}
            self._found = images.get(PROGRAM.name) or next(iter(images.values()))
        return self._found
