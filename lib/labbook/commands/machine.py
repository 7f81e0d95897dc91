"""doctor, install."""


def doctor(given) -> int:
    from labbook.pipeline import doctor as examination
    from labbook.pipeline.run import environment_file

    return examination.main(given.studies, given.json, environment_file(given.environment))


def install(given) -> int:
    from labbook.pipeline import install as installation

    return installation.main(given.studies, given.tests)
