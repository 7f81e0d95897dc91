"""Whether web servers share their pages: what is saved through one is asked of all the others."""

import http.client
import uuid
from urllib.parse import urlencode

CALL_SECONDS = 10


def shared_pages(crew, target, pages: int = 20) -> float:
    """The share of `pages` pages, saved through one of the target's addresses after the other, that
    every other address gave at once and unaltered. The pages are taken away again."""
    found = crew.run(count_shared, [list(target.addresses)], [target.port], [pages],
                     timeout=CALL_SECONDS * pages)
    return found[0] / pages


def count_shared(addresses, port, pages) -> int:
    """Runs on a client host: how many pages were right wherever they were asked for."""
    asked = {address: http.client.HTTPConnection(address, port, timeout=CALL_SECONDS)
             for address in addresses}
    try:
        return sum(_is_shared(asked, addresses[i % len(addresses)], f"/Shared{i:04d}")
                   for i in range(pages))
    finally:
        for connection in asked.values():
            connection.close()


def _is_shared(asked, saver, page) -> bool:
    text = uuid.uuid4().hex
    _save(asked[saver], page, text)
    right = all(_text(asked[other], page) == text for other in asked if other != saver)
    _save(asked[saver], page, "")
    return right


def _save(connection, page, text) -> None:
    connection.request("POST", page, urlencode({"text": text}),
                       {"Content-Type": "application/x-www-form-urlencoded"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 303:
        raise RuntimeError(f"{page} was not saved: {answer.status} {answer.reason}")


def _text(connection, page) -> str:
    connection.request("GET", f"{page}?raw")
    return connection.getresponse().read().decode()
