"""The drawing of a lab: its sites, hosts, systems and links."""

from figure_stand_ins import names  # noqa: F401 (a fixture)

from labbook import figures
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
