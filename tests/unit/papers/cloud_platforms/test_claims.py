"""The report on cloud platforms judged by the rules of its own claims: what its tables print meets
them, but where the report says something else than they do."""

import re

import pandas as pd
import pytest

from labbook import paths
from labbook.claims import claims
from labbook.claims.rules import decide
from labbook.systems.cloud.model import PAPER_FLAVORS

FOLDER = paths.checkout() / "data" / "papers" / "cloud_platforms"
AGAINST_ITS_TABLES = {"network-seeks-alike"}    # 82 and 405 seeks a second are called about the same
OURS_GB = {2: 0.5, 5: 1, 10: 2, 20: 4}          # sizes that claims take for small, middle and large
# What claims need of a place, as the report's place had it.
PLACE = {"cores_per_vcpu": 1, "machine_cores": 4, "compute_machines": 4, "accelerated": 1, "own_plumbing": 1, "servers": 4,
         "disk_modelled": 0, "reboots_in_one_call": 1}


def printed(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv")


def boot():
    return printed("boot"), ("release", "image_gb", "at_once")


def npb(*tables):
    found = printed("npb")
    return found[found["table"].isin(tables)]


def shapes():
    return npb(11, 12), ("release", "kernel", "vm_cores")


def scaling():
    return npb(13, 14), ("release", "kernel", "vms")


def disk():
    """Medians of the five runs, also of what a percent of the processor brings."""
    runs = printed("disk")
    for what in ("put_c", "put_block", "get_c"):
        runs[f"{what}_kib_per_cpu"] = runs[f"{what}_kib_per_s"] / runs[f"{what}_cpu_percent"]
    return runs.groupby(["release", "volume"]).median(numeric_only=True).reset_index(), ("release", "volume")


PRINTED = {"boot": boot, "shapes": shapes, "applications": shapes, "own_network": shapes, "scaling": scaling,
           "disk": disk}


def judged_by_the_tables():
    """Claims of the report's own whose experiment and measure it prints."""
    tables = {name: read() for name, read in PRINTED.items()}
    return [(claim, *tables[claim["experiment"]]) for claim in claims.load("cloud_platforms")
            if claim.get("experiment") in tables and claim["owner"] == "paper"
            and claim["metric"] in tables[claim["experiment"]][0]]


BY_TABLES = judged_by_the_tables()


def outcome(claim, table, parameters):
    """Each row is given six times over, as a printed number has no repeats."""
    if "image_gb" in claim["rule"].get("where", {}):
        table = table.assign(image_gb=table["image_gb"].map(OURS_GB))
    rows = [row | PLACE | {"repeat": repeat} for row in table.to_dict("records") for repeat in range(1, 7)]
    return decide(claim, rows, parameters)


@pytest.mark.parametrize("claim, table, parameters", BY_TABLES, ids=[one[0]["id"] for one in BY_TABLES])
def test_what_the_report_prints_meets_its_claim(claim, table, parameters):
    found = outcome(claim, table, parameters)
    wanted = "not replicated" if claim["id"] in AGAINST_ITS_TABLES else "replicated"
    assert found.verdict == wanted, found
    paper, value = claim["paper"], found.interval.value
    low, high = (paper.get(end, paper.get("value", value)) for end in ("low", "high"))
    assert low - 0.02 * abs(low) <= value <= high + 0.02 * abs(high)


def test_most_claims_about_printed_numbers_are_among_them():
    assert len(BY_TABLES) >= 45


def test_what_the_rules_ask_can_fail():
    """With the releases exchanged, what tells them apart is refuted."""
    refuted = set()
    for claim, table, parameters in BY_TABLES:
        if set(claim["rule"].get("of", ())) == {"release"} and claim["rule"]["name"] == "greater":
            other = table.assign(release=table["release"].map({"older": "newer", "newer": "older"}))
            refuted.add((claim["id"], outcome(claim, other, parameters).verdict))
    assert len(refuted) > 15
    assert {verdict for _, verdict in refuted} == {"not replicated"}


def test_missing_cells_are_missing():
    table = printed("boot")
    assert table["all_running_s"].isna().sum() == 3
    assert set(table.loc[table["all_running_s"].isna(), "release"]) == {"older"}
    unmeasured = npb(11, 12, 13, 14)
    unmeasured = unmeasured[unmeasured["seconds"].isna()]
    assert {(row.release, row.kernel, row.vms) for row in unmeasured.itertuples()} == {
        *((r, k, n) for r in ("older", "newer") for k in ("sp", "bt") for n in (2, 8)),
        ("older", "mg", 2), ("older", "mg", 8)}


def test_the_types_of_servers_are_those_that_clouds_are_given():
    table = [tuple(row) for row in printed("vm_types")[["vm", "cores", "memory_mb", "disk_gb"]].itertuples(index=False)]
    assert table == [(one.name, one.cores, one.memory_mb, one.disk_gb) for one in PAPER_FLAVORS]


def test_each_table_is_there():
    sources = pd.concat([pd.read_csv(file)["source"] for file in FOLDER.glob("*.csv")])
    found = {int(number) for number in re.findall(r"table (\d+)", " ".join(sources.unique()))}
    assert found == set(range(1, 15))
