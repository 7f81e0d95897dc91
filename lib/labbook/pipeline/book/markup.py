"""HTML that the book's own pages have in common: text, rows and framed tables, and how Markdown includes them."""

import html


def escape(text) -> str:
    """A text as HTML, also between quotes, on one line."""
    return html.escape(str(text), quote=True).replace("\n", " ")


def raw(text) -> str:
    """HTML as Markdown includes it."""
    return f"```{{raw}} html\n{text}\n```\n"


def table(label: str, heads, body: str, kind: str = "") -> str:
    """A table that scrolls sideways in its own frame. label: of the frame, as text; body: rows, as HTML; kind: a
    further CSS class, such as "numbers"."""
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (f'<div class="labbook-scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
            f'<table class="{f"labbook-table {kind}".rstrip()}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>")


def row(heads, texts) -> str:
    """A row of cells, whose texts are HTML."""
    return f"<tr>{cells(heads, texts)}</tr>"


def cells(heads, texts) -> str:
    """The header of a row, then cells with the names of their columns, so that a narrow page can stack them."""
    (_, *rest), (first, *others) = heads, texts
    return f'<th scope="row">{first}</th>' + "".join(
        f'<td data-label="{head}">{text}</td>' for head, text in zip(rest, others))
