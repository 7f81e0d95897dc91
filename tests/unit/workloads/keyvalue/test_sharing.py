"""Pages shared by web servers, or not: counted over HTTP, against the wiki's own application."""

from contextlib import ExitStack, contextmanager
from threading import Thread
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from labbook.systems.wiki.on_host.app import WikiApp
from labbook.workloads.keyvalue.on_host.contents import count_shared


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def served(pages, address, port):
    """A web server of its own on an address of the loopback network."""
    with make_server(address, port, WikiApp(pages), handler_class=Quiet) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class Stale(dict):
    """A server's own copy, which learns of the others' pages only now and then."""

    def get(self, name, default=None):
        return super().get(name, default) if name.endswith("0") else default


@pytest.mark.parametrize("together, right", [(True, 4), (False, 0)])
def test_a_page_counts_when_all_others_have_it(together, right):
    shared = {}
    with ExitStack() as stack:
        port = stack.enter_context(served(shared, "127.0.0.1", 0))
        stack.enter_context(served(shared if together else {}, "127.0.0.2", port))
        assert count_shared(["127.0.0.1", "127.0.0.2"], port, 4) == right
    assert shared == {}


def test_one_stale_server_of_three_spoils_its_pages_only():
    shared = Stale()
    with ExitStack() as stack:
        port = stack.enter_context(served(shared, "127.0.0.1", 0))
        stack.enter_context(served(shared, "127.0.0.2", port))
        assert count_shared(["127.0.0.1", "127.0.0.2"], port, 10) == 1
