"""The wiki's markup, its answers over a dictionary, and its reports of a failing store."""

import io
import socket
import stat
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from urllib.parse import urlencode
from wsgiref.validate import validator

import pytest
from here import here_host

from labbook.errors import InputError
from labbook.systems import find
from labbook.systems.wiki.on_host.app import BODY_BYTES, FORM, WikiApp
from labbook.systems.wiki.on_host.html import to_html
from labbook.systems.wiki.on_host.pages import PagesByThread, StoreFailed
from labbook.systems.wiki.server import PROGRAM, Wiki

HOSTILE = """<script>alert(1)</script> FrontPage "q" 'q' & &amp;
*<img src=x onerror=alert(1)>
-''<b>'''[[A"onclick=x]]'''''[[../x]]
 </pre><script>
javascript:alert(1) http://x/"onmouseover="a http://y/'><script> </main>"""


@pytest.mark.parametrize("text, html", [
    ("row000001......", "<p>row000001......</p>"),
    ("*One\n** Two\n***Three", "<h2>One</h2>\n<h3>Two</h3>\n<h4>Three</h4>"),
    ("one\ntwo\n\nthree", "<p>one<br>two</p>\n<p>three</p>"),
    ("-a\n--b\n-c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
    ("---deep", "<ul><li>deep</li></ul>"),
    ("-a\ntext", "<ul><li>a</li></ul>\n<p>text</p>"),
    (" kept  <as>\n  it is", "<pre>kept  &lt;as&gt;\n it is</pre>"),
    ("----", "<hr>"),
    ("''a'' '''b ''c'''' ''",
     "<p><em>a</em> <strong>b &#x27;&#x27;c</strong>&#x27; &#x27;&#x27;</p>"),
    ("See FrontPage.", '<p>See <a href="/FrontPage">FrontPage</a>.</p>'),
    ("iPhone FrontPAGE AbcX Front", "<p>iPhone FrontPAGE AbcX Front</p>"),
    ("[[any-page]] [[no page]]", '<p><a href="/any-page">any-page</a> [[no page]]</p>'),
    ("at http://a.b/c?d=1&e.",
     '<p>at <a href="http://a.b/c?d=1&amp;e">http://a.b/c?d=1&amp;e</a>.</p>'),
    ("", ""),
])
def test_markup(text, html):
    assert to_html(text) == html


class Elements(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_hostile_text_becomes_no_element():
    made = Elements(to_html(HOSTILE)).found
    assert {tag for tag, _ in made} <= {"p", "br", "a", "h2", "ul", "li", "em", "strong", "pre"}
    for tag, attributes in made:
        assert set(attributes) <= ({"href"} if tag == "a" else set())
        assert not attributes or attributes["href"].startswith(("/FrontPage", "http://"))


class Browser:
    def __init__(self, pages):
        self.app, self.pages = validator(WikiApp(pages)), pages

    def ask(self, method, path, query="", body=b"", kind=FORM, **more):
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query,
                   "SERVER_NAME": "wiki", "SERVER_PORT": "80", "SCRIPT_NAME": "",
                   "wsgi.version": (1, 0), "wsgi.input": io.BytesIO(body),
                   "wsgi.errors": io.StringIO(), "wsgi.url_scheme": "http",
                   "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
                   "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": kind, **more}
        answer = SimpleNamespace()

        def start(status, headers, error=None):
            answer.status, answer.headers = int(status.split()[0]), dict(headers)

        parts = self.app(environ, start)
        answer.text = b"".join(parts).decode()
        parts.close()
        return answer

    def save(self, name, text):
        return self.ask("POST", f"/{name}", body=urlencode({"text": text}).encode())


@pytest.fixture
def browser():
    return Browser({})


def test_a_page_from_creation_to_deletion(browser):
    absent = browser.ask("GET", "/FrontPage")
    assert absent.status == 404 and '<a href="/FrontPage?edit">Create it</a>' in absent.text
    saved = browser.save("FrontPage", "*Hello\r\nto ÄÖ日本 & <you>")
    assert (saved.status, saved.headers["Location"]) == (303, "/FrontPage")
    assert browser.pages == {"FrontPage": "*Hello\nto ÄÖ日本 & <you>"}
    page = browser.ask("GET", "/FrontPage")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "<main>\n<h2>Hello</h2>\n<p>to ÄÖ日本 &amp; &lt;you&gt;</p>\n</main>" in page.text
    raw = browser.ask("GET", "/FrontPage", "raw")
    assert raw.text == browser.pages["FrontPage"]
    assert raw.headers["Content-Type"].startswith("text/plain")
    form = browser.ask("GET", "/FrontPage", "edit")
    assert ">\n*Hello\nto ÄÖ日本 &amp; &lt;you&gt;</textarea>" in form.text
    assert '<a href="/FrontPage">FrontPage</a>' in browser.ask("GET", "/", "pages").text
    assert browser.save("FrontPage", " \r\n").status == 303 and browser.pages == {}


def test_the_form_of_a_new_page_is_empty_and_the_root_redirects_to_the_front_page(browser):
    assert ">\n</textarea>" in browser.ask("GET", "/NewPage", "edit").text
    root = browser.ask("GET", "/")
    assert (root.status, root.headers["Location"]) == (302, "/FrontPage")


def test_the_form_shows_the_saved_text(browser):
    browser.save("FrontPage", f"\n\n</textarea>{HOSTILE}")
    form = browser.ask("GET", "/FrontPage", "edit").text
    inside = form[form.index("<textarea"):form.index("</textarea>")]
    assert {tag for tag, _ in Elements(inside).found} == {"textarea"}
    for query in ("", "edit"):
        page = browser.ask("GET", "/FrontPage", query)
        assert "script" not in {tag for tag, _ in Elements(page.text).found}
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert page.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["<script>", "a b", "../x", "x" * 101, "ä", 'a"b', "a/b", "a\n"])
def test_no_other_names(browser, name):
    path = "/" + name.encode().decode("latin-1")  # as WSGI has it
    for method in ("GET", "POST"):
        assert browser.ask(method, path, body=b"text=x").status == 404
    assert browser.pages == {}


@pytest.mark.parametrize("status, given", [
    (405, {"method": "DELETE"}),
    (405, {"path": "/"}),
    (415, {"kind": "application/json", "body": b"{}"}),
    (400, {"body": b"other=x"}),
    (400, {"body": b"text=a&text=b"}),
    (400, {"body": b"text=%ff"}),
    (400, {"body": b"text=\xff"}),
    (400, {"body": b"&".join([b"a=b"] * 20)}),
    (413, {"body": b"text=x", "CONTENT_LENGTH": str(BODY_BYTES + 1)}),
])
def test_refused_requests_change_nothing(browser, status, given):
    browser.pages["FrontPage"] = "as it was"
    answer = browser.ask(**{"method": "POST", "path": "/FrontPage", "body": b"text=new"} | given)
    assert answer.status == status and browser.pages == {"FrontPage": "as it was"}


def test_a_head_is_a_get_without_its_body(browser):
    browser.save("FrontPage", "text")
    head, get = (browser.ask(method, "/FrontPage") for method in ("HEAD", "GET"))
    assert (head.status, head.headers, head.text) == (get.status, get.headers, "")


def test_the_list_of_pages_ends(browser):
    browser.pages.update((f"Page{i}", "x") for i in range(700))
    listed = browser.ask("GET", "/", "pages").text
    assert listed.count("<li>") == 500 and "and more" in listed


class Gone(Exception):
    """Of a driver: the connection is."""


class Store(PagesByThread):
    """Over a dictionary that `broken` makes unreachable; counts connections."""

    ERRORS = (Gone, TimeoutError, LookupError)
    longest_bytes = 20

    def __init__(self, *addresses):
        super().__init__(list(addresses), 1, "pairs")
        self.values, self.connected, self.broken, self.down = {}, [], None, ()

    def connect(self, address):
        if address in self.down:
            raise Gone(address)
        self.connected.append(address)
        return self

    def lost(self, error):
        return not isinstance(error, LookupError)

    def close(self):
        pass

    def fetch(self, name):
        error, self.broken = self.broken, None
        if error:
            raise error
        return self.values.get(name)

    def store(self, name, value):
        self.values[name] = value

    def remove(self, name):
        del self.values[name]

    def names_after(self, name):
        return [n for n in sorted(self.values) if n > (name or "")][:2]


def test_the_mapping_is_a_mapping():
    pages = Store("a")
    pages.update({f"p{i}": "ä" for i in range(5)})
    assert list(pages) == [f"p{i}" for i in range(5)] and len(pages) == 5
    assert pages["p3"] == "ä" and "p9" not in pages and pages.get("p9") is None
    assert pages.pop("p3") == "ä" and pages.pop("p3", None) is None
    assert pages.values["p1"] == "ä".encode()


def test_a_lost_connection_is_replaced_and_a_call_that_timed_out_is_not_repeated():
    pages = Store("a", "b")
    pages["x"] = "1"
    pages.broken = Gone()
    assert pages["x"] == "1" and pages.connected == ["a", "b"]
    pages.broken = TimeoutError("late")
    with pytest.raises(StoreFailed, match="late"):
        pages["x"]
    assert pages["x"] == "1" and len(pages.connected) == 3
    pages.broken = LookupError("refused")  # an answer: the connection stays
    with pytest.raises(StoreFailed, match="refused"):
        pages["x"]
    assert pages["x"] == "1" and len(pages.connected) == 3


def test_an_address_that_does_not_answer_is_skipped():
    pages = Store("a", "b")
    pages.down = ("a",)
    pages["x"] = "1"
    assert pages.connected == ["b"]


def test_a_failing_store_is_reported_without_its_address(capsys):
    pages = Store("198.18.9.9")
    pages.down = ("198.18.9.9",)
    browser = Browser(pages)
    for answer in (browser.ask("GET", "/FrontPage"), browser.save("FrontPage", "x"),
                   browser.ask("GET", "/", "pages")):
        assert answer.status == 503 and "198.18" not in answer.text
    assert "198.18.9.9" in capsys.readouterr().out


def test_a_text_too_long_for_the_store_is_refused_and_not_cut():
    browser = Browser(Store("a"))
    browser.save("FrontPage", "short")
    refused = browser.save("FrontPage", "ä" * 11)
    assert refused.status == 413 and "at most 20 bytes here, this has 22" in refused.text
    assert browser.pages["FrontPage"] == "short"


def test_an_answer_that_comes_before_all_was_sent_is_read(monkeypatch):
    ours, servers = socket.socketpair()
    servers.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo long")
    servers.close()  # what is sent from now on breaks the pipe
    monkeypatch.setattr(Wiki, "channel", lambda self: ours)
    wiki = Wiki(SimpleNamespace(root=PurePosixPath("/"), address="198.18.9.9"))
    answer = wiki.request("POST", "/FrontPage", "text=x")
    assert (answer.status, answer.text) == (413, "too long")

    ours, servers = socket.socketpair()
    servers.close()
    with pytest.raises(ConnectionError):
        wiki.request("POST", "/FrontPage", "text=x")


def test_the_program_imports_only_packages_that_hosts_get():
    script = f"""import sys
class Barred:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("yaml", "jsonschema", "fabric", "paramiko", "pandas"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Barred())
from {PROGRAM} import PAGES, pages_in
print([type(pages_in(store, ["198.18.0.1"], 1, "pairs")).__name__ for store in PAGES])"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "['ThriftPages', 'CQLPages', 'MySQLPages']\n", done.stderr


def test_only_its_user_can_read_the_stores_password(tmp_path):
    store = SimpleNamespace(protocol="mysql", port=3306, address="10.0.0.9", password="of-the-store")
    wiki = Wiki.over(here_host(tmp_path, "web1"), store)
    wiki.provide()
    wiki.deploy()
    (file,) = (file for file in Path(wiki.home).iterdir() if store.password in file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert store.password not in repr(wiki.settings)


def test_it_is_a_system_with_checked_settings(tmp_path):
    assert find("wiki") is Wiki
    host = SimpleNamespace(name="web", address="198.18.0.9", root=tmp_path)
    store = SimpleNamespace(address="198.18.0.2", port=9160, protocol="thrift")
    assert Wiki.over(host, store).settings.store_addresses == ["198.18.0.2"]
    store.addresses = ["198.18.0.2", "198.18.0.3"]
    assert Wiki.over(host, store, threads=3).settings.store_addresses == store.addresses
    with pytest.raises(InputError, match="store: 'http' is not allowed"):
        Wiki(host, store="http")
    with pytest.raises(InputError, match="store_port: a wiki needs it"):
        Wiki(host, store="mysql", store_addresses=["198.18.0.2"]).deploy()
