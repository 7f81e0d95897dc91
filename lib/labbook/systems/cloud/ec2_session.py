"""Connection to a cloud with EC2's API by the user's credentials file, and translation of its errors."""

import os

from labbook.errors import InputError
from labbook.systems.cloud import errors

VERSION = "2016-11-15"          # of the API, with signatures of version 4
REGION = "us-east-1"            # for the signature where a private cloud has no region
CONNECT_S, READ_S, TRIES = 10, 60, 3

REFUSED = {"AuthFailure", "InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken",
           "UnrecognizedClientException", "MissingAuthenticationToken", "InvalidAccessKeyId",
           "IncompleteSignature", "RequestExpired"}
FORBIDDEN = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "OptInRequired"}


def connect(own):
    """A function from a service's name to botocore's client for it; sends no request yet."""
    import botocore.session
    from botocore.config import Config

    session = botocore.session.Session()
    # settings of the user's shell for other clouds must not apply
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


def translate_errors(doing: str, own):
    """A context in which botocore's errors are raised as the project's own."""
    return errors.translated(_translate, doing, own)


def _translate(error, doing, own):
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
    code = answer.get("Code", "")
    message = f"{answer.get('Message', '')} ({code})"
    if code in REFUSED:
        return errors.credentials(own, message)
    if code in FORBIDDEN:
        return errors.forbidden(own, doing, message)
    translation = errors.from_message(doing, message) or errors.failed(doing, message)
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= 500:
        return translation     # it may have been done all the same
    return errors.refused(translation)
