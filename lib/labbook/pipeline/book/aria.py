"""A sphinx extension: entries of the bibliography with a role that ARIA still has."""

_DEPRECATED, _TODAYS = 'role="doc-biblioentry"', 'role="listitem"'


def setup(app) -> dict:
    """Called by sphinx."""
    app.connect("html-page-context", _renew)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _renew(app, page, template, context, doctree) -> None:
    if "body" in context:
        context["body"] = context["body"].replace(_DEPRECATED, _TODAYS)
