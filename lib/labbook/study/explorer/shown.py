"""How labbook's objects look in a cell: a line or two of text, and some as a small table.

Study and Experiment use these functions themselves. Objects of the rooms below, and points, are given to
IPython's formatters instead: what these are made of belongs to a measurement's fingerprint, how they look
does not.
"""

import html
import os
from contextlib import suppress

from labbook import paths
from labbook.errors import LabbookError
from labbook.lab.quantities import size_text
from labbook.study.explorer.choosing import order

STYLES = "book/_assets/css/labbook.css"
# The book's own dark mode, and JupyterLab's.
DARK = 'html[data-theme="dark"]', 'html[data-theme="dark"], body[data-jp-theme-light="false"]'


def study(one) -> str:
    rows = _experiments(one)
    head = f"Study {one.name} in {one.environment}, {len(one.claim_entries)} claims"
    if not rows:
        return f"{head}; no experiment is declared yet"
    return "\n".join([head, *(f"  {name}: {counts}; {varies or 'nothing varies'}" for name, counts, varies in rows)])


def study_table(one) -> str:
    """HTML: the study in a sentence, and a row an experiment."""
    head = f"<p>{html.escape(study(one).partition(chr(10))[0])}</p>"
    rows = _experiments(one)
    return head + (table(("Experiment", "Points", "What varies"), rows, f"experiments of {one.name}") if rows else "")


def _experiments(one) -> list[tuple[str, str, str]]:
    return [(each.name, _counts(each), _varies(each)) for each in one.experiments.values()]


def _counts(experiment) -> str:
    declared = experiment.declared()
    if not declared:
        return "left out (0 repeats)"
    if experiment.study.run.published:
        return f"{len(declared)} points"
    keys = experiment.study.records(experiment.name).keys()
    return f"{sum(point.key in keys for point in declared)} of {len(declared)} points recorded"


def _varies(experiment) -> str:
    return "; ".join(f"{name} {_words(values)}" for name, values in _values(experiment).items() if len(values) > 1)


def _values(experiment) -> dict[str, list]:
    """{parameter, or repeat: its values in the declared points}."""
    found = {}
    for point in experiment.declared():
        for name, values in {**{n: [v] for n, v in point.params.items()}, **point.paired,
                             "repeat": [point.repeat]}.items():
            found.setdefault(name, {}).update({repr(value): value for value in values})
    return {name: sorted(values.values(), key=order) for name, values in found.items()}


def experiment(one) -> str:
    same = ", ".join(f"{name} {values[0]}" for name, values in _values(one).items() if len(values) == 1)
    return (f"Experiment {one.name}: {_counts(one)}" + (f"; {_varies(one)}" if _varies(one) else "")
            + (f"; the same in all: {same}" if same else ""))


def experiment_table(one) -> str:
    """HTML: the experiment in a sentence, and a row a parameter."""
    rows = [(name, _words(values)) for name, values in _values(one).items()]
    head = f"<p>{html.escape(f'Experiment {one.name}: {_counts(one)}')}</p>"
    return head + (table(("Parameter", "Values"), rows, f"parameters of {one.name}") if rows else "")


def point(one) -> str:
    """Its experiment, parameters and repeat."""
    return one.label


def lab(one) -> str:
    lines = [f"lab {one.id} of {one.study}", *(f"  {host(each)}" for each in one.hosts.values())]
    return "\n".join([*lines, *(f"  {link(each)}" for each in one.links())])


def lab_table(one) -> str:
    """HTML: a row a host, a line a link."""
    rows = [(each.name, each.site, each.role, each.address, _limits(each)) for each in one.hosts.values()]
    links = "".join(f"<p>{html.escape(link(each))}</p>" for each in one.links())
    return table(("Host", "Site", "Role", "Address", "Limits"), rows, f"hosts of lab {one.id}") + links


def host(one) -> str:
    limits = _limits(one)
    return f"host {one.name}: {one.role} in {one.site}, {one.address}" + (f", {limits}" if limits else "")


def _limits(one) -> str:
    cores = [f"cores {_words(one.cores)}"] if getattr(one, "cores", None) else []
    return "; ".join(cores + [f"{name} {size_text(value) if name == 'memory' else value}"
                              for name, value in (one.limits or {}).items()])


def result(one) -> str:
    """What a command printed."""
    code = [] if one.exit_code == 0 else [f"exit code {one.exit_code}"]
    return "\n".join(filter(None, (one.stdout.rstrip("\n"), one.stderr.rstrip("\n"), *code)))


def link(one) -> str:
    """A link, and how it was last shaped, if its hosts still say so."""
    settings = "it does not answer"
    with suppress(LabbookError):
        set_ = {name: value for name, value in one.asked.items() if value}
        settings = ", ".join(f"{name} {value}" for name, value in set_.items()) or "not shaped"
    return f"link {one.site_a} to {one.site_b}: {settings}"


def disk(one) -> str:
    return f"disk of {one.host.name}: {one.host.limits.get('disk')}"


def process(one) -> str:
    return f"process {one.name} on {one.host.name}"


def system(one) -> str:
    hosts = ", ".join(each.name for each in getattr(one, "hosts", None) or [one.host])
    settings = ", ".join(f"{name} {value}" for name, value in vars(one.settings).items() if value is not None)
    return f"{one.NAME} on {hosts}" + (f": {settings}" if settings else "")


def description(one) -> str:
    """A lab.yml."""
    hosts = [f"  {host.name}: {host.role} in {host.site}" + (f", {_limits(host)}" if host.limits else "")
             for host in one.hosts]
    links = [f"  link {' to '.join(each['between'])}" for each in one.links]
    systems = [f"  {each['name']} on {', '.join(each.get('hosts', ()))}" for each in one.systems]
    return "\n".join([f"lab of {one.name}, {len(one.hosts)} hosts", *hosts, *links, *systems])


def environment(one) -> str:
    where = f"{len(one.hosts)} hosts of yours" if one.hosts else "this machine"
    return f"environment {one.name}: {where}, by {one.provider}"


TEXTS = {
    ("labbook.study.point", "Point"): point, ("labbook.lab.lab", "Lab"): lab,
    ("labbook.lab.host.host", "Host"): host, ("labbook.lab.host.host", "Result"): result,
    ("labbook.lab.host.process", "Process"): process, ("labbook.lab.link.link", "Link"): link,
    ("labbook.lab.disk.disk", "Disk"): disk, ("labbook.lab.description", "LabDescription"): description,
    ("labbook.lab.environment.environment", "Environment"): environment,
    ("labbook.systems.base", "Described"): system,
}
TABLES = {("labbook.lab.lab", "Lab"): lab_table}


def use(shell) -> None:
    """Have a notebook's shell show objects by these functions. In one that a person runs, the book's style
    sheet is shown once as well: cards and tables then look as in the book."""
    formatters = getattr(getattr(shell, "display_formatter", None), "formatters", None)
    if not formatters:
        return
    for (module, name), text in TEXTS.items():
        formatters["text/plain"].for_type_by_name(
            module, name, lambda thing, printer, _cycle, text=text: printer.text(text(thing)))
    for (module, name), made in TABLES.items():
        formatters["text/html"].for_type_by_name(module, name, made)
    if hasattr(shell, "kernel") and not os.environ.get("LABBOOK_PROGRESS"):
        _show_styles()


def _show_styles() -> None:
    from IPython.display import display

    with suppress(OSError, LabbookError):
        sheet = (paths.checkout() / STYLES).read_text(encoding="utf-8").replace(*DARK)
        display({"text/html": f"<style>{sheet}</style>"}, raw=True)


def table(columns, rows, label: str) -> str:
    """Rows of text as HTML; the first cell of each is its heading. label: for those who do not see it."""
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
    body = "".join(f'<tr><th scope="row">{html.escape(str(first))}</th>'
                   + "".join(f'<td data-label="{html.escape(column, quote=True)}">{html.escape(str(cell))}</td>'
                             for column, cell in zip(columns[1:], rest)) + "</tr>"
                   for first, *rest in rows)
    return (f'<div class="labbook-scroll" role="region" tabindex="0" aria-label="{html.escape(label, quote=True)}">'
            f'<table class="labbook-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def _words(values) -> str:
    return ", ".join(map(str, values))
