"""A free range of addresses for a lab, and the route that keeps its packets on this machine."""

import ipaddress
import json
import subprocess

NEVER = 4278198272  # a metric that every other route goes before
SPLIT = 8  # wider ones are a default route in parts, as VPNs set 0.0.0.0/1 and 128.0.0.0/1


def choose(whole: str, taken: list[str], routes: list[str]) -> str:
    """The first free /20 in the range `whole`; OSError when there is none."""
    used = [ipaddress.IPv4Network(t) for t in taken]
    used += [n for n in map(ipaddress.IPv4Network, routes) if n.prefixlen >= SPLIT]
    for block in ipaddress.IPv4Network(whole).subnets(new_prefix=20):
        if not any(block.overlaps(n) for n in used):
            return str(block)
    raise OSError(f"no free addresses in {whole}: end a lab, or set another `range` in the "
                  "environment file")


def routes() -> list[str]:
    """Networks that this machine has routes to, the default and our own guard left out."""
    done = subprocess.run(["ip", "-j", "-4", "route", "show", "table", "all"],
                          capture_output=True, text=True, check=True)
    found = json.loads(done.stdout or "[]")
    return [r["dst"] for r in found
            if r["dst"] != "default" and r.get("type") not in ("local", "broadcast", "unreachable")]


def guard(whole: str) -> None:
    """Nothing for the range leaves this machine, whether a lab is up or not; stays until reboot."""
    subprocess.run(["ip", "route", "replace", "unreachable", whole, "metric", str(NEVER)],
                   check=True, capture_output=True)
