"""doctor, install."""


def doctor(given) -> int:
    from labbook.pipeline import doctor as examination

    return examination.main(given.studies, given.json)


def install(given) -> int:
    from labbook.pipeline import install as installation

    return installation.main(given.studies, given.tests)
