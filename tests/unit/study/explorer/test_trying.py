"""study.lab() and study.system(): to try things by hand, apart from what is measured."""

from types import SimpleNamespace

import pytest

from labbook import systems
from labbook.errors import InputError
from labbook.lab import kept
from labbook.study.explorer import trying
from labbook.systems.base import Needs, System


class Till(System):
    NAME, NEEDS, port = "till", Needs(), 80
    SETTINGS = {"version": {"type": "string"}}


@pytest.fixture(autouse=True)
def none_kept(monkeypatch):
    monkeypatch.setattr(kept, "find", lambda study: None)


def test_without_a_kept_lab_one_is_brought_up_and_goes_with_the_study(make, labs):
    study, _ = make()
    lab = study.lab()
    assert lab is study.lab() is labs.made[0]
    study.close()
    assert lab.downs == 1


def test_what_is_measured_gets_a_lab_that_nobody_had_in_hand(make, measure, labs):
    study, speed = make()
    tried = study.lab()
    measure(study, speed)
    assert tried.downs == 1 and len(labs.made) == 2
    assert study.records("speed").meta(speed.points()[0].key), "and it was measured"


def test_a_kept_lab_stays_up(make, measure, labs, monkeypatch):
    study, speed = make()
    own = SimpleNamespace(id="kept")
    monkeypatch.setattr(kept, "find", lambda name: own if name == "demo" else None)
    assert study.lab() is own
    measure(study, speed)
    study.close()
    assert len(labs.made) == 1


def test_a_system_of_lab_yml_is_found_by_label_or_name(make, root, monkeypatch):
    (root / "data/papers/demo/lab.yml").write_text("""sites: [lan]
hosts: {one: {site: lan, role: db}, two: {site: lan, role: db}}
systems: [{name: till, label: old, host: one, settings: {version: "1"}}, {name: till, host: two}]
""")
    study, _ = make()
    lab = SimpleNamespace(study="demo", programs={"kernel": "/srv/k"},
                          host=lambda name: SimpleNamespace(name=name, root=root, address=name))
    monkeypatch.setattr(kept, "find", lambda name: lab)
    monkeypatch.setattr(systems, "find", lambda name, study=None: Till)
    assert (study.system("old").host.name, study.system("old").settings.version) == ("one", "1")
    assert study.system("till").address == "two"
    with pytest.raises(InputError, match="no such system, did you mean 'till'.*old, till"):
        study.system("tall")


@pytest.mark.parametrize("programs", [{}, {"kernel": "/srv/k", "npb": "/opt/npb"}])
def test_a_system_gets_the_programs_that_it_takes(programs, root, monkeypatch):
    class Cloud(Till):
        def __init__(self, host, kernel=None, **settings):
            super().__init__(host, **settings)
            self.kernel = kernel

    monkeypatch.setattr(systems, "find", lambda name, study=None: Cloud)
    lab = SimpleNamespace(study="demo", programs=programs, host=lambda name: SimpleNamespace(name=name, root=root))
    found = trying.made(lab, {"name": "till", "hosts": ["one"], "settings": {"version": "1"}})
    assert (found.kernel, found.settings.version) == (programs.get("kernel"), "1")
