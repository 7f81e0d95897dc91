"""The papers of the checkout, and what their pages judge."""

import ast

from labbook import paths
from labbook.pipeline import notebooks

PAPERS = sorted(p.name for p in (paths.checkout() / "data" / "papers").iterdir() if p.is_dir())
PAGES = [paper for paper in PAPERS if paths.notebook(paper).exists()]


def judged(study: str) -> dict:
    """claim id -> the notebook's name of its experiment, of every study.judge(...)."""
    cells = notebooks.read(paths.notebook(study))["cells"]
    calls = (node for cell in cells if cell["cell_type"] == "code"
             for node in ast.walk(ast.parse(notebooks.source(cell)))
             if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "judge")
    return {call.args[0].value: ast.unparse(call.args[1]) if len(call.args) > 1 else None
            for call in calls}
