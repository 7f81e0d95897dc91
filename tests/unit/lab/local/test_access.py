"""Whether a local host's sshd answers, as the driver sees it."""

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from labbook.lab.local import access

HOST = {"pid": 7, "start": 99, "control": "198.18.0.9"}


@pytest.mark.parametrize("starts, answers", [
    ({1: 1, 7: 99}, True), ({1: 1, 7: 100}, False), ({1: 1}, False),
    ({}, True),     # /proc with hidepid shows a user no process of root's; labs never came up there
])
def test_a_host_is_given_up_early_only_where_its_end_can_be_seen(monkeypatch, starts, answers):
    monkeypatch.setattr(access, "start_time", starts.get)
    monkeypatch.setattr(access.socket, "create_connection", lambda *_, **__: nullcontext(
        SimpleNamespace(recv=lambda _: b"SSH-")))
    assert access._answers(HOST, time.monotonic() + 5) is answers
