"""The lab of `labbook up`, found from another process."""

from types import SimpleNamespace

from labbook import paths
from labbook.lab import kept
from labbook.lab.lab import Lab


def record(lab_id, study="demo", keep=True, checkout=None):
    return SimpleNamespace(id=lab_id, study=study, keep=keep, checkout=checkout or str(paths.checkout()))


def test_of_this_checkout_and_study_and_kept_and_then_nobodys(monkeypatch):
    attached = {}
    released = SimpleNamespace(release=lambda: attached.update(released=True))
    monkeypatch.setattr(Lab, "attach", classmethod(
        lambda cls, lab_id: attached.update(id=lab_id) or SimpleNamespace(_ownership=released)))
    labs = [record("1", keep=False), record("2", study="other"), record("3", checkout="/elsewhere")]
    monkeypatch.setattr(Lab, "list", staticmethod(lambda: labs))
    assert kept.find("demo") is None and not attached
    labs.append(record("4"))
    assert kept.find("demo") is not None
    assert attached == {"id": "4", "released": True}
