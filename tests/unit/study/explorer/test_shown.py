"""What a cell shows for labbook's objects."""

from types import SimpleNamespace

import pytest

from labbook import paths
from labbook.errors import LabError
from labbook.lab import LabDescription
from labbook.lab.environment.environment import Environment
from labbook.lab.host.host import Host, Result
from labbook.lab.host.process import Process
from labbook.lab.lab import Lab
from labbook.lab.link.link import Link
from labbook.lab.ssh.login import Login
from labbook.study.explorer import shown
from labbook.systems.base import System


@pytest.fixture
def shell(monkeypatch):
    """A shell with IPython's own formatters, without a kernel."""
    from IPython.core.formatters import DisplayFormatter

    formatter = DisplayFormatter()
    monkeypatch.setattr(formatter, "active_types", ["text/plain", "text/html"])
    shell = SimpleNamespace(display_formatter=formatter)
    shown.use(shell)
    return lambda thing: formatter.format(thing)[0]


def host(name="db1", **more):
    return Host(name, "tokyo", "db", "198.18.0.2", Login("10.0.0.1", "me", "/secret/key", ""), "/lab", "python3", **more)


def test_a_study_says_what_is_declared_and_recorded(make, measure):
    study, speed = make(repeats=2)
    assert "0 of 8 points recorded; system a, b; clients 1, 2; repeat 1, 2" in repr(study)
    measure(study, speed)
    left_out = study.experiment("other", vary={"clients": [1]}, repeats=0)
    assert repr(study).splitlines() == [
        "Study demo in environments/local.yml, 1 claims",
        "  speed: 8 of 8 points recorded; system a, b; clients 1, 2; repeat 1, 2",
        "  other: left out (0 repeats); nothing varies"]
    html = study._repr_html_()
    assert '<th scope="row">speed</th><td data-label="Points">8 of 8 points recorded</td>' in html and 'class="labbook-table"' in html
    assert repr(left_out) == "Experiment other: left out (0 repeats)"


def test_an_experiment_says_its_parameters(make):
    _, speed = make(setup={"system": ["<a>", "b"]}, vary={"clients": [1, 2], "rows": 5})
    assert repr(speed) == ("Experiment speed: 0 of 4 points recorded; system <a>, b; clients 1, 2; "
                           "the same in all: rows 5, repeat 1")
    assert '<td data-label="Values">&lt;a&gt;, b</td>' in speed._repr_html_()


def test_points_are_named_by_their_parameters_in_lists_too(make, shell):
    _, speed = make()
    one = speed.points()[0]
    assert shell(one)["text/plain"] == one.label and "clients=1" in shell(speed.points())["text/plain"]


def test_a_host_says_where_it_is_and_no_key(shell):
    one = host(cores=[0, 1], limits={"memory": 1 << 30, "quota": 0.5})
    assert shell(one)["text/plain"] == "host db1: db in tokyo, 198.18.0.2, cores 0, 1; memory 1 GB; quota 0.5"
    assert "secret" not in str(shell([one]))


def test_a_command_says_what_it_printed(shell):
    assert shell(Result("one\ntwo\n", "", 0))["text/plain"] == "one\ntwo"
    assert shell(Result("", "no\n", 3))["text/plain"] == "no\nexit code 3"


def made_link(settings):
    link = Link.__new__(Link)
    link.site_a, link.site_b = "tokyo", "osaka"
    link._ends = [end(asked=settings)]
    return link


def end(**of):
    return SimpleNamespace(forget=lambda: None, **of)


class Gone:
    forget = staticmethod(lambda: None)

    @property
    def asked(self):
        raise LabError("no host")


def test_a_lab_is_a_table_of_its_hosts(shell, monkeypatch):
    lab = Lab.__new__(Lab)
    lab.id, lab.study, lab.hosts = "1a2b", "demo", {"db1": host(), "db2": host("db2")}
    link = made_link({"rtt_ms": 100, "loss": 0.0, "cut": False})
    monkeypatch.setattr(Lab, "links", lambda self: [link])
    data = shell(lab)
    assert data["text/plain"].splitlines()[0] == "lab 1a2b of demo"
    assert data["text/plain"].splitlines()[-1] == "  link tokyo to osaka: rtt_ms 100"
    assert data["text/html"].count("<tr>") == 3
    link._ends = [Gone()]
    assert shell(link)["text/plain"] == "link tokyo to osaka: it does not answer"
    link._ends = [end(asked={"cut": False})]
    assert shell(link)["text/plain"] == "link tokyo to osaka: not shaped"


class Till(System):
    NAME, SETTINGS, port = "till", {"version": {"default": "1.0"}, "cache": {}}, 80


def test_systems_and_the_rest_are_a_line(shell):
    assert shell(Till(SimpleNamespace(name="db1", root=paths.checkout())))["text/plain"] == "till on db1: version 1.0"
    assert shell(Process(host(), "till"))["text/plain"] == "process till on db1"
    local = Environment.load(paths.checkout() / "environments/local.yml")
    assert shell(local)["text/plain"] == "environment local: this machine, by namespaces"


@pytest.mark.parametrize("study", [path.parent.name for path in
                                   sorted((paths.checkout() / "data/papers").glob("*/lab.yml"))])
def test_a_lab_yml_is_its_hosts_links_and_systems(shell, study):
    described = LabDescription.load(paths.papers(study) / "lab.yml")
    lines = shell(described)["text/plain"].splitlines()
    assert lines[0] == f"lab of {study}, {len(described.hosts)} hosts"
    assert len(lines) == 1 + len(described.hosts) + len(described.links) + len(described.systems)


def test_the_books_style_sheet_is_shown_to_people_only(monkeypatch):
    from IPython.core.formatters import DisplayFormatter

    monkeypatch.delenv("LABBOOK_ROOT", raising=False)
    outputs = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: outputs.append(data))
    shell = SimpleNamespace(display_formatter=DisplayFormatter(), kernel=object())
    monkeypatch.setenv("LABBOOK_PROGRESS", "x")
    shown.use(shell)
    assert not outputs, "the book has it in a file"
    monkeypatch.delenv("LABBOOK_PROGRESS")
    shown.use(shell)
    sheet, = outputs
    assert list(sheet) == ["text/html"], "words of a page are the same however it is run"
    assert 'body[data-jp-theme-light="false"]' in sheet["text/html"] and ".verdict-replicated" in sheet["text/html"]
