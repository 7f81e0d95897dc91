"""The functions of a cloud's client, on a cloud that is made of dicts and may be broken on purpose."""

import math
import re
from threading import Barrier
from types import SimpleNamespace

import pytest

from labbook.checks import load_yaml
from labbook.errors import InputError, LabError, Lost, SystemFailure
from labbook.paths import papers
from labbook.systems.cloud.errors import no_room
from labbook.systems.cloud.model import Flavor, Image, Quota, Server, Volume
from labbook.workloads.clouds.functions import FUNCTIONS, NUMBERS, OF_THE_REPORT, cloud_function
from labbook.workloads.clouds.testbed import Testbed

CAPACITY = 8        # servers that fit, as many as a Testbed says by itself
NOW = {"called": 0.0, "returned": 0.1, "running": 1.0, "answers": 2.0, "ready": 1.0}


class Guest:
    """What a server's shell prints."""

    def __init__(self):
        self.boot, self.disks, self.files, self.marked = 1, ["loop0", "vda"], 0, False
        self.meets = None       # what all that are asked for their boot wait at for each other

    def run(self, command, timeout=60, check=True):
        if self.meets and command.endswith("boot_id"):
            self.meets.wait(10)
        return SimpleNamespace(stdout=self._output(command), stderr="", exit_code=0)

    def _output(self, command):
        if command.endswith("boot_id"):
            return f"boot-{self.boot}\n"
        if command == "ls /sys/block":
            return "\n".join(self.disks)
        if command.startswith("echo"):
            self.marked = True
        if command.startswith("cat /root"):
            return "here\n" if self.marked else ""
        if command.startswith("mkdir -p /opt"):
            self.files = 5
        if "mkfs" in command:
            return "aa  -\naa  -\n"
        return f"{self.files}\n" if command.startswith("find") else ""


class Cloud:
    """Keeps what a Cloud promises; `broken` names what goes wrong."""

    other_client = "client 1.2"

    def __init__(self, *broken):
        self.broken, self.made, self.guests, self.stored, self.discs = broken, {}, {}, [IMAGE], {}

    def images(self):
        return list(self.stored)

    def flavors(self):
        return [FLAVOR]

    def quota(self):
        return {"servers": Quota(1, 10)}

    def servers(self):
        return list(self.made.values())

    def volumes(self):
        return list(self.discs.values())

    def run(self, n, image, flavor, key):
        if "room" in self.broken:
            raise no_room(f"{n} servers", "No valid host was found")
        if "down" in self.broken:
            raise LabError("the cloud does not answer")
        made = [Server(str(len(self.guests) + i), f"s{i}", "running", moments=dict(NOW),
                       address=f"192.0.2.{len(self.guests) + i + 1}", flavor=str(flavor))
                for i in range(n)]
        for server in made:
            self.made[server.id], self.guests[server.id] = server, Guest()
            if image is not IMAGE:
                old = image.guest
                self.guests[server.id].files, self.guests[server.id].marked = old.files, old.marked
        without = {id(one): "no network" for one in made[n - 2:] if "starts" in self.broken}
        without |= {id(one): "no boot" for one in made if not getattr(image, "boots", True)}
        if "limits" not in self.broken:
            without |= {id(one): "no room" for one in made[CAPACITY:]}
        for server in made:
            if id(server) in without:
                server.state, server.fault = "error", without[id(server)]
                del server.moments["running"]
        return made

    def await_running(self, servers, seconds):
        return servers

    def await_answers(self, servers, dial, seconds):
        return servers

    def require_running(self, servers):
        if any("running" not in server.moments for server in servers):
            raise SystemFailure("one does not run")

    def require_answers(self, servers):
        if "snapshots" in self.broken and len(self.stored) > 1:
            raise SystemFailure("1 of 1 servers never came up")

    def reboot(self, servers, hard):
        for server in servers[:1] if "reboot" in self.broken else servers:
            self.guests[server.id].boot += 1

    def terminate(self, servers):
        for server in servers:
            del self.made[server.id]

    def upload_image(self, path, label):
        self.stored.append(Image(str(len(self.stored) + 1), label, "ready", moments=dict(NOW)))
        return self.stored[-1]

    def snapshot(self, server, by_other=False):
        image = self.upload_image(None, "snapshot")
        image.guest, image.boots = self.guests[server.id], not by_other or "other client" not in self.broken
        return image

    def delete_image(self, image):
        self.stored.remove(image)

    def create_volume(self, gb):
        volume = Volume(str(len(self.discs)), "v", "ready", gb, moments=dict(NOW))
        self.discs[volume.id] = volume
        return volume

    def delete_volume(self, volume):
        del self.discs[volume.id]

    def attach(self, server, volume, device=None):
        requested = re.fullmatch("/dev/(vd[a-z])", device or "")
        volume.server = server.id
        volume.device = requested[1] if requested and "names" not in self.broken else "vdb"
        self.guests[server.id].disks.append(volume.device)

    def detach(self, volume):
        if "detach" not in self.broken:
            self.guests[volume.server].disks.remove(volume.device)


IMAGE, FLAVOR = Image("1", "guest", "ready"), Flavor("1", "m1.small", 1, 128)


def tried(name, *broken):
    cloud = Cloud(*broken)
    ground = Testbed(cloud, IMAGE, FLAVOR, None, reach=lambda server: cloud.guests[server.id],
                    file="small.raw", large=FLAVOR, reboot_seconds=0.01)
    return cloud_function(name, ground), cloud


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_works_on_a_cloud_that_works(name):
    load, cloud = tried(name)
    assert load.metrics["works"] == 1 and load.metrics["evidence"]
    assert list(load.rows["ok"]) == [True]
    assert set(NUMBERS) <= set(load.metrics)
    assert math.isnan(load.metrics["other_works"]) == (name in OF_THE_REPORT)
    assert cloud.images() == [IMAGE] and not cloud.volumes()


@pytest.mark.parametrize("name, broken, numbers", [
    ("reboot_several", "reboot", {"rebooted_share": 1 / 3, "others_rebooted": 0}),
    ("run_all", "starts", {"failed_to_run": 2}),
    ("run_all", "room", {"failed_to_run": 8}),
    ("run_one_too_many", "limits", {"beyond_fit": 1, "ran_of_fit": 9 / 8}),
    ("snapshot_fresh", "snapshots", {"snapshot_booted": 0}),
    ("installed_snapshot", "snapshots", {"snapshot_booted": 0}),
    ("snapshot_two_clients", "snapshots", {"snapshot_booted": 0, "clients_differ": 0}),
    ("snapshot_two_clients", "other client", {"snapshot_booted": 0, "clients_differ": 1}),
    ("snapshot_two_clients", "room", {"snapshot_booted": math.nan, "clients_differ": math.nan}),
    ("attach_usual_name", "room", {"named_as_asked": math.nan}),
    ("installed_snapshot", "room", {"snapshot_booted": math.nan}),
    ("reboot_several", "room", {"rebooted_share": math.nan}),
    ("run_several", "starts", {}),
    ("run_one", "room", {}),
])
def test_what_goes_wrong_is_reported(name, broken, numbers):
    load, cloud = tried(name, broken)
    assert load.metrics["works"] == 0 and load.metrics["evidence"]
    assert not cloud.servers()      # nothing runs beside what comes after
    assert {metric: load.metrics[metric] for metric in numbers} == pytest.approx(numbers, nan_ok=True)


@pytest.mark.parametrize("name", ["attach_usual_name", "detach"])
def test_the_error_of_a_volume_is_that_of_the_call_and_not_of_its_clean_up(name, monkeypatch):
    """A volume that is still attaching cannot be deleted, which was all that the page said."""
    def fail(message):
        def failing(self, *_):
            raise SystemFailure(message)
        return failing

    monkeypatch.setattr(Cloud, "attach", fail("the volume is still attaching after 300 s"))
    monkeypatch.setattr(Cloud, "delete_volume", fail("invalid volume"))
    assert tried(name)[0].metrics["evidence"] == "the volume is still attaching after 300 s"


@pytest.mark.parametrize("broken, ran", [((), 1), (("starts",), 7 / 8), (("room",), 0)])
def test_one_server_too_many_may_be_refused_with_all_others(broken, ran):
    load, _ = tried("run_one_too_many", *broken)
    assert load.metrics["works"] == 1
    assert (load.metrics["beyond_fit"], load.metrics["ran_of_fit"]) == (0, ran)


@pytest.mark.parametrize("name, ran", [("run_all", {"failed_to_run": 0}), ("run_one_too_many", {"ran_of_fit": 1})])
def test_servers_that_ran_count_though_they_do_not_end(name, ran, monkeypatch):
    """All had been counted as failed."""
    terminate = Cloud.terminate

    def slow(self, servers):
        terminate(self, servers)
        if len(servers) >= CAPACITY:
            raise SystemFailure("8 servers have not ended")

    monkeypatch.setattr(Cloud, "terminate", slow)
    metrics = tried(name)[0].metrics
    assert metrics["works"] == 1 and "have not ended" in metrics["evidence"]
    assert {number: metrics[number] for number in ran} == ran


@pytest.mark.parametrize("broken, servers", [((), 3), (("reboot",), 0)])
def test_nothing_is_tried_on_servers_that_a_function_failed_on(broken, servers):
    assert len(tried("reboot_several", *broken)[1].servers()) == servers


def test_a_volume_goes_though_the_guest_fails_meanwhile(monkeypatch):
    monkeypatch.setattr(Guest, "run", lambda self, command, **how: SimpleNamespace(
        stdout=self._output(command), stderr="no space", exit_code=int("mkfs" in command)))
    load, cloud = tried("write_volume")
    assert load.metrics["works"] == 0 and not cloud.volumes()


def test_servers_named_one_by_one_reboot_where_only_the_first_of_several_does():
    assert tried("each_rebooted", "reboot")[0].metrics["rebooted_share"] == 1


@pytest.mark.parametrize("name", ["each_rebooted", "reboot_several"])
def test_a_server_that_did_not_answer_before_is_not_taken_for_rebooted(name, monkeypatch):
    monkeypatch.setattr(Testbed, "boots", lambda self, servers: [""] + ["boot-1"] * (len(servers) - 1))
    load, cloud = tried(name)
    assert load.metrics["works"] == 0 and math.isnan(load.metrics["rebooted_share"]), "nothing was rebooted"
    assert "did not answer before the reboot" in load.metrics["evidence"]


def test_a_boot_that_was_not_known_before_is_no_other_boot():
    cloud = Cloud()
    ground = Testbed(cloud, IMAGE, FLAVOR, None, reach=lambda server: cloud.guests[server.id], reboot_seconds=0.01)
    assert ground.rebooted(ground.servers(3), ["", "boot-0", "boot-1"]) == [False, True, False]


def test_servers_are_asked_for_their_boot_all_at_a_time():
    cloud, meets = Cloud(), Barrier(3)
    ground = Testbed(cloud, IMAGE, FLAVOR, None, reach=lambda server: cloud.guests[server.id])
    made = ground.servers(3)
    for guest in cloud.guests.values():
        guest.meets = meets
    assert ground.boots(made) == ["boot-1"] * 3


@pytest.mark.parametrize("name, broken, as_asked", [
    ("attach_usual_name", (), 1), ("attach_usual_name", ("names",), 0), ("attach_other_name", (), 0)])
def test_a_volume_is_attached_whichever_name_it_has(name, broken, as_asked):
    load, _ = tried(name, *broken)
    assert load.metrics["works"] == 1
    assert load.metrics["named_as_asked"] == as_asked


@pytest.mark.parametrize("error, raised", [(LabError, False), (Lost, True)])
def test_a_guest_that_does_not_answer_fails_and_a_lab_that_is_gone_is_raised(error, raised):
    def run(command, timeout, check):
        raise error("cannot be reached")

    ground = Testbed(Cloud(), IMAGE, FLAVOR, None, reach=lambda server: SimpleNamespace(run=run))
    if raised:
        for function in ("snapshot_fresh", "each_rebooted", "reboot_several"):
            with pytest.raises(Lost):
                cloud_function(function, ground)
    else:
        metrics = cloud_function("snapshot_fresh", ground).metrics
        assert metrics["works"] == 0 and math.isnan(metrics["snapshot_booted"]), "there was no snapshot"


def test_images_by_two_clients_are_not_tried_where_there_is_one(monkeypatch):
    monkeypatch.setattr(Cloud, "other_client", None)
    load, _ = tried("snapshot_two_clients")
    assert load.metrics["works"] == 0 and "one version" in load.metrics["evidence"]
    assert math.isnan(load.metrics["snapshot_booted"]) and math.isnan(load.metrics["clients_differ"])


def test_a_cloud_that_is_down_is_no_function_that_fails():
    with pytest.raises(LabError, match="does not answer"):
        tried("run_one", "down")


def test_a_name_that_is_none():
    with pytest.raises(InputError, match="reboot_several"):
        tried("reboot_all")


def test_the_ground_keeps_servers_as_long_as_the_same_are_wanted():
    cloud, large = Cloud(), Flavor("2", "m1.large", 2, 512)
    ground = Testbed(cloud, IMAGE, FLAVOR, None, reach=lambda server: cloud.guests[server.id])
    first = list(ground.only(2, FLAVOR))
    assert ground.only(2, FLAVOR) == first and len(cloud.servers()) == 2
    for n, flavor in ((1, FLAVOR), (1, large)):
        assert [one.flavor for one in ground.only(n, flavor)] == [str(flavor)]
        assert len(cloud.servers()) == n
    ground.clear()
    assert not cloud.servers()


def test_an_image_is_run_once_to_be_cached():
    cloud = Cloud()
    ground = Testbed(cloud, IMAGE, FLAVOR, None, reach=lambda server: cloud.guests[server.id])
    for _ in range(2):
        ground.cached(IMAGE)
    assert len(cloud.guests) == 1 and not cloud.servers()


def test_the_page_calls_each_by_words():
    names = load_yaml(papers("cloud_platforms") / "paper.yml")["names"]
    assert set(FUNCTIONS) <= set(names)
    listed = load_yaml(papers("cloud_platforms") / "full.yml")["functions"]["function"]
    assert sorted(listed) == sorted(FUNCTIONS)
