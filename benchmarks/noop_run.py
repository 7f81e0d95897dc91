"""`labbook run` of five studies whose pages are all today's: what every second press costs.

    .venv/bin/python benchmarks/noop_run.py [--rounds 10] [--short] [--json FILE]

In a scratch checkout: five copies of the CMS study's data, each with a notebook of the same length that
measures nothing, run once; then timed, the whole process. Their lab.yml has no `quick`, whose claims would
stay open and be asked again. It needs what `labbook install` installs, and root or sudo; no lab is brought up.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import shared
import yaml

ROOT = Path(__file__).resolve().parents[1]
STUDIES = 5
LABBOOK = Path(sys.executable).with_name("labbook")


def main():
    asked = shared.parser(__doc__, rounds=10).parse_args()
    if asked.short:
        asked.rounds = 1
    names = [f"study{number}" for number in range(1, 2 if asked.short else 1 + STUDIES)]
    file = shared.log("noop_run")
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LABBOOK_ROOT": folder, "LABBOOK_RECORDS": f"{folder}/records"}
        _book(Path(folder), names)
        first, *seconds = [shared.timed((LABBOOK, "run"), file) for _ in range(1 + asked.rounds)]
    print(f"first run: {first:.1f} s")
    print(f"no-op run, studies: {len(names)}; median {statistics.median(seconds):.2f} s, "
          f"{min(seconds):.2f} to {max(seconds):.2f} s in {len(seconds)} rounds")
    shared.write(asked.json, studies=len(names), first_s=first, seconds=seconds)


def _book(folder: Path, names: list[str]):
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
            "from labbook.pipeline.executing.progress import tell\ntell(event='complete')"))
        (folder / "notebooks" / f"{study}.ipynb").write_text(json.dumps(notebook))


def _without_quick(lab_yml: Path):
    """Take out `quick`: its claims would stay open, and each run would go on asking them."""
    description = yaml.safe_load(lab_yml.read_text())
    del description["quick"]
    lab_yml.write_text(yaml.safe_dump(description, sort_keys=False))


if __name__ == "__main__":
    shared.run(main)
