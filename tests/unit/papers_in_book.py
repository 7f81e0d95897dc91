"""The papers of the checkout, and what their pages judge."""

import ast

from labbook import paths
from labbook.claims import claims
from labbook.pipeline import notebooks

PAPERS = sorted(p.name for p in (paths.checkout() / "data" / "papers").iterdir() if p.is_dir())
PAGES = [paper for paper in PAPERS if paths.notebook(paper).exists()]


def judged(study: str) -> list[str]:
    """Ids of the claims that the notebook judges, by study.judge(id) or study.verdicts(section)."""
    cells = notebooks.read(paths.notebook(study))["cells"]
    calls = [node for cell in cells if cell["cell_type"] == "code"
             for node in ast.walk(ast.parse(notebooks.source(cell))) if isinstance(node, ast.Call)]
    given = {name: [call.args[0].value for call in calls if getattr(call.func, "attr", "") == name]
             for name in ("judge", "verdicts")}
    known = claims.load(study)
    return given["judge"] + [claim["id"] for section in given["verdicts"]
                             for claim in claims.of_section(known, section, claims.path(study))]
