"""Hosts of a local lab: what they see, and what they do when asked."""

import os
import signal
import threading
from pathlib import Path

import pytest

from labbook.errors import LabError, SystemFailure


@pytest.fixture
def host(pair):
    return pair.host("h1")


def test_it_has_a_name_and_reaches_its_neighbour_by_name(host):
    assert host.run("hostname").stdout.strip() == "h1"
    assert "1 received" in host.run("ping -c1 -W2 h2").stdout


def test_it_sees_only_its_own_processes_and_devices(host):
    assert "sshd" in host.run("cat /proc/1/comm").stdout
    assert set(host.run("ls /sys/class/net").stdout.split()) == {"lo", "ctl0", "data0"}


@pytest.mark.parametrize("place", ["/etc", "/usr", "/var/lib", "/root", "/home", "/"])
def test_the_machine_cannot_be_written(host, place):
    result = host.run(f"touch {place}/labbook-stray", check=False)
    assert result.exit_code != 0 and "Read-only" in result.stderr
    assert not Path(place, "labbook-stray").exists()


@pytest.mark.parametrize("place", ["/run", "/tmp", "/var/tmp", "/dev/shm", "/srv/labbook"])
def test_what_is_its_own_can_be_written_and_is_private(host, pair, place):
    host.run(f"echo mine > {place}/labbook-own")
    assert pair.host("h2").run(f"ls {place}/labbook-own", check=False).exit_code != 0
    assert not Path(place, "labbook-own").exists()


def test_a_failing_command_says_host_command_and_complaint(host):
    with pytest.raises(LabError, match="h1: `ls /nowhere` ended with exit code 2: .*nowhere"):
        host.run("ls /nowhere")
    assert host.run("exit 7", check=False).exit_code == 7


def test_a_command_over_its_time_is_an_error(host):
    with pytest.raises(LabError, match="`sleep 30` did not end within 0.3 s"):
        host.run("sleep 30", timeout=0.3)
    assert host.run("echo still here").stdout == "still here\n"


def test_ctrl_c_does_not_wait_for_a_commands_end(host):
    """Nor does the command go on, once it writes to who no longer reads; a silent one ends with the lab."""
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        host.run("for i in $(seq 100); do echo; sleep 0.1; done; touch ended")
    host.wait_for(lambda: host.run("pgrep -f '[s]eq 100'", check=False).exit_code == 1, "its end", 20)
    assert host.run("test -e ended", check=False).exit_code == 1


def test_a_lost_connection_is_an_error_and_the_next_command_connects_again(host):
    host.run("true")
    with pytest.raises(LabError, match="connection lost"):
        host.run("kill -9 $PPID; sleep 30", timeout=20)
    assert host.run("echo back").stdout == "back\n"


def test_files_come_and_go_whole(host, tmp_path):
    data = os.urandom(300_000)
    host.put(data, "blob", mode=0o600)
    assert host.get("blob") == data
    host.get("blob", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data
    assert host.run("stat -c %a blob").stdout.strip() == "600"
    with pytest.raises(LabError, match="could not get .*missing"):
        host.get("missing")


def test_a_process_outlives_its_connection(host):
    process = host.start("sleeper", "sleep 60")
    host.close()
    again = host.process("sleeper")
    assert again.alive() and again.pid == process.pid and again.exit_code() is None
    with pytest.raises(LabError, match="sleeper is running already"):
        host.start("sleeper", "sleep 1")
    again.stop()
    assert not again.alive() and again.exit_code() == 143


def test_stop_ends_the_whole_session_also_what_ignores_sigterm(host):
    process = host.start("stubborn", "sh -c 'trap \"\" TERM; sleep 1001 & sleep 1001; sleep 1001'")
    process.stop(timeout=0.3)
    assert host.run("pgrep -f '[s]leep 1001'", check=False).stdout == ""


def test_exit_codes_and_logs_are_kept(host):
    process = host.start("failing", "sh -c 'echo \"{oops}\"; exit 3'", env={"A": "b c"})
    host.wait_for(lambda: not process.alive(), "its end", 5)
    assert process.exit_code() == 3 and process.log_tail() == "{oops}\n"
    killed = host.start("killed", "sleep 60")
    killed.kill()
    assert killed.exit_code() == -9
    assert host.process("never-started") is None


SLOW_TO_GO = """python3 -c '
import threading, time
held = bytearray(300 << 20)
for page in range(0, len(held), 4096):
    held[page] = 1
for _ in range(20):
    threading.Thread(target=time.sleep, args=(60,)).start()
print("holds it", flush=True)'"""


def test_a_killed_process_is_gone_with_its_threads_so_that_its_name_is_free(host):
    earlier = host.start("large", SLOW_TO_GO)
    host.wait_for(earlier.log_tail, "its memory", 20, process=earlier)
    earlier.kill()
    assert host.run(f"ls /proc/{earlier.pid}/task | wc -l", check=False).stdout.strip() in ("0", "1")
    host.start("large", "sleep 60").kill()


def test_waiting_notices_that_the_process_died_and_shows_its_log(host):
    process = host.start("dying", "sh -c 'echo no such table; sleep 0.2; exit 4'")
    with pytest.raises(SystemFailure) as error:
        host.wait_for(lambda: False, "the port", 300, process=process)
    assert "dying ended with exit code 4" in str(error.value)
    assert "no such table" in str(error.value) and process.log in str(error.value)


def test_waiting_has_a_limit(host):
    with pytest.raises(SystemFailure, match="waited for rain: not within 0.2 s"):
        host.wait_for(lambda: False, "rain", 0.2)
