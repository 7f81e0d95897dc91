"""A figure's SVG as a part of a page: real text, the page's own light or dark, words on hover.

A page may have many figures, so ids that nothing refers to go, and the others are made the figure's
own. Colours become variables of the page's style sheet, with matplotlib's colour where there is none.
"""

import re
import xml.etree.ElementTree as ElementTree
from hashlib import sha256

SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
LINES = "stroke-linejoin:round;stroke-linecap:butt"
FALLBACK = ", Verdana, sans-serif"      # as wide as DejaVu Sans, and on most machines without it
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_MARKS = {f"{{{SVG}}}use", f"{{{SVG}}}path"}
_DEFINITIONS = f"{{{SVG}}}defs"


def inline(svg: bytes, alt: str, style: str, colours: dict[str, str], titles: dict[str, list[str]]) -> str:
    """The SVG as an element of HTML.

    alt: its text for those who do not see it. style: of the element. colours: {colour as #rrggbb:
    name}, each of which becomes var(--lb-fig-NAME, #rrggbb). titles: {id of a group of marks: what each
    mark says on hover}.
    """
    root = ElementTree.fromstring(svg)
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    for group in root.iter(f"{{{SVG}}}g"):
        if texts := titles.get(group.get("id")):
            _entitle(group, texts)
    for part in [*root.findall(f"{{{SVG}}}metadata"), *root.findall(f"{{{SVG}}}defs[{{{SVG}}}style]")]:
        root.remove(part)       # a style would be the whole page's
    _own_ids(root, "f" + sha256(svg).hexdigest()[:10] + "-")
    for element in root.iter():
        if "style" in element.attrib:
            element.set("style", _restyled(element.get("style"), colours))
    root.attrib |= {"role": "img", "aria-label": alt, "style": f"{style};{LINES}"}
    return _as_html(root)


def _entitle(group, texts) -> None:
    """Give each mark of a group its text; none of them where matplotlib drew another number."""
    marks = [one for part in group if part.tag != _DEFINITIONS for one in part.iter() if one.tag in _MARKS]
    if len(marks) == len(texts):
        for mark, text in zip(marks, texts):
            ElementTree.SubElement(mark, f"{{{SVG}}}title").text = text


def _own_ids(root, prefix: str) -> None:
    referred = {match for element in root.iter() for value in element.attrib.values()
                for match in _REFERENCE.findall(value)}
    referred |= {link[1:] for element in root.iter() if (link := element.get(f"{{{LINK}}}href", "")).startswith("#")}
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name == "id":
                element.attrib.pop(name)
                if value in referred:
                    element.set(name, prefix + value)
            elif name == f"{{{LINK}}}href":
                element.attrib.pop(name)
                # an image has its data there
                element.set("href", f"#{prefix}{value[1:]}" if value.startswith("#") else value)
            else:
                element.set(name, _REFERENCE.sub(lambda match: f"url(#{prefix}{match[1]})", value))


def _restyled(style: str, colours) -> str:
    def variable(match):
        name = colours.get(match[0].lower())
        return f"var(--lb-fig-{name}, {match[0]})" if name else match[0]

    style = _COLOUR.sub(variable, style)
    return re.sub(r"(font(?:-family)?: [^;]*'[^;]*)", lambda match: match[1] + FALLBACK, style)


def _as_html(root) -> str:
    """Elements without a namespace, as HTML has them, on one line: Markdown ends HTML at an empty line."""
    for element in root.iter():
        element.tag = element.tag.partition("}")[2] or element.tag
        element.tail = (element.tail or "").strip() or None
        if element.tag != "text" and element.tag != "tspan":
            element.text = re.sub(r"\s+", " ", element.text or "").strip() or None
    return re.sub(r"\s*\n\s*", " ", ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))
