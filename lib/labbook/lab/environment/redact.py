"""Replace what must not be published about a user's hosts and clouds by names."""

import re
from collections.abc import Callable

from labbook.lab.environment.clouds import endpoints

CLAIMANT = re.compile(r"\S+@\S+ \([0-9a-f]{6}\)")     # user, machine and its id: who has a host that is in use
COLOUR = r"\x1b\[[\d;]*m"    # a terminal's escape sequence: its final m is no part of a name


def redactor(environment) -> Callable:
    """A function that returns data (strings, lists, dicts) with all identifying strings replaced.

    Addresses of hosts and jump hosts, and `user@` before them, become the hosts' names; the paths
    of keys, known hosts and root folders become KEY, KNOWN_HOSTS and ROOT. Clouds' endpoints become
    their names, paths of credentials CREDENTIALS, of certificates CERTIFICATES. Without hosts and
    clouds data stays as it is.
    """
    replacements = {}
    for cloud in environment.clouds:
        replacements[cloud.credentials] = "CREDENTIALS"
        if cloud.certificates:
            replacements[cloud.certificates] = "CERTIFICATES"
        replacements |= dict.fromkeys(endpoints(cloud), cloud.name)
    for host in environment.hosts:
        replacements |= {host.address: host.name, host.data: host.name, str(host.root): "ROOT"}
    for place in _machines(environment):
        replacements |= {place.address: place.name, place.key: "KEY", place.known_hosts: "KNOWN_HOSTS"}
    if not replacements:
        return lambda data: data
    users = sorted({place.user for place in _machines(environment)}) or ["root"]
    patterns = "|".join(re.escape(word) for word in sorted(replacements, key=len, reverse=True))
    user = "|".join(map(re.escape, users))
    # not within a longer name or address: 10.0.0.1 is no part of 10.0.0.11
    pattern = re.compile(rf"({COLOUR}|(?<![\w.-]))(?:(?:{user})@)?({patterns})(?![\w-]|\.\w)")
    return lambda data: _redacted(data, lambda text: CLAIMANT.sub("another user", pattern.sub(
        lambda match: match[1] + replacements[match[2]], text)))


def _machines(environment):
    for place in (*environment.jumps, *environment.hosts):
        while place is not None:
            yield place
            place = place.jump


def _redacted(data, replace):
    if isinstance(data, str):
        return replace(data)
    if isinstance(data, dict):
        return {replace(k) if isinstance(k, str) else k: _redacted(v, replace) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(_redacted(item, replace) for item in data)
    return data
