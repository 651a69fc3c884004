"""`python -m benchmarks.discovery`: memory and answers of one endpoint with 2,000 clients that ask each second."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

CLIENTS: Final = 2_000
SECONDS: Final = 10
_PORT: Final = 21_211
_NODES: Final = " ".join(f"shop-{n}.shop.default.svc|10.244.0.{n}|11211" for n in range(10))
_MIB: Final = 1024


def _rss_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (each for each in status.splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) / _MIB


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def _client(number: int, latencies_s: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", _PORT)
    await asyncio.sleep(number / CLIENTS)
    for _ in range(SECONDS):
        began_s = time.perf_counter()
        writer.write(b"config get cluster\r\n")
        await reader.readuntil(b"\r\nEND\r\n")
        latencies_s.append(time.perf_counter() - began_s)
        await asyncio.sleep(1.0)
    writer.close()


async def _measure(pid: int) -> None:
    latencies_s: list[float] = []
    print(f"at rest: {_rss_mib(pid):.1f} MiB")
    before_s = _cpu_s(pid)
    clients = [asyncio.create_task(_client(number, latencies_s)) for number in range(CLIENTS)]
    await asyncio.sleep(SECONDS / 2)
    print(f"with {CLIENTS} clients: {_rss_mib(pid):.1f} MiB")
    await asyncio.gather(*clients)
    latencies_s.sort()
    p99_ms = latencies_s[len(latencies_s) * 99 // 100] * 1000
    print(f"{len(latencies_s)} answers, p99 {p99_ms:.1f} ms, {(_cpu_s(pid) - before_s) / SECONDS:.2f} CPUs")


def main() -> None:
    """Print the figures."""
    with TemporaryDirectory() as folder:
        servers = Path(folder) / "cluster"
        servers.write_text(f"1700000000\n{_NODES}\n")
        command = [sys.executable, "-m", "memcached_operator", "discovery", "-f", str(servers), "--port", str(_PORT)]
        with subprocess.Popen(command) as endpoint:
            try:
                time.sleep(1.0)
                asyncio.run(_measure(endpoint.pid))
            finally:
                endpoint.terminate()


if __name__ == "__main__":
    main()
