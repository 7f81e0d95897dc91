"""The way to an OpenStack: by the user's clouds.yaml, or through the SSH connection of a lab host;
and what goes wrong on it, told as whose fault it is."""

import socket
import threading
from contextlib import contextmanager
from pathlib import Path

from labbook.errors import InputError, LabbookError
from labbook.lab.ssh.tunnel import tunnel
from labbook.systems.cloud import errors

TIMEOUT_S = 60


def connect(own):
    """An openstacksdk connection for an entry of the environment file; asks nothing of it yet."""
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
    """To an OpenStack in a lab, whose services `host` reaches; `auth`: auth_url, username, password,
    project_name, user_domain_name, project_domain_name. No packet for it leaves this machine but
    through the host's SSH connection."""
    import openstack

    cloud = openstack.connect(load_yaml_config=False, load_envvars=False, auth=auth,
                              region_name="RegionOne", api_timeout=TIMEOUT_S, app_name="labbook")
    cloud.session.session.trust_env = False     # no proxy of this machine's
    cloud.session.session.mount("http://", _through(host))
    return cloud


def _through(host):
    """An adapter of requests whose connections begin at the host."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool
    from urllib3.connection import HTTPConnection

    ways, lock = {}, threading.Lock()

    class Connection(HTTPConnection):
        def _new_conn(self):
            far = (self.host, self.port)
            with lock:
                if far not in ways:
                    ways[far] = tunnel(host, *far)
            return socket.create_connection(tuple(ways[far]), self.timeout)

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args, **kwargs):
            super().init_poolmanager(*args, **kwargs)
            self.poolmanager.pool_classes_by_scheme = {
                **self.poolmanager.pool_classes_by_scheme, "http": Pool}

    return Adapter()


def missing_is_none(ask):
    """ask()'s answer; None when the cloud has no such thing."""
    from openstack.exceptions import NotFoundException

    try:
        return ask()
    except NotFoundException:
        return None


@contextmanager
def translate_errors(doing: str, own):
    """What the SDK raises meanwhile is raised as the project's own errors."""
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
    from keystoneauth1 import exceptions as keystone
    from openstack import exceptions as sdk

    said = _words(error)
    code = getattr(error, "status_code", None) or getattr(error, "http_status", None)
    if isinstance(error, (sdk.ConfigException, keystone.AuthPluginException)):
        return InputError(f"{own.credentials}: {said}" if own else said, file=own and own.file,
                          key=own and own.key("credentials"),
                          allowed="a clouds.yaml as `openstack` takes it")
    if code == 401:
        return errors.credentials(own, said)
    if code is not None:
        return _by_code(code, doing, own, said)
    if isinstance(error, (keystone.ConnectionError, keystone.DiscoveryFailure)):
        return errors.unreachable(own, said)
    if isinstance(error, keystone.CatalogException):
        return errors.refused(errors.failed(doing, f"it has no such service: {said}"))
    return errors.failed(doing, said) if isinstance(error, sdk.SDKException) else None


def _by_code(code, doing, own, said):
    if code >= 500:     # it may have been done all the same
        return errors.failed(doing, said)
    told = errors.by_words(doing, said)
    if told is None and code == 403:
        return errors.forbidden(own, doing, said)
    return told or errors.refused(errors.failed(doing, said))


def _words(error) -> str:
    """The service's own, without the address that was asked."""
    return str(getattr(error, "details", None) or getattr(error, "message", None) or error).strip()
