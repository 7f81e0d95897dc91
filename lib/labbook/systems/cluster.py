"""What systems made of several nodes share."""

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait


def each(nodes, job, at_failure=None) -> list:
    """job(node) for all nodes at once, over the connection of each one's host.

    The first error is raised; before that, `at_failure()` may end what the others wait for.
    """
    with ThreadPoolExecutor(len(nodes) or 1) as pool:
        jobs = [pool.submit(job, node) for node in nodes]
        try:
            ended, _ = wait(jobs, return_when=FIRST_EXCEPTION)
            for one in ended:
                one.result()
        except BaseException:
            if at_failure is not None:
                at_failure()
            raise
        return [one.result() for one in jobs]


def together(facts: list[dict]) -> dict:
    """One dict of several: a value they share, or the list of theirs."""
    return {key: value if all(f[key] == value for f in facts) else [f[key] for f in facts]
            for key, value in facts[0].items()}
