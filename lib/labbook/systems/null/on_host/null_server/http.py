"""HTTP as the wiki has it: a GET gets the page with the value, a POST is answered as saved."""

PAGE = b"<!DOCTYPE html>\n<title>%b</title>\n<main>\n<p>%b</p>\n</main>\n"


def answers(value_of):
    pages, saved = {}, {}

    def answer(message: bytes) -> bytes:
        verb, path, _ = message.split(b" ", 2)
        key, known = path[1:], pages if verb == b"GET" else saved
        if key not in known:
            known[key] = (reply(b"200 OK", PAGE % (key, value_of(key))) if verb == b"GET" else
                          reply(b"303 See Other", b"", b"Location: %b\r\n" % path))
        return known[key]

    return b"", answer


def reply(status: bytes, body: bytes, more: bytes = b"") -> bytes:
    return (b"HTTP/1.1 %b\r\nContent-Type: text/html\r\nContent-Length: %d\r\n%b\r\n%b"
            % (status, len(body), more, body))
