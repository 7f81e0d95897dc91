import pandas as pd

from labbook import paths
from labbook.claims import claims


def test_the_ratios_are_those_of_the_improvements_it_prints():
    table = pd.read_csv(paths.papers("wan_keystone") / "printed.csv")
    printed = {claim["id"]: claim for claim in claims.load("wan_keystone")}
    for scenario, word in (("create_user", "create"), ("create_and_list_users", "list")):
        percent = table[table.scenario == scenario].set_index("rtt_ms")["saved_percent"]
        for rtt, end in ((100, "little"), (200, "little"), (500, "most")):
            claim = printed[f"{word}-saves-{end}"]
            ratio = 1 / (1 - percent[rtt] / 100)
            assert claim["paper"]["value"] == round(ratio, 3)
            assert claim["rule"]["low"] < ratio < claim["rule"]["high"]
            assert claim["rule"]["where"]["scenario"] == scenario
