"""`labbook run` of five studies whose pages are all today's: what every second press costs.

    .venv/bin/python benchmarks/noop_run.py [--rounds 10] [--json FILE]

In a scratch checkout: five copies of the CMS study's data, each with a notebook of the same length that
measures nothing, run once; then timed, the whole process. Needs what `labbook doctor` asks for.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STUDIES = [f"study{number}" for number in range(1, 6)]
LABBOOK = Path(sys.executable).with_name("labbook")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the samples there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LABBOOK_ROOT": folder, "LABBOOK_RECORDS": f"{folder}/records"}
        _book(Path(folder))
        _run(environment)
        seconds = [_run(environment, quiet=True) for _ in range(asked.rounds)]
    print(f"no-op run of {len(STUDIES)} studies: median {statistics.median(seconds):.2f} s, "
          f"{min(seconds):.2f} to {max(seconds):.2f} s in {len(seconds)} rounds")
    if asked.json:
        asked.json.write_text(json.dumps({"studies": len(STUDIES), "seconds": seconds}))


def _book(folder: Path):
    for part in ("notebooks", "book"):
        (folder / part).mkdir()
    shutil.copytree(ROOT / "environments", folder / "environments")
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, folder)
    chapters = "".join(f"  - file: notebooks/{study}\n" for study in STUDIES)
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nchapters:\n{chapters}")
    (folder / "book/index.md").write_text("# Five studies\n")
    text = (ROOT / "notebooks/cms_scalability.ipynb").read_text()
    for study in STUDIES:
        shutil.copytree(ROOT / "data/papers/cms_scalability", folder / "data/papers" / study)
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code" and "parameters" not in cell["metadata"].get("tags", ()):
                cell["source"] = "pass"
        notebook["cells"][-1].update(cell_type="code", outputs=[], execution_count=None, source=(
            "from labbook.pipeline.progress import tell\ntell(event='complete')"))
        (folder / "notebooks" / f"{study}.ipynb").write_text(json.dumps(notebook))


def _run(environment, quiet=False) -> float:
    started = time.monotonic()
    done = subprocess.run([LABBOOK, "run"], env=environment, capture_output=True, text=True)
    seconds = time.monotonic() - started
    if done.returncode:
        sys.exit(f"labbook run failed:\n{done.stdout}{done.stderr}")
    if not quiet:
        print(f"first run: {seconds:.1f} s")
    return seconds


if __name__ == "__main__":
    main()
