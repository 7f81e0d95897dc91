"""The command line. A command's code is imported when the command is used."""

import argparse
import contextlib
import errno
import importlib
import os
import sys
import time
import traceback

from labbook import __version__
from labbook.paths import LOCAL

_COMMANDS = "labbook.commands"
_ALL, _JSON = "default: all", "as JSON, for programs"
_VERDICTS = ("replicated", "not replicated", "open", "not testable here", "not run", "not judged yet")
_EPILOG = """`labbook COMMAND --help` explains a command.

exit codes:
  0    done
  1    failed, also where some of several studies refused their input; `doctor`: something is missing; `compare`: a
       decided verdict was reversed
  2    wrong input: nothing was started
  3    the time of `run --for` was up first; the same command goes on
  130  Ctrl-C; 143 SIGTERM; 129 the end of the terminal (SIGHUP)
`exec` and `ssh` end with the exit code of the command on the host, `exec` with the highest of several hosts.
"""


def main(argv=None) -> int:
    """Run a command and return its exit code: see _EPILOG."""
    made = parser()
    if "_ARGCOMPLETE" in os.environ:    # a shell asks which words may come next
        importlib.import_module(f"{_COMMANDS}.completion").complete(made)
    given = _parsed(made, argv)
    if not hasattr(given, "handler"):
        made.print_help()
        return 0
    module, _, function = given.handler.partition(":")
    try:
        _check_library()
        handler = getattr(importlib.import_module(f"{_COMMANDS}.{module}"), function)
        return handler(given) or 0
    except KeyboardInterrupt:
        print(f"{_name()} interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO) or error.filename:
            return _report(error, given.command)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # as `| head` or a hang-up leaves us
        return 1
    except Exception as error:
        return _report(error, given.command)


def _parsed(made, argv):
    """The arguments; studies and values may also stand behind options, where argparse would take none."""
    given, late = made.parse_known_args(argv)
    lists = [name for name in ("studies", "values") if hasattr(given, name)]
    if late and (not lists or any(word.startswith("-") for word in late)):
        made.error(f"unrecognized arguments: {' '.join(late)}")
    if late and getattr(given, "experiment", "") is None:
        given.experiment, *late = late
    for name in lists:
        getattr(given, name).extend(late)
    return given


def _check_library():
    from labbook import paths

    paths.check_library()


def _report(error: Exception, command: str) -> int:
    """Print one message to stderr and, unless the input is wrong, write the traceback to a log; the exit code."""
    from labbook.atomic_files import is_full
    from labbook.errors import InputError, LabbookError

    log = None if isinstance(error, InputError) else _log(command)
    error = _full_disk(error) if is_full(error) else error
    expected = isinstance(error, LabbookError)
    message = str(error) if expected else f"unexpected {type(error).__name__}: {error}"
    with contextlib.suppress(OSError):      # a terminal that has hung up
        print(f"{_name()} {message}", file=sys.stderr)
        if log:
            print(f"  traceback: {log}", file=sys.stderr)
    return 2 if isinstance(error, InputError) else 1


def _name() -> str:
    """Before an error, on stderr."""
    from labbook import colour

    return colour.paint("labbook:", colour.RED, sys.stderr)


def _full_disk(error: OSError):
    """A clear error for a full disk; without a file's name it is of the folder with the least space."""
    import shutil
    import tempfile
    from pathlib import Path

    from labbook import paths
    from labbook.atomic_files import disk_error

    if error.filename:
        return disk_error(Path(error.filename), error)
    places = [paths.records_dir(), paths.build_dir(), paths.cache_dir(), Path(tempfile.gettempdir())]
    fullest = min((place for place in places if place.is_dir()), key=lambda place: shutil.disk_usage(place).free)
    return disk_error(fullest / "a file", error)


def _log(command):
    """Write the traceback of the error being handled to a file: its path, None if that failed."""
    from labbook import paths
    from labbook.errors import LabbookError

    try:
        file = paths.build_dir() / "logs" / f"{command}-{time.strftime('%Y%m%d-%H%M%S')}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(traceback.format_exc())
        return file
    except (OSError, LabbookError):
        return None


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="labbook",
        description="Replications of published infrastructure experiments on real servers.",
        formatter_class=argparse.RawDescriptionHelpFormatter, epilog=_EPILOG)
    top.add_argument("--version", action="version", version=f"labbook {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _run(commands)
    _book(commands)
    _rows(commands)
    _lab(commands)
    _live(commands)
    _machine(commands)
    _new(commands)
    _completion(commands)
    return top


def _run(commands):
    run = _command(commands, "run", "book:run", "run studies whose pages are out of date", """
  labbook run                                  every study, quick profile
  labbook run cms_scalability --profile full   one study, the paper's own sizes
  labbook run cms_scalability -p clients.clients '[1, 70]' -p clients.repeats 5
  labbook run --profile full --for 40m         stop between points after 40 minutes; repeat to resume
  labbook run cms_scalability --until-decided --for 2h --claims headline
                                               add repeats where claims are open
  labbook run --dry-run                        print the plan, measure nothing""")
    run.add_argument("studies", nargs="*", metavar="STUDY", help=_ALL)
    run.add_argument("--environment", metavar="FILE", help="where labs run: this machine or your own hosts "
                     "(default: the notebook's, environments/local.yml)")
    run.add_argument("--fleet", metavar="FILE", help="measure on the machines of this file at once, each in local labs "
                     "of its own: the book's page Many machines")
    run.add_argument("--cluster", metavar="PROFILE",
                     help="the same on the engines of an ipyparallel cluster that is running")
    run.add_argument("--profile", default="quick", choices=("quick", "full"),
                     help="quick: minutes; full: data/papers/STUDY/full.yml (default: quick)")
    run.add_argument("-p", "--parameter", nargs=2, action="append", default=[], dest="given",
                     metavar=("NAME", "VALUE"), help="a parameter of the notebook, or of one of its groups as "
                     "GROUP.NAME; VALUE is YAML")
    run.add_argument("--force", action="store_true", help="run studies that are up to date, too")
    run.add_argument("--remeasure", action="store_true",
                     help="repeat measurements made by earlier code")
    run.add_argument("--dry-run", action="store_true",
                     help="print points, time, memory, disk, hosts and actions as root; measure nothing")
    run.add_argument("-v", "--verbose", action="store_true",
                     help="with --dry-run: each action as root and each open claim")
    run.add_argument("--for", type=_duration, dest="seconds", metavar="40m",
                     help="stop between points after this time (40m, 1h30m); exit code 3")
    run.add_argument("--until-decided", action="store_true",
                     help="repeat experiments until their claims are decided (replicated or not replicated) or "
                     "have 60 repeats, or until --for is over, which several studies share")
    run.add_argument("--claims", metavar="WHICH",
                     help="which claims --until-decided is for: headline (the paper's main results), paper (the "
                     "paper's), all, or ids such as create-faster,list-faster (default: all)")


def _book(commands):
    book = _command(commands, "book", "book:book", "build the book from the executed notebooks", """
  labbook book               into build/html
  labbook book --published   make the pages from data/published first, without a lab
  labbook book --pdf         also as one PDF, build/labbook.pdf""")
    book.add_argument("--published", action="store_true", help="make the pages from published summaries")
    book.add_argument("--pdf", action="store_true",
                      help="also print the whole book into build/labbook.pdf, by Chromium")
    status = _command(commands, "status", "book:status", "show the state of notebooks, labs and clouds")
    status.add_argument("-v", "--verbose", action="store_true",
                        help="also the claims that a run with --until-decided is measuring for, "
                        "and an estimate for each open claim")
    status.add_argument("--json", action="store_true", help=_JSON)
    _claims(commands)
    publish = _command(commands, "publish", "book:publish",
                       "write the summaries and verdicts of this machine's last run of a profile to data/published")
    publish.add_argument("study", metavar="STUDY")
    publish.add_argument("--profile", choices=("quick", "full"),
                         help="the profile of the run to publish (default: full); a run without --profile was quick")
    mode = publish.add_mutually_exclusive_group()
    mode.add_argument("--replace", action="append", default=[], metavar="EXPERIMENT",
                      help="replace what is published of it though the run has fewer repeats; may be repeated")
    mode.add_argument("--add", action="store_true",
                      help="add the run's repeats to those that are published of the same code, versions and "
                      "settings")
    mode.add_argument("--carry-over", metavar="WHY",
                      help="keep what is published, and declare it valid for today's code, for the reason WHY")
    mode.add_argument("--judge", action="store_true",
                      help="keep what is published, and judge it by today's rules")
    publish.add_argument("--set", action="append", default=[], metavar="MACHINE",
                         help="with --carry-over: only this machine's set, such as amd-epyc-2-cores-linux-6.18; may "
                              "be repeated (default: all)")
    publish.add_argument("--without", action="append", default=[], metavar="EXPERIMENT",
                         help="with --carry-over: not this experiment, for which WHY does not hold; its points become "
                              "those of earlier code. May be repeated")
    publish.add_argument("--further", action="append", default=[], metavar="PARAMETER",
                         help="with --add: also add settings with new values of this parameter. Their repeats get "
                              "numbers after the published ones, so a claim that compares old and new settings does "
                              "not use them; may be repeated")
    _archive(commands)


def _archive(commands):
    archive = _command(commands, "archive", "book:archive",
                       "pack what is published of studies, with raw rows, for an archive (RO-Crate)", """
  labbook archive cms_scalability    into build/archive/labbook-cms_scalability.zip""")
    archive.add_argument("studies", nargs="*", metavar="STUDY", help=_ALL)


def _claims(commands):
    claims = _command(commands, "claims", "book:claims", "count the claims by verdict, and list them", """
  labbook claims                               counts, and the headline claims
  labbook claims -v                            every claim
  labbook claims cms_scalability --headline
  labbook claims --verdict open --owner paper
  labbook claims --json""")
    claims.add_argument("studies", nargs="*", metavar="STUDY", help=_ALL)
    claims.add_argument("--study", action="append", default=[], metavar="STUDY", help="the same as STUDY")
    claims.add_argument("--verdict", action="append", choices=_VERDICTS,
                        help="claims with this verdict; may be repeated")
    claims.add_argument("--owner", choices=("paper", "ours"), help="the papers' claims, or ours")
    claims.add_argument("--headline", action="store_true", help="headline claims only")
    claims.add_argument("-v", "--verbose", action="store_true", help="every claim, as with a study or a filter")
    claims.add_argument("--json", action="store_true", help=_JSON)
    compare = _command(commands, "compare", "book:compare",
                       "compare two runs, machines or checkouts", """
  labbook compare quick published
  labbook compare published:MACHINE published:OTHER cms_scalability
  labbook compare ../other-checkout/build/claims quick
Exit code 1: a decided verdict was reversed.""")
    for side in ("a", "b"):
        compare.add_argument(side, metavar=side.upper(),
                             help="quick (the last run of this checkout, of either profile), published, "
                                  "published:MACHINE, or a path to a claims.json or a folder of them")
    compare.add_argument("studies", nargs="*", metavar="STUDY", help=_ALL)
    compare.add_argument("--json", action="store_true", help=_JSON)


def _rows(commands):
    rows = _command(commands, "rows", "records:rows", "print raw rows that were measured here, as CSV", """
  labbook rows wan_keystone                                      what is recorded
  labbook rows wan_keystone response rtt_ms=100 repeat=1 > rows.csv
  labbook rows cassandra_elasticity disk load=read --series requests
Several points: a column in front for each parameter in which they differ.""")
    rows.add_argument("study", metavar="STUDY")
    rows.add_argument("experiment", nargs="?", metavar="EXPERIMENT", help="default: list what is recorded")
    rows.add_argument("values", nargs="*", metavar="NAME=VALUE", help="a parameter, or repeat: points that have "
                      "this value (default: all)")
    rows.add_argument("--series", metavar="NAME", help="a series of the points instead of their rows")
    rows.add_argument("--list", action="store_true", help="list experiments, parameters, values and series")
    _where_measured(rows)
    show = _command(commands, "show", "records:show",
                    "draw one measured point through time: its operations, and what each host did", """
  labbook show wan_keystone response scenario=create_user rtt_ms=100 repeat=1
  labbook show wan_keystone 3f09ab       by the beginning of its id, which the column `point` of summaries has
One page without other files, and a table of the hosts.""")
    show.add_argument("study", metavar="STUDY")
    show.add_argument("point", metavar="POINT", help="an experiment, or the beginning of a point's id")
    show.add_argument("values", nargs="*", metavar="NAME=VALUE", help="a parameter, or repeat, until it is one point")
    show.add_argument("-o", "--output", metavar="FILE", help="default: below build/shown")
    _where_measured(show)


def _where_measured(command):
    where = command.add_mutually_exclusive_group()
    where.add_argument("--environment", metavar="FILE", default=LOCAL,
                       help=f"where it was measured: this machine or your own hosts (default: {LOCAL})")
    where.add_argument("--fleet", metavar="FILE", help="it was measured by the fleet of this file, or of this name")
    where.add_argument("--cluster", metavar="PROFILE", help="it was measured by this ipyparallel cluster")


def _lab(commands):
    up = _command(commands, "up", "lab:up", "bring up a study's hosts and systems to explore them", """
  labbook up cms_scalability
  labbook ssh small
  labbook down""")
    up.add_argument("study", metavar="STUDY")
    up.add_argument("--environment", metavar="FILE", default=LOCAL,
                    help=f"where: this machine or your own hosts (default: {LOCAL})")
    ssh = _command(commands, "ssh", "lab:ssh", "open a shell, or run a command, on a host of a lab")
    ssh.add_argument("host", metavar="HOST", help="or LAB/HOST if several labs have this host")
    ssh.add_argument("remote_command", nargs=argparse.REMAINDER, metavar="COMMAND",
                     help="run this instead of a shell")
    down = _command(commands, "down", "lab:down", "take down a lab, and remove what killed runs left")
    which = down.add_mutually_exclusive_group()
    which.add_argument("lab", nargs="?", metavar="LAB",
                       help="id or study (default: the lab of this checkout's `labbook up`)")
    which.add_argument("--all", action="store_true", help="every lab that no running process uses")


def _live(commands):
    """What is done with a lab that is up."""
    execute = _command(commands, "exec", "live:execute", "run a command on several hosts of a lab at the same time", """
  labbook exec 'db*' uptime
  labbook exec --lab wan_keystone '*' 'ss -tn | wc -l'
Each line begins with its host; the exit code is the highest of all.""")
    execute.add_argument("pattern", metavar="HOSTS", help="a host's name, or a pattern with *, ? and [...], quoted")
    execute.add_argument("remote_command", nargs=argparse.REMAINDER, metavar="COMMAND")
    capture = _command(commands, "capture", "live:capture", "write the packets of a lab's host into a pcap file", """
  labbook capture db1 --seconds 10
  labbook capture db1 --link a-b --filter 'tcp port 4567' -o galera.pcap
Ctrl-C ends it. A pcap is read by tcpdump -r, tshark and Wireshark.""")
    capture.add_argument("host", metavar="HOST")
    capture.add_argument("--link", metavar="A-B", help="only packets over the link between these two sites")
    capture.add_argument("--filter", dest="expression", metavar="EXPR", help="only what fits, as in pcap-filter(7)")
    capture.add_argument("--seconds", type=_seconds, metavar="N", help="stop after so long (default: at Ctrl-C)")
    capture.add_argument("-o", "--output", metavar="FILE", help="default: HOST.pcap in this folder")
    link = _command(commands, "link", "live:link", "shape a link of a lab, or show and measure it", """
  labbook link a b                      how it was shaped, and what pings measure
  labbook link a b --rtt 200 --loss 1   200 ms round trip, 1 % lost each way
  labbook link a b --rtt 0              as fast as it goes
What is not named is no longer limited.""")
    cut = _command(commands, "cut", "live:cut", "drop every packet of a link of a lab, until `labbook heal`", """
  labbook cut a b""")
    heal = _command(commands, "heal", "live:heal", "end the cut of a link of a lab; it stays shaped", """
  labbook heal a b
  labbook heal       all links that are cut""")
    for command, optional in ((link, None), (cut, None), (heal, "?")):
        command.add_argument("site_a", nargs=optional, metavar="A", help="a site of the lab")
        command.add_argument("site_b", nargs=optional, metavar="B", help="the site at the other end")
    for option, name, metavar, says in (
            ("--rtt", "rtt_ms", "MS", "round trip, ms; half of it each way"),
            ("--jitter", "jitter_ms", "MS", "the round trip lies within rtt ± jitter, ms"),
            ("--loss", "loss", "PERCENT", "packets lost each way, %%"),
            ("--rate", "rate_mbit", "MBIT", "limit each way, Mbit/s")):
        link.add_argument(option, dest=name, type=float, metavar=metavar, help=says)
    for command in (execute, capture, link, cut, heal):
        command.add_argument("--lab", metavar="LAB", help="its id or study (default: the one that is up, of several "
                             "the one of `labbook up`" + "; a running command's must be named" * (command is execute)
                             + ")")


def _machine(commands):
    doctor = _command(commands, "doctor", "lab:doctor",
                      "list what this machine or your own hosts lack, and how to fix it", """
  labbook doctor
  labbook doctor cms_scalability --environment environments/hosts.yml""")
    doctor.add_argument("studies", nargs="*", metavar="STUDY", help=_ALL)
    doctor.add_argument("--environment", metavar="FILE", default=LOCAL,
                        help=f"where labs would run (default: {LOCAL})")
    doctor.add_argument("--fleet", metavar="FILE", help="look at all machines of this fleet at once")
    doctor.add_argument("--profile", choices=("quick", "full"), default="quick",
                        help="the profile for which hosts, packages and disk space are checked (default: quick)")
    doctor.add_argument("-v", "--verbose", action="store_true", help="all that was looked at, and why")
    doctor.add_argument("--json", action="store_true", help=_JSON)
    install = _command(commands, "install", "lab:install",
                       "install what studies need")
    install.add_argument("studies", nargs="*", metavar="STUDY", help=_ALL)
    install.add_argument("--fleet", metavar="FILE", help="prepare the machines of this fleet that allow it")
    install.add_argument("--profile", choices=("quick", "full"), default="quick",
                         help="full: also what only the full profile needs (default: quick)")
    install.add_argument("--tests", action="store_true", help="also what `make test` needs")
    install.add_argument("--benchmarks", action="store_true", help="also what `make benchmarks` needs")


def _new(commands):
    new = _command(commands, "new", "book:new", "write the files of a new study, which runs at once", """
  labbook new slow_disks
  labbook new slow_disks --system mariadb""")
    new.add_argument("name", metavar="NAME",
                     help="of the study: lower-case letters, digits and single _, a letter first, "
                     "at most 40 characters")
    new.add_argument("--system", metavar="SYSTEM", default="null",
                     help="the system that its clients call (default: null, which stores nothing)")


def _completion(commands):
    completion = _command(commands, "completion", "completion:show",
                          "print the shell code that completes labbook's commands in bash or zsh", """
  eval "$(.venv/bin/labbook completion bash)"    in ~/.bashrc
  eval "$(.venv/bin/labbook completion zsh)"     in ~/.zshrc, after compinit""")
    completion.add_argument("shell", choices=("bash", "zsh"))


def _command(commands, name, handler, says, examples=None):
    made = commands.add_parser(
        name, help=says, description=says[0].upper() + says[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"examples:{examples}" if examples else None)
    made.set_defaults(handler=handler)
    return made


def _duration(text: str) -> float:
    from labbook.pipeline.executing.progress import parse_duration

    try:
        return parse_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 40m or 1h30m") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
