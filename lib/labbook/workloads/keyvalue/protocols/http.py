"""HTTP to the wiki over one persistent connection: a read gets a page, a write saves one."""

import re
from html import unescape
from urllib.parse import quote_plus

from labbook.targets import key_of
from labbook.workloads.keyvalue.wire.pairs import WrongValue, check_value, value_of
from labbook.workloads.keyvalue.wire.prepared import (
    MOST_BYTES,
    PreparedCalls,
    Template,
    connected,
)

HEAD_END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.I)
DATE = re.compile(rb"\r\ndate: *([^\r]+)\r\n", re.I)  # always of one length
CLOSES = re.compile(rb"\r\nconnection: *close\r\n", re.I)
TEXT = re.compile(rb"<main>\s*<p>([^<]*)</p>\s*</main>")  # of a page of one paragraph
SHOWN, SAVED, ABSENT = b"HTTP/1.1 200 ", b"HTTP/1.1 303 ", b"HTTP/1.1 404 "
GET = "GET /{key} HTTP/1.1\r\nHost: {host}\r\n\r\n"
POST = ("POST /{key} HTTP/1.1\r\nHost: {host}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
        "Content-Length: {length}\r\n\r\n{form}")


class Refused(Exception):
    """The server answered with another status or page than expected."""


class Calls(PreparedCalls):
    NULL_SERVER = "http"

    def __init__(self, spec: dict):
        super().__init__(spec)
        key = key_of(0)
        form = f"text={quote_plus(value_of(key, spec['value_bytes']))}"
        fields = {"key": key.decode(), "host": f"{spec['address']}:{spec['port']}", "form": form,
                  "length": len(form)}
        self._requests = {"read": Template(GET.format(**fields).encode(), 0),
                          "write": Template(POST.format(**fields).encode(), 0)}
        self._saved = None

    def connect(self) -> None:
        address = self.spec["address"], self.spec["port"]
        self._talk_through(connected(address, self.spec["call_seconds"]))
        self._part, self._receive = self._receive, self._whole

    def write(self, row: int) -> None:
        self._send(self._requests["write"].of(row))
        answer = self._receive(MOST_BYTES)
        if self._saved is None or not self._saved.fits(answer, row):
            if not (answer.startswith(SAVED) and b"/%b\r\n" % key_of(row) in answer):
                raise Refused(_status(answer))
            self._saved = _template(answer, row)

    @staticmethod
    def keeps_connection(error: Exception) -> bool:
        return isinstance(error, Refused) or PreparedCalls.keeps_connection(error)

    def _checked(self, answer, row):
        if answer.startswith(ABSENT):
            raise WrongValue("no such row")
        text = TEXT.search(answer)
        if not answer.startswith(SHOWN) or text is None:
            raise Refused(_status(answer))
        check_value(key_of(row), unescape(text[1].decode()).encode(), self.spec["value_bytes"])
        return _template(answer, row)

    def _whole(self, size: int) -> bytes:
        """One answer with its body; ConnectionError when the server closes before or after it."""
        answer = self._more(b"", size)
        while (head := answer.find(HEAD_END)) < 0:
            answer = self._more(answer, size)
        length = LENGTH.search(answer, 0, head + 2)
        if length is None:
            raise ConnectionError(f"no content length with {_status(answer)!r}")
        whole = head + len(HEAD_END) + int(length[1])
        while len(answer) < whole:
            answer = self._more(answer, size)
        if CLOSES.search(answer, 0, head + 2):
            raise ConnectionError(f"the server closed the connection with {_status(answer)!r}")
        return answer

    def _more(self, answer, size) -> bytes:
        more = self._part(size)
        if not more:
            raise ConnectionError("the server closed the connection")
        return answer + more


def _template(answer, row) -> Template:
    date = DATE.search(answer)
    return Template(answer, row, date[1] if date else b"")


def _status(answer) -> str:
    return answer[:answer.index(b"\r\n")].decode(errors="replace")
