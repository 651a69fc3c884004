"""Links between servers, that delay what passes, each way in order, and that can be cut and mended."""

from __future__ import annotations

import asyncio
import random

from tests.handover.servers import HOST, closed

_BLOCK_BYTES = 1 << 16


class Link:
    """A port that leads to another. While it is cut, nothing passes, and nobody is told."""

    def __init__(self, target: int, delay_s: float, chosen: random.Random) -> None:
        self.port = 0
        self._mended = asyncio.Event()
        self._mended.set()
        self._target, self._delay_s, self._random = target, delay_s, chosen
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self._mended.clear()

    def mend(self) -> None:
        self._mended.set()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            other_reader, other_writer = await asyncio.open_connection(HOST, self._target)
            writers.append(other_writer)
            await asyncio.gather(self._pass(reader, other_writer), self._pass(other_reader, writer))
        except OSError:
            pass  # an end is gone; the other is told by the close
        finally:
            for each in writers:
                await closed(each)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while block := await source.read(_BLOCK_BYTES):
                if self._delay_s:
                    await asyncio.sleep(self._random.uniform(0, self._delay_s))
                await self._mended.wait()
                sink.write(block)
                await sink.drain()
        finally:
            sink.close()
