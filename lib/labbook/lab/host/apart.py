"""A command that may hang, on a host: run in a process of its own, which is left behind in time."""

import shlex

from labbook.lab.host.host import Result

SLACK_S = 20    # to start it, and to read what it said
# Only the process of its own comes near what may hang. What it said is read when it has ended.
SCRIPT = """place=$(mktemp -d {where}/apart-XXXXXX) || exit 1
setsid sh -c {job} > "$place/out" 2> "$place/err" < /dev/null &
timeout {seconds} sh -c 'until [ -e "$0/code" ]; do sleep 0.02; done' "$place"
code=$(cat "$place/code" 2> /dev/null) || { pkill -KILL -s $!; code=; }
echo "code $code"; cat "$place/out"; cat "$place/err" >&2; rm -rf "$place" """
# its exit code comes in one step, and not into a folder that is no more
JOB = """( {command}
)
echo $? > {place}/code.new && mv {place}/code.new {place}/code"""


def run_apart(host, command: str, seconds: float, root: bool = False) -> Result | None:
    """The Result of a shell command on the host, in its root folder; None when it had not ended
    after `seconds`. Then it has been sent SIGKILL, and ends when what it waits for lets it."""
    job = JOB.replace("{place}", "$place").replace("{command}", command)
    script = (SCRIPT.replace("{where}", shlex.quote(str(host.root)))
              .replace("{seconds}", f"{seconds:.2f}").replace("{job}", shlex.quote(job)))
    done = host.run(f"export place; {script}", timeout=seconds + SLACK_S, root=root)
    first, _, said = done.stdout.partition("\n")
    code = first.removeprefix("code ")
    return Result(said, done.stderr, int(code)) if code else None
