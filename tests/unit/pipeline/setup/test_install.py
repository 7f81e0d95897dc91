"""Package installs leave a machine's services and packages as they were, also when they are killed."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

from labbook.errors import InputError, LabError
from labbook.lab.on_host import quiet_apt
from labbook.lab.python_packages import NO_TOOLS
from labbook.pipeline.setup import install
from labbook.pipeline.setup.requirements import Need, requirements

USERS_POLICY = "#!/bin/sh\nexit 104\n"


@pytest.fixture
def machine(tmp_path):
    for folder in ("usr/sbin", "etc/systemd/system/multi-user.target.wants", "etc/rc3.d",
                   "etc/init.d", "usr/lib/systemd/system"):
        (tmp_path / folder).mkdir(parents=True)
    return quiet_apt.Machine(tmp_path)


def enable(machine, unit, folder="multi-user.target.wants"):
    """What a package's postinst does: the unit, and the link that enables it."""
    shipped = machine.etc.parent / "usr/lib/systemd/system" / unit
    shipped.write_text("[Service]\n")
    link = machine.etc / "systemd/system" / folder / unit
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(f"/lib/systemd/system/{unit}")
    return link


@pytest.mark.parametrize("users", [None, USERS_POLICY])
def test_services_are_refused_only_while_apt_works(machine, users):
    if users:
        machine.policy.write_text(users)
        machine.policy.chmod(0o755)

    def apt(packages):
        assert packages == ["mariadb-server"]
        return subprocess.run([machine.policy, "mariadb", "start"]).returncode

    assert quiet_apt.install(machine, ["mariadb-server"], apt) == 101
    assert not machine.left_over()
    if users:
        assert machine.policy.read_text() == users and os.access(machine.policy, os.X_OK)
    else:
        assert not machine.policy.exists()


def test_a_policy_that_came_meanwhile_stays(machine):
    quiet_apt.install(machine, ["x"], lambda _: machine.policy.unlink()
                      or machine.policy.write_text(USERS_POLICY))
    assert machine.policy.read_text() == USERS_POLICY


def test_what_packages_enable_is_disabled_and_what_was_enabled_stays(machine):
    users = enable(machine, "postgresql.service")
    news = []

    def apt(_):
        news.append(enable(machine, "mariadb.service"))
        news.append(enable(machine, "fstrim.timer", "timers.target.wants"))
        return 0

    quiet_apt.install(machine, ["mariadb-server"], apt)
    assert users.is_symlink()
    assert not any(link.is_symlink() for link in news)


def test_init_scripts_are_disabled_by_debians_own_tool(machine, tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "update-rc.d").write_text(f"#!/bin/sh\necho $* >>{tools}/called\n")
    (tools / "update-rc.d").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    (machine.etc / "rc3.d/S01ssh").write_text("")
    quiet_apt.install(machine, ["haproxy"],
                      lambda _: (machine.etc / "rc3.d/S02haproxy").write_text("") or 0)
    assert (tools / "called").read_text() == "haproxy disable\n"


def test_a_failing_apt_leaves_nothing_either(machine):
    def apt(_):
        enable(machine, "mariadb.service")
        raise OSError("no space left")

    with pytest.raises(OSError):
        quiet_apt.install(machine, ["mariadb-server"], apt)
    assert not machine.left_over() and not machine.services()["links"]


@pytest.mark.parametrize("users", [None, USERS_POLICY])
def test_the_next_call_puts_right_what_a_killed_one_left(machine, users, tmp_path):
    if users:
        machine.policy.write_text(users)
    old = enable(machine, "postgresql.service")
    old.unlink()
    program = textwrap.dedent("""
        import sys, time
        sys.path.insert(0, sys.argv[1])
        from labbook.lab.on_host import quiet_apt
        def apt(_):
            print("working", flush=True)
            time.sleep(60)
        quiet_apt.install(quiet_apt.Machine(sys.argv[2]), ["x"], apt)
    """)
    library = str(quiet_apt.Path(quiet_apt.__file__).parents[3])
    process = subprocess.Popen([sys.executable, "-c", program, library, str(tmp_path)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert machine.left_over() and quiet_apt.MARK in machine.policy.read_text()

    left = enable(machine, "mariadb.service")           # by the apt that went on alone
    old.symlink_to("/lib/systemd/system/postgresql.service")    # by the user, since
    quiet_apt.recover(machine)
    assert not machine.left_over()
    assert not left.is_symlink() and old.is_symlink()
    assert (machine.policy.read_text() if machine.policy.exists() else None) == users


def test_a_record_that_a_power_cut_left_empty_stops_no_later_install(machine):
    machine.before.parent.mkdir(parents=True, exist_ok=True)
    machine.before.write_text("")
    own = enable(machine, "postgresql.service")
    quiet_apt.recover(machine)
    assert not machine.left_over() and own.is_symlink()


def test_what_another_apt_starts_is_waited_for_and_not_refused(machine, capsys):
    """Its services were refused, disabled and stopped, as if this install had brought them."""
    machine.dpkg.mkdir(parents=True, exist_ok=True)
    with open(machine.dpkg / "lock-frontend", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        assert not quiet_apt.await_others(machine, 0.1)
        assert "waited 0.1 s for another apt" in capsys.readouterr().err
    assert quiet_apt.await_others(machine, 0.1)


def test_the_lock_is_waited_for_not_for_ever_and_follows_no_link(machine, tmp_path, capsys):
    (tmp_path / "run").mkdir()
    assert quiet_apt.take_lock(machine.lock, 1)
    assert machine.lock.stat().st_mode & 0o777 == 0o600 and machine.lock.parent.stat().st_mode & 0o777 == 0o700
    assert not quiet_apt.take_lock(machine.lock, 0.1)
    assert f"waited 0.1 s for another install: process {os.getpid()} (" in capsys.readouterr().err
    machine.lock.unlink()
    machine.lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        quiet_apt.take_lock(machine.lock, 0.1)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("draft", ["policy_draft", "before_draft"])
def test_a_draft_that_a_killed_install_left_goes_with_the_next_call(machine, draft):
    file = getattr(machine, draft)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("half of")
    assert machine.left_over()
    quiet_apt.recover(machine)
    assert not file.exists() and not machine.left_over()


def test_killed_between_keeping_and_replacing_a_policy(machine):
    machine.policy.write_text(USERS_POLICY)
    os.link(machine.policy, machine.kept)
    assert machine.left_over()
    quiet_apt.recover(machine)
    assert machine.policy.read_text() == USERS_POLICY and not machine.kept.exists()


@pytest.fixture
def apt_get(tmp_path, monkeypatch):
    """A stand-in for apt-get that answers a simulation with `plan` and notes its calls."""
    def make(plan, code=0):
        tools = tmp_path / "tools"
        tools.mkdir()
        (tools / "apt-get").write_text(
            f"#!/bin/sh\necho \"$*\" >>{tools}/called\n"
            f"case \"$*\" in *--simulate*) echo '{plan}';; esac\nexit {code}\n")
        (tools / "apt-get").chmod(0o755)
        monkeypatch.setenv("PATH", str(tools), prepend=":")
        monkeypatch.setattr(quiet_apt, "_lists_are_old", lambda: False)
        return tools / "called"
    return make


def test_no_package_of_the_users_is_removed(apt_get, capfd):
    called = apt_get("Remv mysql-server [8.0]\nInst mariadb-server (10.11)")
    assert quiet_apt.apt_install(["mariadb-server"]) == quiet_apt.WOULD_REMOVE
    assert capfd.readouterr().out.split() == ["mysql-server"]
    assert all("--simulate" in line for line in called.read_text().splitlines())


def test_lists_are_brought_up_to_date_when_a_package_is_not_found(apt_get):
    called = apt_get("", code=100)
    assert quiet_apt.apt_install(["nosuch"]) == 100
    kinds = [next(w for w in line.split() if w in ("update", "--simulate", "install"))
             for line in called.read_text().splitlines()]
    assert kinds[:3] == ["--simulate", "update", "--simulate"]


def test_installs_take_no_recommendations_and_remove_nothing(apt_get):
    called = apt_get("Inst iperf3 (3.12)")
    assert quiet_apt.apt_install(["iperf3"]) == 0
    last = called.read_text().splitlines()[-1]
    assert "--no-install-recommends" in last and "--no-remove" in last and last.endswith("iperf3")


@pytest.fixture
def dpkg(machine, tmp_path, monkeypatch):
    """A stand-in for dpkg that finishes what a killed one left, and notes its calls; gives the file of what is left."""
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    left = machine.dpkg / "updates/0000"
    left.parent.mkdir(parents=True)
    left.write_text("Package: mariadb-server\n")
    (tools / "dpkg").write_text(f"#!/bin/sh\nanswer=$({machine.policy} x start; echo $?)\n"
                                f"echo \"dpkg $*, services: $answer\" >>{tools}/called\nrm {left}\n")
    (tools / "dpkg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    return left


@pytest.mark.parametrize("packages", [[], ["iperf3"]])
def test_what_a_killed_dpkg_left_is_finished_while_services_are_refused(machine, dpkg, tmp_path, packages):
    """apt had said at every try that somebody must run dpkg, and so had the remedy that was printed."""
    called = tmp_path / "tools/called"
    assert machine.left_over()
    code = quiet_apt.install(machine, packages, lambda packages: called.open("a").write(f"apt {packages}\n") and 7)
    assert code == (7 if packages else 0)
    assert called.read_text().splitlines() == [
        "dpkg --force-confold --configure -a, services: 101", *[f"apt {packages}"] * bool(packages)]
    assert not machine.left_over() and not machine.policy.exists()


@pytest.mark.parametrize("packages, code", [([], 2), (["iperf3"], 0)])
def test_a_dpkg_that_cannot_finish_is_an_error_where_nothing_else_is_to_be_installed(machine, dpkg, tmp_path, packages, code):
    """Else each further call would ask for root, and say that all is well."""
    (tmp_path / "tools/dpkg").write_text("#!/bin/sh\nexit 2\n")
    assert quiet_apt.install(machine, packages, lambda packages: 0) == code
    assert not machine.policy.exists() and not machine.before.exists()


@pytest.mark.parametrize("words, called", [([], False), (["--finish"], True)])
def test_a_lab_that_goes_down_does_not_wait_for_dpkg(machine, dpkg, tmp_path, monkeypatch, words, called):
    """Within its time, dpkg would be killed, and services would stay refused."""
    monkeypatch.setattr(quiet_apt, "Machine", lambda: machine)
    monkeypatch.setattr(quiet_apt, "QUIET", {})
    monkeypatch.setattr(quiet_apt, "take_lock", lambda *_: True)
    for module, name in ((quiet_apt.os, "dup2"), (quiet_apt.signal, "signal")):
        monkeypatch.setattr(module, name, lambda *_: None)
    machine.refuse_services()
    assert quiet_apt.main(str(tmp_path / "log"), *words) == 0
    assert (tmp_path / "tools/called").exists() == called and dpkg.exists() != called
    assert not machine.policy.exists()


def test_a_dpkg_at_work_is_left_alone(machine, dpkg):
    (dpkg.parent / "tmp.i").write_text("")
    with (machine.dpkg / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        assert not machine.left_over()
        quiet_apt.install(machine, ["iperf3"], lambda packages: 0)
    assert dpkg.exists() and machine.left_over()


def test_a_dpkg_that_ended_well_leaves_nothing(machine, dpkg):
    dpkg.rename(dpkg.with_name("tmp.i"))
    assert not machine.left_over()


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A checkout with one study on Cassandra."""
    monkeypatch.setenv("LABBOOK_ROOT", str(tmp_path))
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/stores.ipynb").write_text("{}")
    folder = tmp_path / "data/papers/stores"
    folder.mkdir(parents=True)
    (folder / "lab.yml").write_text("""
sites: [a, b]
hosts:
  server: {site: a, role: db, limits: {cores: 1, memory: 2G, disk: {size: 1G, iops: 100}}}
  client: {site: b, role: client}
links: [{between: [a, b], rtt_ms: 100}]
systems: [{name: cassandra, host: server, settings: {version: "0.7.0"}}]
needs: {packages: [bonnie++], memory: 3G, disk: 2G}
""")
    return tmp_path


def test_a_study_needs_what_its_systems_and_its_lab_need(book):
    needed = requirements(["stores"])
    packages = needed.packages
    assert {"bonnie++", "maven", "openssh-server"} <= set(packages)
    assert "chromium" not in packages and "chromium" in requirements(tests=True).packages
    assert packages["bonnie++"].studies == ["stores"]
    assert any("cassandra-all:0.7.0" in str(artifact) for artifact in needed.artifacts)
    assert {"namespaces", "cgroup cpuset", "cgroup memory", "cgroup io", "loop", "delay"} == set(
        needed.features)
    assert needed.memory_bytes == {"stores": 3 << 30}


def test_a_study_with_a_modelled_disk_needs_its_compiler_and_fuse(book):
    plain = requirements(["stores"])
    file = book / "data/papers/stores/lab.yml"
    file.write_text(file.read_text().replace("iops: 100", "iops: 100, model: hdd_2010"))
    needed = requirements(["stores"])
    assert {"gcc", "libc6-dev", "libfuse3-dev"} <= set(needed.packages) - set(plain.packages)
    assert "fuse" in set(needed.features) - set(plain.features)


def test_a_study_that_is_not_there(book):
    with pytest.raises(InputError, match="stores"):
        requirements(["storse"])


def test_nothing_is_asked_of_apt_when_all_is_there(book, monkeypatch):
    monkeypatch.setattr(install, "versions", lambda names: dict.fromkeys(names, "1.0"))
    monkeypatch.setattr(quiet_apt.Machine, "left_over", lambda self: False)
    monkeypatch.setattr(install, "is_here", lambda artifact: True)
    monkeypatch.setattr(install, "_apt", lambda packages: pytest.fail("apt was called"))
    assert install.main(["stores"]) == 0


def test_only_what_is_missing_is_installed(book, monkeypatch):
    calls = []
    monkeypatch.setattr(install, "versions",
                        lambda names: {name: "1.0" for name in names if name != "bonnie++"})
    monkeypatch.setattr(install, "is_here", lambda artifact: True)
    monkeypatch.setattr(install, "_apt", lambda packages, words: calls.append(packages))
    monkeypatch.setattr(install, "as_root", lambda: [])
    install.main(["stores"])
    assert calls == [["bonnie++"]]


def test_what_needs_no_package_is_fetched_while_packages_are_installed(book, monkeypatch):
    """Each waits for the other to begin; Maven's is fetched after, since Maven is one of the packages."""
    apt_began, fetch_began, events = threading.Event(), threading.Event(), []

    class Wheels:
        tools = NO_TOOLS

        def fetch(self):
            fetch_began.set()
            assert apt_began.wait(10)
            events.append("wheels")

    def apt(packages, _):
        apt_began.set()
        assert fetch_began.wait(10)
        events.append("apt")

    jars = SimpleNamespace(tools="artifacts", fetch=lambda: events.append("jars"))
    monkeypatch.setattr(install, "requirements", lambda *_, **__: SimpleNamespace(
        packages={"maven": Need("maven", "why")}, artifacts=[jars, Wheels()]))
    monkeypatch.setattr(install, "versions", lambda names: {})
    monkeypatch.setattr(install, "choose", lambda need: need.name)
    monkeypatch.setattr(install, "is_here", lambda artifact: "wheels" in events and artifact is not jars)
    monkeypatch.setattr(install, "_apt", apt)
    monkeypatch.setattr(install, "as_root", lambda: [])
    install.main(["stores"])
    assert sorted(events[:2]) == ["apt", "wheels"] and events[2:] == ["jars"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, LabError("cannot fetch it")])
def test_a_fetch_that_stops_waits_for_the_packages(monkeypatch, capsys, error):
    stopped, done = threading.Event(), []

    def fetch(artifacts):
        stopped.set()
        raise error

    def apt(packages, _):
        assert stopped.wait(10)
        time.sleep(0.2)
        done.extend(packages)

    monkeypatch.setattr(install, "_apt", apt)
    monkeypatch.setattr(install, "as_root", lambda: [])
    monkeypatch.setattr(install, "fetch_artifacts", fetch)
    with pytest.raises(type(error) if isinstance(error, LabError) else error):
        install._install(["maven"], [])
    assert done == ["maven"] and "as soon as the packages are installed" in capsys.readouterr().err


def test_an_interrupt_takes_effect_once_the_packages_are_installed(monkeypatch):
    begun, done = threading.Event(), []

    def apt(packages, _):
        assert begun.wait(10)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        done.extend(packages)

    monkeypatch.setattr(install, "_apt", apt)
    monkeypatch.setattr(install, "as_root", lambda: [])
    monkeypatch.setattr(install, "fetch_artifacts", lambda artifacts: begun.set())
    with pytest.raises(KeyboardInterrupt):
        install._install(["maven"], [])
    assert done == ["maven"]


def test_after_packages_that_cannot_be_installed_no_further_artifact_is_fetched(monkeypatch):
    fetched, begun, failed, installing = [], threading.Event(), threading.Event(), []

    class Pool(ThreadPoolExecutor):
        def submit(self, *given):
            installing.append(super().submit(*given))
            return installing[0]

    class Wheels:
        def fetch(self):
            fetched.append(self)
            begun.set()
            assert failed.wait(10)
            wait(installing)

    def apt(packages, _):
        assert begun.wait(10)
        failed.set()
        raise LabError("cannot install")

    monkeypatch.setattr(install, "_apt", apt)
    monkeypatch.setattr(install, "as_root", lambda: [])
    monkeypatch.setattr(install, "is_here", lambda artifact: False)
    monkeypatch.setattr(install, "ThreadPoolExecutor", Pool)
    with pytest.raises(LabError, match="cannot install"):
        install._install(["maven"], [Wheels(), Wheels(), Wheels()])
    assert len(fetched) == 1


def test_without_root_nothing_is_fetched(monkeypatch):
    def refused():
        raise LabError("only root can install packages")

    monkeypatch.setattr(install, "as_root", refused)
    monkeypatch.setattr(install, "fetch_artifacts", lambda artifacts: pytest.fail("fetched"))
    with pytest.raises(LabError, match="only root"):
        install._install(["maven"], [])


def test_an_alternative_that_is_there_will_do(monkeypatch):
    need = Need("openjdk-17-jre-headless | openjdk-21-jre-headless", "Cassandra runs on it", ["s"])
    monkeypatch.setattr(install, "versions", lambda names: {"openjdk-21-jre-headless": "21.0"})
    assert list(install.installed([need])) == [(need, "openjdk-21-jre-headless 21.0")]
    monkeypatch.setattr(install, "available", lambda name: "21" in name)
    assert install.choose(need) == "openjdk-21-jre-headless"


@pytest.mark.parametrize("answer, message", [
    ((quiet_apt.WOULD_REMOVE, "mysql-server\n"), "would remove mysql-server, so nothing was installed"),
    ((100, ""), "apt-get update && apt-get install mariadb-server"),
])
def test_what_apt_cannot_do_is_reported(book, monkeypatch, answer, message):
    code, printed = answer
    with pytest.raises(LabError) as error:
        install._apt(["mariadb-server"], ["sh", "-c", f"echo '{printed}'; exit {code}"])
    assert message in str(error.value)


def test_an_earlier_installation_that_cannot_be_finished_is_reported_without_packages(book):
    with pytest.raises(LabError) as error:
        install._apt([], ["sh", "-c", 'for last; do :; done; [ "$last" != --finish ] || exit 100'])
    assert "could not finish an installation that was cut off" in str(error.value)
    assert "dpkg --configure -a" in str(error.value)


def test_no_root_and_no_sudo(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    with pytest.raises(LabError, match="passwordless sudo"):
        install.as_root()


def test_the_record_of_an_install_is_whole_or_not_there(machine):
    def apt(_):
        assert json.loads(machine.before.read_text()) == before
        return 0

    before = machine.services()
    quiet_apt.install(machine, ["x"], apt)
    assert not machine.before.exists()


def test_a_service_manager_that_hangs_is_left_behind(monkeypatch, capfd):
    monkeypatch.setattr(quiet_apt, "ASK_S", 0.2)
    assert quiet_apt._ask(["sleep", "60"]) == quiet_apt.TIMED_OUT
    assert "sleep 60 did not end within 0.2 s" in capfd.readouterr().err
    assert quiet_apt._ask(["false"]) == 1
