"""A checkout of its own with studies that measure nothing, for what the press costs."""

import json
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
LABBOOK = Path(sys.executable).with_name("labbook")


class Book:
    def __init__(self, folder: Path, studies: list[str]):
        self.folder, self.studies = folder, studies

    def forget_pages(self) -> None:
        """Take away the pages of all studies: they have never run then."""
        for study in self.studies:
            for path in (self.folder / "build").rglob(f"*{study}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def made(folder: Path, studies: list[str]):
    """The Book in `folder`, which labbook's commands take for theirs inside the block. Copies of the CMS study's data,
    each with a notebook of the same length that measures nothing. Their lab.yml has no `quick`, whose claims would
    stay open and be asked again."""
    before = dict(os.environ)
    os.environ |= {"LABBOOK_ROOT": str(folder), "LABBOOK_RECORDS": f"{folder}/records"}
    try:
        _write(folder, studies)
        yield Book(folder, studies)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _write(folder: Path, names: list[str]):
    for part in ("notebooks", "book"):
        (folder / part).mkdir()
    shutil.copytree(ROOT / "environments", folder / "environments")
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, folder)
    chapters = "".join(f"  - file: notebooks/{study}\n" for study in names)
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nchapters:\n{chapters}")
    (folder / "book/index.md").write_text("# Five studies\n")
    text = (ROOT / "notebooks/cms_scalability.ipynb").read_text()
    for study in names:
        shutil.copytree(ROOT / "data/papers/cms_scalability", folder / "data/papers" / study)
        _without_quick(folder / "data/papers" / study / "lab.yml")
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code" and "parameters" not in cell["metadata"].get("tags", ()):
                cell["source"] = "pass"
        notebook["cells"][-1].update(cell_type="code", outputs=[], execution_count=None, source=(
            "from labbook.pipeline.executing.progress import append_event\nappend_event(event='complete')"))
        (folder / "notebooks" / f"{study}.ipynb").write_text(json.dumps(notebook))


def _without_quick(lab_yml: Path):
    """Take out `quick`: its claims would stay open, and each run would go on asking them."""
    description = yaml.safe_load(lab_yml.read_text())
    del description["quick"]
    lab_yml.write_text(yaml.safe_dump(description, sort_keys=False))
