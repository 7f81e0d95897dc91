"""How often each rule of claims decides wrongly, simulated, beside the error that it states.

    .venv/bin/python benchmarks/error_rates.py [--rounds 400] [--short] [--json FILE]

For each rule and kind of noise, repeats without an effect or with one on the rule's bound are made up to
the last look, and judged at every look. Shown is the share of runs with a wrong verdict at any look, of
the case where it is largest. A second table has repeats of which some points are bounds, since the
clients were the limit. It needs no lab and no root.
"""

import sys
from pathlib import Path

import shared

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))

from simulated_repeats import CASES, LIMITED_CASES, NOISE, most, wrong  # noqa: E402 (of the tests' folder)

from labbook.claims.looks import LOOKS  # noqa: E402

STATED = 0.05


def main():
    args = shared.parser(__doc__, rounds=400).parse_args()
    runs, repeats = (20, LOOKS[0]) if args.short else (args.rounds, LOOKS[-1])
    print(f"wrong of {runs} runs at any look up to {repeats} repeats; stated: {STATED:.0%}, "
          f"by chance {most(STATED, runs):.1%}")
    rates = table("rule", CASES, repeats, runs)
    limited = table("limited", LIMITED_CASES, repeats, runs)
    shared.write(args.json, stated=STATED, runs=runs, repeats=repeats, wrong=rates, limited=limited)


def table(head: str, cases, repeats: int, runs: int) -> dict:
    """Print and return {rule: {noise: the largest share of wrong runs of its cases}}."""
    print(f"{head:<16}" + "".join(f"{noise:>14}" for noise in NOISE))
    rates = {}
    for name in dict.fromkeys(case[0]["name"] for case in cases):
        rates[name] = {noise: max(wrong(case, noise, repeats, runs) for case in cases if case[0]["name"] == name)
                       for noise in NOISE}
        print(f"{name:<16}" + "".join(f"{rate:>14.1%}" for rate in rates[name].values()), flush=True)
    return rates


if __name__ == "__main__":
    shared.run(main)
