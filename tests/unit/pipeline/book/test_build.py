import io
import json
import sys
import threading
import time

import pytest

from labbook.errors import LabbookError
from labbook.pipeline.book import build


def test_a_book_is_built_with_a_page_that_failed_and_one_that_never_ran(book):
    book.study("cms", "print(1)")
    book.study("wan", "print(1)")
    page = json.loads((book.root / "notebooks/wan.ipynb").read_text())
    page["cells"][-1]["outputs"] = [{"output_type": "error", "ename": "E", "evalue": "`x`",
                                     "traceback": ["\x1b[31mE\x1b[0m: `x`"]}]
    book.write("build/pages/wan.ipynb", json.dumps(page))
    book.write("build/pages/wan.json", json.dumps(
        {"state": "failed", "published": False, "error": {"name": "E", "message": "<b> ``` `x`"}}))
    for include in ("board", "cards", "compare", "compared", "disk_models", "disk_rounds", "fleet_measured", "fleet_sizes",
                    "ran", "status", "summary", "what_held"):
        with (book.root / "book/index.md").open("a") as index:
            index.write(f"\n```{{include}} ../_generated/{include}.md\n```\n")
    first = build.build()
    assert first == book.root / "build/html/index.html"
    assert "has not been run" in (first.parent / "notebooks/cms.html").read_text()
    failed = (first.parent / "notebooks/wan.html").read_text()
    assert "The last run of this notebook failed" in failed
    assert "never run" in (first.parent / "book/index.html").read_text()
    assert build.failed_pages() == ["wan"]

    seen = first.stat().st_mtime_ns
    assert build.build() == first and first.stat().st_mtime_ns == seen  # nothing changed

    whole = (book.root / "book/index.md").read_text()
    book.write("book/index.md", f"{whole}\n{{doc}}`nowhere`\n")
    for _ in range(2):      # Sphinx warns only of what it reads
        with pytest.raises(LabbookError, match="nowhere"):
            build.build()
    assert "never run" in (first.parent / "book/index.html").read_text()  # the last good book
    book.write("book/index.md", f"{whole}\nMended.\n")
    assert build.build() == first and "Mended" in (first.parent / "book/index.html").read_text()

    toc = (book.root / "_toc.yml").read_text()
    book.write("_toc.yml", toc.replace("- file: notebooks/wan\n", ""))
    assert toc.count("notebooks/wan") == 1
    build.build()
    assert not (first.parent / "notebooks/wan.html").exists()
    assert "notebooks/wan" not in (first.parent / "notebooks/cms.html").read_text()


def test_what_pages_show_of_each_other_is_their_order_and_titles(tmp_path):
    def shape(toc, **pages):
        for path in tmp_path.iterdir():
            path.unlink()
        (tmp_path / "_toc.yml").write_text(toc)
        for name, text in pages.items():
            (tmp_path / f"{name}.md").write_text(text)
        return build._shape(tmp_path)

    first = shape("a, b", a="# A\n\none", b="# B")
    assert shape("a, b", a="# A\n\ntwo", b="# B") == first
    assert len({first, shape("b, a", a="# A", b="# B"), shape("a, b", a="# C", b="# B"), shape("a", a="# A")}) == 4


def test_a_second_build_waits_for_the_first_and_says_so(root, monkeypatch):
    ended, stderr = [], io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)    # pytest's own loses what is written while it is read

    def second():
        with build.alone():
            ended.append("second")

    with build.alone():
        other = threading.Thread(target=second)
        other.start()
        while "another labbook builds this book" not in stderr.getvalue():
            assert other.is_alive()
            time.sleep(0.01)
        ended.append("first")
    other.join()
    assert ended == ["first", "second"]


def test_the_tail_of_a_log_is_what_says_what_is_wrong():
    log = "\n".join(["reading", "\x1b[31mindex.md:3: WARNING: no such page\x1b[0m", *["x"] * 99])
    assert build.tail(log) == "index.md:3: WARNING: no such page"
    assert build.tail("a\nb") == "a\nb"


def test_a_mirror_copies_removes_and_leaves_what_is_the_same(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    for path in (source / "x/1", source / "2", target / "old/3", target / "2"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    build.mirror(source, target)
    assert sorted(p.relative_to(target).as_posix() for p in target.rglob("*")) == ["2", "x", "x/1"]
    before = (target / "2").stat().st_ctime_ns
    build.mirror(source, target)
    assert (target / "2").stat().st_ctime_ns == before
