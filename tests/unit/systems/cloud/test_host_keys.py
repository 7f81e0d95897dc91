"""Host keys out of a console's output, and the wait for them."""

from types import SimpleNamespace

import pytest

from labbook.errors import SystemFailure
from labbook.systems.cloud import host_keys

ED, ECDSA, OLD = "ssh-ed25519 AAAAC3Nza0+/x", "ecdsa-sha2-nistp256 AAAAE2V=", "ssh-ed25519 AAAAold"
BLOCK = "-----BEGIN SSH HOST KEY KEYS-----\n{}\n-----END SSH HOST KEY KEYS-----\n"
CONSOLE = ("[ 2.1] cloud-init[300]: ci-info: ssh-ed25519 AAAAofauser op@desk\n"
           + BLOCK.format(f"{OLD} root@image") + "login: \n"
           + BLOCK.format(f"{ECDSA} root@vm\r\n[ 20.1] {ED} root@vm") + "vm login: ")
VM = SimpleNamespace(name="vm1")


def test_the_keys_of_the_last_boot_that_made_any_and_no_others():
    assert host_keys.parse(CONSOLE) == [ECDSA, ED]
    assert host_keys.parse("") == host_keys.parse(f"{ED} root@vm") == []
    assert host_keys.parse("-----BEGIN SSH HOST KEY KEYS-----\n" + ED) == []   # cut off


def test_a_console_that_is_late_is_waited_for():
    consoles = iter(["", "booting", CONSOLE])
    assert host_keys.await_keys(lambda server: next(consoles), VM, 30, 0) == [ECDSA, ED]


def test_a_server_without_a_known_key_is_refused():
    with pytest.raises(SystemFailure, match="vm1: its console shows no SSH host keys.*cloud-init") as error:
        host_keys.await_keys(lambda server: "vm login: ", VM, 0, 0)
    assert error.value.log == "vm login: "
