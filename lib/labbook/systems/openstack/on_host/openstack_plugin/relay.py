"""Relays TCP connections. Words: LISTEN=TO, each ADDRESS:PORT; a port listens once TO has answered."""

import asyncio
import sys
from contextlib import suppress

CHUNK_BYTES, LOOK_S = 1 << 18, 0.1


async def relay(listen: tuple, to: tuple) -> None:
    await answer_of(to)
    server = await asyncio.start_server(lambda reader, writer: connected(reader, writer, to), *listen)
    await server.serve_forever()


async def answer_of(to) -> None:
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(*to)
            writer.close()
            return
        await asyncio.sleep(LOOK_S)


async def connected(reader, writer, to) -> None:
    try:
        far_reader, far_writer = await asyncio.open_connection(*to)
    except OSError:
        writer.close()
        return
    await asyncio.gather(copied(reader, far_writer), copied(far_reader, writer))


async def copied(reader, writer) -> None:
    """Copy one direction; its end ends the connection."""
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


def address(word: str) -> tuple:
    host, _, port = word.rpartition(":")
    return host, int(port)


async def main(words) -> None:
    await asyncio.gather(*(relay(*map(address, word.split("="))) for word in words))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
