"""Clients of the wiki: what they take for right, also from the null server."""

import threading
from urllib.parse import quote_plus

import pytest
import waitress
from here import null_server  # noqa: F401 (a fixture)

from labbook.systems.wiki.on_host.app import WikiApp
from labbook.targets import key_of
from labbook.workloads.keyvalue.protocols.http import Calls, Refused
from labbook.workloads.keyvalue.wire.pairs import WrongValue, value_of


@pytest.fixture
def pages():
    return {}


@pytest.fixture
def wiki(pages):
    """The port of a wiki over `pages`, a dictionary."""
    server = waitress.create_server(WikiApp(pages), host="127.0.0.1", port=0, threads=2)
    ended = threading.Event()

    def run():
        while not ended.is_set():
            server.asyncore.loop(timeout=0.05, map=server._map, count=1)

    running = threading.Thread(target=run)
    running.start()
    yield server.effective_port
    ended.set()
    running.join(10)
    server.close()


def client(port, value_bytes=40) -> Calls:
    calls = Calls(dict(address="127.0.0.1", port=port, value_bytes=value_bytes, call_seconds=5))
    calls.connect()
    return calls


def test_what_is_written_is_in_the_page_and_is_read(wiki, pages):
    calls = client(wiki)
    for row in (0, 7, 999_999, 7):
        calls.write(row)
        calls.read(row)
    assert pages == {key_of(row).decode(): value_of(key_of(row), 40).decode()
                     for row in (0, 7, 999_999)}
    calls.close()


def test_every_answer_is_looked_at(wiki, pages):
    calls = client(wiki)
    with pytest.raises(WrongValue, match="no such row"):
        calls.read(0)
    for row in (0, 1):
        calls.write(row)
        calls.read(row)
    for wrong in (value_of(key_of(1), 40).decode(), pages["row000000"].replace(".", "!"), "short"):
        good, pages["row000000"] = pages["row000000"], wrong
        with pytest.raises(WrongValue) as caught:
            calls.read(0)
        assert calls.keeps_connection(caught.value)
        pages["row000000"] = good
        calls.read(0)
    pages["row000000"] = "*a heading"
    with pytest.raises(Refused):
        calls.read(0)
    calls.close()


def test_answers_of_other_seconds_are_the_same(wiki, monkeypatch):
    from waitress import task

    calls = client(wiki)
    calls.write(0)
    calls.read(0)
    known = calls._known, calls._saved
    monkeypatch.setattr(task, "build_http_date", lambda when: "Sat, 21 Nov 2037 11:08:56 GMT")
    calls.write(0)
    calls.read(0)
    assert (calls._known, calls._saved) == known
    calls.close()


def test_the_wiki_answers_503_and_the_connection_goes_on(wiki, pages, monkeypatch):
    from labbook.systems.wiki.on_host.pages import StoreFailed

    calls = client(wiki)
    calls.write(0)
    with monkeypatch.context() as patch:
        patch.setattr(WikiApp, "_show", lambda *_: (_ for _ in ()).throw(StoreFailed("down")))
        with pytest.raises(Refused, match="503 Service Unavailable") as caught:
            calls.read(0)
    assert calls.keeps_connection(caught.value)
    calls.read(0)
    calls.close()


def test_an_answer_after_which_the_server_closes_ends_the_connection(wiki):
    calls = client(wiki)
    broken = calls._requests["read"].of(0).replace(b"Host", b"Connection: close\r\nHost")
    calls._send(broken)
    with pytest.raises(ConnectionError, match="closed the connection with .*404") as caught:
        calls._receive(65536)
    assert not calls.keeps_connection(caught.value)
    calls.close()


@pytest.mark.parametrize("value_bytes", [9, 100, 300])
def test_the_null_server_answers_as_the_wiki(null_server, value_bytes):  # noqa: F811
    calls = client(null_server("http", value_bytes).port, value_bytes)
    for row in (0, 7, 0):
        calls.read(row)
        calls.write(row)
    wrong = client(null_server("http", value_bytes + 1).port, value_bytes)
    with pytest.raises(WrongValue):
        wrong.read(0)
    for each in (calls, wrong):
        each.close()


def test_answers_in_pieces_are_put_together(wiki):
    calls = client(wiki)
    whole = calls._receive
    calls._receive = lambda size: whole(1)
    calls.write(3)
    calls.read(3)
    known = calls._known
    calls._receive = whole
    calls.read(3)
    assert calls._known is known
    calls.close()


def test_a_form_holds_the_value_as_a_browser_would_send_it(wiki):
    calls = client(wiki)
    request = bytes(calls._requests["write"].of(12))
    calls.close()
    head, form = request.split(b"\r\n\r\n")
    assert form == b"text=" + quote_plus(value_of(key_of(12), 40)).encode()
    assert b"\r\nContent-Length: %d" % len(form) in head and head.startswith(b"POST /row000012 ")
