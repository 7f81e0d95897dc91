"""exec, capture, link, cut and heal: a lab that is up, from the shell."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

from labbook.checks import did_you_mean
from labbook.commands.lab import prefer_kept
from labbook.errors import InputError, LabError

ROUTERS = "router-"     # hosts that a local lab has between its sites, beside those of lab.yml
MOST_LOSS = 90          # percent, of a link
SIGNALLED = 128         # and more: exit codes of what a signal ended


def execute(given) -> int:
    """Run a command on the hosts that a pattern fits, at the same time; the highest exit code."""
    if not given.remote_command:
        raise InputError("no command to run", key="exec", allowed="labbook exec 'db*' uptime")
    lab = _lab(given.lab)
    if not (lab.keep or given.lab):
        raise InputError(f"lab {lab.id} of {lab.study} is a running command's, which may measure in it", key="exec",
                         allowed=f"--lab {lab.id}, if that may change what it measures")
    hosts = fitting(lab, given.pattern)
    alone, wide = Lock(), max(map(len, hosts))

    def on(host):
        process = subprocess.Popen(["ssh", "-F", str(lab.ssh_config), host, *given.remote_command],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in process.stdout:
            with alone:
                print(f"{host:<{wide}}  {line.decode(errors='replace').rstrip()}", flush=True)
        return process.wait()

    with ThreadPoolExecutor(len(hosts)) as pool:
        codes = list(pool.map(on, hosts))
    return max(code if code >= 0 else SIGNALLED - code for code in codes)


def capture(given) -> int:
    """Write packets of a host into a pcap file, until Ctrl-C or for some seconds."""
    from labbook.lab import kept
    from labbook.lab.capture import Capture

    record = _lab(given.lab)
    if given.host not in record.hosts or given.host.startswith(ROUTERS):
        raise no_host(record, given.host)
    file = Path(given.output or f"{given.host}.pcap")
    if file.is_dir() or not file.parent.is_dir():
        raise InputError("no file can be written there", key=f"-o {file}", allowed="a file in a folder that is there")
    with kept.watched(record.id) as lab:
        link = _far_site(record, given.link, lab.host(given.host)) if given.link else None
        with Capture(lab, given.host, file, link=link, expression=given.expression or "") as taken:
            _say(f"capturing {taken.interface} of {given.host} into {file}"
                 + (f" for {given.seconds:g} s" if given.seconds else ": Ctrl-C ends it"))
            try:
                taken.wait(given.seconds)
            except KeyboardInterrupt:
                pass
    print(f"{taken.packets} packet{'s' * (taken.packets != 1)} in {file}")
    return 0


def link(given) -> int:
    """Shape a link, or show and measure it."""
    wanted = {name: value for name, value in vars(given).items()
              if name in ("rtt_ms", "jitter_ms", "loss", "rate_mbit") and value is not None}
    if "loss" in wanted:
        if not 0 <= wanted["loss"] <= MOST_LOSS:
            raise InputError("so many packets cannot be lost on a link that is not cut",
                             key=f"--loss {wanted['loss']:g}", allowed=f"0 to {MOST_LOSS}, in percent each way")
        wanted["loss"] /= 100
    with _held_link(given) as one:
        if wanted:
            one.shape(**wanted)
        print(in_words(one))
        if not wanted:
            print(measured_words(one.check()))
    return 0


def cut(given) -> int:
    with _held_link(given) as one:
        one.cut()
        print(in_words(one))
    return 0


def heal(given) -> int:
    """End the cut of a link, or of all links."""
    from labbook.lab import kept

    if given.site_a and not given.site_b:
        raise InputError("a link has two sites", key=f"heal {given.site_a}", allowed="two sites, or none for all links")
    if given.site_a:
        with _held_link(given) as one:
            one.heal()
            print(in_words(one))
        return 0
    with kept.held(_lab(given.lab).id) as lab:
        broken = [one for one in lab.links() if one.asked["cut"]]
        for one in broken:
            one.heal()
            print(in_words(one))
        if not broken:
            _say(f"no link of lab {lab.id} is cut")
    return 0


@contextmanager
def _held_link(given):
    """The link that a command names, of a lab that nobody else uses meanwhile."""
    from labbook.lab import kept

    record = _lab(given.lab)
    check_link(record, given.site_a, given.site_b)
    with kept.held(record.id) as lab:
        yield lab.link(given.site_a, given.site_b)


def in_words(one) -> str:
    """A link as it is asked for."""
    settings = one.asked
    parts = [text.format(settings[name] * scale) for name, text, scale in (
        ("rtt_ms", "round trip {:g} ms", 1), ("jitter_ms", "± {:g} ms", 1), ("loss", "{:g} % lost each way", 100),
        ("rate_mbit", "{:g} Mbit/s each way", 1)) if settings[name]]
    return f"{one.site_a}-{one.site_b}: {'cut; ' * settings['cut']}{', '.join(parts) or 'not shaped'}"


def measured_words(found: dict) -> str:
    """What Link.check measured."""
    if found["cut"]:
        return f"measured: none of {found['pings']} pings came back"
    return (f"measured: round trip {found['measured_rtt_ms']:.2f} ms, {100 * found['measured_loss']:.1f} % of "
            f"{found['pings']} pings lost")


def fitting(lab, pattern: str) -> list[str]:
    """Names of the lab's hosts that a pattern (*, ?, [...]) fits; routers only where it begins as their names do."""
    hosts = [host for host in lab.hosts if fnmatchcase(host, pattern)
             and (not host.startswith(ROUTERS) or pattern.startswith(ROUTERS))]
    if not hosts:
        raise no_host(lab, pattern)
    return hosts


def no_host(lab, name: str) -> InputError:
    known = [host for host in lab.hosts if not host.startswith(ROUTERS)]
    return InputError(f"lab {lab.id} of {lab.study} has no such host{did_you_mean(name, known)}", key=name,
                      allowed=known)


def check_link(lab, a: str, b: str) -> None:
    """InputError unless the lab has a link between these two sites."""
    if frozenset((a, b)) not in map(frozenset, lab.links):
        sites = {site for pair in lab.links for site in pair}
        near = next((did_you_mean(one, sites) for one in (a, b) if one not in sites), "")
        raise InputError(f"lab {lab.id} of {lab.study} has no such link{near}", key=f"{a} {b}",
                         allowed=[" ".join(pair) for pair in lab.links]
                         or "none: its hosts are in one site, or not linked")


def _far_site(record, name: str, host) -> str:
    """The other site of a link `a-b` of the host's."""
    known = {f"{a}-{b}": (a, b) for pair in record.links for a, b in (pair, pair[::-1])}
    if name not in known:
        raise InputError(f"lab {record.id} of {record.study} has no such link{did_you_mean(name, known)}", key="--link",
                         allowed=["-".join(pair) for pair in record.links] or "none: it has no links")
    a, b = known[name]
    if host.site not in (a, b):
        raise InputError(f"{host.name} is in {host.site}, at neither end of the link", key=f"--link {name}",
                         allowed=["-".join(pair) for pair in record.links if host.site in pair] or "none")
    return b if host.site == a else a


def _lab(name: str | None):
    """The record of the lab of this id or study; without a name of the one that is up, and of several the one
    that `labbook up` keeps."""
    from labbook.lab import Lab

    return chosen(list(Lab.list()), name)


def chosen(labs: list, name: str | None):
    if not labs:
        raise LabError("no lab is up", remedy="labbook up STUDY brings one up")
    found = prefer_kept([lab for lab in labs if name in (None, lab.id, lab.study)])
    if len(found) == 1:
        return found[0]
    known = [f"{lab.id} ({lab.study})" for lab in found or labs]
    raise InputError("more than one lab is up: choose one" if found else f"no such lab is up: {name}",
                     key="--lab", allowed=known)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
