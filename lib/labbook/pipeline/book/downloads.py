"""Downloads of a page: summaries as CSV and Parquet, the executed notebook; and the end of the
page, with the command that makes it again."""

import contextlib
import functools
import hashlib
import io
import json
import shlex
from pathlib import Path

from labbook import paths
from labbook.checks import load_yaml
from labbook.errors import InputError
from labbook.pipeline.book.portable import portable
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.progress import duration
from labbook.pipeline.running.status import machine_words
from labbook.pipeline.sources import notebooks
from labbook.pipeline.sources.parameters import chosen, declared, flat

FOLDER = "_files"


def files(study: str, note: dict) -> dict[str, bytes]:
    """{file name: content} of a study's downloads; {} unless its last run succeeded.

    Reused as long as the page is the same, because pandas is slow to import.
    """
    if note.get("state") != pages.OK or not pages.page(study).is_file():
        return {}
    return remembered(study, note, paths.build_dir() / "stage" / FOLDER / study, lambda: _made(study, note))


def remembered(name: str, note: dict, staged: Path, make) -> dict[str, bytes]:
    """{file name: content} of `make()`; what is in the folder `staged` as long as the page of `note` is the same."""
    mark = paths.build_dir() / "downloads" / f"{name}.json"
    made_from = {"page": note["page"]}     # the key is none where a later run was stopped, whose points are no page's
    try:
        known = json.loads(mark.read_text())
        staged_files = {name: (staged / name).read_bytes() for name in known["files"]}
        if known["of"] == made_from and known["files"] == _digests(staged_files):
            return staged_files     # not where staging ended in between, and these are another page's
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        pass
    made = make()
    pages.write_atomically(mark, json.dumps({"of": made_from, "files": _digests(made)}))
    return made


def _digests(made: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}


def _made(study: str, note: dict) -> dict[str, bytes]:
    page = portable(notebooks.read(pages.page(study)))
    made = {f"{study}.ipynb": json.dumps(page, ensure_ascii=False, indent=1).encode()}
    for experiment, frame in _summaries(study, note).items():
        made[f"{experiment}.csv"] = frame.to_csv(index=False).encode()
        made[f"{experiment}.parquet"] = _parquet(frame)
    return made


def _parquet(frame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _summaries(study: str, note: dict) -> dict:
    """{experiment: DataFrame}, a row a point, of the records that the page shows."""
    from labbook.study import Study
    from labbook.study.publication import published

    of = Study(study, note["environment"] or paths.LOCAL)
    of.run.fleet = note.get("fleet")
    if note["published"]:
        frames = {name: published.load(of, name).drop(columns=published.JSON_COLUMNS)
                  for name in published.experiments(study)}
        return {name: frame for name, frame in frames.items() if len(frame)}
    import pandas as pd

    from labbook.study.publication import completed
    from labbook.study.records.record import Records, grid_keys, summary_rows

    frames, of.run.setups = {}, completed.setups(of.place, study, note["profile"])
    for grid in completed.grids(of.place, study, note["profile"]):
        metas = map(Records(grid.parent).meta, grid_keys(grid))
        rows = [row for meta in metas if meta for row in summary_rows(meta, of.run.is_stale(meta))]
        if rows:
            frames[grid.parent.name] = pd.DataFrame(rows)
    return frames


def ending(study: str, note: dict, made: dict, points: str = "") -> str:
    """Markdown for the end of a page: data, command, time and machine of the run. points: links to points."""
    parts = ["## Data and command"]
    if made:
        links = [f"{{download}}`{name} </{FOLDER}/{study}/{name}>`" for name in made]
        parts.append("Summaries with a row for each measured point, and this page as an executed notebook, "
                     "for JupyterLab, an editor or GitHub:\n\n"
                     + "\n".join(f"- {link}" for link in links))
    parts.append(points)
    parts.append(f"```bash\n{command(study, note)}\n```")
    facts = [*_needs(study), *_run(note)]
    parts.append("\n".join(f"- {fact}" for fact in facts))
    return "\n\n".join(part for part in parts if part)


def command(study: str, note: dict) -> str:
    """The command that makes this page."""
    if note.get("published"):
        return "make published"
    command_line = ["labbook run", study]
    if note.get("fleet"):
        command_line.append(_of_fleet(note["fleet"]))
    if note.get("profile", "quick") != "quick":
        command_line.append(f"--profile {note['profile']}")
    beyond = _beyond_profile(study, note)
    which = (note.get("board") or {}).get("which")
    if which and (beyond.keys() - {"environment"} or note.get("profile", "quick") != "quick"
                  or which != _lab(study).get("quick", {}).get("claims")):
        command_line.append(f"--until-decided --claims {which}")
    for name, value in beyond.items():
        text = value if isinstance(value, str) else json.dumps(value)
        command_line.append(f"--environment {shlex.quote(text)}" if name == "environment"
                            else f"-p {name} {shlex.quote(text)}")
    return " ".join(command_line)


def _of_fleet(folder: str) -> str:
    """The option of a run whose records are in this folder: `fleet-NAME`, or `cluster-PROFILE`."""
    kind, _, name = folder.partition("-")
    return f"--cluster {name}" if kind == "cluster" else f"--fleet {_fleet_file(name)}"


def _fleet_file(name: str) -> str:
    """The file in environments/ of the fleet of this name; NAME.yml where it is elsewhere."""
    for path in sorted((paths.checkout() / "environments").glob("*.yml")):
        with contextlib.suppress(InputError):
            data = load_yaml(path)
            if (isinstance(data, dict) and "machines" in data and data.get("name", path.stem) == name
                    and not path.name.endswith(".example.yml")):
                return f"environments/{path.name}"
    return f"{name}.yml"


def _beyond_profile(study, note) -> dict:
    """{name or group.entry: value} of the page's parameters that its profile does not set so."""
    quick = declared(study)
    profile = flat(quick | chosen(study, note.get("profile") or "quick"))
    ran = flat(quick | note.get("parameters", {}))
    return {name: value for name, value in ran.items() if profile.get(name) != value}


def _needs(study):
    needs = _lab(study).get("needs", {})
    if needs.get("memory"):
        disk = needs.get("disk", "negligible")
        each = ", ".join(f"{size} ({profile})" for profile, size in disk.items()) if isinstance(disk, dict) else disk
        yield f"Memory: {needs['memory']}, disk: {each}"
    for profile, minutes in needs.get("minutes", {}).items():
        yield f"The {profile} profile takes about {duration(minutes * 60)}"


@functools.cache
def _lab(study: str) -> dict:
    file = paths.papers(study) / "lab.yml"
    return load_yaml(file) if file.is_file() else {}


def _run(note):
    if note.get("started"):
        how = "from published summaries" if note["published"] else f"{note['profile']} profile"
        yield (f"This page: {note['started'][:16].replace('T', ' ')}, {how}, "
               f"{duration(note['seconds'])}, on {machine_words(note['machine'])}")
    for name, value in flat(note.get("parameters", {})).items():
        yield f"`{name}`: `{value}`"
