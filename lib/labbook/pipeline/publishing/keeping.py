"""What of a published set stays when a run is published: experiments that the run measured less of."""

from collections import Counter

from labbook.study.publication import published


def kept_experiments(study, machine: str, tables: dict, replace=(), report=lambda line: None, known=None) -> dict:
    """{experiment: what run.json says of it}, of those whose published points stay in a Study's set.

    They stay unless the run has at least as many repeats of every setting that is published, or the
    experiment is one to `replace` and the run measured it. One that is none of the `known` experiments of the run's
    notebook (None: unknown) does not stay. tables: {experiment: rows of the run}. report: is given a line for each
    experiment that stays.
    """
    if machine not in published.sets(study.name):
        return {}
    earlier = " by earlier code" if published.changed(study, machine) else (
        " with other versions of packages" if outdated(study, machine) else "")
    found, left_out = {}, gone(study, machine, known)
    for name, about in published.read_run(study.name, machine)["experiments"].items():
        if name in left_out:
            continue
        rows = tables.get(name)
        if not about["points"] or rows and name in replace:
            continue
        if less := _less(study.name, machine, name, rows):
            found[name] = about
            report(f"{name}: kept as it is published{earlier}, {less}")
    return found


def gone(study, machine: str, known) -> list[str]:
    """The experiments of a set that are none of the `known` ones; none where these are None."""
    if known is None or machine not in published.sets(study.name):
        return []
    return [name for name in published.read_run(study.name, machine)["experiments"] if name not in known]


def mark_stale(study, machine: str, names) -> list:
    """Mark the points of experiments of a set as measured by earlier code, or with other versions of packages than
    today's, if that is so; the files. The set's stamp will name today's."""
    if not names or not (published.changed(study, machine) or outdated(study, machine)):
        return []
    return make_stale(study.name, machine, names)


def make_stale(study: str, machine: str, names) -> list:
    """Mark the points of experiments of a set as measured by earlier code or with other versions; the files."""
    import pyarrow as pa

    from labbook.study.records import sealed

    files = [published.file(study, machine, name) for name in names]
    frames = [published.rows(study, machine, name).assign(stale=True) for name in names]
    for file, frame in zip(files, frames):
        sealed.write(file, pa.Table.from_pandas(frame, preserve_index=False))
    return files


def outdated(study, machine: str) -> bool:
    """Whether a set is of other versions of packages than today's."""
    return bool(study.fingerprint.differs(study.fingerprint.code, published.versions(study.name, machine)))


def _less(study, machine, name, rows) -> str:
    """In words, what a run's rows have less of than is published; empty where they have all of it."""
    if not rows:
        return "since this run did not measure it"
    names = published.parameters(study, machine, name)
    there = repeats(published.rows(study, machine, name).to_dict("records"), names)
    now = repeats(rows, names)
    fewer = sum(now[setting] < count for setting, count in there.items())
    least, most = min(there.values()), max(there.values())
    count = f"{least} to {most}" if least != most else str(most)
    return fewer and (f"since this run has fewer repeats of {fewer} of its {len(there)} settings, "
                      f"which have {count}") or ""


def repeats(rows: list[dict], names) -> Counter:
    """{setting: number of its repeats} of rows of a summary."""
    return Counter(setting for setting, _ in {(published.setting(row, names), row["repeat"]) for row in rows})
