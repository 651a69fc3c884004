"""Load by emcache, which follows an endpoint, until standard input ends; each line is a failure."""

import asyncio
import sys

import emcache


async def main(host: str, port: int) -> None:
    """Stay until standard input ends."""
    client = await emcache.create_client(
        [emcache.MemcachedHostAddress(host, port)],
        autodiscovery=True,
        autodiscovery_poll_interval=1.0,
        timeout=5.0,
    )
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    while not ended.done():
        for number in range(100):
            key = b"key-%d" % number
            try:
                await client.set(key, b"value")
                await client.get(key)
            except Exception as error:
                print(repr(error), flush=True)
        await asyncio.sleep(0.02)
    await client.close()


if __name__ == "__main__":
    endpoint = sys.argv[1].rpartition(":")
    asyncio.run(main(endpoint[0], int(endpoint[2])))
