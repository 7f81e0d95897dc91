"""What a lab leaves behind for the next one when it is taken down."""

from labbook.lab.disk import loop_device
from labbook.lab.local import cgroups, unmake


def test_the_limits_of_a_disk_go_before_another_lab_can_get_its_device(monkeypatch):
    done = []
    monkeypatch.setattr(loop_device, "devices", lambda file: [] if "detach" in dict(done) else ["/dev/loop7"])
    monkeypatch.setattr(loop_device, "number", lambda device: "7:7")
    monkeypatch.setattr(loop_device, "detach", lambda device: done.append(("detach", device)))
    monkeypatch.setattr(cgroups, "unthrottle", lambda number: done.append(("unthrottle", number)))
    unmake.remove_loop({"file": "/var/lib/labbook/x/db.disk"})
    assert done == [("unthrottle", "7:7"), ("detach", "/dev/loop7")]


def test_one_setting_of_a_disk_that_is_refused_keeps_none_of_the_others(monkeypatch):
    done = []

    def tune(device, settings):
        done.append(settings)
        if "scheduler" in settings:
            raise OSError("the kernel no longer has it")

    monkeypatch.setattr(loop_device, "devices", lambda file: ["/dev/loop7"])
    monkeypatch.setattr(loop_device, "tune", tune)
    unmake.restore_queue({"file": "/var/lib/labbook/x/db.disk", "was": {
        "read_ahead_kb": 128, "rotational": "0", "scheduler": "bfq", "tags": 128}})
    assert done == [{"scheduler": "bfq"}, {"rotational": "0"}, {"read_ahead_kb": 128}, {"tags": 128}], "in the order of SETTINGS"
