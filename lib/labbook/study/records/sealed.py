"""Sealed Parquet files: each carries a digest of all its bytes, which is verified when it is read.

The digest is in the file's metadata, so a file and its digest are renamed into place together, and any
program reads the file as usual. It is SHA-256 over the file with zeros in the place of the digest.
Files of earlier versions of labbook have none and are read without verification.
"""

import hashlib
import io
import os
from pathlib import Path

from labbook.atomic_files import write_whole

FIELD = b"labbook_digest"           # key in a file's metadata
MARK = b"labbook-sha256:"           # its value begins with this
DIGITS = 64
ZEROS = b"0" * DIGITS


class Damaged(Exception):
    """A file is not as it was written; the message says how."""


def write(path: Path, table, before_rename=None) -> str:
    """Write an Arrow table as a sealed file, atomically; its digest, 64 hex digits."""
    data, digest = sealed(table)
    write_whole(path, lambda file: file.write(data), before_rename)
    return digest


def sealed(table) -> tuple[bytes, str]:
    """An Arrow table as the bytes of a sealed Parquet file, and their digest."""
    import pyarrow.parquet as pq

    metadata = {**(table.schema.metadata or {}), FIELD: MARK + ZEROS}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), buffer, compression="zstd")
    blank = buffer.getvalue()
    at = _digest_at(blank)
    digest = hashlib.sha256(blank).hexdigest()
    return blank[:at] + digest.encode() + blank[at + DIGITS:], digest


def read(path: Path) -> tuple[bytes, dict, str | None]:
    """The bytes, the metadata and the digest of a file, which is None for one of an earlier version.

    Damaged for a file that is not as it was written, or that is no Parquet file. FileNotFoundError,
    and OSError with an errno where the disk reports an error.
    """
    data = Path(path).read_bytes()
    return data, *checked(data)


def checked(data: bytes) -> tuple[dict, str | None]:
    """The metadata and the digest in the bytes of a file; Damaged as `read` raises it."""
    digest = _verified(data)    # before a parser sees the bytes
    metadata = _metadata(data)
    if digest is None and FIELD in metadata:
        raise Damaged("its digest is not readable")
    return metadata, digest


def frame(data: bytes):
    """DataFrame of the bytes that `read` returned. Damaged, for a file of an earlier version."""
    import pandas as pd
    import pyarrow as pa

    try:
        return pd.read_parquet(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Damaged(f"its content is not readable: {error}") from error


def identity(path: Path) -> tuple:
    """Changes whenever a file is replaced or written to. FileNotFoundError."""
    state = os.stat(path)
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _digest_at(data: bytes) -> int | None:
    """Offset of the digest's digits: the last mark in the file, since metadata are at its end."""
    at = data.rfind(MARK)
    return None if at < 0 else at + len(MARK)


def _verified(data: bytes) -> str | None:
    at = _digest_at(data)
    if at is None:
        return None
    actual = hashlib.sha256(data[:at] + ZEROS + data[at + DIGITS:]).hexdigest()
    if data[at:at + DIGITS] != actual.encode():
        raise Damaged("its content does not match its digest")
    return actual


def _metadata(data: bytes) -> dict:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(io.BytesIO(data)).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Damaged(f"it is no Parquet file: {error}") from error
