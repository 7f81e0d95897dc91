"""Paste pipelines: the filters that a request passes in each service, as pure functions.

Only what a lab's services need, the same for all releases.
"""

TOKEN = {"paste.filter_factory": "keystonemiddleware.auth_token:filter_factory"}


def nova() -> dict:
    return {
        "composite:osapi_compute": {"use": "call:nova.api.openstack.urlmap:urlmap_factory",
                                    "/": "versions", "/v2.1": "version", "/v2.1/+": "api"},
        "composite:api": {"use": "call:nova.api.auth:pipeline_factory_v21",
                          "keystone": "request_id faults size token context router"},
        "pipeline:versions": {"pipeline": "faults all_versions"},
        "pipeline:version": {"pipeline": "request_id faults one_version"},
        "app:router": {"paste.app_factory": "nova.api.openstack.compute:APIRouterV21.factory"},
        "app:all_versions": {"paste.app_factory": "nova.api.openstack.compute.versions:Versions.factory"},
        "app:one_version": {"paste.app_factory": "nova.api.openstack.compute.versions:VersionsV2.factory"},
        "filter:request_id": _filter("nova.api.compute_req_id:ComputeReqIdMiddleware.factory"),
        "filter:faults": _filter("nova.api.openstack:FaultWrapper.factory"),
        "filter:size": _filter("oslo_middleware:RequestBodySizeLimiter.factory"),
        "filter:context": _filter("nova.api.auth:NovaKeystoneContext.factory"),
        "filter:token": TOKEN,
    }


def neutron() -> dict:
    return {
        "composite:neutron": {"use": "egg:Paste#urlmap", "/": "versions", "/v2.0": "api"},
        "composite:api": {"use": "call:neutron.auth:pipeline_factory",
                          "keystone": "request_id errors token context extensions router"},
        "app:versions": {"paste.app_factory": "neutron.pecan_wsgi.app:versions_factory"},
        "app:router": {"paste.app_factory": "neutron.api.v2.router:APIRouter.factory"},
        "filter:request_id": _filter("oslo_middleware:RequestId.factory"),
        "filter:errors": _filter("oslo_middleware:CatchErrors.factory"),
        "filter:context": _filter("neutron.auth:NeutronKeystoneContext.factory"),
        "filter:extensions": _filter("neutron.api.extensions:plugin_aware_extension_middleware_factory"),
        "filter:token": TOKEN,
    }


def glance() -> dict:
    return {
        "pipeline:glance-api-keystone": {"pipeline": "version token context root"},
        "composite:root": {"paste.composite_factory": "glance.api:root_app_factory",
                           "/": "versions", "/v2": "router"},
        "app:versions": {"paste.app_factory": "glance.api.versions:create_resource"},
        "app:router": {"paste.app_factory": "glance.api.v2.router:API.factory"},
        "filter:version": _filter(
            "glance.api.middleware.version_negotiation:VersionNegotiationFilter.factory"),
        "filter:context": _filter("glance.api.middleware.context:ContextMiddleware.factory"),
        "filter:token": TOKEN | {"delay_auth_decision": "true"},
    }


def cinder() -> dict:
    return {
        "composite:osapi_volume": {"use": "call:cinder.api:root_app_factory",
                                   "/": "versions", "/v3": "api"},
        "composite:api": {"use": "call:cinder.api.middleware.auth:pipeline_factory",
                          "keystone": "request_id faults size token context router"},
        "pipeline:versions": {"pipeline": "request_id faults all_versions"},
        "app:all_versions": {"paste.app_factory": "cinder.api.versions:Versions.factory"},
        "app:router": {"paste.app_factory": "cinder.api.v3.router:APIRouter.factory"},
        "filter:request_id": _filter("cinder.api.middleware.request_id:RequestId.factory"),
        "filter:faults": _filter("cinder.api.middleware.fault:FaultWrapper.factory"),
        "filter:size": _filter("oslo_middleware.sizelimit:RequestBodySizeLimiter.factory"),
        "filter:context": _filter("cinder.api.middleware.auth:CinderKeystoneContext.factory"),
        "filter:token": TOKEN,
    }


FILES = {"nova": ("api-paste.ini", nova), "neutron": ("api-paste.ini", neutron),
         "glance": ("glance-api-paste.ini", glance), "cinder": ("api-paste.ini", cinder)}


def _filter(factory) -> dict:
    return {"paste.filter_factory": factory}
