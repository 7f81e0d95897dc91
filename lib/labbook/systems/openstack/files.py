"""The services' files on a host, and the Python that runs them there."""

import shlex
from pathlib import Path

from labbook.errors import LabError
from labbook.systems.openstack import config, services
from labbook.systems.openstack.releases import DEBIAN_PYTHON

PLUGIN = Path(__file__).with_name("on_host") / "openstack_plugin"
ENTRY = "[neutron.ml2.mechanism_drivers]\nlabbook_tap = openstack_plugin.network:TapDriver\n" \
        "labbook_bridge = openstack_plugin.network:BridgeDriver\n"
METADATA = "Metadata-Version: 2.1\nName: openstack-plugin\nVersion: 1\n"
FOLDERS = ("locks", "images", "staging", "tasks", "nova", "instances", "neutron", "cinder", "coordination",
           "volumes", "keys/fernet", "keys/credential", "plugins/openstack_plugin",
           "plugins/openstack_plugin-1.dist-info")
# Debian's module of libvirt, for whichever Python of that version; none of the others there.
LIBVIRT = "cd /usr/lib/python3/dist-packages && for one in libvirt*.py libvirtmod*; do " \
          "ln -sf $PWD/$one {plugins}/; done"


def python_on(host, release, home) -> str:
    """Words that run the release's Python on the host; LabError when it has no libvirt."""
    plugins = home / "plugins"
    if release.python is None:
        return f"env PYTHONPATH={plugins} PYTHONNOUSERSITE=1 {DEBIAN_PYTHON}"
    python = release.python.python_on(host).replace("PYTHONPATH=", f"PYTHONPATH={plugins}:", 1)
    host.run(f"mkdir -p {plugins} && {LIBVIRT.format(plugins=plugins)}")
    if host.run(f"{python} -c 'import libvirt'", check=False).exit_code:
        raise LabError(f"{host.name}: its Python cannot import Debian's libvirt", remedy=(
            f"Use labbook by the Python of the distribution ({DEBIAN_PYTHON})"))
    return python


def put(host, release, place, secrets) -> None:
    """All that the services read, for nobody else to read."""
    folders = [*(f"etc/{part}" for part in config.CONF), *FOLDERS]
    host.run("umask 077; mkdir -p " + " ".join(shlex.quote(f"{place.home}/{one}") for one in folders))
    texts = {**config.files(place), **services.gunicorn_files(release, place),
             "keys/password": secrets.password, "keys/fernet/1": secrets.fernet,
             "keys/credential/1": secrets.credential,
             "plugins/openstack_plugin-1.dist-info/entry_points.txt": ENTRY,
             "plugins/openstack_plugin-1.dist-info/METADATA": METADATA,
             **{f"plugins/openstack_plugin/{one.name}": one.read_text() for one in PLUGIN.glob("*.py")}}
    for name, text in texts.items():
        host.put(text, place.home / name, 0o600)
