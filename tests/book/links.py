"""Links of built pages, and whether they lead anywhere."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to (`links`: href and src), its anchors, and what it loads."""

    def __init__(self, path: Path):
        super().__init__()
        self.path, self.links, self.anchors, self.loads = path, [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if given.get("href") and tag == "a":
            self.links.append(given["href"])
        loaded = given.get("src") or (given.get("href") if tag == "link" else None)
        if loaded:
            self.loads.append(loaded)


def broken(pages: list[Path], root: Path) -> list[str]:
    """`page: link` of all internal links and loaded files without a target."""
    read = {path.resolve(): Page(path) for path in pages}
    return [f"{page.path.relative_to(root)}: {link}" for page in read.values()
            for link in dict.fromkeys([*page.links, *page.loads]) if not _leads(page, link, read)]


def _leads(page, link, read) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path.resolve()
    if not target.exists():
        return False
    if not parts.fragment or target.suffix != ".html":
        return True
    if target not in read:
        read = {target: Page(target)}
    return unquote(parts.fragment) in read[target].anchors


def foreign(page: Path) -> list[str]:
    """Files that a page would load from elsewhere."""
    return [link for link in Page(page).loads
            if urlsplit(link).scheme in ("http", "https") or link.startswith("//")]
