"""From a plan to a lab's addresses, names, cores and configuration files.

Makes nothing, except for `block_route`, `unblock_route` and `routes`, which run `ip`.
"""

import ipaddress
import json

from labbook.lab import deadline

FOR_BENCHMARKS = ipaddress.IPv4Network("198.18.0.0/15")     # RFC 2544: no network has them
LAST_METRIC = 4278198272  # every other route is preferred
SPLIT = 8  # wider networks are a split default route, such as 0.0.0.0/1 and 128.0.0.0/1 of a VPN
FIRST_HOST = 10  # below: 1 is the machine (control network) or the site's router (data networks)


def layout(plan: dict, block: str) -> dict:
    """The plan with all addresses, for the helper. `plan`: lab, hosts, sites, links; `block`: a /20.

    Its sixteen /24 are the control network's, one for each site, and the wires' the last. What
    description.py allows fits.
    """
    nets = list(ipaddress.IPv4Network(block).subnets(new_prefix=24))
    sites = {site: str(nets[i + 1]) for i, site in enumerate(plan["sites"])}
    wires = _wires(plan["links"], sites, nets[-1])
    hosts = [*plan["hosts"], *_routers(plan["links"])]
    made, taken = [], {site: FIRST_HOST for site in sites}
    for i, host in enumerate(hosts):
        router = host["role"] == "router"
        net = ipaddress.IPv4Network(sites[host["site"]])
        number = 1 if router else taken[host["site"]]
        taken[host["site"]] += not router
        made.append({
            **host,
            "control": f"{nets[0][FIRST_HOST + i]}", "address": f"{net[number]}",
            "wires": [w for w in wires if w["site"] == host["site"]] if router else [],
            "routes": [] if router else _routes(host["site"], plan["links"], sites),
        })
    return {"lab": plan["lab"], "block": block, "gateway": f"{nets[0][1]}",
            "sites": sites, "hosts": made, "uplink": f"lb-{plan['lab']}"}


def _routers(links):
    return [{"name": router_name(site), "site": site, "role": "router", "limits": {}}
            for site in dict.fromkeys(site for pair in links for site in pair)]


def router_name(site: str) -> str:
    return f"router-{site}"


def _routes(site, links, sites):
    """Routes of a host to the sites linked to its own, through its site's router."""
    gateway = ipaddress.IPv4Network(sites[site])[1]
    others = [b if a == site else a for a, b in links if site in (a, b)]
    return [{"to": sites[other], "via": f"{gateway}"} for other in others]


def _wires(links, sites, net):
    """Both ends of every wire between two routers; each wire is a /31 (RFC 3021)."""
    ends, pairs = [], list(net.subnets(new_prefix=31))
    if len(links) > len(pairs):
        raise ValueError(f"{len(links)} links, at most {len(pairs)} have addresses")
    for (a, b), pair in zip(links, pairs):
        for site, other, mine, yours in ((a, b, pair[0], pair[1]), (b, a, pair[1], pair[0])):
            ends.append({"site": site, "other": other, "name": f"w-{other}",
                         "address": f"{mine}/31", "to": sites[other], "via": f"{yours}"})
    return ends


def share_cores(hosts: list[dict], cpus: list[int]) -> dict[str, list[int]]:
    """{host: cores} for hosts with `cores` or `cores_of`; only the latter share cores.

    ValueError when there are too few.
    """
    free, given = list(cpus), {}
    for host in hosts:
        count = host["limits"].get("cores")
        if count is None:
            continue
        if count > len(free):
            needed = sum(h["limits"].get("cores", 0) for h in hosts)
            raise ValueError(f"the lab's hosts ask for {needed} cores, this machine has {len(cpus)}")
        given[host["name"]], free = free[:count], free[count:]
    return given | {h["name"]: sorted(cpu for other in h["limits"]["cores_of"] for cpu in given[other])
                    for h in hosts if h["limits"].get("cores_of")}


def network_commands(host: dict) -> str:
    """Input of `ip -batch` inside the host."""
    lines = ["link set lo up", f"addr add {host['control']}/24 dev ctl0", "link set ctl0 up",
             f"addr add {host['address']}/24 dev data0", "link set data0 up"]
    for wire in host["wires"]:
        lines += [f"addr add {wire['address']} dev {wire['name']}", f"link set {wire['name']} up",
                  f"route add {wire['to']} via {wire['via']}"]
    lines += [f"route add {r['to']} via {r['via']}" for r in host["routes"]]
    return "\n".join([*lines, "route add unreachable default metric 4278198272", ""])


def switch_commands(plan: dict) -> str:
    """Input of `ip -batch` inside the switch: the bridges, and each host's veth pairs to them."""
    lines = [f"link add {b} up type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
             for b in ("ctl", *(f"s-{s}" for s in plan["sites"]))]
    lines.append("link set up0 master ctl up")
    for i, host in enumerate(plan["hosts"]):
        pid = host["pid"]
        lines += [f"link add c{i} master ctl up type veth peer name ctl0 netns {pid}",
                  f"link add d{i} master s-{host['site']} up type veth peer name data0 netns {pid}"]
    routers = {h["site"]: h["pid"] for h in plan["hosts"] if h["role"] == "router"}
    done = set()
    for wire in (w for h in plan["hosts"] for w in h["wires"]):
        pair = frozenset((wire["site"], wire["other"]))
        if pair not in done:
            done.add(pair)
            lines.append(f"link add {wire['name']} netns {routers[wire['site']]} type veth peer "
                         f"name w-{wire['site']} netns {routers[wire['other']]}")
    return "\n".join([*lines, ""])


def names_file(plan: dict) -> str:
    """/etc/hosts of every host: names resolve to data addresses."""
    lines = ["127.0.0.1 localhost"]
    return "\n".join([*lines, *(f"{h['address']} {h['name']}" for h in plan["hosts"]), ""])


def passwd_file(machine: str, home: str) -> str:
    """/etc/passwd: the machine's accounts, with root's home in the host's own folder."""
    lines = [line for line in machine.splitlines() if not line.startswith("root:")]
    return "\n".join([f"root:x:0:0:root:{home}:/bin/bash", *lines, ""])


def shadow_file(machine: str) -> str:
    """/etc/shadow: the machine's accounts without a password. No hash is copied, and sshd would refuse
    a root locked by `!`, as it is on machines with sudo."""
    names = [line.partition(":")[0] for line in machine.splitlines()]
    return "".join(f"{name}:*:::::::\n" for name in names)


def sshd_config(host: dict, folder: str, penalties: bool = False) -> str:
    """Every command finds the driver's library first, not one that this Python has installed.
    `penalties`: this sshd (OpenSSH 9.8 or later) shuts out who broke off a few connections."""
    return ("PerSourcePenalties no\n" if penalties else "") + f"""ListenAddress {host['control']}
SetEnv "PYTHONPATH={host['library']}"
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
StrictModes no
PrintMotd no
PrintLastLog no
MaxStartups 100:30:200
MaxSessions 200
ClientAliveInterval 30
Subsystem sftp internal-sftp
"""


def choose_block(whole: str, taken: list[str], routes: list[str]) -> str:
    """The first free /20 in the range `whole`; OSError when there is none."""
    used = [ipaddress.IPv4Network(t) for t in taken]
    used += [n for n in map(ipaddress.IPv4Network, routes) if n.prefixlen >= SPLIT]
    for block in ipaddress.IPv4Network(whole).subnets(new_prefix=20):
        if not any(block.overlaps(n) for n in used):
            return str(block)
    raise OSError(f"no free addresses in {whole}: end a lab, or set another `range` in the "
                  "environment file")


def routes() -> list[str]:
    """Networks that this machine routes to, without the default route and our own block's."""
    listed = json.loads(deadline.run("ip", "-j", "-4", "route", "show", "table", "all") or "[]")
    return [r["dst"] for r in listed
            if r["dst"] != "default" and r.get("type") not in ("local", "broadcast", "unreachable")]


def is_for_benchmarks(whole: str) -> bool:
    """Whether nobody else has addresses of a range."""
    return ipaddress.IPv4Network(whole).subnet_of(FOR_BENCHMARKS)


def block_route(block: str) -> None:
    """Route a range or block to nowhere: no packet for it ever leaves this machine."""
    deadline.run("ip", "route", "replace", *_nowhere(block))


def unblock_route(block: str) -> None:
    """Take that route away, if it is there."""
    if deadline.run("ip", "-4", "route", "show", "type", "unreachable", "exact", block).strip():
        deadline.run("ip", "route", "delete", *_nowhere(block))


def _nowhere(block: str) -> tuple[str, ...]:
    return "unreachable", block, "metric", str(LAST_METRIC)
