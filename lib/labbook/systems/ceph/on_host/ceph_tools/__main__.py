"""`python -I DIR ask|proxy|sample ...`: see admin_protocol, mon_proxy and sampler."""

import json
import sys


def ask(path, seconds, *questions):
    """Print the answers as one JSON list of texts; exit code 3 and the error on stderr without any."""
    from admin_protocol import ask

    try:
        print(json.dumps([ask(path, json.loads(each), float(seconds)).decode(errors="replace")
                          for each in questions]))
    except OSError as refusal:
        sys.exit(_no_answer(path, refusal))


def _no_answer(path, refusal):
    print(f"{path}: {refusal or type(refusal).__name__}", file=sys.stderr)
    return 3


def proxy(*arguments):
    from mon_proxy import main

    main(*arguments)


def sample(*arguments):
    from sampler import main

    main(*arguments)


if __name__ == "__main__":
    {"ask": ask, "proxy": proxy, "sample": sample}[sys.argv[1]](*sys.argv[2:])
