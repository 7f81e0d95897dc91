"""A process on a host, detached from the connection that started it."""

import math
import shlex
from dataclasses import dataclass
from functools import cached_property

from labbook.errors import LabError

# field PID N: the Nth field of /proc/PID/stat. The name before the last `)` may have spaces and lines. By the shell
# alone: programs would take several times as long, and of the host's quota.
FIELD = """field() {
  stat=; while IFS= read -r line; do stat=$line; done 2> /dev/null < "/proc/$1/stat"
  case $stat in *") "*) ;; *) return;; esac
  at=$(($2 - 2)); set -- ${stat##*) }
  [ $# -lt $at ] || { shift $((at - 1)); echo "$1"; }
}
"""
# The leader of the process's session: starts it, waits for it, writes its exit code.
LEADER = """{field}trap : TERM INT HUP
cd {cwd} || exit 1
( export {env}; exec {command} ) > {folder}/log 2>&1 < /dev/null &
child=$!; its=$(field $child 22); read -r boot < /proc/sys/kernel/random/boot_id
echo "$$ $(field $$ 22) $child ${{its:-gone}} $boot" > {folder}/ids.new
mv {folder}/ids.new {folder}/ids
wait $child; code=$?
while kill -0 $child 2> /dev/null; do wait $child; code=$?; done
echo $code > {folder}/exit.new && mv {folder}/exit.new {folder}/exit
"""
BEGIN = """umask 022; rm -rf {folder} && mkdir -p {folder} && cat > {folder}/leader <<'LABBOOK-END' || exit 1
{leader}LABBOOK-END
setsid sh {folder}/leader > /dev/null 2>&1 < /dev/null &
i=0; while [ ! -s {folder}/ids ] && [ $i -lt 1000 ]; do sleep 0.01; i=$((i+1)); done
cat {folder}/ids"""
# `is PID START`: whether it is that process: a pid may have been reused. Of a program that ended at once the leader
# finds no start, and nothing is taken for it.
IS = """is() { [ -n "$2" ] && [ "$(field "$1" 22)" = "$2" ]; }
"""
# Load the ids.
SAME = FIELD + IS + """ids=; read -r ids 2> /dev/null < {folder}/ids; set -- $ids
"""
ALIVE = SAME + """[ ! -e {folder}/exit ] && is "$3" "$4" && \
case "$(field $3 3)" in Z|X|'') exit 1;; esac"""
# The leader writes the exit code soon after the end, unless it was killed as well.
EXIT = SAME + """leads() { is "$1" "$2" && case "$(field $1 3)" in Z|X|'') return 1;; esac; }
i=0; while [ ! -e {folder}/exit ] && leads "$1" "$2" && [ $i -lt 1000 ]; do
  sleep 0.01; i=$((i+1))
done
cat {folder}/exit"""
SIGNAL = SAME + """is "$1" "$2" || is "$3" "$4" && pkill -{signal} -s "$1"; true"""
# A killed process's main thread may be a zombie while others still hold files and ports. The session may live on when
# its leader and its program have ended: a pid that still names a session is given to no other. After a boot of the host
# all numbers are others'.
LEFT = SAME + """left() {
  pgrep -r D,R,S,T,t -s "$1" > /dev/null || ps -L -s "$1" -o stat= | grep -qv '^[ZX]'
}
read -r boot < /proc/sys/kernel/random/boot_id; [ "${5:-$boot}" = "$boot" ] || exit 0
is "$1" "$2" || is "$3" "$4" || [ ! -e "/proc/$1" ] || exit 0
"""
# By the clock: on a busy host a look takes much longer than the pause between two.
NOW = """now() { cut -d. -f1 /proc/uptime; }
"""
STOP = NOW + LEFT + """pkill -TERM -s "$1"
hard=$(($(now) + {seconds})); most=$((hard + {grace})); while left "$1"; do
  [ $(now) -le $hard ] || pkill -KILL -s "$1"
  [ $(now) -le $most ] || exit 1
  sleep 0.02
done"""
# Repeated, since a child forked meanwhile is missed; prints the processes that do not go.
KILL = NOW + LEFT + """until=$(($(now) + {seconds})); while pkill -KILL -s "$1"; left "$1"; do
  [ $(now) -le $until ] || { ps -L -s "$1" -o pid=,stat=,comm=; exit 0; }
  sleep 0.02
done"""
KILL_SECONDS = 10
LOG_BYTES, LINE_BYTES = 1 << 14, 1 << 8


@dataclass
class Process:
    """A program started by Host.start, in a session of its own; it outlives the connection.

    `log` is its output's path on the host. The exit code is -9 when the whole session was killed.
    With `root` it runs as root, also where the host's user is not root.
    """

    host: object
    name: str
    root: bool = False

    @property
    def folder(self) -> str:
        return str(self.host.root / "processes" / self.name)

    @property
    def log(self) -> str:
        return f"{self.folder}/log"

    @cached_property
    def pid(self) -> int:
        return int(self._sh("cat {folder}/ids").stdout.split()[2])

    def begin(self, command, env=None, cwd=None) -> None:
        """Start it; LabError when one of this name runs. Use Host.start."""
        self._clear()
        if self.root:  # in a folder that belongs to the user
            self.host.run("mkdir -p processes")
        values = {"HOME": str(self.host.root), **(env or {})}
        leader = LEADER.format(
            field=FIELD, folder=shlex.quote(self.folder), command=command,
            cwd=shlex.quote(str(cwd or self.host.root)),
            env=" ".join(f"{k}={shlex.quote(str(v))}" for k, v in values.items()))
        ids = self._sh(BEGIN.replace("{leader}", leader)).stdout.split()
        self.__dict__["pid"] = int(ids[2])

    def _clear(self):
        """Require that none of this name runs; remove what root left, which the user cannot replace."""
        wanted, known = self.root, self.known()
        if known and self.exit_code() is None:      # also waits for its leader
            raise LabError(f"{self.host.name}: {self.name} is running already")
        if known and self.root and not wanted:
            self._sh("rm -rf {folder}")
        self.root = wanted

    def known(self) -> bool:
        """Whether it was ever started; sets `root` accordingly."""
        owner = self._sh("test -s {folder}/ids && stat -c %u {folder}", check=False).stdout.strip()
        self.root = self.root or owner == "0"
        return bool(owner)

    def alive(self) -> bool:
        return self._sh(ALIVE, check=False).exit_code == 0

    def exit_code(self) -> int | None:
        """None while it runs."""
        if self.alive():
            return None
        code = self._sh(EXIT, check=False).stdout.strip()
        return int(code) if code else -9

    def stop(self, timeout: float = 20) -> None:
        """SIGTERM to the whole session; SIGKILL to what is left of it after `timeout` seconds."""
        self._sh(STOP.replace("{seconds}", str(math.ceil(timeout))).replace("{grace}", str(KILL_SECONDS)),
                 timeout=timeout + 3 * KILL_SECONDS)

    def kill(self) -> None:
        """SIGKILL to the whole session; return when it is gone, LabError when it does not go."""
        left = self._sh(KILL.replace("{seconds}", str(KILL_SECONDS))).stdout.split("\n")[0]
        if left:
            raise LabError(f"{self.host.name}: {self.name} is not gone {KILL_SECONDS} s after "
                           f"SIGKILL (pid, state, name: {left.strip()})",
                           remedy="See `ps` there for what it waits for, such as a disk")

    def signal(self, name: str) -> None:
        """Send a signal, such as "STOP", to the whole session."""
        self._sh(SIGNAL.replace("{signal}", name))

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of its output, but not all of a line that has no end."""
        most = max(LOG_BYTES, lines * LINE_BYTES)
        return self._sh(f"tail -c {most} {{folder}}/log | tail -n {lines}", check=False).stdout

    def _sh(self, script, **options):
        return self.host.run(script.replace("{folder}", shlex.quote(self.folder)),
                             root=self.root, **options)
