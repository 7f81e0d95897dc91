"""Serve the wiki: `python -m labbook.systems.wiki.on_host.program SETTINGS`, a JSON file."""

import importlib
import json
import logging
import platform
import resource
import signal
import sys
from pathlib import Path

import waitress

from labbook.systems.wiki.on_host.app import BODY_BYTES, WikiApp

PAGES = {"thrift": "ThriftPages", "cql": "CQLPages", "mysql": "MySQLPages"}
MOST_CONNECTIONS = 1000
# Bodies are read up to here, though the app refuses those over BODY_BYTES: when a connection is closed
# with much of the body unread, a reset discards the answer.
DRAINED_BYTES = 4 * BODY_BYTES
IDLE_SECONDS = 3600  # clients that have connected wait until all others have


def pages_in(protocol: str, addresses: list[str], port: int, table: str, password: str = ""):
    """The pages in a store that is called by `protocol`; `password`: of targets.USER there."""
    module = importlib.import_module(f"labbook.systems.wiki.on_host.{protocol}_pages")
    return getattr(module, PAGES[protocol])(addresses, port, table, password)


def main(settings_file: str) -> None:
    settings = json.loads(Path(settings_file).read_text())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # on which waitress ends in order
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    logging.basicConfig(level=logging.WARNING)
    # Else it logs a line for each request that waits for a thread.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    waitress.serve(WikiApp(pages_in(**settings["store"])),
                   host=settings["address"], port=settings["port"], threads=settings["threads"],
                   max_request_body_size=DRAINED_BYTES, connection_limit=MOST_CONNECTIONS,
                   channel_timeout=IDLE_SECONDS, asyncore_use_poll=True, ident=version())


def version() -> str:
    from importlib.metadata import version

    return f"waitress/{version('waitress')} Python/{platform.python_version()}"


if __name__ == "__main__":
    main(*sys.argv[1:])
