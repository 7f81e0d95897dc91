import re

import pandas as pd

from labbook import paths
from labbook.claims import claims


def test_the_ratios_are_those_of_its_table():
    table = pd.read_csv(paths.papers("cms_scalability") / "single_client.csv")
    seconds = table.set_index(["server", "op", "store"])["seconds"]
    printed = {claim["id"]: claim for claim in claims.load("cms_scalability")
               if re.fullmatch("(large-)?one-client-(read|write)", claim["id"])}
    assert len(printed) == 4
    for name, claim in printed.items():
        where = claim["rule"]["where"]
        server = {1: "MacMini", 2: "Core i7"}[where["cores"]]
        assert name.startswith("large-") == (where["cores"] == 2) and server in claim["source"]
        ratio = seconds[server, where["op"], "cassandra"] / seconds[server, where["op"], "mysql"]
        assert claim["paper"]["value"] == round(ratio, 2)
