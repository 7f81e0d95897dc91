"""All processes of one OpenStack on hosts of a lab: its database, broker, hypervisor and services."""

import http.client
import shlex
from contextlib import suppress
from dataclasses import replace
from operator import methodcaller
from pathlib import Path

from labbook.errors import LabbookError, LabError
from labbook.systems.cluster import in_parallel
from labbook.systems.keystone.config import Secrets
from labbook.systems.openstack import config, containers, services
from labbook.systems.openstack.config import BROKER_PORT, BROKER_USER
from labbook.systems.openstack.hypervisor import Hypervisor
from labbook.systems.openstack.releases import DEBIAN_PYTHON, PORTS, Release
from labbook.systems.sql import MariaDB

API_SECONDS, BROKER_SECONDS = 120, 90
PLUGIN = Path(__file__).with_name("on_host") / "openstack_plugin"
ENTRY = "[neutron.ml2.mechanism_drivers]\nlabbook_tap = openstack_plugin.network:TapDriver\n" \
        "labbook_bridge = openstack_plugin.network:BridgeDriver\n" \
        "labbook_ovs = openstack_plugin.network:OvsDriver\n" \
        "labbook_macvlan = openstack_plugin.network:MacvlanDriver\n"
METADATA = "Metadata-Version: 2.1\nName: openstack-plugin\nVersion: 1\n"
FOLDERS = ("locks", "images", "staging", "tasks", "nova", "instances", "neutron", "cinder", "coordination",
           "volumes", "keys/fernet", "keys/credential", "plugins/openstack_plugin",
           "plugins/openstack_plugin-1.dist-info")
# Debian's libvirt module, for another Python of the same version, without Debian's other modules.
LIBVIRT = "cd /usr/lib/python3/dist-packages && for one in libvirt*.py libvirtmod*; do " \
          "ln -sf $PWD/$one {plugins}/; done"
RABBITMQ = "/usr/lib/rabbitmq/lib"
END_EPMD = """tries=0; while pgrep -x epmd && [ $tries -lt 50 ]; do
  epmd -kill; sleep 0.05; tries=$((tries + 1)); done > /dev/null 2>&1; true"""


class Platform:
    """One platform. `host` runs everything except volumes, which are on `store` (may be the same host), and guests
    where they have compute hosts of their own. plug: as of config.Layout; None: the release's. in_containers: whether
    servers are containers."""

    def __init__(self, host, store, release: Release, secrets: Secrets, cache_mode="none", plug: str | None = None,
                 computes=(), in_containers: bool = False):
        self.host, self.store, self.release, self.secrets = host, store, release, secrets
        self.computes = list(computes)
        self.apart = store is not host
        # where volumes are served
        self.volumes_address = store.address if self.apart else config.HERE
        self.database = Database(host, secrets.password, durability="periodic", max_connections=800)
        self._options = {"control": host.address, "password": secrets.password, "cache_mode": cache_mode,
                         "plug": plug or release.plug, "machines": len(self.computes)}
        if in_containers:
            self._options |= {"virt_type": "lxc", "plug": "macvlan"}
        self.layout = self._layout(host, "")
        self.broker = Broker(host, self.layout)
        kind = containers.Containers if in_containers else Hypervisor
        self.hypervisors = [kind(one, self._layout(one, "")) for one in self.computes or [host]]

    def deploy(self, accelerated: bool = False) -> None:
        """Write the services' files on all hosts. `accelerated`: guests run on KVM."""
        if self.layout.virt_type != "lxc":
            self._options["virt_type"] = "kvm" if accelerated else "qemu"
        self._layouts = dict(zip((host.name for host in self._hosts()), in_parallel(self._hosts(), self._deployed)))
        self.layout, self.store_layout = self._layouts[self.host.name], self._layouts[self.store.name]
        self.store.put(config.ini(config.nbd(self.store_layout, self.volumes_address)),
                       self.store_layout.etc("cinder") / "nbd.conf")
        computing = [one.address for one in self.computes]
        if self.apart:
            self.store.run(services.admission(computing or [self.host.address], services.NBD_PORT))
        if computing:
            self.host.run(services.admission(computing, *PORTS.values()))

    def start_backends(self, data=None) -> None:
        """Start the broker, without waiting for it, and the database; `data` as in Database.deploy."""
        self.broker.begin()
        self.database.deploy(data)
        self.database.start()

    def start(self, running=()) -> None:
        """Start the hypervisor and all services that are not in `running`.

        Services that need others at their start wait for these themselves.
        """
        began = self.begin(*(one.name for _, one in self.services() if one.name not in running))
        in_parallel(self.hypervisors, methodcaller("up"))
        self.broker.await_answer()
        self.await_answers(began)

    def begin(self, *names: str) -> list:
        """Start these services without waiting; returns (host, service, process) of each."""
        def start(one):
            host, service = one
            return *one, host.start(service.process, service.command, env=service.env, cwd=self._home(host))

        return in_parallel([one for one in self.services() if one[1].name in names], start)

    def await_answers(self, began) -> None:
        """Wait until each service with a port answers; SystemFailure with a log's end if one does not."""
        for host, service, process in began:
            if service.port is not None:
                # a foreign server at the port does not count
                host.wait_for(lambda: process.alive() and self._answers(host, service.port),
                              f"{service.name} to answer", API_SECONDS, process)

    def services(self) -> list:
        """(host, service) of all services."""
        own = [*services.apis(self.release, self.layout), *services.workers(self.layout)]
        return [(self.host, one) for one in own] + [
            (self.store, one) for one in services.volumes(self.store_layout, self.volumes_address)] + [
            (host, one) for host in self.computes for one in services.computing(self._layouts[host.name])]

    def manage(self, line: str, timeout=600) -> str:
        """The output of a command line of one of the services' tools."""
        return self.host.run(f"cd {self.layout.home} && {line}", env=services.environment(self.layout),
                             timeout=timeout).stdout

    def complaints(self, lines: int = 40) -> str:
        """The last errors in the services' logs."""
        found = "grep -hE ' (ERROR|CRITICAL) ' processes/openstack-*/log"
        return "".join(host.run(f"{found} | sort | tail -n {lines}", check=False).stdout for host in self._hosts())

    def log_tail(self, name: str, lines: int = 40) -> str:
        """The end of one service's log."""
        for host, service in self.services():
            if service.name == name:
                return host.process(service.process).log_tail(lines)
        return ""

    def stop(self) -> None:
        """Kill everything but the database, and stop that in order."""
        self.end_services()
        self.broker.end_epmd()
        self.database.stop()

    def destroy(self) -> None:
        """Kill everything and remove all files; may be repeated."""
        in_parallel(self.hypervisors, methodcaller("end_guests"))
        self.end_services()
        if self.database.process is not None:
            self.database.process.kill()
        self.broker.end_epmd()
        in_parallel(self.hypervisors, methodcaller("down"))
        self.host.run(f"hostname {self.host.name}")
        self.database.destroy()
        for host in self._hosts():
            host.run(f"rm -rf --one-file-system {shlex.quote(str(self._home(host)))} processes/openstack-*",
                     timeout=120)

    def end_services(self) -> None:
        """Kill whatever of the platform runs, except the database."""
        jobs = [(host, name) for host in self._hosts()
                for name in host.run("ls processes 2> /dev/null", check=False).stdout.split()
                if name.startswith("openstack-")]

        def end(job):
            host, name = job
            process = host.process(name)
            if process is not None:
                process.kill()      # services that made a session of their own are its leaders
                host.run(f"pkill -KILL -s {process.pid}", check=False)

        in_parallel(jobs, end)

    def _hosts(self):
        return [self.host, *([self.store] if self.apart else []), *self.computes]

    def _deployed(self, host) -> config.Layout:
        layout = self._layout(host, python_on(host, self.release, self._home(host)))
        if host is self.host or host in self.computes:  # by which libvirt and so Nova know it, whatever its name is
            host.run(f"hostname {layout.node}")
            layout = replace(layout, cpus=int(host.run("getconf _NPROCESSORS_ONLN").stdout))
        put_files(host, self.release, layout, self.secrets)
        return layout

    def _home(self, host):
        return host.root / "openstack"

    def _layout(self, host, python):
        node = {"node": host.name} if host in self.computes else {}
        return config.Layout(self._home(host), python=python, **self._options, **node)

    def _answers(self, host, port) -> bool:
        """Whether the port answers an HTTP request, with whatever status below 500."""
        with suppress(OSError, EOFError, http.client.HTTPException, LabbookError):
            if port == services.NBD_PORT:   # it does not speak HTTP, but it listens
                host.dial(self.volumes_address, port).close()
                return True
            connection = http.client.HTTPConnection(config.HERE, port, timeout=10)
            connection.sock = host.dial(config.HERE, port)
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        return False


def python_on(host, release, home) -> str:
    """The command that runs the release's Python on the host; LabError if that has no libvirt."""
    plugins = home / "plugins"
    if release.python is None:
        return f"env PYTHONPATH={plugins} PYTHONNOUSERSITE=1 {DEBIAN_PYTHON}"
    python = release.python.python_on(host).replace("PYTHONPATH=", f"PYTHONPATH={plugins}:", 1)
    host.run(f"mkdir -p {plugins} && {LIBVIRT.format(plugins=plugins)}")
    if host.run(f"{python} -c 'import libvirt'", check=False).exit_code:
        raise LabError(f"{host.name}: its Python cannot import Debian's libvirt", remedy=(
            f"Use labbook by the Python of the distribution ({DEBIAN_PYTHON})"))
    return python


def put_files(host, release, layout, secrets) -> None:
    """Write all files of the services, readable by their owner only."""
    folders = [*(f"etc/{part}" for part in config.CONF), *FOLDERS]
    host.run("umask 077; mkdir -p " + " ".join(shlex.quote(f"{layout.home}/{one}") for one in folders))
    texts = {**config.files(layout), **services.gunicorn_files(release, layout),
             "keys/password": secrets.password, "keys/fernet/1": secrets.fernet,
             "keys/credential/1": secrets.credential,
             "plugins/openstack_plugin-1.dist-info/entry_points.txt": ENTRY,
             "plugins/openstack_plugin-1.dist-info/METADATA": METADATA,
             **({"plugins/container-init": containers.init()} if layout.virt_type == "lxc" else {}),
             **{f"plugins/openstack_plugin/{one.name}": one.read_text() for one in PLUGIN.glob("*.py")}}
    for name, text in texts.items():
        host.put(text, layout.home / name, 0o600)


def rabbitmq_conf(address: str, password: str) -> str:
    """rabbitmq.conf; `address` is where it listens."""
    return "\n".join([
        f"listeners.tcp.1 = {address}:{BROKER_PORT}", f"default_user = {BROKER_USER}",
        f"default_pass = {password}", "loopback_users = none", "disk_free_limit.absolute = 50MB",
        "log.console = true", "log.console.level = warning", "log.file = false", ""])


class Broker:
    NAME = "openstack-broker"

    def __init__(self, host, layout):
        self.host, self.layout, self._folder = host, layout, layout.home / "broker"

    def begin(self) -> None:
        """Start without waiting."""
        self.host.run(f"umask 077; mkdir -p {self._folder}")
        self.host.put(rabbitmq_conf(self.layout.control, self.layout.password), self._folder / "rabbitmq.conf", 0o600)
        self.host.put("[].\n", self._folder / "plugins")
        self.host.put("", self._folder / "env")
        program = self.host.run(f"ls -d {RABBITMQ}/rabbitmq_server-*/sbin/rabbitmq-server").stdout.split()[0]
        self._process = self.host.start(self.NAME, program, env=rabbitmq_environment(self._folder))

    def await_answer(self) -> None:
        self.host.wait_for(self._listens, "RabbitMQ to listen", BROKER_SECONDS, self._process)

    def end_epmd(self) -> None:
        """End Erlang's port mapper, which runs outside of the broker's session, once it has seen that the
        broker is gone."""
        self.host.run(END_EPMD, env={"ERL_EPMD_ADDRESS": "127.0.0.1", "HOME": self._folder})

    def _listens(self) -> bool:
        seen = self.host.run(f"ss -Hltn 'sport = :{BROKER_PORT}'").stdout
        return bool(seen.strip())


def rabbitmq_environment(folder) -> dict:
    """Variables that RabbitMQ's script reads."""
    return {
        "HOME": folder, "RABBITMQ_NODENAME": "rabbit@localhost", "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_CONF_ENV_FILE": folder / "env", "RABBITMQ_CONFIG_FILE": folder / "rabbitmq",
        "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins", "RABBITMQ_MNESIA_BASE": folder / "data",
        "RABBITMQ_LOG_BASE": folder / "log", "RABBITMQ_LOGS": "-", "RABBITMQ_PID_FILE": folder / "pid",
        "RABBITMQ_GENERATED_CONFIG_DIR": folder / "generated",
        # waits for work without a busy loop; accepts no other node but from its own host
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none "
                                               "-kernel inet_dist_use_interface {127,0,0,1}",
    }


class Database(MariaDB):
    """The platform's MariaDB, whose data may be a copy of a stopped server's."""

    def deploy(self, data=None) -> None:
        """`data`: path on the host of a data directory; without, an empty one is made."""
        if data is None:
            super().deploy()
            return
        self.run("mkdir", "-p", self.home / "data")
        self.put_configuration()
        self.run("cp", "-r", "--reflink=auto", f"{data}/.", self.home / "data", timeout=300)

    def put_configuration(self, **own) -> None:
        super().put_configuration(**own, performance_schema="OFF", innodb_log_file_size="48M")
