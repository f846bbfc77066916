# Looks at each answer that Python's generated clients parse by their own strict models: none may have a field that its model
# does not know, and each field that may be left out is seen both ways, but for those that are named here.
import importlib

from daytona import CreateSandboxFromSnapshotParams, SessionExecuteRequest, VolumeMount
from pydantic import BaseModel

unknown, told, optional = set(), set(), set()

# What answers have beside what this version's models know: other versions and languages read it.
BESIDE = {"Chart.x_unit", "Chart.y_unit", "ErrorResponse.error", "SandboxListItem.kvm", "SandboxListItem.volumes"}

# What this server never tells, by model.
NEVER = {
    "DaytonaConfiguration": "analytics_api_url billing_api_url build_sha forced_feature_flags posthog pylon_app_id rate_limit ssh_gateway_command ssh_gateway_host"
    " ssh_gateway_host_key_fingerprints ssh_gateway_host_keys ssh_gateway_port ssh_gateway_public_key sso_oidc stripe_publishable_key",
    "OidcConfig": "auth_api_hostname cli",
    "Sandbox": "backup_created_at backup_state build_info daemon_version error_reason gpu_type linked_sandbox_id otel_endpoint_override outbound_proxy_url"
    " queue_timed_out_at queue_timeout runner_id spot_evicted_at warm_pool_id",
    "SandboxListItem": "backup_state daemon_version error_reason gpu_type queue_timed_out_at queue_timeout runner_id spot_evicted_at warm_pool_id",
    "SnapshotDto": "gpu_type initial_runner_id",
    "SystemMetrics": "mem_cache timestamp_unix",
    "VolumeDto": "last_used_at",
    "WarmPool": "error_reason",
}


def look(x):
    if isinstance(x, (list, tuple)):
        for y in x:
            look(y)
    elif isinstance(x, dict):
        for y in x.values():
            look(y)
    elif isinstance(x, BaseModel):
        name = type(x).__name__
        unknown.update(f"{name}.{k}" for k in getattr(x, "additional_properties", None) or {})
        for field, kind in type(x).model_fields.items():
            if field == "additional_properties":
                continue
            value = getattr(x, field)
            if not kind.is_required() and name != "ChartElement":  # what that has depends on the kind of chart
                optional.add(f"{name}.{field}")
            if value is not None:
                told.add(f"{name}.{field}")
            look(value)


def watch():
    for client in "daytona_api_client", "daytona_toolbox_api_client":
        cls = importlib.import_module(client + ".api_client").ApiClient

        def deserialize(self, text, kind, content_type, parse=cls.deserialize):
            got = parse(self, text, kind, content_type)
            look(got)
            return got
        cls.deserialize = deserialize


def more(d, s):
    """Asks for what no method of the SDK does, and for sandboxes with as much and as little as there is."""
    from daytona_api_client import ConfigApi, CreateBuildInfo, CreateSnapshot, SandboxApi, SnapshotsApi, VolumesApi
    from daytona_toolbox_api_client import GitApi, InfoApi, PortApi
    plane, inside = d._sandbox_api.api_client, s._info_api.api_client
    full = d.create(CreateSandboxFromSnapshotParams(
        name="full", labels={"a": "b"}, env_vars={"X": "1"}, public=True, auto_stop_interval=0, auto_pause_interval=30, auto_archive_interval=60,
        auto_delete_interval=60, ttl_minutes=60, network_allow_list="10.0.0.0/8", domain_allow_list="example.com"))
    bare = d.create()
    ConfigApi(plane).config_controller_get_config()
    sandboxes = SandboxApi(plane)
    sandboxes.get_toolbox_proxy_url(s.id)
    for one in full, bare:
        sandboxes.get_sandbox(one.id)
    sandboxes.list_sandboxes()
    snapshots = SnapshotsApi(plane)
    built = snapshots.create_snapshot(CreateSnapshot(name="built", build_info=CreateBuildInfo(dockerfile_content="FROM python\nRUN false\n", context_hashes=[])))
    snapshots.get_snapshot_build_logs_url(built.id)
    snapshots.remove_snapshot(built.id)
    v = VolumesApi(plane).list_volumes()[0]
    VolumesApi(plane).get_volume(v.id)
    PortApi(inside).get_ports()
    PortApi(inside).is_port_in_use(8000)
    InfoApi(inside).get_work_dir()
    GitApi(inside).get_commit_history("r")
    s.git.status("r2")
    p = s.process
    p.create_session("strict")
    p.execute_session_command("strict", SessionExecuteRequest(command="echo out; echo err >&2"))
    p.code_run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    s.fs.replace_in_files(["none"], "a", "b")
    d.create(CreateSandboxFromSnapshotParams(volumes=[VolumeMount(volume_id=v.id, mount_path="/data", subpath="below")])).delete()
    full.delete()
    bare.delete()


def wrong():
    never = {f"{model}.{field}" for model, fields in NEVER.items() for field in fields.split()}
    for key in sorted(unknown ^ BESIDE):
        yield f"{key} is " + ("in no answer" if key in BESIDE else "in an answer, and no field of its model")
    for key in sorted((optional - told) ^ never):
        yield f"{key} is " + ("told, or in no model" if key in never else "never told")
