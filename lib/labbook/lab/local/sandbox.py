"""A local host: a process tree in namespaces of its own, over the machine's root file system.

Its first process is sshd. Killing that ends every process of the host, and the kernel then removes
the host's mounts and network devices.
"""

import os
import select
import socket
from pathlib import Path

from labbook.lab import kernel
from labbook.lab.disk import modelled

FLAGS = {"nosuid": kernel.NOSUID, "nodev": kernel.NODEV, "noexec": kernel.NOEXEC,
         "noatime": kernel.NOATIME, "nodiratime": kernel.NODIRATIME, "relatime": kernel.RELATIME}
PRIVATE = ("/run", "/tmp", "/var/tmp", "/dev/shm")  # writable, empty at first, gone with the host
ROOT = "/srv/labbook"  # the host's own folder, as seen inside it
MOUNTS = "/proc/self/mountinfo"
READY_SECONDS = 120
QUIET = ("net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6")


class Sandbox:
    """A child process that sets up its namespaces step by step: it waits for `go` before each step."""

    def __init__(self, name: str, job, log: str):
        self.name, self.log = name, log
        wait, self._go = os.pipe()
        self._ready, ready = os.pipe()
        # opened here: a file opened for writing in the child's mount namespace would prevent read-only
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.pid = kernel.fork_into(kernel.SANDBOX)
        if self.pid == 0:
            os.close(self._go)
            _become(job, wait, ready, output)
        for end in (wait, ready, output):
            os.close(end)

    def go(self) -> None:
        """Let it take its next step. It ends by itself when this process dies before."""
        os.write(self._go, b"x")

    def await_ready(self) -> None:
        """Wait until it is ready; OSError with the end of its log when it died before, or takes longer
        than READY_SECONDS."""
        if not select.select([self._ready], (), (), READY_SECONDS)[0] or not os.read(self._ready, 1):
            raise self._no_start()

    def require_alive(self) -> None:
        """OSError with the end of its log when it has died."""
        if kernel.start_time(self.pid) is None:
            raise self._no_start()

    def _no_start(self) -> OSError:
        return OSError(f"{self.name} did not start: {Path(self.log).read_text()[-1500:].strip()}")


def _become(job, wait, ready, output):
    """Runs in the child, and must never return into the parent's code."""
    try:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        job(lambda: os.read(wait, 1) or os._exit(1), lambda: os.write(ready, b"x"))
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(1)


def idle(wait, ready):
    """The job of the switch, a sandbox whose network namespace has the lab's bridges."""
    wait()
    _sysctls({path: "1" for path in QUIET}, mount=True)
    wait()
    ready()
    os.execv("/bin/sleep", ["sleep", "infinity"])


def host(spec: dict, files: dict[str, str], cgroups: list[str]):
    """The job of a host's first process. `files`: {path in /etc: path of its content}."""
    def job(wait, ready):
        wait()
        for folder in cgroups:
            _join(folder)
        socket.sethostname(spec["name"])
        own_view(spec, files)
        _sysctls({**{path: "1" for path in QUIET}, "net/ipv4/ip_forward": spec["forward"]})
        wait()
        _ip_batch(spec["network"])
        ready()
        os.execv("/usr/sbin/sshd", ["/usr/sbin/sshd", "-D", "-e", "-r", "-f", spec["sshd_config"]])
    return job


def own_view(spec, files):
    """Make the machine's root file system read-only, and mount the host's own folders over it."""
    kernel.mount(None, "/", flags=kernel.REC | kernel.PRIVATE)
    modelled.unseen()
    covered = {place: os.open(place, os.O_PATH) for place in _covered(spec["sees"])}
    sources = {place: os.open(path, os.O_PATH) for place, path in files.items()}
    folder = os.open(spec["folder"], os.O_PATH) if spec["device"] is None else None
    state = os.open(spec["state"], os.O_PATH)
    _all_readonly()
    for place in PRIVATE:
        kernel.mount("tmpfs", place, "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=1777")
    os.chmod("/run", 0o755)
    kernel.mount("tmpfs", "/srv", "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=755,size=1M")
    os.mkdir(ROOT)
    if folder is None:
        kernel.mount(spec["device"], ROOT, "ext4", kernel.NOATIME, "discard,noinit_itable")
    else:
        kernel.mount(f"/proc/self/fd/{folder}", ROOT, flags=kernel.BIND)
        kernel.mount(None, ROOT, flags=kernel.REMOUNT | kernel.BIND | kernel.NOATIME)
    for place, source in covered.items():  # the host's own folder may be above it
        os.makedirs(place, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{source}", place, flags=kernel.BIND)
    os.makedirs("/run/sshd", 0o755)
    os.makedirs(spec["state"], 0o755)
    kernel.mount(f"/proc/self/fd/{state}", spec["state"], flags=kernel.BIND)
    for place, source in sources.items():
        _cover(place, f"/proc/self/fd/{source}")
    _own_kernel_views()


def _covered(places):
    """Those of `places` (Python, this library) that the host's own mounts would hide."""
    both = {path for place in places for path in (place, os.path.realpath(place))}
    return sorted(path for path in both
                  if any(path.startswith(f"{own}/") for own in (*PRIVATE, "/srv")))


def _cover(place, source):
    target = os.path.realpath(place)
    if not os.path.exists(target):  # a link into the machine's own /run
        os.makedirs(os.path.dirname(target), exist_ok=True)
        Path(target).touch()
    kernel.mount(source, target, flags=kernel.BIND)


def _own_kernel_views():
    """Mount /proc, /sys and /dev/pts of these namespaces."""
    kernel.mount("proc", "/proc", "proc", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
    kernel.mount("sysfs", "/sys", "sysfs", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
    kernel.mount("devpts", "/dev/pts", "devpts", kernel.NOSUID | kernel.NOEXEC,
                 "newinstance,ptmxmode=0666,mode=620,gid=5")
    if not os.path.islink("/dev/ptmx"):
        kernel.mount("/dev/pts/ptmx", "/dev/ptmx", flags=kernel.BIND)


def _all_readonly():
    """Remount every mount read-only, keeping its other flags."""
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
        mounts = [line.split() for line in file]
    for fields in mounts:
        place = kernel.unescaped(fields[4])
        flags = sum(FLAGS.get(option, 0) for option in fields[5].split(","))
        try:
            kernel.mount(None, place, flags=kernel.REMOUNT | kernel.BIND | kernel.RDONLY | flags)
        except OSError:
            if place == "/":
                raise  # hidden below another mount: the host cannot reach it either


def _join(folder):
    with open(f"{folder}/cgroup.procs", "w") as file:
        file.write("0")


def _sysctls(values, mount=False):
    if mount:
        kernel.mount(None, "/", flags=kernel.REC | kernel.PRIVATE)
        modelled.unseen()
        kernel.mount("proc", "/proc", "proc")
    for path, value in values.items():
        try:
            Path("/proc/sys", path).write_text(str(value))
        except FileNotFoundError:
            pass  # a kernel without IPv6


def _ip_batch(commands):
    """Run `ip -batch` and wait for it; the first process of a sandbox has no threads."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.dup2(read, 0)
        os.execvp("ip", ["ip", "-batch", "-"])
    os.close(read)
    with os.fdopen(write, "w") as file:
        file.write(commands)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise OSError(f"ip refused:\n{commands}")
