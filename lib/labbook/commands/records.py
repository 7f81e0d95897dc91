"""rows and show: the raw rows of recorded points, and a point through time."""

import sys
from pathlib import Path

from labbook import paths
from labbook.checks import did_you_mean
from labbook.errors import InputError


def rows(given) -> int:
    """Print raw rows as CSV, or what is recorded."""
    from labbook.study.explorer import choosing

    study = _study(given)
    if given.list or given.experiment is None:
        if given.values or given.series:
            raise InputError("a list has no rows to choose", key="--list", allowed="without NAME=VALUE and --series")
        print(_listing(study, [_experiment(study, given.experiment)] if given.experiment else _recorded(study)))
        return 0
    records = study.records(_experiment(study, given.experiment))
    metas = choosing.all_of(records)
    wanted = _wanted(metas, given.values)
    found = choosing.chosen(metas, wanted, given.experiment)
    choosing.table(records, found, wanted, given.series).to_csv(sys.stdout, index=False)
    return 0


def show(given) -> int:
    """Draw a point through time into a file, and print a table of its hosts."""
    import labbook.figures  # noqa: F401 (it draws)
    from labbook.figures.point_series import page
    from labbook.pipeline.executing import pages
    from labbook.study.explorer import showing

    asked = given.output and _output(given.output)
    study = _study(given)
    known = {one: study.records(one) for one in _recorded(study)}
    records, meta = _one_point(study, known, given.point, given.values)
    view = showing.show(records, meta)
    name = f"{study.name}-{meta['experiment']}-{meta['key'][:8]}.html"
    file = asked or paths.build_dir() / "shown" / name
    pages.write_atomically(file, page(view))
    print(f"{view!r}\n\n{file}")
    return 0


def _output(name: str) -> Path:
    """The file that is written; InputError for a folder and what else a file cannot replace."""
    file = Path(name).resolve() if Path(name).is_symlink() else Path(name)
    if file.exists() and not file.is_file():
        raise InputError("exists and is no regular file", key=f"-o {name}", allowed="a file, which is made or replaced")
    return file


def _study(given):
    """The Study whose records are asked for: those of this machine, of an environment's hosts or of a fleet."""
    from labbook.pipeline.running.run import environment_file
    from labbook.pipeline.sources import notebooks
    from labbook.study.study import Study

    name, = notebooks.selected([given.study])
    study = Study(name, environment_file(given.environment))
    study.run.fleet = _fleet(given) or study.run.fleet
    return study


def _fleet(given) -> str | None:
    """The folder of the records of the fleet or cluster that is asked for, None without one. A fleet has a name, or
    the file that names it; InputError for what is neither."""
    if given.cluster:
        return f"cluster-{given.cluster}"
    if not given.fleet:
        return None
    if f"fleet-{given.fleet}" in _fleets(given.study):
        return f"fleet-{given.fleet}"
    from labbook.pipeline.fleet.file import Fleet

    return Fleet.load(given.fleet).folder


def _fleets(study: str) -> list[str]:
    """Folders of the records of fleets and clusters that have measured a study."""
    from labbook.study.fleet import NAME

    folders = sorted(one.parent.name for one in paths.records_dir().glob(f"*/{study}") if one.is_dir())
    return [name for name in folders if NAME.fullmatch(name)]


def _one_point(study, known: dict, word: str, values: list[str]):
    """(records, metadata) of the point that a command line names."""
    from labbook.study.explorer import choosing, showing

    if word not in known and showing.PREFIX.fullmatch(word):
        if values:
            raise InputError("an id names a point alone", key=" ".join(values), allowed="an id, or an experiment "
                             "with NAME=VALUE")
        return showing.by_prefix(known, word)
    records = known[_experiment(study, word)]
    metas = choosing.all_of(records)
    wanted = _wanted(metas, values)
    return records, choosing.one(metas, wanted, word)


def _wanted(metas, values: list[str]) -> dict:
    """{parameter: value} of NAME=VALUE; InputError for a name that is given twice."""
    from labbook.study.explorer import choosing

    wanted = {}
    for name, text in map(_split, values):
        if name in wanted:
            raise InputError(f"{name} is given twice", key=f"{name}={text}",
                             allowed="one value of a parameter; without it, all are shown")
        wanted[name] = choosing.from_text(metas, name, text)
    return wanted


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"{text!r} names no value", allowed="NAME=VALUE, such as clients=90")
    return name, value


def _recorded(study) -> list[str]:
    """Names of the experiments with records on this machine, on the environment's hosts, or of the fleet."""
    folder = paths.records_dir() / study.place / study.name
    found = sorted(one.name for one in folder.glob("*") if one.is_dir() and study.records(one.name).keys())
    if not found:
        where = f"of {study.run.fleet}" if study.run.fleet else "on this machine"
        raise InputError(f"nothing is recorded {where}, and published results have no raw rows. "
                         f"Type: labbook run {study.name}", key=study.name, allowed=_others(study))
    return found


def _others(study) -> list[str] | None:
    """The options with which a fleet's records of a study are found; None without any."""
    return [f"--{folder.replace('-', ' ', 1)}" for folder in _fleets(study.name) if folder != study.run.fleet] or None


def _experiment(study, name: str) -> str:
    known = _recorded(study)
    if name not in known:
        raise InputError(f"nothing is recorded of such an experiment{did_you_mean(name, known)}",
                         key=f"{study.name}: {name}", allowed=known)
    return name


def _listing(study, experiments: list[str]) -> str:
    """Each experiment with its number of points, the values of the parameters that vary, the others, and the
    names of its series."""
    from labbook.study.explorer import choosing

    lines = []
    for name in experiments:
        metas = choosing.all_of(study.records(name))
        values = choosing.values_of(metas)
        several = {one: each for one, each in values.items() if len(each) > 1}
        lines.append(f"{name}: {len(metas)} point{'s' * (len(metas) != 1)}")
        lines += [f"  {one}: {', '.join(map(str, each))}" for one, each in several.items()]
        same = [f"{one}={each[0]}" for one, each in values.items() if one not in several and each]
        lines += [f"  the same in all: {' '.join(same)}"] if same else []
        series = sorted({one for meta in metas for one in meta.get("series", {})})
        lines += [f"  series: {', '.join(series)}"] if series else []
    return "\n".join(lines)
