"""The way to a cloud with EC2's API, by the user's file of credentials; and what goes wrong on it,
told as whose fault it is."""

import os
from contextlib import contextmanager

from labbook.errors import InputError, LabbookError
from labbook.systems.cloud import errors

VERSION = "2016-11-15"          # of the API that is spoken, with signatures of version 4
REGION = "us-east-1"            # signed with where a cloud of one's own names none
CONNECT_S, READ_S, TRIES = 10, 60, 3

REFUSED = {"AuthFailure", "InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken",
           "UnrecognizedClientException", "MissingAuthenticationToken", "InvalidAccessKeyId",
           "IncompleteSignature", "RequestExpired"}
FORBIDDEN = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "OptInRequired"}


def connect(own):
    """A function that gives botocore's client of a service; asks nothing of the cloud yet."""
    import botocore.session
    from botocore.config import Config

    session = botocore.session.Session()
    # what the user's shell sets for other clouds must not lead to these
    session.set_config_variable("config_file", os.devnull)
    session.set_config_variable("credentials_file", own.credentials)
    session.set_config_variable("profile", own.profile)
    config = Config(connect_timeout=CONNECT_S, read_timeout=READ_S, user_agent_extra="labbook",
                    retries={"mode": "standard", "total_max_attempts": TRIES},
                    ignore_configured_endpoint_urls=True)
    clients = {}

    def client(service):
        if service not in clients:
            url = own.endpoint if service == "ec2" else own.blocks
            version = {"api_version": VERSION} if service == "ec2" else {}
            with translate_errors("be reached", own):
                clients[service] = session.create_client(
                    service, region_name=own.region or REGION, endpoint_url=url, config=config,
                    verify=own.certificates, **version)
        return clients[service]

    return client


@contextmanager
def translate_errors(doing: str, own):
    """What botocore raises meanwhile is raised as the project's own errors."""
    try:
        yield
    except LabbookError:
        raise
    except Exception as error:
        told = _as_own_error(error, doing, own)
        if told is None:
            raise
        raise told from error


def _as_own_error(error, doing, own):
    from botocore import exceptions as botocore

    if isinstance(error, botocore.ClientError):
        return _by_code(error, doing, own)
    if isinstance(error, (botocore.NoCredentialsError, botocore.PartialCredentialsError,
                          botocore.ProfileNotFound)):
        return errors.credentials(own, str(error))
    if isinstance(error, (botocore.ParamValidationError, botocore.NoRegionError)):
        return errors.refused(InputError(f"the cloud cannot {doing}: {error}", file=own.file,
                                         key=own.key()))
    if isinstance(error, (botocore.HTTPClientError, botocore.BotoCoreError)):
        return errors.unreachable(own, str(error))
    return None


def _by_code(error, doing, own):
    answer = error.response.get("Error", {})
    code, said = answer.get("Code", ""), f"{answer.get('Message', '')} ({answer.get('Code', '')})"
    if code in REFUSED:
        return errors.credentials(own, said)
    if code in FORBIDDEN:
        return errors.forbidden(own, doing, said)
    told = errors.by_words(doing, said) or errors.failed(doing, said)
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= 500:
        return told     # it may have been done all the same
    return errors.refused(told)
