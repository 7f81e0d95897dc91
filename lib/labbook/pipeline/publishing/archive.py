"""`labbook archive STUDY`: what is published of a study as one file for an archive, a zipped RO-Crate.

It has the published sets, the paper's data, the notebook and the raw records of the published points that
are on this machine. Records are in records/PLACE/EXPERIMENT, where a place is this machine, hosts or a fleet. One that
was measured again since it was published is in the folder `superseded` there, without its series.

The crate follows RO-Crate 1.1 (https://w3id.org/ro/crate/1.1); made again from the same files, it
is the same byte for byte.
"""

import hashlib
import json
import mimetypes
import zipfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import labbook
from labbook import paths
from labbook.atomic_files import make_folder, write_whole
from labbook.claims import paper_file
from labbook.errors import InputError
from labbook.pipeline.publishing.adding import began
from labbook.study.publication import machine_kind, published
from labbook.study.records.record import Records, read_meta
from labbook.study.records.sealed import Damaged

METADATA = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/crate/1.1"
TYPES = {".parquet": "application/vnd.apache.parquet", ".ipynb": "application/x-ipynb+json", ".yml": "application/yaml",
         ".cff": "application/yaml", "": "text/plain"}
_EPOCH = (1980, 1, 1, 0, 0, 0)      # zip knows no earlier time


def archive(study: str) -> Path:
    """Write build/archive/labbook-STUDY.zip and return its path; InputError where nothing is published."""
    if not published.sets(study):
        raise InputError("nothing is published of this study", file=paths.published_dir() / study,
                         allowed="a study of which `labbook publish` has written a set")
    files = _sources(study) | _records(study)
    about = json.dumps(crate(study, files), indent=1, ensure_ascii=False).encode()
    target = paths.build_dir() / "archive" / f"labbook-{study}.zip"
    make_folder(target.parent)
    write_whole(target, lambda file: _zip(file, {METADATA: about}, files))
    return target


def crate(study: str, files: dict[str, Path]) -> dict:
    """The content of ro-crate-metadata.json. files: {name in the crate: file}."""
    about = paper_file.load(paths.papers(study) / "paper.yml")
    sets = published.sets(study)
    parts = [_file(name, path) for name, path in sorted(files.items())]
    root = {"@id": "./", "@type": "Dataset", "name": f"labbook: {study}, measured again",
            "description": f"Published measurements that replicate: {about.get('translation') or about['title']}. "
                           f"Machines: {'; '.join(map(_machine, [study] * len(sets), sets))}.",
            "datePublished": _last_day(study), "license": {"@id": "LICENSE"},
            "citation": {"@id": f"#{study}"}, "creator": {"@id": "#labbook"},
            "hasPart": [{"@id": part["@id"]} for part in parts]}
    return {"@context": f"{PROFILE}/context", "@graph": [
        {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": PROFILE}},
        root, _paper(study, about), *_authors(about), _software(), *parts]}


def _paper(study, about) -> dict:
    found = {"@id": f"#{study}", "@type": "ScholarlyArticle", "name": about["title"],
             "alternateName": about.get("translation"), "datePublished": str(about.get("year", "")),
             "url": about.get("link"), "author": [{"@id": one["@id"]} for one in _authors(about)]}
    return {key: value for key, value in found.items() if value}


def _authors(about) -> list[dict]:
    return [{"@id": f"#author-{place}", "@type": "Person", "name": one.get("romanised") or one["name"],
             "alternateName": one["name"]}
            for place, one in enumerate(about.get("authors") or [], 1)]


def _software() -> dict:
    return {"@id": "#labbook", "@type": "SoftwareApplication", "name": "labbook", "version": labbook.__version__}


def _file(name, path) -> dict:
    data = path.read_bytes()
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return {"@id": name, "@type": "File", "name": _description(name), "encodingFormat": kind,
            "contentSize": str(len(data)), "sha256": hashlib.sha256(data).hexdigest()}


def _description(name: str) -> str:
    """What a file is, in words."""
    parts = Path(name).parts
    if parts[0] == "records":
        return f"Raw rows of a point of {parts[2]}" + ", a series" * name.endswith(".series.parquet")
    if parts[0] == "published" and name.endswith(".parquet"):
        return f"Summaries of {Path(name).stem}, a row for each arm of each point, measured on {parts[1]}"
    return parts[-1]


def _sources(study) -> dict[str, Path]:
    root = paths.checkout()
    found = {"LICENSE": root / "LICENSE", "CITATION.cff": root / "CITATION.cff",
             f"notebooks/{study}.ipynb": paths.notebook(study)}
    for name, folder in (("paper", paths.papers(study)), ("published", paths.published_dir() / study)):
        found |= {f"{name}/{path.relative_to(folder).as_posix()}": path
                  for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path for name, path in found.items() if path.is_file()}


def _records(study) -> dict[str, Path]:
    """Raw records, with their series, of the published points; those that this machine still has."""
    found = {}
    for experiment in published.experiments(study):
        missing = {began({"provenance": text}) for text in _provenance(study, experiment)}
        folders = sorted(paths.records_dir().glob(f"*/{study}/{experiment}"))
        for files_of in (_live, _superseded):
            each = [one for folder in folders for one in files_of(folder)]
            here = [(began(meta), files) for meta, files in each if began(meta) in missing]
            found |= {f"records/{file.relative_to(paths.records_dir()).parts[0]}/{experiment}/{name}": file
                      for _, files in here for name, file in files.items()}
            missing -= {measured for measured, _ in here}
    return found


def _live(folder: Path):
    """(metadata, {name: file}) of each record of an experiment's folder, with its series."""
    records = Records(folder)
    for key in sorted(records.keys()):
        if meta := records.meta(key):
            series = sorted(folder.glob(f"{key}.*.series.parquet"))
            yield meta, {path.name: path for path in (records.path(key), *series)}


def _superseded(folder: Path):
    """The same of the records that others have taken the place of, as far as they are whole."""
    for path in sorted((folder / "superseded").glob("*.parquet")):
        with suppress(Damaged):
            yield read_meta(path), {f"superseded/{path.name}": path}


def _provenance(study, experiment):
    """The provenance of each published row, of all sets."""
    for machine in published.sets(study):
        if experiment in published.described(study, machine):
            frame = published.rows(study, machine, experiment)
            if len(frame):
                yield from map(json.loads, frame["provenance"])


def _last_day(study) -> str:
    """The day on which the last published point was measured."""
    ends = [text["during"]["ended"] for experiment in published.experiments(study)
            for text in _provenance(study, experiment)]
    return datetime.fromtimestamp(max(ends), UTC).date().isoformat() if ends else ""


def _machine(study, machine) -> str:
    return (f"{machine_kind.words(published.read_run(study, machine)['machine'])} "
            f"({published.points(study, machine)} points)")


def _zip(file, texts: dict[str, bytes], files: dict[str, Path]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in [*texts.items(), *((name, path.read_bytes()) for name, path in sorted(files.items()))]:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, data)
