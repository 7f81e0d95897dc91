"""The wiki's markup, after YukiWiki's, to HTML. All of a page's text is escaped.

`*`, `**`, `***` begin headings and `-`, `--`, `---` items of lists; four dashes are a rule; lines
that begin with a space are kept as they are; an empty line ends a paragraph. Inside a line:
''emphasis'', '''strong''', WikiNames, [[AnyPage]] and http(s) addresses.
"""

import re
from html import escape

PAGE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")  # NAME VARCHAR(100)
INLINE = re.compile(
    r"'''(?P<strong>.+?)'''|''(?P<em>.+?)''"
    rf"|\[\[(?P<page>{PAGE_NAME.pattern})\]\]"
    r"|(?P<url>https?://[^\s<>\"']+[^\s<>\"'.,;:!?)])"
    r"|(?P<wikiname>(?<![A-Za-z0-9])(?:[A-Z][a-z0-9]+){2,}(?![A-Za-z0-9]))")
BLOCK = re.compile(r"(?P<rule>-{4,})\s*|(?P<heading>\*{1,3})\s*(?P<title>.+)"
                   r"|(?P<item>-{1,3})\s*(?P<entry>.+)| (?P<kept>.*)")


def to_html(text: str) -> str:
    """The HTML of a page's text, a block element a line."""
    made = _Blocks()
    for line in text.splitlines():
        made.add(line.rstrip())
    made.end()
    return "\n".join(made.html)


class _Blocks:
    """Lines of one kind are gathered and make one element."""

    def __init__(self):
        self.html, self._kind, self._lines = [], None, []

    def add(self, line: str) -> None:
        found = BLOCK.fullmatch(line)
        if not line:
            self.end()
        elif found is None:
            self._gather("paragraph", line)
        elif found["kept"] is not None:
            self._gather("kept", found["kept"])
        elif found["item"]:
            self._gather("items", (len(found["item"]), found["entry"]))
        else:
            self.end()
            level = len(found["heading"] or "") + 1  # h1 is the page's name
            self.html.append("<hr>" if found["rule"] else
                             f"<h{level}>{inline(found['title'])}</h{level}>")

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

    def _kept(self, lines):
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
    """One line's HTML: everything that is no markup is escaped."""
    html, at = [], 0
    for found in INLINE.finditer(text):
        html.append(escape(text[at:found.start()]))
        html.append(_element(found.lastgroup, found[found.lastgroup]))
        at = found.end()
    html.append(escape(text[at:]))
    return "".join(html)


def _element(kind: str, inside: str) -> str:
    if kind in ("strong", "em"):
        return f"<{kind}>{inline(inside)}</{kind}>"
    address = inside if kind == "url" else f"/{inside}"
    return f'<a href="{escape(address)}">{escape(inside)}</a>'
