"""Modelled disks of a whole lab, without their modelled time."""

from contextlib import contextmanager
from types import SimpleNamespace

from labbook.lab.disk.hurry import in_a_hurry


def test_modelled_disks_take_no_time_until_all_that_was_prepared_is_on_them():
    seen = []
    hosts = {name: SimpleNamespace(name=name, limits={"disk": disk}, run=lambda command, name=name, **_: seen.append(
        (name, command))) for name, disk in (("cloud", {"model": "hdd_2010"}), ("node", {"size": 1}))}
    hosts["client"] = SimpleNamespace(name="client", limits={})

    @contextmanager
    def hurry(name):
        seen.append((name, "in a hurry"))
        yield
        seen.append((name, "as the model"))

    lab = SimpleNamespace(hosts=hosts, disk=lambda name: SimpleNamespace(in_a_hurry=lambda: hurry(name)))
    with in_a_hurry(lab):
        seen.append("prepared")
    assert seen == [("cloud", "in a hurry"), "prepared", ("cloud", "sync -f ."), ("cloud", "as the model")]
