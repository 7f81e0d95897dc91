"""`python -I DIR ask|tell|sample ...`: see asking, teller and sampler."""

import json
import sys


def ask(path, seconds, *questions):
    """Prints one line, a list of the answers as texts; exit code 3 and the error when it does not
    answer."""
    from asking import ask

    try:
        print(json.dumps([ask(path, json.loads(each), float(seconds)).decode(errors="replace")
                          for each in questions]))
    except OSError as refusal:
        sys.exit(_refused(path, refusal))


def _refused(path, refusal):
    print(f"{path}: {refusal or type(refusal).__name__}", file=sys.stderr)
    return 3


def tell(*words):
    from teller import main

    main(*words)


def sample(*words):
    from sampler import main

    main(*words)


if __name__ == "__main__":
    {"ask": ask, "tell": tell, "sample": sample}[sys.argv[1]](*sys.argv[2:])
