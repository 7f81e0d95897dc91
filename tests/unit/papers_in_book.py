"""The papers of the checkout, and what their pages judge."""

import ast

from labbook import paths
from labbook.claims import claims
from labbook.pipeline.sources import notebooks

PAPERS = sorted(p.name for p in (paths.checkout() / "data" / "papers").iterdir() if p.is_dir())
PAGES = [paper for paper in PAPERS if paths.notebook(paper).exists()]


def judged(study: str) -> list[str]:
    """Ids of the claims whose verdicts the notebook shows, by study.judge(id) or by
    study.verdicts(section); not those of which it only takes a part, as in study.judge(id).verdict."""
    cells = notebooks.read(paths.notebook(study))["cells"]
    nodes = [node for cell in cells if cell["cell_type"] == "code"
             for node in ast.walk(ast.parse(notebooks.source(cell)))]
    parts = [id(node.value) for node in nodes if isinstance(node, ast.Attribute)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and id(node) not in parts]
    given = {name: [call.args[0].value for call in calls if getattr(call.func, "attr", "") == name]
             for name in ("judge", "verdicts")}
    known = claims.load(study)
    return given["judge"] + [claim["id"] for section in given["verdicts"]
                             for claim in claims.of_section(known, section, claims.path(study))]
