"""Files that carry a digest of all their bytes."""

import hashlib
import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from labbook.study.records import sealed

TABLE = pa.table({"v": [1, 2, 3], "text": ["a", "b", "c"]}).replace_schema_metadata({"kept": "yes"})


def test_any_program_reads_a_sealed_file(tmp_path):
    digest = sealed.write(tmp_path / "file", TABLE)
    assert list(pd.read_parquet(tmp_path / "file")["v"]) == [1, 2, 3]
    data, metadata, found = sealed.read(tmp_path / "file")
    assert found == digest and metadata[b"kept"] == b"yes" and list(sealed.frame(data)["text"]) == ["a", "b", "c"]


def test_the_digest_is_that_of_the_file_without_it(tmp_path):
    digest = sealed.write(tmp_path / "file", TABLE).encode()
    data = (tmp_path / "file").read_bytes()
    assert hashlib.sha256(data.replace(digest, b"0" * 64)).hexdigest().encode() == digest


def test_text_like_a_digest_among_the_data_is_only_data(tmp_path):
    text = (sealed.MARK + b"1" * 64).decode()
    table = TABLE.append_column("more", pa.array([text] * 3)).replace_schema_metadata({"note": text})
    sealed.write(tmp_path / "file", table)
    assert list(sealed.frame(sealed.read(tmp_path / "file")[0])["more"]) == [text] * 3


def test_a_file_without_a_digest_is_read_and_one_whose_digest_is_hidden_is_not(tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "old")
    assert sealed.read(tmp_path / "old")[2] is None
    data, _ = sealed.sealed(TABLE)
    (tmp_path / "new").write_bytes(data.replace(sealed.MARK, b"labbook-sha257:"))
    with pytest.raises(sealed.Damaged, match="its digest is not readable"):
        sealed.read(tmp_path / "new")


def test_a_damaged_file_without_a_digest_is_no_bare_error(tmp_path):
    file = io.BytesIO()
    pa.parquet.write_table(pa.table({"v": range(10_000)}), file, compression="zstd")
    data = bytearray(file.getvalue())
    data[4:200] = bytes(196)
    (tmp_path / "old").write_bytes(data)
    with pytest.raises(sealed.Damaged, match="content is not readable"):
        sealed.frame(sealed.read(tmp_path / "old")[0])
    (tmp_path / "old").write_bytes(data[:100])
    with pytest.raises(sealed.Damaged, match="no Parquet file"):
        sealed.read(tmp_path / "old")


def test_an_identity_is_that_of_a_file_and_of_its_state(tmp_path):
    one = tmp_path / "one"
    one.write_text("x")
    before = sealed.identity(one)
    assert sealed.identity(one) == before
    one.write_text("xy")
    assert sealed.identity(one) != before
