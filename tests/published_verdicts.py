"""Print the verdict of every claim on every set of data/published: a line a claim, with tabs.

study, machine, id, verdict, then value, low, high, level and n of the interval. Run it on two states of the
checkout and compare, to see that a change of the library changes no verdict:

    python tests/published_verdicts.py > before.tsv
"""

import sys

from labbook import paths


def lines(study: str):
    from labbook.study.publication import published, published_verdicts

    for machine in published.sets(study):
        for one in published_verdicts.judge(study, machine):
            at = (f"{one['measured']:.6g} {one['low']} {one['high']} {one['level']:.4g} {one['n']}"
                  if one["measured"] is not None else "")
            yield machine, one["id"], one["verdict"], at


def main():
    known = sorted(p.name for p in (paths.checkout() / "data" / "papers").iterdir() if p.is_dir())
    for study in sys.argv[1:] or known:
        for line in lines(study):
            print(study, *line, sep="\t")


if __name__ == "__main__":
    main()
