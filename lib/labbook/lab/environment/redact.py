"""Names in the place of what should not be told of a user's hosts: addresses, users, keys."""

import re
from collections.abc import Callable

from labbook.lab.environment.clouds import endpoints

COLOUR = r"\x1b\[[\d;]*m"    # a terminal's, whose last letter is no part of a name


def redactor(environment) -> Callable:
    """A function that gives data (texts, lists, dicts; all else as it is) with the addresses of
    the environment's hosts, and a user before them, told as the hosts' names, and the paths of
    keys, known hosts and root folders as KEY, KNOWN_HOSTS and ROOT; of clouds the endpoints and the
    paths of credentials. The same data where the environment has neither.
    """
    told = {}
    for cloud in environment.clouds:
        told[cloud.credentials] = "CREDENTIALS"
        told |= dict.fromkeys(endpoints(cloud), cloud.name)
    for host in environment.hosts:
        told |= {host.address: host.name, host.data: host.name, str(host.root): "ROOT"}
    for place in _machines(environment):
        told |= {place.address: place.name, place.key: "KEY", place.known_hosts: "KNOWN_HOSTS"}
    if not told:
        return lambda data: data
    users = sorted({place.user for place in _machines(environment)}) or ["root"]
    names = "|".join(re.escape(word) for word in sorted(told, key=len, reverse=True))
    user = "|".join(map(re.escape, users))
    # not within a longer name or address: 10.0.0.1 is no part of 10.0.0.11
    pattern = re.compile(rf"({COLOUR}|(?<![\w.-]))(?:(?:{user})@)?({names})(?![\w-]|\.\w)")
    return lambda data: _redacted(data, lambda text: pattern.sub(lambda m: m[1] + told[m[2]], text))


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
