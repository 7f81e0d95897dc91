"""Systems over several hosts: what `labbook up`, the checks and the drawing make of them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from labbook import figures, systems
from labbook.commands import lab as commands
from labbook.errors import InputError, LabError
from labbook.lab import Lab
from labbook.lab.description import LabDescription
from labbook.lab.registry import LabRecord, StuckLabs
from labbook.pipeline.setup import own_hosts, requirements
from labbook.systems.base import Needs, System

FIND = systems.find
LAB = """sites: [lan]
hosts:
  db[1-2]: {site: lan, role: db}
  web: {site: lan, role: web}
  client: {site: lan, role: client}
systems: [{name: shop, host: ["db[1-2]", web]}]
"""


class Till(System):
    NAME = "till"
    NEEDS = Needs(packages=("till",))
    port = 80


class Books(System):
    NAME = "books"
    NEEDS = Needs(packages=("shelf",), commands=("count",))


class Shop:
    NAME, SETTINGS, PARTS = "shop", {}, {"db": "books"}
    port = 80
    checked = staticmethod(dict)

    def __init__(self, hosts, **settings):
        self.hosts, self.host, self.address = hosts, hosts[0], hosts[-1].address
        self.is_up = False

    @staticmethod
    def needs(**settings):
        return Needs(packages=("till", "shelf"))

    def up(self):
        self.is_up = True


@pytest.fixture(autouse=True)
def found(monkeypatch):
    def find(name, study=None):
        return {"shop": Shop, "till": Till, "books": Books}[name]
    monkeypatch.setattr(systems, "find", find)


@pytest.fixture
def lab(tmp_path):
    """Hosts as a lab has them."""
    roles = {"db1": "db", "db2": "db", "web": "web"}
    there = {name: SimpleNamespace(name=name, role=role, address=f"10.0.0.{i}", root=tmp_path)
             for i, (name, role) in enumerate(roles.items())}
    return SimpleNamespace(host=there.__getitem__, hosts=there, study="shopping", programs={})


def test_it_gets_a_list_of_hosts_and_is_shown_on_each(lab, capsys):
    wanted = {"name": "shop", "hosts": ["db1", "db2", "web"]}
    shop = commands._start(lab, wanted, [])
    assert shop.is_up and [host.name for host in shop.hosts] == ["db1", "db2", "web"]
    assert "starting shop on db1, db2, web" in capsys.readouterr().err
    assert [commands._running(wanted, shop, host) for host in lab.hosts.values()] == [
        "books", "books", "shop on port 80"]


def test_another_in_its_way_on_any_of_its_machines_stays_down(lab, capsys):
    shop = Shop(list(lab.hosts.values()))
    assert commands._start(lab, {"name": "till", "hosts": ["db2"]}, [shop]) is None
    assert "till on db2 stays down: shop has its ports" in capsys.readouterr().err


def test_each_of_its_hosts_needs_what_its_part_does(book):
    book.study("corner", "1")
    book.write("data/papers/corner/lab.yml", LAB)
    needs = own_hosts.needs("corner")
    assert {name: sorted(wants.packages) for name, wants in needs.items()} == {
        "db1": ["shelf"], "db2": ["shelf"], "web": ["shelf", "till"], "client": []}
    assert needs["db1"].packages == {"shelf": "shop: books runs on it"}
    assert needs["db2"].commands == {"count": "shop: books needs it"}
    assert [name for name, wants in needs.items() if wants.programs] == ["client"]


def test_the_parts_of_a_keystone_cloud_are_known_systems_that_need_what_it_does():
    from labbook.systems.keystone.stack import KeystoneCloud

    parts = [FIND(part).needs() for part in KeystoneCloud.PARTS.values()]
    for kind in ("packages", "commands", "artifacts"):
        assert set(getattr(KeystoneCloud.needs(), kind)) == {
            one for part in parts for one in getattr(part, kind)}


@pytest.mark.parametrize("change, message", [
    (("shop", "till"), "till is a server on one host"),
    (('"db[1-2]", web', "web"), "shop has no host of role db, for books")])
def test_hosts_that_do_not_fit_are_an_error_before_anything_starts(book, change, message):
    book.study("corner", "1")
    book.write("data/papers/corner/lab.yml", LAB.replace(*change))
    with pytest.raises(InputError, match=f"lab.yml: systems.0.host: {message}"):
        requirements.requirements(["corner"])


def test_the_drawing_names_the_part_that_a_host_has(tmp_path):
    file = tmp_path / "lab.yml"
    file.write_text(LAB)
    alt = figures.topology(LabDescription.load(file)).panels[0].alt
    assert "db1: db, books; db2: db, books; web: web, shop; client: client." in alt


def running(lab_id, checkout, keep=True):
    return LabRecord(lab_id, "shopping", keep, ("db1",), Path("unused"), checkout)


def test_without_a_name_the_lab_of_this_checkout_goes_down_and_no_other(monkeypatch):
    monkeypatch.setenv("LABBOOK_ROOT", "/mine")
    mine, other = running("l1", "/mine"), running("l2", "/other")
    assert commands._to_take_down([running("l3", "/mine", keep=False), mine, other], None) is mine
    assert commands._to_take_down([other], None) is None
    assert commands._to_take_down([mine, other], "l2") is other


def test_down_says_which_labs_of_other_checkouts_stay_up(monkeypatch, capsys):
    monkeypatch.setenv("LABBOOK_ROOT", "/mine")
    monkeypatch.setattr(Lab, "list", lambda: [running("l2", "/other")])
    monkeypatch.setattr(Lab, "sweep", lambda everything: [])
    assert commands._labs_down(SimpleNamespace(lab=None, all=False)) == 0
    output = capsys.readouterr().err
    assert "lab l2 of /other stays up: labbook down l2" in output


def test_down_takes_the_kept_lab_of_a_study_beside_one_whose_owner_died(monkeypatch, capsys):
    monkeypatch.setenv("LABBOOK_ROOT", "/mine")
    up = {"l1": running("l1", "/mine"), "l2": running("l2", "/mine", keep=False)}
    monkeypatch.setattr(Lab, "list", lambda: list(up.values()))
    monkeypatch.setattr(Lab, "sweep", lambda everything: [up.pop("l2").id])
    monkeypatch.setattr(Lab, "take_down", up.pop)
    assert commands._labs_down(SimpleNamespace(lab="shopping", all=False)) == 0
    assert capsys.readouterr().out == "lab l2 is down\nlab l1 is down\n" and not up


def test_a_lab_that_cannot_be_removed_is_in_no_other_ones_way(monkeypatch, capsys):
    monkeypatch.setenv("LABBOOK_ROOT", "/mine")
    up = {"l1": running("l1", "/mine"), "l2": running("l2", "/mine", keep=False), "l3": running("l3", "/mine", keep=False)}

    def sweep(everything):
        del up["l2"]
        raise StuckLabs({"l3": LabError("lab l3: host db1 does not answer")})

    monkeypatch.setattr(Lab, "list", lambda: list(up.values()))
    monkeypatch.setattr(Lab, "sweep", sweep)
    monkeypatch.setattr(Lab, "take_down", up.pop)
    assert commands._labs_down(SimpleNamespace(lab=None, all=False)) == 1
    printed = capsys.readouterr()
    assert printed.out == "lab l2 is down\nlab l1 is down\n" and list(up) == ["l3"]
    assert printed.err == "labbook: lab l3: host db1 does not answer\n"


@pytest.mark.parametrize("name, all_", [("l3", False), ("l4", False), (None, True)])
def test_each_lab_that_cannot_go_down_is_said_once_and_is_no_wrong_input(monkeypatch, capsys, name, all_):
    """It was 2, as if nothing had been started; a second stuck lab was not named, and the first said to be in use."""
    up = {"l3": running("l3", "/mine", keep=False)}     # l4 has no lab.json yet

    def sweep(everything):
        raise StuckLabs({one: LabError(f"lab {one} is not wholly down") for one in ("l3", "l4")})

    monkeypatch.setattr(Lab, "list", lambda: list(up.values()))
    monkeypatch.setattr(Lab, "sweep", sweep)
    assert commands._labs_down(SimpleNamespace(lab=name, all=all_)) == 1
    assert capsys.readouterr().err == "labbook: lab l3 is not wholly down\nlabbook: lab l4 is not wholly down\n"


def test_a_lab_that_is_up_is_not_brought_up_again(book, monkeypatch):
    book.study("corner", "1")
    book.write("data/papers/corner/lab.yml", LAB)
    monkeypatch.setattr(commands, "_id_to_explore", lambda *_: "l1")
    monkeypatch.setattr(Lab, "list", lambda: [running("l1", "/mine")])
    monkeypatch.setattr(Lab, "up", lambda *_, **__: pytest.fail("up"))
    with pytest.raises(LabError, match="l1 of corner is up already. Type: labbook down l1"):
        commands.up(SimpleNamespace(study="corner", environment="environments/local.yml"))


def test_down_with_all_takes_kept_labs_and_says_which_are_in_use(monkeypatch, capsys):
    up = {"l1": running("l1", "/other"), "l2": running("l2", "/mine", keep=False)}
    monkeypatch.setattr(Lab, "list", lambda: list(up.values()))
    monkeypatch.setattr(Lab, "sweep", lambda everything: [up.pop("l1").id] if everything and "l1" in up else [])
    assert commands._labs_down(SimpleNamespace(lab=None, all=True)) == 1
    printed = capsys.readouterr()
    assert printed.out == "lab l1 is down\n" and printed.err == "labbook: lab l2 (shopping) is in use and stays up\n"
    up.clear()
    assert commands._labs_down(SimpleNamespace(lab=None, all=True)) == 0
    assert capsys.readouterr().err == ""
