"""The wiki's pages as HTML: a page's text by its markup, a subset of YukiWiki's, and its frame.

All text is escaped. `*`, `**`, `***` begin headings and `-`, `--`, `---` list items; four dashes are
a rule; lines that begin with a space are preformatted; an empty line ends a paragraph. Inside a line:
''emphasis'', '''strong''', WikiNames, [[AnyPage]] and http(s) addresses.
"""

import re
from collections.abc import Iterable
from html import escape

PAGE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")  # NAME VARCHAR(100)
INLINE = re.compile(
    r"'''(?P<strong>.+?)'''|''(?P<em>.+?)''"
    rf"|\[\[(?P<page>{PAGE_NAME.pattern})\]\]"
    r"|(?P<url>https?://[^\s<>\"']+[^\s<>\"'.,;:!?)])"
    r"|(?P<wikiname>(?<![A-Za-z0-9])(?:[A-Z][a-z0-9]+){2,}(?![A-Za-z0-9]))")
BLOCK = re.compile(r"(?P<rule>-{4,})\s*|(?P<heading>\*{1,3})\s*(?P<title>.+)"
                   r"|(?P<item>-{1,3})\s*(?P<entry>.+)| (?P<pre>.*)")
FRAME = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>
<h1>{title}</h1>
<main>
{main}
</main>
<footer>{links}</footer>
</body>
</html>
"""
LISTED = '<a href="/?pages">all pages</a>'


def shown(name: str, text: str) -> str:
    """The page of this name; the HTML of its text stands between <main> and </main>."""
    return _framed(name, to_html(text), f'<a href="/{name}?edit">edit</a>',
                   f'<a href="/{name}?raw">text</a>', LISTED)


def missing(name: str) -> str:
    """The answer for a page that does not exist."""
    return _framed(name, f'<p>There is no page {name} yet. '
                         f'<a href="/{name}?edit">Create it</a></p>', LISTED)


def form(name: str, text: str) -> str:
    """The form to edit a page."""
    # a browser drops the first newline in a textarea
    return _framed(f"Edit {name}", f'<form method="post" action="/{name}">\n'
                   f'<textarea name="text" rows="25" cols="80">\n{escape(text)}</textarea>\n'
                   f'<p><button>Save</button></p>\n</form>', f'<a href="/{name}">back</a>', LISTED)


def listing(names: Iterable[str], more: bool) -> str:
    """The list of pages; `more`: there are further ones."""
    items = "\n".join(f'<li><a href="/{escape(name)}">{escape(name)}</a></li>' for name in names)
    return _framed("All pages", f"<ul>\n{items}\n</ul>" + ("\n<p>and more</p>" if more else ""))


def message(text: str) -> str:
    """A page that says why nothing was done."""
    return _framed(text, "<p>Nothing was changed.</p>", LISTED)


def _framed(title: str, main: str, *links: str) -> str:
    return FRAME.format(title=escape(title), main=main, links=" ".join(links))


def to_html(text: str) -> str:
    """The HTML of a page's text, one block element a line."""
    made = _Blocks()
    for line in text.splitlines():
        made.add(line.rstrip())
    made.end()
    return "\n".join(made.html)


class _Blocks:
    """Collects consecutive lines of one kind into one element."""

    def __init__(self):
        self.html, self._kind, self._lines = [], None, []

    def add(self, line: str) -> None:
        match = BLOCK.fullmatch(line)
        if not line:
            self.end()
        elif match is None:
            self._gather("paragraph", line)
        elif match["pre"] is not None:
            self._gather("preformatted", match["pre"])
        elif match["item"]:
            self._gather("items", (len(match["item"]), match["entry"]))
        else:
            self.end()
            level = len(match["heading"] or "") + 1  # h1 is the page's name
            self.html.append("<hr>" if match["rule"] else
                             f"<h{level}>{inline(match['title'])}</h{level}>")

    def end(self) -> None:
        if self._kind is not None:
            self.html.append(getattr(self, f"_{self._kind}")(self._lines))
        self._kind, self._lines = None, []

    def _gather(self, kind, line) -> None:
        if self._kind != kind:
            self.end()
        self._kind = kind
        self._lines.append(line)

    def _paragraph(self, lines):
        return f"<p>{'<br>'.join(map(inline, lines))}</p>"

    def _preformatted(self, lines):
        return f"<pre>{escape(chr(10).join(lines))}</pre>"

    def _items(self, entries):
        html, depth = [], 0
        for level, entry in entries:
            level = min(level, depth + 1)
            html.append("<ul>" if level > depth else "</li></ul>" * (depth - level) + "</li>")
            html.append(f"<li>{inline(entry)}")
            depth = level
        return "".join(html) + "</li></ul>" * depth


def inline(text: str) -> str:
    """The HTML of one line; everything except markup is escaped."""
    html, at = [], 0
    for match in INLINE.finditer(text):
        html.append(escape(text[at:match.start()]))
        html.append(_element(match.lastgroup, match[match.lastgroup]))
        at = match.end()
    html.append(escape(text[at:]))
    return "".join(html)


def _element(kind: str, inside: str) -> str:
    if kind in ("strong", "em"):
        return f"<{kind}>{inline(inside)}</{kind}>"
    address = inside if kind == "url" else f"/{inside}"
    return f'<a href="{escape(address)}">{escape(inside)}</a>'
