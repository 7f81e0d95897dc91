"""A stand-in for clouds with EC2's API: moto's server, which boots nothing."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

from here import free_port

from labbook.lab.environment.clouds import OwnCloud

ANSWER_S = 60


@contextmanager
def moto(folder: Path, **variables):
    """URL of moto's server, which runs as a process."""
    with free_port() as port, (folder / "moto.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1",
             "-p", str(port)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, "MOTO_EC2_LOAD_DEFAULT_AMIS": "true", **variables})
        try:
            _await(port, process, log.name)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def ec2_cloud(url: str, folder: Path, name="older", secret="b", **more) -> OwnCloud:
    """An entry of an environment file, with a credentials file."""
    credentials = folder / "credentials"
    credentials.write_text(f"[default]\naws_access_key_id = a\naws_secret_access_key = {secret}\n")
    credentials.chmod(0o600)
    return OwnCloud(name, "ec2", str(credentials), endpoint=url, blocks=url, region="us-east-1",
                    file="clouds.yml", **more)


def there(ec2, mark: str) -> list[str]:
    """Ids of all resources with the study's id, without terminated servers."""
    ours = [{"Name": "tag:labbook", "Values": [mark]}]
    servers = [one for group in ec2.describe_instances(Filters=ours)["Reservations"]
               for one in group["Instances"] if one["State"]["Name"] != "terminated"]
    return [*(one["InstanceId"] for one in servers),
            *(one["VolumeId"] for one in ec2.describe_volumes(Filters=ours)["Volumes"]),
            *(one["ImageId"] for one in ec2.describe_images(Filters=ours)["Images"]),
            *(one["SnapshotId"] for one in ec2.describe_snapshots(Filters=ours)["Snapshots"]),
            *(one["KeyName"] for one in ec2.describe_key_pairs()["KeyPairs"]
              if one["KeyName"].startswith(mark))]


class LabWith(SimpleNamespace):
    """The parts of a lab that own_cloud needs."""

    def __init__(self, *clouds, id="t1"):
        super().__init__(id=id, study="cloud_platforms", clouds={c.name: c for c in clouds}, undo=[])

    def before_down(self, undo):
        self.undo.append(undo)


def _await(port, process, log):
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"moto's server does not answer:\n{Path(log).read_text()[-2000:]}")
