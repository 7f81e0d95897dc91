"""Records: one sealed Parquet file per point, written atomically, with its provenance in the metadata.

Series of a point are files beside its record, which names each with its digest. So a record and its
series cannot part: a crash between them leaves the earlier record with its own series.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import warnings
from functools import lru_cache
from pathlib import Path

from labbook.atomic_files import UNFINISHED, disk_errors, make_folder, open_lock, remove_unfinished, write_whole
from labbook.errors import InputError, LabError
from labbook.study.records import sealed
from labbook.study.records.sealed import Damaged

META = b"labbook"
KEY = re.compile(r"[0-9a-f]{20}")       # of a point
SERIES_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Records:
    """The folder of one experiment's records on one machine: `<point key>.parquet`.

    set_aside: a message for each damaged record that this object has found.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        self.set_aside = []

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.parquet"

    def keys(self) -> set[str]:
        """Keys of the points that have a file in the folder; none without the folder."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return set()
        return {name[:-8] for name in names if name.endswith(".parquet") and name.count(".") == 1}

    def meta(self, key: str) -> dict | None:
        """A point's metadata, or None. The record and its series are verified; a damaged record is
        renamed to `.broken` with a warning, so that its point is measured again. LabError where the
        disk reports an error."""
        path = self.path(key)
        while True:
            try:
                found = sealed.identity(path)
                return self._meta(key, path, found)
            except FileNotFoundError:
                return None
            except Damaged as error:
                if self._set_aside(path, found, error):
                    return None
            except OSError as error:
                raise LabError(f"the record {path} cannot be read: {error}") from error

    def _meta(self, key, path, found) -> dict:
        meta = json.loads(_record_text(path, found))
        if meta["key"] != key:
            raise Damaged(f"it contains point {meta['key']}")
        for name, digest in meta.get("series", {}).items():
            self._check_series(self._series_path(key, name, digest), name, digest)
        return meta

    @staticmethod
    def _check_series(path, name, digest):
        try:
            if _file_digest(path, sealed.identity(path)) == digest:
                return
            error = "it is of another record"
        except FileNotFoundError:
            error = "it is missing"
        except Damaged as damage:
            error = damage
        raise Damaged(f"its series {name}: {error}")

    def _set_aside(self, path, found, error) -> bool:
        """Rename a damaged record; False if another process has replaced it meanwhile."""
        broken = path.with_name(f"{path.name}.broken")
        with self._writing():
            try:
                if sealed.identity(path) != found:
                    return False
            except FileNotFoundError:
                return True
            os.replace(path, broken)
        message = (f"the record {path} is damaged ({error}); it was renamed to {broken.name} "
                   "and its point will be measured again")
        self.set_aside.append(message)
        warnings.warn(message, stacklevel=4)
        return True

    def write(self, key: str, table, meta: dict, series: dict) -> None:
        """Write a point: {name: table} of its series, then the table of its rows with `meta`.

        An earlier record is moved to `superseded/` once the new one is on disk; its series are
        removed. LabError when the disk is full or reports an error.
        """
        with self._writing():
            digests = {name: self._write_series(key, name, frame) for name, frame in series.items()}
            text = json.dumps(meta | {"series": digests}, default=plain)
            table = table.replace_schema_metadata({**(table.schema.metadata or {}), META: text})
            path = self.path(key)
            sealed.write(path, table, before_rename=lambda: self._move_to_superseded(path))
            self._remove_other_series(key, digests)
            self.remove_failure(key)

    @contextlib.contextmanager
    def _writing(self):
        """One writer of an experiment's records at a time: a record and its series are several files."""
        with disk_errors(self.folder):
            make_folder(self.folder)
            lock = open_lock(self.folder / ".writing.lock")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write_series(self, key, name, table) -> str:
        data, digest = sealed.sealed(table)
        write_whole(self._series_path(key, name, digest), lambda file: file.write(data))
        return digest

    def _remove_other_series(self, key, digests):
        own = {self._series_path(key, name, digest) for name, digest in digests.items()}
        for path in set(self.folder.glob(f"{key}.*.series.parquet")) - own:
            path.unlink(missing_ok=True)

    def _move_to_superseded(self, path):
        if path.exists():
            old = self.folder / "superseded" / f"{path.stem}-{path.stat().st_mtime_ns}.parquet"
            old.parent.mkdir(exist_ok=True)
            try:
                os.link(path, old)
            except FileExistsError:
                pass
            except OSError:     # a file system without hard links
                shutil.copy2(path, old)

    def rows(self, key: str):
        """DataFrame of a point's rows; InputError without a record on this machine."""
        self._existing(key)
        return _frame(self.path(key))

    def series(self, key: str, name: str):
        """DataFrame of a point's named series; InputError without one on this machine."""
        meta = self._existing(key)
        path = self._series_path(key, name, meta.get("series", {}).get(name))
        return _frame(path)

    def _series_path(self, key, name, digest):
        """Without a digest: of a record of an earlier version."""
        of_content = f".{digest[:12]}" if digest else ""
        return self.folder / f"{key}.{name}{of_content}.series.parquet"

    def _existing(self, key) -> dict:
        meta = self.meta(key)
        if meta is None:
            raise InputError("no such record on this machine", file=self.path(key))
        return meta

    def files(self, key: str) -> dict[str, bytes] | None:
        """{name: content} of the files of a point, its record last; None without a valid record."""
        meta = self.meta(key)
        if meta is None:
            return None
        series = [self._series_path(key, name, digest) for name, digest in meta.get("series", {}).items()]
        return {path.name: path.read_bytes() for path in (*series, self.path(key))}

    def take(self, key: str, files: dict[str, bytes]) -> None:
        """Write the `files` of a point that another machine measured: whole, or not at all. Damaged, and nothing is
        written, for a record that is not as it was made; LabError when the disk is full."""
        digests = _of_files(key, files)
        with self._writing():
            for name, digest in digests.items():
                series = self._series_path(key, name, digest)
                write_whole(series, lambda file, content=files[series.name]: file.write(content))
            path = self.path(key)
            write_whole(path, lambda file: file.write(files[path.name]), lambda: self._move_to_superseded(path))
            self._remove_other_series(key, digests)
            self.remove_failure(key)

    def failure_files(self, key: str) -> dict | None:
        """{failure, trace} of a point's failure record, None without one."""
        failure = self.failure(key)
        try:
            return failure and {"failure": failure, "trace": self._trace_path(key).read_text()}
        except FileNotFoundError:
            return {"failure": failure, "trace": ""}

    def failure(self, key: str) -> dict | None:
        """A point's failure record, or None."""
        try:
            return json.loads(self._failure_path(key).read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            return {"key": key, "message": "failed; its failure record is damaged"}

    def write_failure(self, key: str, failure: dict, trace: str) -> None:
        """Write a point's failure record, and its traceback as a text file."""
        write_whole(self._trace_path(key), lambda file: file.write(trace.encode()))
        text = json.dumps({**failure, "traceback": str(self._trace_path(key))}, default=plain,
                          indent=1, ensure_ascii=False)
        write_whole(self._failure_path(key), lambda file: file.write(text.encode()))

    def remove_failure(self, key: str) -> None:
        self._failure_path(key).unlink(missing_ok=True)
        self._trace_path(key).unlink(missing_ok=True)

    def _failure_path(self, key):
        return self.folder / f"{key}.failure.json"

    def _trace_path(self, key):
        return self.folder / f"{key}.failure.txt"

    def clean(self) -> None:
        """Remove partial files of killed runs."""
        remove_unfinished(self.folder.glob(f"{UNFINISHED}*"))


def _of_files(key: str, files: dict[str, bytes]) -> dict:
    """{series: digest} of a point whose files are all there, as they were made; Damaged otherwise."""
    here = Records(Path())
    try:
        meta = _meta_of(*sealed.checked(files[here.path(key).name]))
        if meta["key"] != key:
            raise Damaged(f"it contains point {meta['key']}")
        for name, digest in meta.get("series", {}).items():
            if sealed.checked(files[here._series_path(key, name, digest).name])[1] != digest:
                raise Damaged(f"its series {name} is of another record")
    except KeyError as error:
        raise Damaged(f"its file {error} is missing") from error
    return meta.get("series", {})


def _frame(path: Path):
    try:
        return sealed.frame(sealed.read(path)[0])
    except FileNotFoundError:
        raise InputError("no such record on this machine", file=path) from None
    except Damaged as error:
        raise InputError(f"the file is damaged: {error}", file=path) from error


@lru_cache(maxsize=10_000)
def _record_text(path: Path, _identity) -> str:
    """A record's metadata as JSON; verified once for each state of the file."""
    return json.dumps(read_meta(path))


@lru_cache(maxsize=10_000)
def _file_digest(path: Path, _identity) -> str | None:
    return sealed.read(path)[2]


def read_meta(path: Path) -> dict:
    """The metadata of a record's file. FileNotFoundError, or Damaged if there is none."""
    return _meta_of(*sealed.read(path)[1:])


def _meta_of(metadata: dict, digest: str | None) -> dict:
    try:
        meta = json.loads(metadata[META])
        if not isinstance(meta["key"], str):
            raise TypeError("its key is no text")
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"its provenance is not readable: {error!r}") from error
    if digest is None and "series" in meta:
        raise Damaged("its digest is missing")
    return meta


def grid_text(keys: list[str]) -> str:
    """The text of a profile's list of points: their digest, then a key a line."""
    return "".join(f"{line}\n" for line in (f"sha256 {_grid_digest(keys)}", *keys))


def grid_keys(path: Path) -> list[str]:
    """The keys in a profile's list of points. InputError for a damaged list; lists of earlier versions
    have no digest."""
    lines = Path(path).read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
    lines = lines if lines != [""] else []
    keys = lines if not lines or KEY.fullmatch(lines[0]) else lines[1:]
    if not all(map(KEY.fullmatch, keys)) or (keys is not lines and lines[0] != f"sha256 {_grid_digest(keys)}"):
        raise InputError("the list of a run's points is damaged", file=path,
                         allowed="remove it, then repeat the run with --force; no point is measured again")
    return keys


def _grid_digest(keys) -> str:
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()


def parameters(meta: dict) -> dict:
    """The parameters of a record without a paired one; older records hold `vary` under the name `measure`."""
    return meta["setup"] | (meta["vary"] if "vary" in meta else meta["measure"])


def parameter_names(meta: dict) -> list[str]:
    """The names of a record's parameters, with a paired one."""
    return [*parameters(meta), *meta.get("paired", ())]


def summary_rows(meta: dict, stale: bool) -> list[dict]:
    """A record's metadata as rows of a summary: a dict an arm, or one without paired arms."""
    shared = {"repeat": meta["repeat"], "block": meta["block"], "order": meta["order"], "stale": stale}
    name, = meta.get("paired") or [None]
    arms = [({name: arm["value"]}, arm["summary"]) for arm in meta.get("arms", ())] or [({}, {})]
    return [{"point": meta["key"], **meta["setup"], **arm, **parameters(meta), **shared, **meta["summary"], **summary}
            for arm, summary in arms]


def plain(value):
    """Convert numpy numbers, times, paths and sets, for json.dumps(default=...)."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)
