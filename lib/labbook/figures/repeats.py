"""What the repeats of each point say: their middle, their spread, and how sure that makes us."""

import pandas as pd


def over_repeats(summary: pd.DataFrame, by: list[str], measure: str) -> pd.DataFrame:
    """A row for each setting in `by`: n, median, low, high (the range of the repeats), limited.

    `limited` is True where at least one repeat was limited by its clients.
    """
    limited = client_limited(summary)
    grouped = summary.assign(limited=limited).groupby(by, sort=True)
    return grouped.agg(n=(measure, "size"), median=(measure, "median"), low=(measure, "min"),
                       high=(measure, "max"), limited=("limited", "any")).reset_index()


def client_limited(summary: pd.DataFrame) -> pd.Series:
    """For each row, whether the clients rather than the server set its pace."""
    if "client_limited" not in summary:
        return pd.Series(False, index=summary.index)
    return summary["client_limited"].fillna(0).astype(float) > 0


def range_level(n: int) -> float:
    """Chance that the range of n repeats holds the true median: 1 - 2^(1-n), for any distribution."""
    return 1 - 2.0 ** (1 - n)


def range_words(counts) -> str:
    """What a band between the lowest and the highest repeat means, for a caption."""
    least, most = int(min(counts)), int(max(counts))
    if most == 1:
        return "one repeat, so no spread is shown"
    repeats = f"{least}" if least == most else f"{least} to {most}"
    return (f"line: median of {repeats} repeats; band: their range, which holds the true median "
            f"in {range_level(least):.0%} of such runs")
