"""Claims beside what a study measures: each claim's verdict from the experiment that it names."""

from labbook.checks import did_you_mean
from labbook.claims import claims
from labbook.errors import InputError


def judge(study, claim: dict):
    """The Verdict on a claim, from the summary of its experiment."""
    from labbook.claims import verdict
    from labbook.study import results

    rows, conditions, parameters = [], {}, ()
    if claim["rule"]["name"] != "not_testable":
        experiment = experiment_of(study, claim)
        rows, parameters = experiment.summary().to_dict("records"), experiment.parameters
        conditions = results.conditions(study, [experiment])
    return verdict.judge(
        claim, rows, parameters, study=study.name, file=claims.path(study.name),
        profile=conditions.get("profile", study.run.profile), conditions=conditions,
        environment=conditions.get("environment", str(study.environment)),
        known=claims.full_words(study.name))


def experiment_of(study, claim: dict):
    """The experiment that a claim names; InputError when the study has not declared it."""
    name = claim["experiment"]
    if name not in study.experiments:
        near = did_you_mean(name, study.experiments)
        raise InputError(f"no experiment {name!r} is declared{near}", file=claims.path(study.name),
                         key=f"{claim['id']}.experiment", allowed=list(study.experiments))
    return study.experiments[name]
