"""The wiki as a WSGI application over any mutable mapping of names to texts.

GET /Name shows a page, /Name?edit its form, /Name?raw its text. POST /Name saves the form's `text`;
an empty text deletes the page. GET /?pages lists the names, / redirects to the front page.
"""

from itertools import islice
from urllib.parse import parse_qs

from labbook.systems.wiki.on_host import html
from labbook.systems.wiki.on_host.html import PAGE_NAME
from labbook.systems.wiki.on_host.pages import StoreFailed, TooLong

FRONT = "FrontPage"
BODY_BYTES = 1 << 16   # of a request, at most
LISTED = 500           # names in the list of pages, at most
FORM = "application/x-www-form-urlencoded"
REASONS = {200: "OK", 302: "Found", 303: "See Other", 400: "Bad Request", 404: "Not Found",
           405: "Method Not Allowed", 413: "Content Too Large", 415: "Unsupported Media Type",
           503: "Service Unavailable"}
HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
SAFE = [("Cache-Control", "no-cache"),  # another server may save the page meanwhile
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "default-src 'none'; form-action 'self'; base-uri 'none'")]


class Refused(Exception):
    """A request that is refused: status, text for the browser, and headers."""

    def __init__(self, status: int, what: str, *headers):
        super().__init__(what)
        self.status, self.headers = status, headers


class WikiApp:
    def __init__(self, pages):
        self.pages = pages

    def __call__(self, environ, start_response):
        method = environ["REQUEST_METHOD"]
        try:
            status, kind, text, *headers = self._answer(method, environ)
        except Refused as error:
            status, kind, text, headers = error.status, HTML, html.message(str(error)), error.headers
        except StoreFailed as error:
            print(f"wiki: {error}", flush=True)  # for the log only: it may have the store's address
            status, kind, text, headers = 503, HTML, html.message("The store does not answer"), []
        body = text.encode()
        start_response(f"{status} {REASONS[status]}", [
            ("Content-Type", kind), ("Content-Length", str(len(body))), *SAFE, *headers])
        return [] if method == "HEAD" else [body]

    def _answer(self, method, environ):
        """Status, content type, text, and further headers."""
        path, query = environ.get("PATH_INFO") or "/", environ.get("QUERY_STRING", "")
        if method not in ("GET", "HEAD", "POST") or (method == "POST" and path == "/"):
            raise Refused(405, "That cannot be done here", ("Allow", "GET, HEAD, POST"))
        if path == "/":
            return self._list() if query == "pages" else (302, TEXT, "", ("Location", f"/{FRONT}"))
        name = path[1:]
        if not PAGE_NAME.fullmatch(name):
            raise Refused(404, "No page can have that name")
        if method == "POST":
            return self._save(name, environ)
        return self._show(name, query)

    def _show(self, name, query):
        text = self.pages.get(name)
        if query == "edit":
            return 200, HTML, html.form(name, text or "")
        if text is None:
            return 404, HTML, html.missing(name)
        return (200, TEXT, text) if query == "raw" else (200, HTML, html.shown(name, text))

    def _save(self, name, environ):
        text = _text(environ)
        try:
            if text.strip():
                self.pages[name] = text
            else:
                self.pages.pop(name, None)
        except TooLong as error:
            raise Refused(413, str(error)) from None
        return 303, TEXT, f"{name} is saved\n", ("Location", f"/{name}")

    def _list(self):
        names = list(islice(self.pages, LISTED + 1))
        return 200, HTML, html.listing(sorted(names[:LISTED]), more=len(names) > LISTED)


def _text(environ) -> str:
    """The form's `text`, with newlines as the only line ends."""
    if environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != FORM:
        raise Refused(415, "Only a form can be saved")
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if not 0 <= length <= BODY_BYTES:
            raise Refused(413, f"More than {BODY_BYTES} bytes are too many")
        fields = parse_qs(environ["wsgi.input"].read(length).decode("ascii"),
                          keep_blank_values=True, errors="strict", max_num_fields=10)
    except ValueError:
        raise Refused(400, "That is not a form") from None
    if len(fields.get("text", ())) != 1:
        raise Refused(400, "The form has no text")
    return fields["text"][0].replace("\r\n", "\n").replace("\r", "\n")
