"""All of one cloud's processes on the hosts of a lab, over databases that are given or made."""

import http.client
import shlex
from contextlib import suppress

from labbook.errors import LabbookError
from labbook.systems.cluster import each
from labbook.systems.keystone.config import Secrets
from labbook.systems.openstack import config, files, services
from labbook.systems.openstack.broker import Broker
from labbook.systems.openstack.database import Database
from labbook.systems.openstack.hypervisor import Hypervisor
from labbook.systems.openstack.releases import Release

API_SECONDS = 120


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
        places = each(self._hosts(), self._deployed)
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

        return each([one for one in self.services() if one[1].name in names], start)

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

        each(jobs, end)

    def _hosts(self):
        return [self.host, self.store] if self.apart else [self.host]

    def _deployed(self, host) -> config.Place:
        place = self._place(host, files.python_on(host, self.release, self._home(host)))
        files.put(host, self.release, place, self.secrets)
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
