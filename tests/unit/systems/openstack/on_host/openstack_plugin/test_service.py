"""The program that starts OpenStack's services, with an entry point of this test."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from labbook.systems.openstack import platform as openstack_platform

PROGRAM = openstack_platform.PLUGIN / "service.py"
ENTRY = """import os, sys
def main():
    print(*sys.argv, "AWAIT" in os.environ, any(one.endswith("openstack_plugin") for one in sys.path), flush=True)
    return 3"""


@pytest.fixture
def start(tmp_path):
    (tmp_path / "entry.py").write_text(ENTRY)
    begun = []

    def start(**env):
        begun.append(subprocess.Popen(
            [sys.executable, PROGRAM, "some-service", "entry:main", "--config-file", "x"], text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path), **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return begun[-1]

    yield start
    for one in begun:
        one.kill()
        one.communicate()


def test_an_entry_gets_its_arguments_and_its_exit_code_is_kept(start):
    process = start()
    assert process.communicate() == ("some-service --config-file x False False\n", "") and process.returncode == 3


def test_it_waits_until_all_endpoints_listen(start, tmp_path):
    path = tmp_path / "socket"
    with socket.create_server(("127.0.0.1", 0)) as first, socket.socket(socket.AF_UNIX) as second:
        process = start(AWAIT=f"127.0.0.1:{first.getsockname()[1]} {path}")
        first.accept()[0].close()       # the first endpoint was tried
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        second.bind(str(path))
        second.listen()
        assert process.communicate(timeout=20)[0].startswith("some-service")


def test_an_endpoint_that_never_listens_is_named(tmp_path):
    program = f"import sys; sys.path.insert(0, {str(Path(PROGRAM).parent)!r}); import service; " \
              f"service.await_all([{str(tmp_path / 'none')!r}], 0.1)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and f"nothing listens at {tmp_path / 'none'} after" in done.stderr
