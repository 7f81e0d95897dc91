"""The wiki's pages as a browser gets them."""

from collections.abc import Iterable
from html import escape

from labbook.systems.wiki.on_host.markup import to_html

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
    """A page. Its text's HTML stands between <main> and </main>."""
    return _framed(name, to_html(text), f'<a href="/{name}?edit">edit</a>',
                   f'<a href="/{name}?raw">text</a>', LISTED)


def missing(name: str) -> str:
    return _framed(name, f'<p>There is no page {name} yet. '
                         f'<a href="/{name}?edit">Create it</a></p>', LISTED)


def form(name: str, text: str) -> str:
    # a browser drops the first newline in a textarea
    return _framed(f"Edit {name}", f'<form method="post" action="/{name}">\n'
                   f'<textarea name="text" rows="25" cols="80">\n{escape(text)}</textarea>\n'
                   f'<p><button>Save</button></p>\n</form>', f'<a href="/{name}">back</a>', LISTED)


def listing(names: Iterable[str], more: bool) -> str:
    items = "\n".join(f'<li><a href="/{escape(name)}">{escape(name)}</a></li>' for name in names)
    return _framed("All pages", f"<ul>\n{items}\n</ul>" + ("\n<p>and more</p>" if more else ""))


def told(what: str) -> str:
    return _framed(what, "<p>Nothing was changed.</p>", LISTED)


def _framed(title: str, main: str, *links: str) -> str:
    return FRAME.format(title=escape(title), main=main, links=" ".join(links))
