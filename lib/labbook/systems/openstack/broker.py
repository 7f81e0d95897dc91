"""RabbitMQ as the platform's broker: Debian's, with nothing kept from one start to the next."""

from labbook.systems.openstack.config import BROKER_PORT, BROKER_USER

START_SECONDS = 90
ROOT = "/usr/lib/rabbitmq/lib"
END_NAMES = """tries=0; while pgrep -x epmd && [ $tries -lt 50 ]; do
  epmd -kill; sleep 0.05; tries=$((tries + 1)); done > /dev/null 2>&1; true"""


def settings(password: str) -> str:
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
        self.host.put(settings(self.place.password), self._folder / "rabbitmq.conf", 0o600)
        self.host.put("[].\n", self._folder / "plugins")
        self.host.put("", self._folder / "env")
        program = self.host.run(f"ls -d {ROOT}/rabbitmq_server-*/sbin/rabbitmq-server").stdout.split()[0]
        self._process = self.host.start(self.NAME, program, env=environment(self._folder))

    def await_answer(self) -> None:
        self.host.wait_for(self._listens, "RabbitMQ to listen", START_SECONDS, self._process)

    def end_names(self) -> None:
        """The name server that Erlang starts by itself, outside of the session; it goes once it has seen that
        the broker has gone."""
        self.host.run(END_NAMES, env={"ERL_EPMD_ADDRESS": "127.0.0.1", "HOME": self._folder})

    def _listens(self) -> bool:
        seen = self.host.run(f"ss -Hltn 'sport = :{BROKER_PORT}'").stdout
        return bool(seen.strip())


def environment(folder) -> dict:
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
