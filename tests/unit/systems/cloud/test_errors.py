"""Translation of clouds' errors, and whether something may have been made."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from labbook.errors import InputError, LabError, SystemFailure
from labbook.lab.environment.clouds import OwnCloud
from labbook.systems.cloud import ec2_session as ec2
from labbook.systems.cloud import openstack_session as openstack
from labbook.systems.cloud.openstack import OpenStackApi

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")    # raised inside the SDK
OWN = OwnCloud("mine", "ec2", "/home/me/aws", profile="labs", file="clouds.yml")
CASES = {
    "AuthFailure": (401, InputError, "clouds.mine.credentials: the cloud refuses profile 'labs'", True),
    "SignatureDoesNotMatch": (403, InputError, "refuses profile 'labs' of /home/me/aws", True),
    "UnauthorizedOperation": (403, InputError, "clouds.mine.profile: .*does not let this user start", True),
    "InstanceLimitExceeded": (400, LabError, "quota does not let us start", True),
    "VcpuLimitExceeded": (400, LabError, "quota does not let us start", True),
    "RequestLimitExceeded": (503, SystemFailure, "could not start 8 servers: words", False),
    "InsufficientInstanceCapacity": (500, LabError, "no host of the cloud has room", True),
    "NotEnoughResourcesException": (400, LabError, "no host of the cloud has room", True),
    "InvalidAMIID.NotFound": (400, SystemFailure, "could not start 8 servers: words", True),
    "InternalError": (500, SystemFailure, "could not start 8 servers: words", False),
}


@pytest.mark.parametrize("code", CASES)
def test_errors_of_ec2(code):
    status, kind, message, refused = CASES[code]
    error = ClientError({"Error": {"Code": code, "Message": "words"},
                         "ResponseMetadata": {"HTTPStatusCode": status}}, "RunInstances")
    with pytest.raises(kind, match=message) as raised, ec2.translate_errors("start 8 servers", OWN):
        raise error
    assert getattr(raised.value, "refused", False) == refused and code in str(raised.value)


@pytest.mark.parametrize("error, kind, message", [
    (EndpointConnectionError(endpoint_url="https://x/"), LabError, "clouds.yml: clouds.mine does not answer"),
    (NoCredentialsError(), InputError, "clouds.mine.credentials"),
])
def test_an_unreachable_cloud_with_ec2s_api(error, kind, message):
    with pytest.raises(kind, match=message), ec2.translate_errors("start 8 servers", OWN):
        raise error


@pytest.mark.parametrize("code, details, kind, message, refused", [
    (401, "who are you", InputError, "clouds.mine.credentials", True),
    (403, "Policy does not allow it", InputError, "clouds.mine.profile", True),
    (403, "Quota exceeded for cores", LabError, "quota does not let us start", True),
    (413, "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded", LabError, "quota", True),
    (400, "Flavor's disk is too small for requested image.", SystemFailure, "too small", True),
    (409, "Cannot 'reboot' instance while it is in task_state", SystemFailure, "task_state", True),
    (503, "The server is currently unavailable.", SystemFailure, "unavailable", False),
])
def test_errors_of_openstack(code, details, kind, message, refused):
    from openstack.exceptions import HttpException

    with pytest.raises(kind, match=message) as raised, openstack.translate_errors("start 8 servers", OWN):
        raise HttpException(http_status=code, details=details)
    assert getattr(raised.value, "refused", False) == refused


@pytest.mark.parametrize("translate", [ec2.translate_errors, openstack.translate_errors])
def test_other_errors_stay_as_they_are(translate):
    for error in (ZeroDivisionError(), LabError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)), translate("start 8 servers", OWN):
            raise error


def test_an_unusable_clouds_yaml_is_named(tmp_path):
    file = tmp_path / "clouds.yaml"
    file.write_text("clouds: {here: {auth_type: nonsense}}\n")
    own = OwnCloud("mine", "openstack", str(file), profile="here", file="clouds.yml")
    with pytest.raises(InputError, match="clouds.yml: clouds.mine.credentials: .*nonsense"):
        OpenStackApi.of(own, "labbook-t1").quota()
