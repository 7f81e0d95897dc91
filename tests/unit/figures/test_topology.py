"""The drawing of a lab: its sites, hosts, systems and links."""

import re
import xml.etree.ElementTree as ElementTree

from figure_stand_ins import names  # noqa: F401 (a fixture)

from labbook import figures
from labbook.figures.canvas import PAPER, WASH
from labbook.figures.inline_svg import SVG
from labbook.lab.description import LabDescription

DESCRIPTION = {
    "sites": ["a", "b", "c"],
    "hosts": {"db[1-5]": {"site": "a", "role": "db", "limits": {"cores": 2, "memory": "2G"}},
              "lone": {"site": "b", "role": "client", "limits": {"cores": 1, "quota": 0.5}},
              "far": {"site": "c", "role": "client",
                      "limits": {"disk": {"size": "4G", "iops": 200}}}},
    "links": [{"between": ["a", "b"], "rtt_ms": 100, "rate_mbit": 50},
              {"between": ["a", "c"], "rtt_ms": 300, "loss": 0.01}],
    "systems": [{"name": "mysql", "host": "lone", "settings": {"version": "5.5.9"}}],
}


def test_a_topology_shows_hosts_limits_systems_and_links():
    picture = figures.topology(LabDescription.parse(DESCRIPTION))
    assert picture.panels[0].alt == (
        "Drawing of the lab. Site a with db1 … db5: db, 5 hosts, 2 cores, 2 GB memory. "
        "Site b with lone: client, 1 core, 50% of its time, MySQL 5.5.9. "
        "Site c with far: client, disk 4 GB, 200 IOPS. "
        "Link between a and b: RTT 100 ms, 50 Mbit/s. Link between a and c: RTT 300 ms, 1.00% lost.")


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, as in WCAG 2."""
    shares = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(ink: str, paper: str) -> float:
    dark, light = sorted(map(luminance, (ink, paper)))
    return (light + 0.05) / (dark + 0.05)


def test_every_text_has_the_contrast_of_level_aa():
    """The roles were written in their border's colour, 3.4 to 1."""
    svg = ElementTree.fromstring(figures.topology(LabDescription.parse(DESCRIPTION)).panels[0].svg)
    texts = {text.text: re.search(r"fill: (#\w{6})", text.get("style")) for text in svg.iter(f"{{{SVG}}}text")}
    assert {"site a", "db1 … db5", "db, 5 hosts"} <= texts.keys()
    colours = {found[1] if found else "#000000" for found in texts.values()}
    assert all(contrast(colour, ground) >= 4.5 for colour in colours for ground in (PAPER, WASH)), colours
