"""Makes an image of a server through the openstacksdk of the Python that runs this.

Standard input: JSON with auth (for openstacksdk, without its password), password_file, region, timeout_s, server,
name and metadata. Standard output: JSON with the image's id.
"""

import json
import sys
from pathlib import Path

import openstack


def main(given: dict) -> dict:
    auth = {**given["auth"], "password": Path(given["password_file"]).read_text()}
    cloud = openstack.connect(load_yaml_config=False, load_envvars=False, auth=auth, region_name=given["region"],
                              api_timeout=given["timeout_s"], app_name="labbook")
    image = cloud.compute.create_server_image(given["server"], given["name"], metadata=given["metadata"])
    return {"image": image.id}


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
