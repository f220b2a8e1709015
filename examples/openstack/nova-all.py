#!/usr/bin/env python3
"""A whole Nova in one process: API, conductor, scheduler and compute.

    nova-all.py --config-file FILE

Their messages stay in the process (transport_url = fake:///), so no broker is needed. It also does
what an administrator does once: maps the host to its cell, and makes the flavor `tiny`.
"""

import contextlib
import os
import sys

import nova.cmd  # noqa: F401, before what follows: makes the standard library cooperative
import eventlet
import os_vif
from nova import config, context, exception, objects, service
from nova.compute import rpcapi as compute_rpcapi
from nova.conductor import rpcapi as conductor_rpcapi
from nova.objects import host_mapping
from nova.scheduler import rpcapi as scheduler_rpcapi
from nova.virt import fake, images
from oslo_log import log as logging
from oslo_service import service as oslo_service

CONF = config.CONF


class FetchingDriver(fake.FakeDriver):
    """Nova's driver that runs nothing, but fetches the image as those do that run something."""

    @staticmethod
    def disk(instance):
        return os.path.join(CONF.instances_path, instance.uuid)

    def spawn(self, context, instance, *args, **kwargs):
        if instance.image_ref:
            images.IMAGE_API.download(context, instance.image_ref, dest_path=self.disk(instance))
        return super().spawn(context, instance, *args, **kwargs)

    def destroy(self, context, instance, *args, **kwargs):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.disk(instance))
        return super().destroy(context, instance, *args, **kwargs)


def make_flavor(admin):
    flavor = objects.Flavor(
        admin,
        name="tiny",
        flavorid="tiny",
        memory_mb=64,
        vcpus=1,
        root_gb=0,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        is_public=True,
        disabled=False,
        extra_specs={},
        projects=[],
    )
    try:
        flavor.create()
    except exception.FlavorExists:
        pass


def main():
    config.parse_args(sys.argv)
    logging.setup(CONF, "nova")
    objects.register_all()
    os_vif.initialize()
    objects.Service.enable_min_version_cache()
    fake.FetchingDriver = FetchingDriver  # where `compute_driver` is looked for

    os.makedirs(CONF.instances_path, exist_ok=True)

    launcher = oslo_service.ServiceLauncher(CONF, restart_method="mutate")
    for binary, topic in (
        ("nova-conductor", conductor_rpcapi.RPC_TOPIC),
        ("nova-scheduler", scheduler_rpcapi.RPC_TOPIC),
        ("nova-compute", compute_rpcapi.RPC_TOPIC),
    ):
        started = service.Service.create(binary=binary, topic=topic)
        launcher.launch_service(started)
        # It starts in a thread of its own, and listens once it has registered its host, here and
        # with placement.
        while started.rpcserver is None:
            eventlet.sleep(0.05)

    admin = context.get_admin_context()
    make_flavor(admin)
    host_mapping.discover_hosts(admin)

    # Last: who gets an answer finds everything in place.
    launcher.launch_service(service.WSGIService("osapi_compute"))
    launcher.wait()


if __name__ == "__main__":
    main()
