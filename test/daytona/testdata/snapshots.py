# What Python's SDK does with snapshots, and what comes of it.
import asyncio
import hashlib
import io
import os
import tarfile
import tempfile

import obstore
from daytona import CreateSandboxFromImageParams, CreateSandboxFromSnapshotParams, CreateSnapshotParams, Daytona, Image, Resources
from daytona.common import errors as e
from daytona_api_client import CreateBuildInfo, CreateSandbox, CreateSnapshot, ObjectStorageApi, SnapshotsApi
from daytona_api_client.exceptions import NotFoundException
from obstore.store import S3Store
from checks import check, end, raises

d = Daytona()
snaps = d.snapshot
check("none at first", (snaps.list().items, snaps.list().total), ([], 0))

# Of an image.
s = snaps.create(CreateSnapshotParams(name="of-image:1", image="python", resources=Resources(cpu=2, memory=1, disk=4), entrypoint=["sh", "-c", "echo $0 began > /tmp/began; echo out; echo err >&2; while [ ! -e /tmp/end ]; do sleep .1; done; exit 3", "it"]))
check("of an image", (s.name, s.state.value, s.image_name, s.general, s.cpu, s.mem, s.disk, s.error_reason), ("of-image:1", "active", "python", False, 2, 1, 4, None))
check("by name and id", (snaps.get("of-image:1").id, snaps.get(s.id).name), (s.id, s.name))
box = d.create(CreateSandboxFromSnapshotParams(snapshot="of-image:1"))
check("a sandbox of it", (box.snapshot, box.cpu, box.memory, box.disk), ("of-image:1", 2, 1, 4))
check("its entrypoint", box.process.exec("for i in $(seq 100); do [ -s /tmp/began ] && break; sleep .1; done; cat /tmp/began").result, "it began\n")
session = box.process.get_entrypoint_session()
check("its session", (session.session_id, len(session.commands), "began" in session.commands[0].command, session.commands[0].exit_code), ("entrypoint", 1, True, None))
box.process.exec("touch /tmp/end")
out, err = [], []
asyncio.run(box.process.get_entrypoint_logs_async(out.append, err.append))  # to its end
check("its logs, followed", ("".join(out), "".join(err)), ("out\n", "err\n"))
logs = box.process.get_entrypoint_logs()
check("its logs", (sorted(logs.output.split()), logs.stdout, logs.stderr), (["err", "out"], "out\n", "err\n"))
command = box.process.get_entrypoint_session().commands[0]
check("its exit code", command.exit_code, 3)
check("as any session's command", (box.process.get_session_command("entrypoint", command.id).exit_code, box.process.get_session_command_logs("entrypoint", command.id).stdout), (3, "out\n"))
raises("a session of that name", e.DaytonaConflictError, lambda: box.process.create_session("entrypoint"))
box.delete()
box = d.create()
raises("no entrypoint", e.DaytonaProcessNotFoundError, box.process.get_entrypoint_session, "entrypoint")
raises("no entrypoint's logs", e.DaytonaProcessNotFoundError, box.process.get_entrypoint_logs, "entrypoint")
box.delete()
raises("a name that is taken", e.DaytonaConflictError, lambda: snaps.create(CreateSnapshotParams(name="of-image:1", image="python")))
raises("a name that is none", e.DaytonaBadRequestError, lambda: snaps.create(CreateSnapshotParams(name="../x", image="python")), "name:")
raises("an image that is none", e.DaytonaNotFoundError, lambda: snaps.create(CreateSnapshotParams(name="x", image="none-such")))
raises("a registry that is none", e.DaytonaError, lambda: snaps.create(CreateSnapshotParams(name="pulled", image="127.0.0.1:9/none:1")), "Failed to create snapshot pulled, reason:")
check("what cannot be pulled", snaps.get("pulled").state.value, "error")
snaps.delete("pulled")
raises("a GPU", e.DaytonaUnprocessableEntityError, lambda: snaps.create(CreateSnapshotParams(name="x", image="python", resources=Resources(gpu=1))), "gpu:")
raises("another region", e.DaytonaUnprocessableEntityError, lambda: snaps.create(CreateSnapshotParams(name="x", image="python", region_id="mars")), "regionId:")

# Active and not.
api = SnapshotsApi(d.snapshot._SnapshotService__snapshots_api.api_client)
api.deactivate_snapshot(s.id)
check("inactive", snaps.get(s.id).state.value, "inactive")
raises("a sandbox of an inactive one", e.DaytonaConflictError, lambda: d.create(CreateSandboxFromSnapshotParams(snapshot="of-image:1")))
check("active again", snaps.activate("of-image:1").state.value, "active")

# Declarative.
logs = []
image = Image.base("python").env({"GREETING": "two words"}).run_commands("echo from the build", "echo $GREETING > /opt/made")
s = snaps.create(CreateSnapshotParams(name="Declarative", image=image), on_logs=logs.append)
check("declarative", (s.state.value, s.build_info.dockerfile_content == image.dockerfile()), ("active", True))
text = "\n".join(logs)
check("its log", ("SnapshotState.BUILDING" in logs[0], "from the build" in text, "SnapshotState.ACTIVE" in logs[-1]), (True, True, True))
box = d.create(CreateSandboxFromSnapshotParams(snapshot=s.id))
check("what was built", (box.snapshot, box.process.exec("cat /opt/made").result), ("Declarative", "two words\n"))

# Of a sandbox.
box.process.exec("echo kept > kept")
box.create_snapshot("of-sandbox")
check("of a sandbox: its state", box.state.value, "started")
of = snaps.get("of-sandbox")
check("of a sandbox", (of.state.value, of.source_sandbox_id), ("active", box.id))
check("by its sandbox", [x.name for x in snaps.list(source_sandbox_id=box.id).items], ["of-sandbox"])
raises("of a sandbox, by a name that is taken", e.DaytonaConflictError, lambda: box.create_snapshot("of-sandbox"))
box.delete()
box = d.create(CreateSandboxFromSnapshotParams(snapshot="of-sandbox"))
check("what was kept", box.process.exec("cat kept; cat /opt/made").result, "kept\ntwo words\n")
box.delete()

# A build that fails.
logs.clear()
raises("a step that fails", e.DaytonaError, lambda: snaps.create(CreateSnapshotParams(name="failing", image=Image.base("python").run_commands("echo why not; exit 7")), on_logs=logs.append), "exit code 7\nwhy not")
check("a failed one", (snaps.get("failing").state.value, "why not" in "\n".join(logs)), ("build_failed", True))
s = snaps.create(CreateSnapshotParams(name="failing", image="python"))
check("its name is free", snaps.get("failing").state.value, "active")
raises("a line that is not done", e.DaytonaBadRequestError, lambda: snaps.create(CreateSnapshotParams(name="x", image=Image.base("python").dockerfile_commands(["FROBNICATE x"]))))

# Sandboxes of images that are made for them.
logs.clear()
image = Image.base("python").run_commands("echo from the build", "echo made > /opt/of")
box = d.create(CreateSandboxFromImageParams(image=image, name="built"), on_snapshot_create_logs=logs.append)
text = "\n".join(logs)
check("a sandbox of a build", (box.state.value, box.process.exec("cat /opt/of").result, "from the build" in text, "the image is sha256:" in text), ("started", "made\n", True, True))
box.delete()
boxes = d._sandbox_api
made = boxes.create_sandbox(CreateSandbox(build_info=CreateBuildInfo(dockerfile_content=image.dockerfile())))
check("of an image that was built", (made.state.value, made.desired_state.value), ("started", "started"))
boxes.delete_sandbox(made.id)
slow = CreateSandbox(name="slow", build_info=CreateBuildInfo(dockerfile_content="FROM python\nRUN echo in the step; while [ ! -e /opt/none ]; do sleep .1; done"))
made = boxes.create_sandbox(slow)
check("answered before it is built", (made.state.value, made.name, made.error_reason), ("pending_build", "slow", None))
now = boxes.get_sandbox("slow")
check("told meanwhile", (now.state.value, now.desired_state.value, now.labels), ("building_snapshot", "started", {"code-toolbox-language": "python"}))
check("listed meanwhile", [x.id for x in boxes.list_sandboxes(states=["building_snapshot"]).items], [made.id])
check("listed as creating", boxes.list_sandboxes(states=["creating"]).items, [])
raises("its name is taken", e.DaytonaConflictError, lambda: d.create(CreateSandboxFromSnapshotParams(name="slow")))
raises("started meanwhile", e.DaytonaConflictError, lambda: d.get("slow").start(), "still made")
raises("stopped meanwhile", e.DaytonaConflictError, lambda: d.get("slow").stop(), "still made")
raises("used meanwhile", e.DaytonaConflictError, lambda: d.get("slow").process.exec("true"), "still made")
check("deleted meanwhile", boxes.delete_sandbox("slow").state.value, "destroyed")
raises("and gone", e.DaytonaNotFoundError, lambda: d.get("slow"))
logs.clear()
failing = Image.base("python").run_commands("echo why not; exit 7")
raises("a build for a sandbox that fails", e.DaytonaError, lambda: d.create(CreateSandboxFromImageParams(image=failing, name="failing"), on_snapshot_create_logs=logs.append), "exit code 7\nwhy not")
box = d.get("failing")
check("that has failed", (box.state.value, "exit code 7" in box.error_reason, box.recoverable, "why not" in "\n".join(logs)), ("build_failed", True, False, True))
raises("it cannot be started", e.DaytonaConflictError, box.start)
box.delete()
made = boxes.create_sandbox(CreateSandbox(build_info=CreateBuildInfo(dockerfile_content="FROM 127.0.0.1:9/none:1")))
check("a pull is answered before it is done", made.state.value, "pulling_snapshot")
raises("a pull for a sandbox that fails", e.DaytonaError, d.get(made.id).wait_for_sandbox_start)
box = d.get(made.id)
check("that has failed, too", (box.state.value, "127.0.0.1:9" in box.error_reason), ("error", True))
d.get(made.id).delete()
box = d.create()
raises("a sandbox of no build has no log", NotFoundException, lambda: boxes.get_build_logs_url(box.id))
box.delete()
check("they are no snapshots", [x.name for x in snaps.list().items], ["failing", "of-sandbox", "Declarative", "of-image:1"])

# Pages.
check("a page", ([x.name for x in snaps.list(page=2, limit=3).items], snaps.list(page=2, limit=3).total_pages), (["of-image:1"], 2))
check("all", [x.name for x in snaps.list().items], ["failing", "of-sandbox", "Declarative", "of-image:1"])

# Local files: by https alone, which the error says. What sends them speaks to the store all the same.
local = tempfile.mkdtemp()
with open(local + "/file.txt", "w") as f:
    f.write("local")
raises("local files by http", e.DaytonaUnprocessableEntityError, lambda: snaps.create(CreateSnapshotParams(name="x", image=Image.base("python").add_local_file(local + "/file.txt", "/opt/x"))), "https")
storage = ObjectStorageApi(d.snapshot._SnapshotService__object_storage_api.api_client)
storage.api_client.default_headers["X-Daytona-Source"] = "another"
k = storage.get_push_access()
store = S3Store(bucket=k.bucket, endpoint=k.storage_url, region=k.region, access_key_id=k.access_key, secret_access_key=k.secret, session_token=k.session_token, client_options={"allow_http": True}, retry_config={"max_retries": 0})
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w|") as t:
    t.add(local + "/file.txt", arcname="some/file.txt")
    big = tarfile.TarInfo("some/big")
    big.size = 11 << 20
    t.addfile(big, io.BytesIO(b"\0" * big.size))
hashed = hashlib.md5(packed.getvalue()).hexdigest()
key = k.organization_id + "/" + hashed + "/context.tar"
raises("the store: what is not there", FileNotFoundError, lambda: store.head(key))
chunks = [packed.getvalue()[i : i + 65536] for i in range(0, len(packed.getvalue()), 65536)]
obstore.put(store, key, iter(chunks), chunk_size=5 << 20, max_concurrency=4)
check("the store: in parts", store.head(key)["size"], len(packed.getvalue()))
made = api.create_snapshot(CreateSnapshot(name="sent", build_info=CreateBuildInfo(dockerfile_content="FROM python\nCOPY some /opt/some\n", context_hashes=[hashed])))
while snaps.get("sent").state.value == "building":
    pass
box = d.create(CreateSandboxFromSnapshotParams(snapshot="sent"))
check("the store: what was built", box.process.exec("cat /opt/some/file.txt; wc -c < /opt/some/big").result, "local11534336\n")
box.delete()
raises("the store: removed once it was built", FileNotFoundError, lambda: store.head(key))

for name in ["sent", "failing", "of-sandbox", "Declarative", "of-image:1"]:
    snaps.delete(name)
raises("deleted", e.DaytonaNotFoundError, lambda: snaps.get("sent"))
raises("deleted, used", e.DaytonaNotFoundError, lambda: d.create(CreateSandboxFromSnapshotParams(snapshot="sent")))
check("none at last", snaps.list().items, [])
end()
