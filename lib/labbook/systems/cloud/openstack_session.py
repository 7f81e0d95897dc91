"""Connection to an OpenStack, by the user's clouds.yaml or through a lab host's SSH connection, and
translation of its errors."""

import socket
import threading
from pathlib import Path

from labbook.errors import InputError
from labbook.lab.ssh.tunnel import tunnel
from labbook.systems.cloud import errors

TIMEOUT_S = 60


def connect(own):
    """openstacksdk's connection for an entry of the environment file; sends no request yet."""
    from openstack.config.loader import OpenStackConfig
    from openstack.connection import Connection

    with translate_errors("be reached", own):
        config = OpenStackConfig(
            config_files=[own.credentials], vendor_files=[], load_envvars=False,
            secure_files=[str(Path(own.credentials).with_name("secure.yaml"))])
        given = {"region_name": own.region, "cacert": own.certificates}
        region = config.get_one(cloud=own.profile, api_timeout=TIMEOUT_S,
                                **{key: value for key, value in given.items() if value})
        return Connection(config=region, app_name="labbook")


def connect_through(host, **auth):
    """openstacksdk's connection to a lab's OpenStack whose services `host` reaches.

    auth: auth_url, username, password, project_name, user_domain_name, project_domain_name. All
    traffic goes through the host's SSH connection.
    """
    import openstack

    cloud = openstack.connect(load_yaml_config=False, load_envvars=False, auth=auth,
                              region_name="RegionOne", api_timeout=TIMEOUT_S, app_name="labbook")
    cloud.session.session.trust_env = False     # no proxy of this machine
    cloud.session.session.mount("http://", _through(host))
    return cloud


def _through(host):
    """An adapter of requests whose connections go out from the host."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool
    from urllib3.connection import HTTPConnection

    tunnels, lock = {}, threading.Lock()

    class Connection(HTTPConnection):
        def _new_conn(self):
            far = (self.host, self.port)
            with lock:
                if far not in tunnels:
                    tunnels[far] = tunnel(host, *far)
            return socket.create_connection(tuple(tunnels[far]), self.timeout)

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args, **kwargs):
            super().init_poolmanager(*args, **kwargs)
            self.poolmanager.pool_classes_by_scheme = {
                **self.poolmanager.pool_classes_by_scheme, "http": Pool}

    return Adapter()


def missing_is_none(ask):
    """ask()'s answer; None if the cloud answers that it does not exist."""
    from openstack.exceptions import NotFoundException

    try:
        return ask()
    except NotFoundException:
        return None


def translate_errors(doing: str, own):
    """A context in which openstacksdk's errors are raised as the project's own."""
    return errors.translated(_translate, doing, own)


def _translate(error, doing, own):
    from keystoneauth1 import exceptions as keystone
    from openstack import exceptions as sdk

    message = _message(error)
    code = getattr(error, "status_code", None) or getattr(error, "http_status", None)
    if isinstance(error, (sdk.ConfigException, keystone.AuthPluginException)):
        return InputError(f"{own.credentials}: {message}" if own else message, file=own and own.file,
                          key=own and own.key("credentials"),
                          allowed="a clouds.yaml as `openstack` reads it")
    if code == 401:
        return errors.credentials(own, message)
    if code is not None:
        return _by_code(code, doing, own, message)
    if isinstance(error, (keystone.ConnectionError, keystone.DiscoveryFailure)):
        return errors.unreachable(own, message)
    if isinstance(error, keystone.CatalogException):
        return errors.refused(errors.failed(doing, f"it has no such service: {message}"))
    return errors.failed(doing, message) if isinstance(error, sdk.SDKException) else None


def _by_code(code, doing, own, message):
    if code >= 500:     # it may have been done all the same
        return errors.failed(doing, message)
    translation = errors.from_message(doing, message)
    if translation is None and code == 403:
        return errors.forbidden(own, doing, message)
    return translation or errors.refused(errors.failed(doing, message))


def _message(error) -> str:
    """The service's own message, without the URL."""
    return str(getattr(error, "details", None) or getattr(error, "message", None) or error).strip()
