"""A database with Keystone's users, made once and kept in the cache: every node starts from it."""

import hashlib
import tarfile
import time
from contextlib import contextmanager
from pathlib import Path

from labbook.lab.cache.build import made
from labbook.lab.ssh.transfer import say
from labbook.systems.galera.node import NOT_KEPT, GaleraNode
from labbook.systems.keystone import state
from labbook.systems.keystone.config import Secrets
from labbook.systems.keystone.server import PACKAGES, Keystone
from labbook.systems.sql.mariadb import SERVER

RECIPE = 1  # of what is made here beside the numbers: another one makes the kept ones void
TELL_AT = 250  # users
PACK_SECONDS = 600


def seed(database_host, keystone_host, *, users: int, projects: int, revocations: int):
    """(the data directory, in the cache, of a database server that was stopped in order; the
    Secrets of the Keystone that filled it). Made on these two hosts when it is not there.
    """
    secrets = Secrets.load(made("keystone-secrets", Secrets().save))
    server = database_host.run(f"{SERVER} --version").stdout.strip()
    recipe = (RECIPE, server, PACKAGES.pins.read_text(), users, projects, revocations,
              secrets.digest)
    digest = hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]

    def fill(folder):
        say(f"making the database that all start from, once: Keystone's tables, {users} users, "
            f"{projects} projects")
        began = time.monotonic()
        with _running(database_host, keystone_host, secrets) as (node, keystone):
            _fill(node, keystone, users, projects, revocations)
            keystone.stop()
            node.stop()
            _take(node, folder)
        say(f"made in {time.monotonic() - began:.0f} s")

    return made(f"keystone-seed-{digest}", fill), secrets


@contextmanager
def _running(database_host, keystone_host, secrets):
    """A cluster of one node and a Keystone over it, gone afterwards."""
    node = GaleraNode(database_host)
    keystone = Keystone.over(keystone_host, node, secrets)
    try:
        node.up()
        keystone.up()
        yield node, keystone
    finally:
        keystone.destroy()
        node.destroy()


def _fill(node, keystone, users, projects, revocations):
    def tell(number):
        if number % TELL_AT == 0 and number < users:
            say(f"{number} users made")

    state.fill(keystone, users, projects, tell)
    state.revoke(keystone, node, revocations)


def _take(node, folder: Path) -> None:
    """The stopped node's data, but for what it makes anew, into a folder of this machine."""
    packed, kept = node.home / "data.tar.gz", folder / "data.tar.gz"
    left_out = " ".join(f"--exclude=./{name}" for name in NOT_KEPT)
    node.host.run(f"tar -C {node.data} {left_out} -czf {packed} .", timeout=PACK_SECONDS)
    node.host.get(packed, kept)
    with tarfile.open(kept) as tar:
        tar.extractall(folder, filter=_ours)
    kept.unlink()


def _ours(member, folder):
    """Files and folders as this user's, whoever's they were there."""
    member.uid = member.gid = None
    member.uname = member.gname = None
    return tarfile.data_filter(member, folder)
