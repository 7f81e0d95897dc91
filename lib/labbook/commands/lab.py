"""doctor and install: this machine or the user's hosts. up, ssh and down: a lab to explore by hand."""

import os
import sys
from contextlib import suppress

from labbook import paths
from labbook.errors import InputError, LabError


def doctor(given) -> int:
    from labbook.pipeline.running.run import environment_file
    from labbook.pipeline.setup import doctor

    if given.fleet:
        from labbook.pipeline.fleet import machines

        _check_fleets_doctor(given, paths.LOCAL)
        return machines.doctor(given.studies, given.fleet, given.json, given.profile)
    return doctor.main(given.studies, given.json, environment_file(given.environment), given.profile,
                       given.verbose)


def _check_fleets_doctor(given, default) -> None:
    """InputError for options that a fleet does not have; default: the environment if none was given."""
    if given.environment != default:
        raise InputError("a fleet's machines have environments of their own", key="--environment",
                         allowed="`environment` in the fleet file")
    if given.verbose:
        raise InputError("of a fleet's machines only what they lack is shown", key="--verbose",
                         allowed="without --fleet, typed on the machine")


def install(given) -> int:
    from labbook.pipeline.setup import install

    if given.fleet:
        from labbook.pipeline.fleet import machines

        for option in ("tests", "benchmarks"):
            if getattr(given, option):
                raise InputError("a fleet's machines only measure", key=f"--{option}", allowed="without --fleet")
        return machines.install(given.studies, given.fleet, given.profile)
    return install.main(given.studies, given.tests, given.benchmarks, given.profile)


def up(given) -> int:
    from labbook.lab import Environment, Lab, LabDescription
    from labbook.pipeline.running import run
    from labbook.pipeline.setup import requirements

    study = given.study
    requirements.check_lab(study)
    file = run.environment_file(given.environment)
    environment = Environment.load(paths.checkout() / file)
    description = LabDescription.load(paths.papers(study) / "lab.yml").of()
    jobs = {study: {"environment": file}}
    run.check_files(jobs)
    lab_id = _id_to_explore(study, environment)
    if any(one.keep and one.id == lab_id for one in Lab.list()):
        raise LabError(f"lab {lab_id} of {study} is up already", remedy=f"Type: labbook down {lab_id}")
    run.sweep_labs()    # what killed runs left may have the cores
    run.check_needs(jobs)
    lab = Lab.up(description, environment, lab_id=lab_id)
    started = []
    try:
        for wanted in description.systems:
            if wanted.get("label") in lab.clouds:
                print(f"cloud {wanted['label']} stands in for {wanted['name']}", file=sys.stderr)
            elif system := _start(lab, wanted, [other for _, other in started]):
                started.append((wanted, system))
        lab.keep()
    except BaseException:
        lab.down()
        raise
    print(f"lab {lab.id} of {study} is up")
    for host in lab.hosts.values():
        running = [_running(wanted, system, host) for wanted, system in started
                   if host.name in wanted["hosts"]]
        print(f"  {host.name:<14}{host.address:<18}{', '.join(running)}".rstrip())
    print(f"labbook ssh {next(iter(lab.hosts))}     a shell there\nlabbook down {lab.id}")
    return 0


def _id_to_explore(study, environment) -> str:
    """Another id than that of `labbook run`, which would take this lab down."""
    from labbook.lab.lab import default_id

    return default_id(f"{study} to explore", environment)


def _start(lab, wanted, others):
    """The system, up; None if two hosts of the lab are one machine and another system has the ports there."""
    from labbook.study.explorer import trying

    system = trying.made(lab, wanted)
    where = ", ".join(wanted["hosts"])
    for other in others:
        if _in_the_way(other, system):
            print(f"{wanted['name']} on {where} stays down: {other.NAME} has its ports, "
                  f"{other.host.name} and {system.host.name} are one machine", file=sys.stderr)
            return None
    print(f"starting {wanted['name']} on {where}", file=sys.stderr)
    system.up()
    return system


def _in_the_way(other, system) -> bool:
    """Whether two systems share a machine, and there a port or a folder."""
    mine, others = ({host.address for host in getattr(one, "hosts", [one.host])}
                    for one in (system, other))
    return bool(mine & others) and (other.port == system.port or other.NAME == system.NAME)


def _running(wanted, system, host) -> str:
    """The part of a system that runs on a host, and the port at which clients call it."""
    part = getattr(system, "PARTS", {}).get(host.role, wanted["name"])
    return f"{part} on port {system.port}" if host.address == system.address else part


def ssh(given) -> int:
    from labbook.lab import Lab

    lab, host = _find_host(Lab.list(), given.host)
    os.execvp("ssh", ["ssh", "-F", str(lab.ssh_config), host, *given.remote_command])


def _find_host(labs, name: str):
    """(lab, host) of HOST or LAB/HOST; LAB is an id or a study. A lab that `labbook up` keeps goes before
    those that running commands have."""
    labs = list(labs)
    if not labs:
        raise LabError("no lab is up", remedy="labbook up STUDY brings one up")
    wanted_lab, _, host = name.rpartition("/")
    found = prefer_kept([lab for lab in labs if host in lab.hosts and wanted_lab in ("", lab.id, lab.study)])
    if len(found) == 1:
        return found[0], host
    every = [f"{lab.id}/{h}" for lab in (found or labs) for h in lab.hosts
             if not found or h == host]
    problem = "more than one lab has this host" if found else "no such host"
    raise InputError(problem, key=name, allowed=every)


def prefer_kept(labs: list) -> list:
    """As prefer_own, and of these those that `labbook up` keeps if there are any."""
    found = prefer_own(labs)
    return [lab for lab in found if lab.keep] or found


def prefer_own(labs: list) -> list:
    """Those that this checkout brought up if there are any, otherwise all."""
    return _own(labs) or labs


def _own(labs: list) -> list:
    from labbook import paths

    return [lab for lab in labs if lab.checkout == str(paths.checkout())]


def down(given) -> int:
    try:
        return _labs_down(given)
    finally:
        _clouds_down()
        _files_down()


def _clouds_down():
    """Remove what killed runs left on the user's own clouds."""
    from labbook.pipeline.executing.driver import clouds_left

    if clouds_left():
        from labbook.systems.cloud import user_cloud

        for left in user_cloud.sweep():
            print(f"removed from cloud {left.cloud} what a run of {left.study} left there")


def _files_down():
    """Remove the sockets and partial records of killed runs, if the working folder is in a checkout."""
    from labbook.pipeline.executing.driver import sweep_records, sweep_sockets

    with suppress(InputError):
        sweep_sockets()
        sweep_records()


def _labs_down(given) -> int:
    from labbook.lab import Lab

    studies = {lab.id: lab.study for lab in Lab.list()}
    swept, stuck = _sweep(given.all)
    if given.all:
        return max(_in_use([lab for lab in Lab.list() if lab.id not in stuck]), int(bool(stuck)))
    others = {lab.study for lab in Lab.list() if lab.id not in stuck}
    if given.lab in {*stuck, *({studies.get(lab_id) for lab_id in stuck} - others)} - {None}:
        return 1        # why has been said
    return max(_wanted_down(given, studies, swept), int(bool(stuck)))


def _sweep(everything: bool) -> tuple[list[str], set[str]]:
    """(the labs that went down, those that could not). One that cannot be removed, as on a host that is off, is in
    nobody else's way."""
    from labbook.lab import Lab
    from labbook.lab.registry import StuckLabs

    before = {lab.id for lab in Lab.list()}
    try:
        swept, stuck = list(Lab.sweep(everything=everything)), set()
    except StuckLabs as error:
        swept, stuck = sorted(before - {lab.id for lab in Lab.list()}), set(error.labs)
        print("".join(f"labbook: {each}\n" for each in error.labs.values()), end="", file=sys.stderr)
    for lab_id in swept:
        print(f"lab {lab_id} is down")
    return swept, stuck


def _wanted_down(given, studies: dict, swept: list[str]) -> int:
    """Take down the lab that is meant, unless it was one of those that were swept. studies: {lab: study} before."""
    from labbook.lab import Lab

    kept = any(lab.keep and lab.study == given.lab for lab in Lab.list())
    if not kept and given.lab in {*swept, *(studies.get(lab_id) for lab_id in swept)} - {None}:
        return 0    # its owner had died
    lab = _to_take_down(list(Lab.list()), given.lab)
    if lab is not None:
        Lab.take_down(lab.id)
        print(f"lab {lab.id} is down")
        return 0
    if not swept:
        print("no lab of this checkout's `labbook up` is up", file=sys.stderr)
    for other in (lab for lab in Lab.list() if lab.keep):
        print(f"lab {other.id} of {other.checkout} stays up: labbook down {other.id}", file=sys.stderr)
    return 0


def _to_take_down(labs, name):
    """The lab of that id or study; without a name the one that this checkout's `labbook up` made, None if none."""
    if name is None:
        found = _own([lab for lab in labs if lab.keep])
    else:
        found = prefer_own([lab for lab in labs if name in (lab.id, lab.study)])
    if len(found) == 1:
        return found[0]
    if name is None and not found:
        return None
    problem = "more than one lab is up: name one" if found else "no such lab is up"
    raise InputError(problem, key=name, allowed=[lab.id for lab in found or labs] or "none is up")


def _in_use(labs) -> int:
    for lab in labs:
        print(f"labbook: lab {lab.id} ({lab.study}) is in use and stays up", file=sys.stderr)
    return 1 if labs else 0
