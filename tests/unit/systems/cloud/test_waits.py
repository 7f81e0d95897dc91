"""Waits for servers: the reason of a failure comes after the failure."""

from dataclasses import replace

import pytest

from labbook.systems.cloud import waits as cloud_waits
from labbook.systems.cloud.model import ERROR, STARTING, Server


class Api:
    """An API that reports the given states of one server in turn, and repeats the last."""

    def __init__(self, *says):
        self.says, self.looks = list(says), 0

    def servers(self, ids):
        state, fault = self.says[min(self.looks, len(self.says) - 1)]
        self.looks += 1
        return [Server(id=ids[0], name="one", state=state, fault=fault)]


def waited(api, patience, monkeypatch):
    monkeypatch.setattr(cloud_waits, "FAULT_S", patience)
    one = Server(id="1", name="one", state=STARTING)
    cloud_waits.running(api, [one], 60, 0.001)
    return replace(one, moments={})


def test_a_failed_server_is_polled_for_its_reason(monkeypatch):
    api = Api((STARTING, None), (ERROR, None), (ERROR, None), (ERROR, "No valid host was found"))
    assert waited(api, 60, monkeypatch).fault == "No valid host was found"
    assert api.looks == 4


@pytest.mark.parametrize("patience", [0, 0.01])
def test_a_cloud_without_reasons_is_polled_for_a_moment_only(patience, monkeypatch):
    seen = waited(Api((ERROR, None)), patience, monkeypatch)
    assert (seen.state, seen.fault) == (ERROR, None)
