"""Wikis over real stores: pages shared between servers, and a store that fails."""

from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from listeners import check_listeners
from small_labs import describe, new_id

from labbook.errors import SystemFailure
from labbook.lab import Environment, Lab
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.sql import MariaDB
from labbook.systems.wiki.server import Wiki
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.contents import fill
from labbook.workloads.keyvalue.load import keyvalue

STORES = {"mysql": (MariaDB, {}), "thrift": (Cassandra, {"version": "0.7.0"}),
          "cql": (Cassandra, {"version": "5.0.8"})}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def lab():
    description = describe({"store": {"memory": "2G"}, "web1": {}, "web2": {}, "client": {}})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(scope="module", params=STORES)
def store(lab, request):
    kind, settings = STORES[request.param]
    system = kind(lab.host("store"), **settings).up()
    system.create_table()
    yield system
    system.destroy()


@pytest.fixture(scope="module")
def wikis(lab, store):
    both = [Wiki.over(lab.host(name), store).up() for name in ("web1", "web2")]
    check_listeners([wiki.host for wiki in both], "wiki")
    yield both
    for wiki in both:
        wiki.destroy()


def save(wiki, name: str, text: str):
    return wiki.request("POST", f"/{name}", urlencode({"text": text}), FORM)


def test_a_page_saved_through_one_server_is_read_through_the_other_at_once(wikis):
    one, other = wikis
    assert other.request("GET", "/FrontPage").status == 404
    for i in range(10):
        text = f"*Hello {i}\nÄÖ日本 'it''s' \\ \"\n<b>"
        assert save(one, "FrontPage", text).status == 303
        assert other.request("GET", "/FrontPage?raw").text == text
        one, other = other, one
    page = one.request("GET", "/FrontPage")
    assert page.status == 200 and "<h2>Hello 9</h2>" in page.text and "&lt;b&gt;" in page.text
    save(one, "OtherPage", "to be removed")
    assert "/OtherPage" in other.request("GET", "/?pages").text
    save(one, "OtherPage", "")
    assert other.request("GET", "/OtherPage").status == 404
    listed = other.request("GET", "/?pages").text
    assert "/FrontPage" in listed and "/OtherPage" not in listed


def test_the_list_has_every_page_once(wikis):
    pages = [wikis[0].request("POST", f"/Page{i}", "text=x", FORM).status for i in range(12)]
    assert pages == [303] * 12
    listed = wikis[1].request("GET", "/?pages").text
    assert all(listed.count(f'"/Page{i}"') == 1 for i in range(12))


def test_a_text_that_the_table_would_cut_is_refused(wikis, store):
    save(wikis[0], "LongPage", "as it was")
    status = save(wikis[0], "LongPage", "ä" * 51).status
    stored = wikis[1].request("GET", "/LongPage?raw").text
    assert (status, stored) == ((413, "as it was") if store.protocol == "mysql" else (303, "ä" * 51))
    for size in (70_000, 200_000):  # refused only when it was read, so that the answer comes
        assert save(wikis[0], "LongPage", "x" * size).status == 413


def test_clients_read_and_write_the_store_through_a_wiki(lab, wikis, store):
    load = dict(clients=3, requests=300, rows=3, value_bytes=60, warmup_requests=2, seed=1,
                seconds_at_most=20)
    fill(Crew.of(lab), wikis[0], rows=3, value_bytes=60)
    for target in (wikis[1], store):  # the pages are the study's rows
        assert keyvalue(Crew.of(lab), target, op="read", **load).rows.ok.all()
    # as a Ring is: clients are spread over its addresses
    both = SimpleNamespace(host=wikis[0].host, address=wikis[0].address, port=Wiki.port,
                           protocol="http", addresses=[w.address for w in wikis],
                           processes=[w.process for w in wikis])
    for op in ("read", "write"):
        made = keyvalue(Crew.of(lab), both, op=op, **load)
        assert made.rows.ok.all(), made.rows.error.unique()
        assert made.metrics["server_cpu_us_per_call"] > 0       # the kernel counts in 10 ms


def test_facts(wikis):
    facts = wikis[0].facts()
    assert "waitress/" in facts["version"] and 15 < facts["resident_mb"] < 200
    assert facts["threads"] > 10  # its workers and the one that listens


def test_a_killed_store_is_reported_and_used_again_once_it_is_back(wikis, store):
    if store.protocol == "cql":
        pytest.skip("starts for too long; its driver reconnects by itself")
    save(wikis[0], "FrontPage", "kept")
    store.process.kill()
    for wiki in wikis:
        assert wiki.request("GET", "/FrontPage").status == 503
        assert save(wiki, "FrontPage", "lost").status == 503
    store.start()
    if store.protocol == "thrift":  # periodic: what was not yet synced went with the kill
        save(wikis[1], "FrontPage", "kept")
    for wiki in wikis:
        assert wiki.request("GET", "/FrontPage?raw").text == "kept"


def test_it_ends_in_order_and_starts_again(wikis):
    wiki = wikis[1]
    save(wiki, "FrontPage", "stays")
    wiki.stop()
    assert wiki.process.exit_code() == 0
    wiki.start()
    assert wiki.request("GET", "/FrontPage?raw").text == "stays"


def test_a_wiki_without_its_store_does_not_start(lab):
    wiki = Wiki(lab.host("web1"), store="mysql", store_addresses=[lab.host("client").address],
                store_port=3306)
    wiki.destroy()
    wiki.provide()
    wiki.deploy()
    wiki.begin()
    wiki.host.wait_for(wiki._server_pid, "the wiki to listen", 60, wiki.process)
    with pytest.raises(SystemFailure, match="503") as failure:
        wiki.await_answer(3)
    assert "refused" in failure.value.log
    wiki.destroy()
