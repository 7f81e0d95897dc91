"""Records: one Parquet file per point, written atomically, with its provenance in the metadata."""

import contextlib
import fcntl
import json
import os
import re
import warnings
from pathlib import Path

from labbook.atomic_files import UNFINISHED, write_whole
from labbook.errors import InputError, LabError

META = b"labbook"
SERIES_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Records:
    """The folder of one experiment's records on one machine: `<point key>.parquet`."""

    def __init__(self, folder: Path):
        self.folder = Path(folder)

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.parquet"

    def meta(self, key: str) -> dict | None:
        """A point's metadata, or None. An unreadable file is renamed to `.broken`."""
        path = self.path(key)
        try:
            meta = read_meta(path)
            if meta["key"] != key:
                raise ValueError(f"it contains point {meta['key']}")
            return meta
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:   # pyarrow's errors are ValueErrors
            self._rename_broken(path, error)
        except OSError as error:
            if error.errno is not None:     # the disk, not the file
                raise LabError(f"the record {path} cannot be read: {error}") from error
            self._rename_broken(path, error)
        return None

    @staticmethod
    def _rename_broken(path, error):
        broken = path.with_name(f"{path.name}.broken")
        os.replace(path, broken)
        warnings.warn(f"the record {path} is broken ({error}); it was renamed to {broken.name} "
                      "and the point will be measured again", stacklevel=4)

    def write(self, key: str, table, meta: dict, series: dict) -> None:
        """Write a point: {name: table} of its series, then the table of its rows with `meta`.

        An earlier record is moved to `superseded/` once the new one is on disk. LabError when the
        disk is full or reports an error.
        """
        text = json.dumps(meta, default=plain)
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), META: text})
        for name, frame in series.items():
            self._parquet(self._series_path(key, name), frame)
        path = self.path(key)
        self._parquet(path, table, before_rename=lambda: self._move_to_superseded(path))
        self.remove_failure(key)

    def _move_to_superseded(self, path):
        if path.exists():
            old = self.folder / "superseded" / f"{path.stem}-{path.stat().st_mtime_ns}.parquet"
            old.parent.mkdir(exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.link(path, old)

    def _parquet(self, path, table, before_rename=None):
        import pyarrow.parquet as pq

        write_whole(path, lambda file: pq.write_table(table, file, compression="zstd"),
                    before_rename)

    def rows(self, key: str):
        """DataFrame of a point's rows; InputError without a record on this machine."""
        import pandas as pd

        return pd.read_parquet(self._existing(self.path(key)))

    def series(self, key: str, name: str):
        """DataFrame of a point's named series; InputError without one on this machine."""
        import pandas as pd

        return pd.read_parquet(self._existing(self._series_path(key, name)))

    def _series_path(self, key, name):
        return self.folder / f"{key}.{name}.series.parquet"

    @staticmethod
    def _existing(path):
        if not path.exists():
            raise InputError("no such record on this machine", file=path)
        return path

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
        """Remove partial files of killed runs; a running writer holds a lock on its file."""
        for path in self.folder.glob(f"{UNFINISHED}*"):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def read_meta(path: Path) -> dict:
    """The metadata of a record's file. FileNotFoundError, ValueError or KeyError if there is none."""
    import pyarrow.parquet as pq

    with open(path, "rb") as file:      # a missing file is FileNotFoundError, not pyarrow's
        return json.loads(pq.read_metadata(file).metadata[META])


def parameters(meta: dict) -> dict:
    """The parameters of a record; older records hold `vary` under the name `measure`."""
    return meta["setup"] | (meta["vary"] if "vary" in meta else meta["measure"])


def row(meta: dict, stale: bool) -> dict:
    """A record's metadata as a row of a summary, a dict."""
    return {"point": meta["key"], **parameters(meta), "repeat": meta["repeat"],
            "block": meta["block"], "order": meta["order"], "stale": stale, **meta["summary"]}


def plain(value):
    """Convert numpy numbers, times, paths and sets, for json.dumps(default=...)."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)
