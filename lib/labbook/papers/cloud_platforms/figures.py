"""Tables and figures of the cloud report's page."""

from pathlib import Path

import pandas as pd

from labbook import figures
from labbook.figures.repeats import origin
from labbook.papers.cloud_platforms.experiments import PLATFORM_FACTS
from labbook.systems.cloud.model import PAPER_FLAVORS
from labbook.workloads.machines.unixbench import TESTS

FACTS = (*PLATFORM_FACTS, "suite", "compiler", "bonnie", "mpi")
# The order of rows in figures and tables, where it is not that of the measurements.
ORDER = {"boot": ["image_gb", "at_once"], "unixbench": ["cores", "place"], "disk": ["volume"],
         "shapes": ["vm_cores"], "applications": ["vm_cores"], "own_network": ["vm_cores"],
         "containers": ["at_once"], "native": ["kernel"]}
COMMAND_RELEASES = {"older": "1.6.2", "newer": "2.0"}


def summaries(study) -> dict[str, pd.DataFrame]:
    """{experiment: its summary}, with rows in the order of figures and tables."""
    unordered = {name: experiment.summary() for name, experiment in study.experiments.items()}
    return {name: one.sort_values(ORDER[name], kind="stable") if len(one) and name in ORDER else one
            for name, one in unordered.items()}


class Facts:
    """Facts on software and platforms from the summaries of all experiments."""

    def __init__(self, summaries):
        summaries = list(summaries)
        self._facts = pd.concat([
            one[["release", *(fact for fact in FACTS if fact in one)]] for one in summaries if len(one)
        ] or [pd.DataFrame(columns=["release", *FACTS])])
        self.machines = max((int(one["compute_machines"].max()) for one in summaries if len(one)), default=1)

    def get(self, name: str, release: str | None = None) -> str:
        """The distinct values of a fact, of one release or of both, as text."""
        facts = self._facts if release is None else self._facts[self._facts["release"] == release]
        values = facts[name].dropna().unique() if name in facts else ()
        return "; ".join(values) or "not measured"


def report_commands(printed: pd.DataFrame) -> figures.Table:
    """Table of the four commands that had problems in the report."""
    rows = tuple((row.command, COMMAND_RELEASES[row.release], row.outcome, row.text)
                 for row in printed.itertuples())
    return figures.Table(("Command", "Release", "Outcome", "Observation"), rows,
                         label="the report's four commands", numbers=False)


def report_set_up(folder: Path) -> figures.Table:
    """The report's tables 1 to 4: its machines, their roles, software and settings. `folder`: of the study's data."""
    rows = pd.read_csv(folder / "platform.csv").itertuples()
    return figures.Table(("Setting", "Table", "1.6.2", "2.0"), tuple(
        (row.what, str(row.table), row.older, row.newer) for row in rows),
        label="tables 1 to 4, as printed", numbers=False)


def report_types(folder: Path) -> figures.Table:
    """The report's table 5 beside the types of servers here."""
    ours = {one.name: _of_type(one.cores, one.memory_mb, one.disk_gb) for one in PAPER_FLAVORS}
    rows = pd.read_csv(folder / "vm_types.csv").itertuples()
    return figures.Table(("Type", "In the report", "Here"), tuple(
        (row.vm, _of_type(row.cores, row.memory_mb, row.disk_gb), ours.get(row.vm, "none")) for row in rows),
        label="table 5 beside ours", numbers=False)


def _of_type(cores, memory_mb, disk_gb) -> str:
    return f"{figures.plural(cores, 'core')}, {memory_mb} MB, {disk_gb} GB of disk"


def report_tests(folder: Path) -> figures.Table:
    """The report's table 8 beside the twelve tests here: the score whose index is 10."""
    ours = {test.name: f"{test.baseline:g} {test.unit}" for test in TESTS}
    rows = pd.read_csv(folder / "unixbench.csv").dropna(subset=["baseline"]).itertuples()
    return figures.Table(("Test", "Baseline in the report", "Here"), tuple(
        (row.called, f"{row.baseline:g} {row.unit}", ours.get(row.test, "none")) for row in rows),
        label="table 8 beside ours")


def report_fields(folder: Path) -> figures.Table:
    """The report's table 9: what it takes bonnie++'s fields to mean."""
    rows = pd.read_csv(folder / "disk_fields.csv").itertuples()
    return figures.Table(("Field", "Meaning in the report", "Here"), tuple(
        (f"{row.group}: {row.called}", row.meaning, figures.name(row.metric)) for row in rows),
        label="table 9 beside the names here", numbers=False)


def of_one_end(summary: pd.DataFrame) -> pd.DataFrame:
    """The boots with the first one's `until`. Boots until *running* and boots until *ssh* are two settings, whose
    repeats are not pooled."""
    return summary[summary["until"] == summary["until"].iloc[0]] if len(summary) else summary


def boot_ratios(printed: pd.DataFrame, summary: pd.DataFrame) -> figures.Table:
    """Table of the ratio of boot times, newer release to older, by number of servers at once.

    The report's ratio is a range over its images; the measured one is the median over the repeats of
    the largest image.
    """
    theirs = printed.dropna(subset=["all_running_s"]).pivot_table(
        index=["at_once", "image_gb"], columns="release", values="all_running_s").dropna()
    ratio = (theirs["newer"] / theirs["older"]).groupby("at_once")
    largest = summary["image_gb"].max() if len(summary) else None
    rows = []
    for at_once in sorted({*theirs.index.get_level_values("at_once"), *summary.get("at_once", ())}):
        known = at_once in ratio.groups
        rows.append((str(at_once),
                     f"{ratio.min()[at_once]:.2f} to {ratio.max()[at_once]:.2f} times" if known else "–",
                     figures.times(summary, "all_running_s", {"release": "newer"}, {"release": "older"},
                                   at_once=at_once, image_gb=largest)))
    here = f"Here, from {largest:g} GB" if largest else "Here"
    return figures.Table(("Servers at once", "In the report, 2 to 20 GB", here), tuple(rows),
                         label="boot time of the newer release over the older one's",
                         caption="Boot time of the newer release over the older one's.")


def boot_times(summary: pd.DataFrame):
    """Line chart of the time until all servers run over the image's size; a panel for each number at once."""
    numbered = summary.assign(number=[f"{n} at once" for n in summary["at_once"]]) if len(summary) else summary
    return figures.line_chart(numbered, x="image_gb", hue="release", col="number", metric="all_running_s",
                        x_label="size of the image, GB", label="time until all run, s")


def boot_parts(summary: pd.DataFrame):
    """Stacked bars of each setting's time: the call, until the hypervisor has started all (disks are copied and
    plugged until then), until all are reported as running, until all answer on ssh (as far as that was waited for).
    Settings that are waited for differently have bars of their own."""
    parts = summary.copy()
    if len(parts):
        parts["to_launched_s"] = (parts["all_launched_s"] - parts["returned_s"]).clip(lower=0).fillna(0)
        parts["to_running_s"] = parts["all_running_s"] - parts["returned_s"] - parts["to_launched_s"]
        parts["to_ssh_s"] = parts["all_ssh_s"] - parts["all_running_s"]
        several = parts["until"].nunique() > 1
        parts["arm"] = [f"{figures.name(r, 'release')}, {gb:g} GB, {n}" + f", until {end}" * several
                        for r, gb, n, end in zip(parts["release"], parts["image_gb"], parts["at_once"], parts["until"])]
    labels = {"returned_s": "the call", "to_launched_s": "until started", "to_running_s": "until reported",
              "to_ssh_s": "until ssh"}
    if len(parts) and parts["to_ssh_s"].isna().all():
        del labels["to_ssh_s"]
    return figures.stacked_bars(parts, y="arm", label="time from the call, s",
                              note="By release, image and number at once", parts=labels)


def boot_medians(summary: pd.DataFrame):
    """Table of medians of the boot metrics."""
    return figures.median_table(
        summary, by={"release": "Release", "image_gb": "Image, GB", "at_once": "At once", "until": "Waited until"},
        metrics={"returned_s": "Call returned, s", "all_launched_s": "Hypervisor's start, s",
                 "all_running_s": "All running, s", "all_ssh_s": "All answer, s",
                 "failed_to_run": "Did not run", "failed_to_answer": "Did not answer"},
        label="boot times in numbers")


def unixbench_index(summary: pd.DataFrame, suite: str):
    """Dot chart of the index of all tests by place and cores; a panel for each number of copies."""
    placed = summary.assign(where=[
        f"{figures.name(cores, 'cores')}, {figures.name(place, 'place')}"
        for place, cores in zip(summary["place"], summary["cores"])]) if len(summary) else summary
    return figures.dot_chart(placed, y="where", hue="release", col="copies", metric="index",
                        label=f"index of all tests, {suite}")


def unixbench_tests(summary: pd.DataFrame, suite: str, copies: str):
    """Dot chart of each test's index in servers. `copies`: "one", or "all" for one on each core."""
    tests = _tests(summary)
    if not len(summary):
        return figures.dot_chart(summary, y="test", hue="release", col="cores", metric="test_index", label=suite)
    chosen = summary[(summary["place"] == "vm") & (summary["copies"] == copies)]
    by_test = chosen.rename(columns={f"{one}_index": one for one in tests}).melt(
        ["release", "cores", "copies", "repeat", *origin(chosen)], tests, "test", "test_index")
    return figures.dot_chart(by_test, y="test", hue="release", col="cores", metric="test_index",
                        label=f"{suite}, {figures.name(copies, 'copies')}")


def unixbench_medians(summary: pd.DataFrame):
    """Table of medians of the indices of all tests."""
    return figures.median_table(
        summary, by={"place": "Where", "cores": "Cores", "release": "Release", "copies": "Copies"},
        metrics={"cores_per_vcpu": "Real cores for each of its own", "index": "Index",
                 **{f"{one}_index": figures.name(one) for one in _tests(summary)}}, label="indices")


def unixbench_twins(summary: pd.DataFrame):
    """Table of the median ratios of a second server of the same release to the first, tested in the same pairs."""
    return figures.median_table(
        summary[summary["place"] == "vm"] if len(summary) else summary, by={"release": "Release"},
        metrics={f"twin_{one}_ratio": figures.name(one.removesuffix("_index"))
                 for one in ("index", *(f"{test}_index" for test in _tests(summary)))},
        label="a server beside one of the same release")


def _tests(summary) -> list[str]:
    return [column.removesuffix("_index") for column in summary if column.endswith("_index")]


def disk_table(printed: pd.DataFrame, fields: list[str], summary: pd.DataFrame):
    """The report's table 10 (medians of its runs) beside the measured rates. `fields`: its columns."""
    theirs = printed.melt(["release", "volume", "run"], fields, "what", "rate").groupby(
        ["release", "volume", "what"], as_index=False)["rate"].median()
    ours = summary.melt(["release", "volume", "repeat", *origin(summary)], fields, "what", "rate") if len(
        summary) else summary
    return figures.paper_vs_measured(theirs, ours, by={"volume": "Disk", "what": "Measured"}, arm="release",
                          metric="rate", unit="a second", label="table 10 beside ours")


def disk_cpu(summary: pd.DataFrame):
    """Table of medians of the share of a processor that each test of the disk took: bonnie++'s %CP."""
    phases = [column.removesuffix("_cpu_percent") for column in summary if column.endswith("_cpu_percent")]
    titles = {phase: f"{phase}_kib_per_s" if f"{phase}_kib_per_s" in summary else f"{phase}_per_s" for phase in phases}
    return figures.median_table(
        summary, by={"volume": "Disk", "release": "Release"},
        metrics={f"{phase}_cpu_percent": figures.name(titles[phase]) for phase in phases},
        label="the processor's share, %CP", caption="Percent of a processor (%CP): medians of the repeats.")


def npb_table(printed: pd.DataFrame, summary: pd.DataFrame, tables: list[int], servers: str):
    """The report's tables of parallel benchmarks beside the measured times, s.

    `servers`: the parameter that identifies the servers.
    """
    numbers = " and ".join(map(str, tables))
    return figures.paper_vs_measured(printed[printed["table"].isin(tables)], summary,
                          by={"kernel": "Task", servers: "Servers"}, arm="release", metric="seconds",
                          unit="s", label=f"tables {numbers} beside ours")


def disks_are(conditions: dict) -> str:
    """What the disks were of the points of these conditions (Study.conditions), in words."""
    if not conditions:
        return "not measured"
    if models := conditions.get("disk_models"):
        return f"modelled ({', '.join(models)}), alike under both releases"
    return "not modelled"


def memory_mb(flavor: str) -> int:
    """Memory, MB, of one of the report's types of servers (table 5)."""
    return next(one.memory_mb for one in PAPER_FLAVORS if one.name == flavor)


def set_up(facts: Facts, own_clouds: set, cache_mode: str) -> dict:
    """Values from the records for the table of differences between the report and this set-up."""
    shared = ("hypervisor", "plumbing", "guest", "volume_way", "client", "compiler", "bonnie", "mpi")
    cached = "not reported by the user's cloud" if own_clouds else figures.name(cache_mode, "cache_mode")
    return {**{name: facts.get(name) for name in shared}, "cache_mode": cached,
            **{f"{release}_platform": facts.get("platform", release) for release in ("older", "newer")},
            "machines": "see the conditions below",
            "compute_machines": figures.plural(facts.machines, "host")}


def summary_numbers(summaries: dict[str, pd.DataFrame]) -> dict[str, str]:
    """{name: text} of the numbers that the page's text quotes."""
    boots, indexed, shaped = of_one_end(summaries["boot"]), summaries["unixbench"], summaries["shapes"]
    functions, older, newer = summaries["functions"], {"release": "older"}, {"release": "newer"}
    most = _largest(boots)
    numbers = {"boot-times": figures.times(boots, "all_running_s", newer, older, **most)}
    for name, metric in (("boot", "all_running_s"), ("ssh", "all_ssh_s")):
        for release in ("older", "newer"):
            numbers[f"{name}-{release}"] = figures.measured(boots, metric, "s", **most, release=release)
    server = _at_most(indexed, "cores") | _first(indexed, "copies")
    numbers["index-times"] = figures.times(indexed, "index", newer, older, place="vm", **server)
    numbers["node-times"] = figures.times(indexed, "index", {"place": "node"}, {"place": "vm"},
                                          release="newer", **server)
    numbers["read-times"] = figures.times(summaries["disk"], "get_block_kib_per_s", older, newer, volume="local")
    numbers["memory-times"] = figures.times(summaries["caching"], "get_block_kib_per_s",
                                            {"cache_mode": "writeback"}, {"cache_mode": "none"})
    network = summaries["own_network"]
    smallest = {"vm_cores": network["vm_cores"].min()} if len(network) else {}
    numbers["cg-times"] = figures.times(network, "seconds", older, newer, kernel="cg", **smallest)
    numbers["message-times"] = figures.times(summaries["latency"], "latency_us", older, newer, between="servers")
    numbers["swapping-times"] = figures.times(summaries["swapping"], "seconds", {"memory": "small"},
                                              {"memory": "enough"})
    works = int((functions["works"] == 1).sum()) if len(functions) else 0
    numbers["works"] = figures.counted(f"{works} of {len(functions)}", functions) if len(functions) else "none"
    numbers["verified"] = _verified(
        shaped, summaries["applications"], summaries["scaling"], summaries["swapping"], network, summaries["native"])
    numbers["most-gb"] = f"{most['image_gb']:g}" if most else "–"
    numbers["most-once"] = figures.plural(int(most["at_once"]), "server") if most else "no server"
    return numbers


def parameters_of(summaries: dict[str, pd.DataFrame], shapes, applications, scaling, swapping,
                  own_network) -> dict[str, str]:
    """{name: text} of parameters that the page's text names, of the points that are shown: published ones may have
    others than the run's groups, which are given."""
    numbers = {}
    numbers["ranks"] = figures.with_values(summaries["shapes"], "ranks", shapes["ranks"])
    numbers["application-ranks"] = figures.with_values(summaries["applications"], "ranks", applications["ranks"])
    numbers["scaling-timed"] = figures.with_values(summaries["scaling"], "timed_s", scaling["timed_s"])
    numbers["swapping-ranks"] = figures.with_values(summaries["swapping"], "ranks", shapes["ranks"])
    numbers["swapping-size"] = figures.with_values(summaries["swapping"], "size", swapping["size"])
    numbers["network-ranks"] = figures.with_values(summaries["own_network"], "ranks", own_network["ranks"])
    numbers["network-timed"] = figures.with_values(summaries["own_network"], "timed_s", own_network["timed_s"])
    numbers["network-size"] = figures.with_values(summaries["own_network"], "size", own_network["size"])
    return numbers


def _largest(boots) -> dict:
    """The largest number of servers at once, and the largest image booted that often."""
    order = ["at_once", "image_gb"]
    return dict(boots.sort_values(order)[order].iloc[-1]) if len(boots) else {}


def _at_most(summary, column) -> dict:
    return {column: summary[column].max()} if len(summary) else {}


def _first(summary, column) -> dict:
    return {column: "one" if "one" in set(summary[column]) else summary[column].iloc[0]} if len(summary) else {}


def _verified(*summaries) -> str:
    runs = [value for one in summaries if len(one) for value in one["verified"]]
    return figures.counted(f"{sum(value == 1 for value in runs)} of {len(runs)}", *summaries) if runs else "none"
