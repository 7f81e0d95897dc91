"""The user's own clouds, which replace systems of a study that have the same label."""

from labbook.errors import LabbookError, LabError
from labbook.pipeline.setup.requirements import all_studies, description

LOOKING = "labbook-look"    # instead of a study's id, where nothing is created


def standing_in(study: str, environment) -> dict:
    """{cloud: (its OwnCloud, name of the system that it replaces)} of the study's systems."""
    systems = {s.get("label", s["name"]): s["name"] for s in description(study).systems}
    return {own.name: (own, systems[own.name]) for own in environment.clouds if own.name in systems}


def seen(studies, environment):
    """(OwnCloud, studies, error or None) of each cloud that a study would use. The credentials are
    tried; nothing is created there."""
    clouds = {}
    for study in studies or all_studies():
        for name, (own, _) in standing_in(study, environment).items():
            clouds.setdefault(name, (own, []))[1].append(study)
    for own, whom in clouds.values():
        yield own, tuple(whom), _wrong(own)


def _wrong(own) -> LabbookError | None:
    from labbook.lab.environment.clouds import check_credentials
    from labbook.systems.cloud.user_cloud import api_of

    try:
        check_credentials(own)
        api_of(own, LOOKING).quota()
    except LabbookError as error:
        return error
    return None


def plan(study: str, environment) -> list[str]:
    """Lines for --dry-run."""
    return [f"  on cloud {name} ({own.kind}), instead of {system}: servers, volumes, images, "
            "keys; recorded first and removed at the end"
            for name, (own, system) in standing_in(study, environment).items()]


def remedy(error) -> str:
    return error.remedy if isinstance(error, LabError) and error.remedy else ""
