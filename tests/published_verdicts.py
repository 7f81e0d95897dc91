"""Print the verdict of every claim, recomputed from data/published: a line a claim, with tabs.

study, id, verdict, then value, low, high, level and n of the interval. Run it on two states of the
checkout and compare, to see that a change of the library changes no verdict:

    python tests/published_verdicts.py > before.tsv
"""

import json
import sys

from labbook import paths
from labbook.claims import claims, rules

OWN = ["facts", "provenance"]    # columns of a published file that are no metrics


def lines(study: str):
    import pandas as pd

    for claim in claims.load(study):
        rows, parameters, profile = [], (), "full"
        if claim["rule"]["name"] != "not_testable":
            file = paths.published_dir() / study / f"{claim['experiment']}.parquet"
            if not file.exists():
                yield claim["id"], "NOT PUBLISHED"
                continue
            frame = pd.read_parquet(file)
            if not len(frame):
                yield claim["id"], "EMPTY"
                continue
            profile = json.loads(frame["provenance"].iloc[-1])["profile"]
            columns = list(frame.columns)
            parameters = columns[1:columns.index("repeat")]
            rows = frame.drop(columns=OWN).to_dict("records")
        outcome = rules.decide(claim, rows, parameters, file=claims.path(study), profile=profile,
                             known=claims.full_words(study))
        at = outcome.interval
        yield (claim["id"], outcome.verdict,
               f"{at.value:.6g} {at.low:.6g} {at.high:.6g} {at.level:.4g} {at.n}" if at else "")


def main():
    known = sorted(p.name for p in (paths.checkout() / "data" / "papers").iterdir() if p.is_dir())
    for study in sys.argv[1:] or known:
        for line in lines(study):
            print(study, *line, sep="\t")


if __name__ == "__main__":
    main()
