"""What `labbook compare` prints."""

from labbook.pipeline.publishing.compare import AGREE, CHANGES, OPEN, agreement, counts
from labbook.pipeline.running.status import aligned


def table(found, a: str, b: str) -> str:
    """For a terminal: the counts, the verdicts that changed, and the measures that moved clearly."""
    if not found:
        return (f"A: {a}\nB: {b}\nNo claim is measured in both. `quick` has what the last `labbook run` here measured; "
                "`labbook claims` lists it.")
    parts = [f"A: {a}\nB: {b}\n{agreement(found)}"]
    parts += ["\n".join(f"{count:>5}  {change}" for change, count in counts(found).items())]
    changed = sorted((p for p in found if p.change not in (AGREE, OPEN)), key=lambda p: CHANGES.index(p.change))
    if changed:
        parts.append("Verdicts that changed:\n" + aligned(
            [("", p.change, p.study, p.id, f"{p.a['verdict']} -> {p.b['verdict']}", _move(p)) for p in changed]))
    moved = [p for p in found if p.move and p.move.is_clear()]
    if moved:
        parts.append("Measures that moved, B over A with the interval that both allow:\n" + aligned(
            [("", p.study, p.id, p.move.words()) for p in moved]))
    else:
        parts.append("No measure moved beyond what both intervals allow.")
    return "\n\n".join(parts)


def _move(pair) -> str:
    return pair.move.words() if pair.move else ""
