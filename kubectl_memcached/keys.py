"""`get`, `delete` and `owner`: one key, at all servers, or at the one that a client chooses."""

from __future__ import annotations

from typing import Any

from kubectl_memcached.cluster import UserCluster
from kubectl_memcached.hashing import CLIENTS
from kubectl_memcached.objects import ShownMemcached
from kubectl_memcached.words import CommandOutput, PluginError, printable_text, seconds_text, size_text
from memcached_operator.api.names import PORT


async def get(cluster: UserCluster, memcached: ShownMemcached, key: bytes) -> CommandOutput:
    """The value of a key at each server that has one."""
    results = await cluster.each(memcached, lambda _, connection: connection.value(key))
    text, servers = "", []
    for name, found in results.found.items():
        entry: dict[str, Any] = {"server": name, "found": found is not None}
        if found is None:
            text += f"{name}: not there\n"
        else:
            content, left_s = found
            expires = "never expires" if left_s < 0 else f"expires in {seconds_text(left_s)}"
            text += f"{name}: {size_text(len(content))}, {expires}\n{printable_text(content)}\n"
            entry["expiresInSeconds"] = None if left_s < 0 else left_s
            entry["value"] = content.decode(errors="backslashreplace")
        servers.append(entry)
    return CommandOutput(text, {"servers": servers}).with_failures(results.failures)


async def delete(cluster: UserCluster, memcached: ShownMemcached, key: bytes) -> CommandOutput:
    """Delete a key at each server.

    Raises:
        PluginError: servers copy items from each other, so that it would come back.
    """
    await cluster.check_at_rest(memcached)
    results = await cluster.each(memcached, lambda _, connection: connection.deleted([key]))
    text = "".join(f"{name}: {'deleted' if found else 'not there'}\n" for name, found in results.found.items())
    servers = [{"server": name, "deleted": found == 1} for name, found in results.found.items()]
    return CommandOutput(text, {"servers": servers}).with_failures(results.failures)


async def owner(
    cluster: UserCluster, memcached: ShownMemcached, key: bytes, client: str, *, by_address: bool
) -> CommandOutput:
    """The server that a client has a key at, by `status.serverList` or by the addresses of the pods."""
    pods = {}
    if by_address:
        found = await cluster.pods(memcached)
        if missing := [pod.name for pod in found if pod.why_not]:
            raise PluginError(
                f"servers of {memcached.name} are not ready ({', '.join(missing)}), so that clients may know others;"
                " try again once they are"
            )
        pods = {f"[{pod.address}]:{PORT}" if ":" in pod.address else f"{pod.address}:{PORT}": pod.name for pod in found}
    servers = list(pods) or list(memcached.status.serverList)
    if not servers:
        raise PluginError(f"Memcached {memcached.name} has no server list yet; `describe {memcached.name}` says why")
    server = servers[CLIENTS[client].owner(servers, key)]
    pod = pods.get(server, "")
    text = f"{server}{f' ({pod})' if pod else ''}\n"
    return CommandOutput(text, {"client": client, "server": server, "pod": pod or None, "servers": servers})
