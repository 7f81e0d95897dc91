"""All of one cloud's processes on the hosts of a lab, over databases that are given or made."""

import http.client
import shlex
from contextlib import suppress
from pathlib import Path

from labbook.errors import LabError, LabbookError
from labbook.systems.cluster import in_parallel
from labbook.systems.keystone.config import Secrets
from labbook.systems.openstack import config, services
from labbook.systems.openstack.config import BROKER_PORT, BROKER_USER
from labbook.systems.openstack.hypervisor import Hypervisor
from labbook.systems.openstack.releases import DEBIAN_PYTHON, Release
from labbook.systems.sql import MariaDB

API_SECONDS, BROKER_SECONDS = 120, 90
PLUGIN = Path(__file__).with_name("on_host") / "openstack_plugin"
ENTRY = "[neutron.ml2.mechanism_drivers]\nlabbook_tap = openstack_plugin.network:TapDriver\n" \
        "labbook_bridge = openstack_plugin.network:BridgeDriver\n"
METADATA = "Metadata-Version: 2.1\nName: openstack-plugin\nVersion: 1\n"
FOLDERS = ("locks", "images", "staging", "tasks", "nova", "instances", "neutron", "cinder", "coordination",
           "volumes", "keys/fernet", "keys/credential", "plugins/openstack_plugin",
           "plugins/openstack_plugin-1.dist-info")
# Debian's module of libvirt, for whichever Python of that version; none of the others there.
LIBVIRT = "cd /usr/lib/python3/dist-packages && for one in libvirt*.py libvirtmod*; do " \
          "ln -sf $PWD/$one {plugins}/; done"
RABBITMQ = "/usr/lib/rabbitmq/lib"
END_NAMES = """tries=0; while pgrep -x epmd && [ $tries -lt 50 ]; do
  epmd -kill; sleep 0.05; tries=$((tries + 1)); done > /dev/null 2>&1; true"""


class Platform:
    """`host` has all of it but what keeps volumes, which is on `store`; they may be one."""

    def __init__(self, host, store, release: Release, secrets: Secrets, cache_mode="none"):
        self.host, self.store, self.release, self.secrets = host, store, release, secrets
        self.apart = store is not host
        self.database = Database(host, durability="periodic", max_connections=800)
        self._how = {"control": host.address, "password": secrets.password, "cache_mode": cache_mode,
                     "plug": release.plug}
        self.place = self._place(host, "")
        self.broker, self.hypervisor = Broker(host, self.place), Hypervisor(host, self.place)

    def deploy(self, accelerated: bool = False) -> None:
        """The services' files on both hosts. `accelerated`: servers are given to KVM."""
        self._how["virt_type"] = "kvm" if accelerated else "qemu"
        places = in_parallel(self._hosts(), self._deployed)
        self.place, self.store_place = places[0], places[-1]
        self.store.put(config.ini(config.nbd(self.store_place, self.store.address)),
                       self.store_place.etc("cinder") / "nbd.conf")

    def start_ground(self, data=None) -> None:
        """The database, and the broker, which is not waited for; `data` as of Database.deploy."""
        self.broker.begin()
        self.database.deploy(data)
        self.database.start()

    def start(self, running=()) -> None:
        """All services but such as are running already, and the hypervisor; those that ask others at
        once wait for these by themselves."""
        began = self.begin(*(one.name for _, one in self.services() if one.name not in running))
        self.hypervisor.up()
        self.broker.await_answer()
        self.await_answers(began)

    def begin(self, *names: str) -> list:
        """Start these services, and do not wait: (host, service, process) of each."""
        def start(one):
            host, service = one
            return *one, host.start(service.process, service.command, env=service.env, cwd=self._home(host))

        return in_parallel([one for one in self.services() if one[1].name in names], start)

    def await_answers(self, began) -> None:
        """Until those with a port answer there; SystemFailure with the log's tail of one that does not."""
        for host, service, process in began:
            if service.port is not None:
                # another's server at its port is none
                host.wait_for(lambda: process.alive() and self._answers(host, service.port),
                              f"{service.name} to answer", API_SECONDS, process)

    def services(self) -> list:
        """(host, service) of all."""
        own = [*services.apis(self.release, self.place), *services.workers(self.place)]
        return [(self.host, one) for one in own] + [
            (self.store, one) for one in services.volumes(self.store_place)]

    def manage(self, line: str, timeout=600) -> str:
        """What one of the services' own tools says."""
        return self.host.run(f"cd {self.place.home} && {line}", env=services.environment(self.place),
                             timeout=timeout).stdout

    def complaints(self, lines: int = 40) -> str:
        """The last of what the services' logs have as errors."""
        found = "grep -hE ' (ERROR|CRITICAL) ' processes/openstack-*/log"
        return "".join(host.run(f"{found} | sort | tail -n {lines}", check=False).stdout for host in self._hosts())

    def log_tail(self, name: str, lines: int = 40) -> str:
        """Of one service."""
        for host, service in self.services():
            if service.name == name:
                return host.process(service.process).log_tail(lines)
        return ""

    def stop(self) -> None:
        """End all but the database at once, and that in order."""
        self.end_services()
        self.broker.end_names()
        self.database.stop()

    def destroy(self) -> None:
        """End all and take away all: twice, and where nothing is, does no harm."""
        self.hypervisor.end_guests()
        self.end_services()
        if self.database.process is not None:
            self.database.process.kill()
        self.broker.end_names()
        self.hypervisor.down()
        self.database.destroy()
        for host in self._hosts():
            host.run(f"rm -rf --one-file-system {shlex.quote(str(self._home(host)))} processes/openstack-*",
                     timeout=120)

    def end_services(self) -> None:
        """Whatever of the platform runs, but for the database."""
        jobs = [(host, name) for host in self._hosts()
                for name in host.run("ls processes 2> /dev/null", check=False).stdout.split()
                if name.startswith("openstack-")]

        def end(job):
            host, name = job
            process = host.process(name)
            if process is not None:
                process.kill()      # such as make themselves a session of their own are its leaders
                host.run(f"pkill -KILL -s {process.pid}", check=False)

        in_parallel(jobs, end)

    def _hosts(self):
        return [self.host, self.store] if self.apart else [self.host]

    def _deployed(self, host) -> config.Place:
        place = self._place(host, python_on(host, self.release, self._home(host)))
        put_files(host, self.release, place, self.secrets)
        return place

    def _home(self, host):
        return host.root / "openstack"

    def _place(self, host, python):
        return config.Place(self._home(host), python=python, **self._how)

    @staticmethod
    def _answers(host, port) -> bool:
        """Whether it answers a request, by which words ever."""
        with suppress(OSError, EOFError, http.client.HTTPException, LabbookError):
            connection = http.client.HTTPConnection(config.HERE, port, timeout=10)
            connection.sock = host.dial(config.HERE if port != services.NBD_PORT else host.address, port)
            if port == services.NBD_PORT:   # no HTTP, but it listens
                return True
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        return False


def python_on(host, release, home) -> str:
    """Words that run the release's Python on the host; LabError when it has no libvirt."""
    plugins = home / "plugins"
    if release.python is None:
        return f"env PYTHONPATH={plugins} PYTHONNOUSERSITE=1 {DEBIAN_PYTHON}"
    python = release.python.python_on(host).replace("PYTHONPATH=", f"PYTHONPATH={plugins}:", 1)
    host.run(f"mkdir -p {plugins} && {LIBVIRT.format(plugins=plugins)}")
    if host.run(f"{python} -c 'import libvirt'", check=False).exit_code:
        raise LabError(f"{host.name}: its Python cannot import Debian's libvirt", remedy=(
            f"Use labbook by the Python of the distribution ({DEBIAN_PYTHON})"))
    return python


def put_files(host, release, place, secrets) -> None:
    """All that the services read, for nobody else to read."""
    folders = [*(f"etc/{part}" for part in config.CONF), *FOLDERS]
    host.run("umask 077; mkdir -p " + " ".join(shlex.quote(f"{place.home}/{one}") for one in folders))
    texts = {**config.files(place), **services.gunicorn_files(release, place),
             "keys/password": secrets.password, "keys/fernet/1": secrets.fernet,
             "keys/credential/1": secrets.credential,
             "plugins/openstack_plugin-1.dist-info/entry_points.txt": ENTRY,
             "plugins/openstack_plugin-1.dist-info/METADATA": METADATA,
             **{f"plugins/openstack_plugin/{one.name}": one.read_text() for one in PLUGIN.glob("*.py")}}
    for name, text in texts.items():
        host.put(text, place.home / name, 0o600)


def rabbitmq_conf(password: str) -> str:
    """rabbitmq.conf."""
    return "\n".join([
        f"listeners.tcp.1 = 0.0.0.0:{BROKER_PORT}", f"default_user = {BROKER_USER}",
        f"default_pass = {password}", "loopback_users = none", "disk_free_limit.absolute = 50MB",
        "log.console = true", "log.console.level = warning", "log.file = false", ""])


class Broker:
    NAME = "openstack-broker"

    def __init__(self, host, place):
        self.host, self.place, self._folder = host, place, place.home / "broker"

    def begin(self) -> None:
        """Start it, and do not wait."""
        self.host.run(f"umask 077; mkdir -p {self._folder}")
        self.host.put(rabbitmq_conf(self.place.password), self._folder / "rabbitmq.conf", 0o600)
        self.host.put("[].\n", self._folder / "plugins")
        self.host.put("", self._folder / "env")
        program = self.host.run(f"ls -d {RABBITMQ}/rabbitmq_server-*/sbin/rabbitmq-server").stdout.split()[0]
        self._process = self.host.start(self.NAME, program, env=rabbitmq_environment(self._folder))

    def await_answer(self) -> None:
        self.host.wait_for(self._listens, "RabbitMQ to listen", BROKER_SECONDS, self._process)

    def end_names(self) -> None:
        """The name server that Erlang starts by itself, outside of the session; it goes once it has seen that
        the broker has gone."""
        self.host.run(END_NAMES, env={"ERL_EPMD_ADDRESS": "127.0.0.1", "HOME": self._folder})

    def _listens(self) -> bool:
        seen = self.host.run(f"ss -Hltn 'sport = :{BROKER_PORT}'").stdout
        return bool(seen.strip())


def rabbitmq_environment(folder) -> dict:
    """What RabbitMQ's own script reads."""
    return {
        "HOME": folder, "RABBITMQ_NODENAME": "rabbit@localhost", "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_CONF_ENV_FILE": folder / "env", "RABBITMQ_CONFIG_FILE": folder / "rabbitmq",
        "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins", "RABBITMQ_MNESIA_BASE": folder / "data",
        "RABBITMQ_LOG_BASE": folder / "log", "RABBITMQ_LOGS": "-", "RABBITMQ_PID_FILE": folder / "pid",
        "RABBITMQ_GENERATED_CONFIG_DIR": folder / "generated",
        # it would wait for work by spinning
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none",
    }


class Database(MariaDB):
    """The platform's; its data may be a copy of one that was stopped."""

    def deploy(self, data=None) -> None:
        """`data`: the path on the host of a data directory."""
        if data is None:
            super().deploy()
            return
        self.run("mkdir", "-p", self.home / "data")
        self.put_configuration()
        self.run("cp", "-r", "--reflink=auto", f"{data}/.", self.home / "data", timeout=300)

    def put_configuration(self, **own) -> None:
        super().put_configuration(**own, **{
            "bind-address": "0.0.0.0", "performance_schema": "OFF", "innodb_log_file_size": "48M"})
