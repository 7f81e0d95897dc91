"""A kernel of the user's own for guests: what its folder has, and when it is refused; its boot is in tests/lab."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from labbook.errors import InputError, LabError
from labbook.lab.environment.environment import Environment
from labbook.systems.openstack import guest, own_kernel


@pytest.fixture
def folder(tmp_path):
    kernel = tmp_path / "kernel"
    (kernel / "modules/net").mkdir(parents=True)
    (kernel / "vmlinuz").write_bytes(b"a kernel")
    (kernel / "modules/net/virtio_net.ko").write_bytes(b"ELF\0depends=failover\0")
    (kernel / "modules/net/failover.ko").write_bytes(b"ELF\0depends=\0")
    (kernel / "modules/ext4.ko").write_bytes(b"ELF\0depends=\0")
    return str(kernel)


def test_an_environment_of_this_machine_names_it_and_one_of_others_does_not(folder):
    local = Environment.parse({"provider": "namespaces", "programs": {"kernel": folder}})
    assert local.programs == {"kernel": folder}
    for data in ({"provider": "namespaces", "programs": {"kernel": "boot"}},
                 {"provider": "ssh", "programs": {"kernel": folder}, "hosts": {"a": {"address": "x", "roles": ["db"]}}}):
        with pytest.raises(InputError, match="programs"):
            Environment.parse(data, keys=False)


def test_a_folder_without_a_kernel_is_named(folder):
    assert own_kernel.files(folder) == (Path(folder, "vmlinuz"), Path(folder, "modules"))
    Path(folder, "vmlinuz").unlink()
    with pytest.raises(InputError, match=r"programs.kernel: .*vmlinuz cannot be read .*a folder with vmlinuz"):
        own_kernel.files(folder)


def test_a_guest_is_of_one_kernel_with_its_modules(folder):
    before = own_kernel.digest(folder)
    assert own_kernel.digest(folder) == before
    Path(folder, "modules/ext4.ko").write_bytes(b"ELF\0depends=jbd2\0")
    between = own_kernel.digest(folder)
    Path(folder, "vmlinuz").write_bytes(b"another")
    assert len({before, between, own_kernel.digest(folder)}) == 3


def test_its_ramdisk_has_what_it_lacks_of_drivers_in_the_order_of_their_needs(folder, tmp_path):
    seen = {}

    def ramdisk(init, busybox, modules, wanted):
        found = {file.stem: file for file in modules.rglob("*.ko")}
        seen["order"] = guest.in_order(wanted, {name: guest.depends(file.read_bytes()) for name, file in found.items()})
        return b"ramdisk"

    made = tmp_path / "made"
    made.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guest, "make_ramdisk", ramdisk)
        guest._boot_files(made, *own_kernel.files(folder), b"busybox", (*guest.RAMDISK_MODULES, *own_kernel.MORE_MODULES))
    assert seen["order"] == ["failover", "virtio_net", "ext4"]
    assert (made / "vmlinuz").read_bytes() == b"a kernel" and (made / "ramdisk").read_bytes() == b"ramdisk"


@pytest.fixture
def host():
    """One whose /dev/kvm can be written if `device` is set."""
    made = SimpleNamespace(name="cloud", device=True)
    made.run = lambda command, **_: SimpleNamespace(stdout="a machine", exit_code=int(not made.device))
    return made


@pytest.mark.parametrize("device, boots, kernel, outcome", [
    (False, True, None, False), (True, False, None, False), (True, True, None, True), (True, True, "/srv/k", True),
    (False, True, "/srv/k", "needs /dev/kvm, which cloud may not write"),
    (True, False, "/srv/k", "does not reach its first process under /dev/kvm in 20 s")])
def test_a_kernel_that_was_named_is_never_emulated(device, boots, kernel, outcome, host, tmp_path, monkeypatch):
    host.device = device
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(guest, "boots", lambda *_: boots)
    made = SimpleNamespace(name="guest-1")
    if isinstance(outcome, bool):
        assert guest.accelerated(host, made, "/there", kernel) is outcome
        return
    for _ in range(2):      # what is refused is tried again, since the machine may have been set up meanwhile
        with pytest.raises(LabError, match=f"/srv/k, which the environment file names.*{outcome}") as refusal:
            guest.accelerated(host, made, "/there", kernel)
    assert "or leave out programs.kernel" in refusal.value.remedy
    assert not [json.loads(file.read_text()) for file in tmp_path.rglob(guest.RESULT)]


def test_what_did_not_boot_is_tried_again_once_the_machine_has_started_anew(host, tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path))
    start = iter(["first", "first", "second"])
    host.run = lambda command, **_: SimpleNamespace(
        exit_code=0, stdout=next(start) if "/proc/sys/kernel/random/boot_id" in command else "a machine")
    tries = iter([False, True])
    monkeypatch.setattr(guest, "boots", lambda *_: next(tries))
    made = SimpleNamespace(name="guest-1")
    assert [guest.accelerated(host, made, "/there") for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("what, lacks", [("device", "there is no "), ("kernel", "cannot be read"), ("", "")])
def test_the_doctor_says_what_it_lacks(what, lacks, folder, tmp_path, monkeypatch):
    device = tmp_path / "kvm"
    if what != "device":
        device.touch()
    if what == "kernel":
        Path(folder, "vmlinuz").unlink()
    monkeypatch.setattr(own_kernel, "DEVICE", str(device))
    found = own_kernel.lacking(folder)
    assert [name for name, *_ in found] == [f"kernel {folder}/vmlinuz", str(device)]
    reasons = [why_not for _, why_not, _ in found if why_not]
    assert len(reasons) == bool(what) and all(lacks in reason for reason in reasons)
