"""Relayed connections: bytes go both ways, and a port listens once the far end answers."""

import asyncio
import socket
from contextlib import suppress

from labbook.systems.openstack.on_host.openstack_plugin import relay

HERE = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as one:
        one.bind((HERE, 0))
        return one.getsockname()[1]


def is_open(port) -> bool:
    with suppress(OSError), socket.create_connection((HERE, port), 1):
        return True
    return False


async def upper(reader, writer):
    while data := await reader.read(100_000):
        writer.write(data.upper())
        await writer.drain()
    writer.close()


def test_bytes_go_both_ways_once_the_far_end_answers():
    listen, to = free_port(), free_port()
    sent = b"abc" * 500_000

    async def run():
        task = asyncio.create_task(relay.main([f"{HERE}:{listen}={HERE}:{to}"]))
        await asyncio.sleep(3 * relay.LOOK_S)
        early = await asyncio.to_thread(is_open, listen)
        server = await asyncio.start_server(upper, HERE, to)
        while not await asyncio.to_thread(is_open, listen):
            assert not task.done()
        reader, writer = await asyncio.open_connection(HERE, listen)
        writer.write(sent)
        got = await reader.readexactly(len(sent))
        server.close()
        refused = await ended(server, listen)
        task.cancel()
        return early, got, refused

    async def ended(server, port):
        """What a connection gets whose far end is gone: its end, and no error of the relay."""
        reader, _ = await asyncio.open_connection(HERE, port)
        return await reader.read()

    early, got, refused = asyncio.run(run())
    assert not early and got == sent.upper() and refused == b""
