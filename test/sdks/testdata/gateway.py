# What the SDK of the MCP Gateway does, and what comes of it. Each answer is compared with what /v1 says.
import asyncio
import importlib
import inspect
import io
import json
import logging
import os
import pkgutil
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
import warnings
import zipfile
from datetime import datetime, timedelta, timezone

import mcpgateway_sdk as m
from mcpgateway_sdk import MCPGateway
from mcpgateway_sdk.exceptions import SkillFileMissing, SkillFrontmatterMissingField, SkillMalformedFrontmatter
from mcpgateway_sdk.models import OAuthAppCreate, OAuthAppCustomCreate, OAuthAppUpdate, RemoteAuthentication, RemoteServerRegistration
from mcpgateway_sdk.models.sandbox import EgressPolicy
import watching
from checks import araises, check, end

# The resources of sandboxes and skills, and those of what is not here.
OURS, OTHERS = ("MCPGateway", "SandboxesResource", "SkillsResource"), []
for module in ["mcpgateway_sdk._client"] + [x.name for x in pkgutil.walk_packages(m.resources.__path__, "mcpgateway_sdk.resources.")]:
    for name, cls in inspect.getmembers(importlib.import_module(module), inspect.isclass):
        if cls.__module__ == module and not name.startswith("_"):
            watching.watch(name, cls, "mcpgateway_sdk")
            if name not in OURS:
                OTHERS.append(cls)


def v1(path, method="GET", body=None):
    r = urllib.request.Request(os.environ["ADDRESS"] + path, method=method, data=body, headers={"Authorization": "Bearer " + os.environ["MCPGATEWAY_TOKEN"], "Content-Type": "application/json"})
    with urllib.request.urlopen(r) as resp:
        text = resp.read()
    return json.loads(text) if text else None


def content(path):
    r = urllib.request.Request(os.environ["ADDRESS"] + path, headers={"Authorization": "Bearer " + os.environ["MCPGATEWAY_TOKEN"]})
    with urllib.request.urlopen(r) as resp:
        return resp.read()


def package(files):
    b = io.BytesIO()
    with zipfile.ZipFile(b, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
    return b.getvalue()


HEAD = "---\nname: %s\ndescription: It greets.\nversion: '1.2'\n---\n\nSay hello.\n"


async def sandboxes(gw):
    g = gw.sandboxes
    s = await g.create(metadata={"team": "a"}, session_key="one", memory_mb=512, cpu_cores=0.5, disk_mb=2048, idle_timeout_seconds=900, env_vars={"X": "1"})
    there = v1("/v1/sandboxes/one")
    check("create: state, limits, clock", (s.status, s.memory_mb, s.cpu_cores, s.disk_mb, s.idle_timeout_seconds), ("running", 512, 0.5, 2048, 900))
    check("create: key, labels, workspace", (s.session_key, s.metadata, s.workspace_path), ("one", {"team": "a"}, "/workspace"))
    check("create: what /v1 says", (there["memory_mb"], there["cpu_cores"], there["idle_timeout_seconds"], there["metadata"]), (512, 0.5, 900, {"team": "a"}))
    check("create: the server's own policy", (s.requested_egress_policy.mode, s.effective_egress_policy.mode, s.network_enabled, s.egress_policy_source, s.egress_enforcement_status), ("inherit", "blocked", False, "gateway_default", "enforced"))
    check("the same key is the same sandbox", (await g.acquire_or_create("one")).id, s.id)
    check("get by UUID", (await g.get(s.id)).id, s.id)
    check("get by our own id", (await g.get(there["id"])).id, s.id)
    check("get by UUID in capitals", (await g.get(str(s.id).upper())).id, s.id)
    check("list", [x.id for x in await g.list()], [s.id])

    r = await g.exec(s.id, "echo $X; echo err >&2; exit 3", metadata={"step": "build it"})
    check("exec", (r.exit_code, r.stdout, r.stderr), (3, "1\n", "err\n"))
    check("exec: begins in the workspace", (await g.exec(s.id, "pwd")).stdout, "/workspace\n")
    r = await g.exec(s.id, "sleep 30", timeout=1)
    check("exec: a limit", (r.exit_code != 0, r.duration_ms >= 1000), (True, True))
    check("exec: bytes that are no text", (await g.exec(s.id, "printf '\\377a'")).stdout, "\ufffda")
    await araises("exec: no command", m.ValidationError, g.exec(s.id, " "), "command")
    await araises("exec: a limit of a year", m.ValidationError, g.exec(s.id, "true", timeout=365 * 86400), "timeout_seconds")
    await araises("exec: a limit of 0", m.ValidationError, g.exec(s.id, "true", timeout=0), "timeout_seconds")
    check("exec: 16 labels", (await g.exec(s.id, "true", metadata={str(i): "x" for i in range(16)})).exit_code, 0)
    await araises("exec: 17 labels", m.ValidationError, g.exec(s.id, "true", metadata={str(i): "x" for i in range(17)}), "metadata", "more than 16")
    r = await g.exec(s.id, "echo begin; head -c 17000000 /dev/zero | tr '\\0' a; echo end", timeout=60)
    check("exec: the first 16 MiB are told", (r.stdout[:7], r.stdout[-25:], len(r.stdout)), ("begin\na", "aa\n[the rest is left out]", (16 << 20) + 23))
    await araises("exec: 1,000 labels", m.ValidationError, g.exec(s.id, "true", metadata={str(i): "x" for i in range(1000)}), "metadata")
    check("exec_count", (await g.get(s.id)).exec_count, v1("/v1/sandboxes/one")["exec_count"])

    # Files: relative ones are in the workspace; the SDK takes the first slash off absolute ones.
    await g.upload_file(s.id, "data.csv", content=b"a,b\n1,2")
    check("upload: a relative path", content("/v1/sandboxes/one/files/data.csv"), b"a,b\n1,2")
    await g.upload_file(s.id, "/workspace/out/x.bin", content=bytes(range(256)))
    check("upload: an absolute path", content("/v1/sandboxes/one/files/out/x.bin"), bytes(range(256)))
    check("download: a relative path", await g.download_file(s.id, "out/x.bin"), bytes(range(256)))
    check("download: an absolute path", await g.download_file(s.id, "/workspace/out/x.bin"), bytes(range(256)))
    check("download: of the system", await g.download_file(s.id, "/etc/hostname"), (await g.exec(s.id, "cat /etc/hostname")).stdout.encode())
    check("list files: nothing was uploaded", await g.list_files(s.id), [])
    await g.upload_file(s.id, "attachments/ä b#?.txt", content=b"x")
    check("list files: what was uploaded", [(f.name, f.size, f.is_directory) for f in await g.list_files(s.id)], [("ä b#?.txt", 1, False)])
    check("list files: the workspace", [(f.name, f.is_directory) for f in await g.list_files(s.id, "/workspace")], [("attachments", True), ("data.csv", False), ("out", True)])
    check("list files: a relative path", [f.path for f in await g.list_files(s.id, "out")], ["/workspace/out/x.bin"])
    await g.upload_file(s.id, "empty", content=b"")
    check("an empty file", await g.download_file(s.id, "empty"), b"")
    await g.exec(s.id, "ln -s /etc/shadow link; mkfifo pipe")
    await araises("download: what only root may read", m.ForbiddenError, g.download_file(s.id, "link"))
    await araises("download: what is not there", m.NotFoundError, g.download_file(s.id, "none"))
    await araises("download: a directory", m.ValidationError, g.download_file(s.id, "out"))
    await araises("download: a pipe", m.ValidationError, g.download_file(s.id, "pipe"))
    await araises("upload: where only root may write", m.ForbiddenError, g.upload_file(s.id, "etc/x", content=b"x"))
    await araises("upload: a name of 300 bytes", m.ValidationError, g.upload_file(s.id, "x" * 300, content=b"x"))
    await araises("list files: what is not there", m.NotFoundError, g.list_files(s.id, "/none"))

    await g.exec(s.id, """cd /dev/shm && mkdir many && cd many && python3 -c 'import os
for i in range(100001): os.mknod(str(i))'""")
    await araises("list files: 100,001 entries", m.ValidationError, g.list_files(s.id, "/dev/shm/many"), "100000 entries", "list a directory below it")
    await g.exec(s.id, "cd /dev/shm/many && rm 100000")
    check("list files: 100,000 entries", len(await g.list_files(s.id, "/dev/shm/many")), 100000)
    await g.exec(s.id, "rm -r /dev/shm/many")

    # Clocks, limits, network, live.
    u = await g.update(s.id, idle_timeout_seconds=60, memory_mb=1024, metadata={"team": "b"}, env_vars={"X": "2"})
    check("update", (u.idle_timeout_seconds, u.memory_mb, u.metadata), (60, 1024, {"team": "b"}))
    check("update: variables", (await g.exec(s.id, "echo $X")).stdout, "2\n")
    u = await g.update(s.id, egress_policy=EgressPolicy.allowlist(domains=["example.com"], cidrs=["192.0.2.0/24"]))
    check("update: an allowlist", (u.requested_egress_policy, u.effective_egress_policy, u.network_enabled), (EgressPolicy.allowlist(domains=["example.com"], cidrs=["192.0.2.0/24"]),) * 2 + (True,))
    check("update: what /v1 says", v1("/v1/sandboxes/one")["network_policy"]["allow_domains"], ["example.com"])
    u = await g.update(s.id, egress_policy=EgressPolicy.allowlist(domains=[f"e{i}.example.com" for i in range(128)]))
    check("update: 128 domains", len(u.effective_egress_policy.allowed_domains), 128)
    await araises("update: 129 domains", m.ValidationError, raw(gw, "PATCH", f"/{s.id}", {"requested_egress_policy": {"mode": "allowlist", "allowed_domains": [f"e{i}.example.com" for i in range(129)]}}), "requested_egress_policy", "more than 128")
    v1("/v1/sandboxes/one", "PATCH", json.dumps({"network": {"mode": "restricted", "allow_domains": [f"e{i}.example.com" for i in range(129)]}}).encode())
    check("get: 129 domains, which the model has no place for", ((await g.get(s.id)).effective_egress_policy, (await g.get(s.id)).network_enabled), (None, True))
    u = await g.update(s.id, egress_policy=EgressPolicy.blocked())
    check("update: blocked", u.effective_egress_policy.mode, "blocked")
    u = await g.update(s.id, egress_policy=EgressPolicy.inherit())
    check("update: inherit", u.requested_egress_policy.mode, "inherit")
    await araises("update: another image", m.ValidationError, g.update(s.id, image="node"), "image")
    await araises("update: a name that is none", m.ValidationError, g.update(s.id, egress_policy=EgressPolicy.allowlist(domains=["a b"])), "requested_egress_policy.allowed_domains")
    await araises("update: an address that is none", m.ValidationError, g.update(s.id, egress_policy=EgressPolicy.allowlist(cidrs=["300.0.0.0/8"])), "requested_egress_policy.allowed_cidrs")
    await araises("update: a clock of years", m.ValidationError, g.update(s.id, idle_timeout_seconds=10**9), "idle_timeout_seconds")

    # States.
    await g.stop(s.id)
    t = await g.get(s.id)
    check("stop", (t.status, t.stopped_at is not None, t.egress_enforcement_status), ("stopped", True, "pending"))
    check("resume of a stopped one", (await g.resume(s.id)).status, "running")
    v1("/v1/sandboxes/one/pause", "POST")
    check("resume of a paused one", (await g.resume(s.id)).status, "running")
    check("resume of one that runs", (await g.resume(s.id)).status, "running")

    # What happened.
    acts = await g.activity(s.id)
    check("activity: at most 200", len(acts) <= 200, True)
    check("activity", [(a["type"], a["command"], a["exit_code"]) for a in acts if a.get("command", "").startswith("echo $X; ")], [("exec", "echo $X; echo err >&2; exit 3", 3)])
    logs = await g.logs(s.id, tool_name="exec", meta=["step=build it"])
    check("logs by metadata", [(r["command"], r["metadata"], r["status"]) for r in logs["items"]], [("echo $X; echo err >&2; exit 3", {"step": "build it"}, "error")])
    check("logs: which sandbox, how many", (logs["items"][0]["sandbox_id"], logs["total"], logs["limit"], logs["offset"]), (str(s.id), 1, 100, 0))
    check("logs by a part of it", len((await g.logs(s.id, meta_contains=["step=BUILD"]))["items"]), 1)
    check("logs by what it is not", (await g.logs(s.id, meta=["step=build"]))["total"], 0)
    check("logs by text", (await g.logs(s.id, search="sleep 30"))["total"] >= 1, True)
    some = await g.logs(s.id, tool_name="exec", status="success", limit=1, sort_by="created_at", sort_order="asc")
    check("logs, oldest first", some["items"][0]["command"], "pwd")
    check("logs, a page on", (await g.logs(s.id, tool_name="exec", status="success", limit=1, offset=1, sort_order="asc"))["items"][0]["command"] != "pwd", True)
    check("logs by time", (await g.logs(s.id, from_time=datetime.now(timezone.utc) + timedelta(hours=1)))["total"], 0)
    everything = await g.export_logs(s.id)
    check("export", len(everything), (await g.logs(s.id, limit=1000))["total"])
    text = await g.export_logs(s.id, fmt="csv", tool_name="exec", meta=["step=build it"])
    check("export as CSV", (text.decode().splitlines()[0].split(",")[:2], b"build it" in text, text.count(b"exit 3")), (["id", "created_at"], True, 1))
    check("export of nothing", await g.export_logs(s.id, search="nothing has this"), [])
    await araises("logs sorted by what is not there", m.ValidationError, g.logs(s.id, sort_by="latency_ms"), "sort_by")
    await araises("logs of a call within", m.ValidationError, g.logs(s.id, parent_call_id=uuid.uuid4()), "parent_call_id")
    await araises("logs with 1,000 filters", m.ValidationError, g.logs(s.id, meta=["a=b"] * 1000), "meta")
    await araises("logs: a filter that is none", m.ValidationError, g.logs(s.id, meta=["a"]), "meta")
    await araises("logs: a page that is too long", m.ValidationError, g.logs(s.id, limit=1001), "limit")

    # What is refused.
    await araises("create: an object store", m.ValidationError, g.create(mounts=[dict(provider="s3", canonical_endpoint="https://s3.example.com", container_name="data", target_path="/mnt/data", credential="k", credential_expires_at="2030-01-01T00:00:00Z")]), "mounts")
    await araises("create: an image that is none", m.NotFoundError, g.create(image="nowhere.example/none:1"))
    await araises("create: more memory than there may be", m.ValidationError, g.create(memory_mb=10**9), "memory_mb")
    await araises("create: 1,000 labels", m.ValidationError, g.create(metadata={str(i): "x" for i in range(1000)}), "metadata")
    await araises("create: a long key", m.ValidationError, g.create(session_key="x" * 10000), "session_key")
    await araises("create: two policies", m.ValidationError, raw(gw, "POST", "", {"network_enabled": True, "requested_egress_policy": {"mode": "blocked"}}), "network_enabled")
    await araises("create: a mode that is none", m.ValidationError, raw(gw, "POST", "", {"requested_egress_policy": {"mode": "open"}}), "requested_egress_policy.mode")
    await araises("create: an empty allowlist", m.ValidationError, raw(gw, "POST", "", {"requested_egress_policy": {"mode": "allowlist"}}), "allowlist")
    for name, id in {"a UUID that is none of ours": uuid.uuid4(), "the nil UUID": uuid.UUID(int=0), "a UUID of nobody": "00000000-0000-8000-8000-000000000000", "no id at all": "none"}.items():
        await araises(name, m.NotFoundError, g.get(id))
        await araises(name + ": exec", m.NotFoundError, g.exec(id, "true"))
        await araises(name + ": upload", m.NotFoundError, g.upload_file(id, "a/b", content=b"x"))
        await araises(name + ": list files", m.NotFoundError, g.list_files(id))
        await araises(name + ": logs", m.NotFoundError, g.logs(id))

    async with MCPGateway(api_key=os.environ["OTHER"]) as other:
        o = other.sandboxes
        check("another project: list", await o.list(), [])
        for name, do in {
            "get": o.get(s.id), "update": o.update(s.id, memory_mb=512), "exec": o.exec(s.id, "true"), "stop": o.stop(s.id), "resume": o.resume(s.id), "activity": o.activity(s.id),
            "logs": o.logs(s.id), "export": o.export_logs(s.id), "list files": o.list_files(s.id), "download": o.download_file(s.id, "data.csv"), "upload": o.upload_file(s.id, "a/b", content=b""),
            "skills": o.install_skills(s.id, [uuid.uuid4()]), "delete": o.destroy(s.id),
        }.items():
            await araises("another project: " + name, m.NotFoundError, do)
    async with MCPGateway(api_key=os.environ["READER"]) as reader:
        check("who only reads: get", (await reader.sandboxes.get(s.id)).id, s.id)
        await araises("who only reads: exec", m.ForbiddenError, reader.sandboxes.exec(s.id, "true"))
        await araises("who only reads: create", m.ForbiddenError, reader.sandboxes.create())
        await araises("who only reads: logs", m.ForbiddenError, reader.sandboxes.logs(s.id))
    async with MCPGateway(api_key="nobody's") as nobody:
        await araises("nobody", m.AuthError, nobody.sandboxes.list())

    images = await g.list_images()
    check("images", sorted(i["name"] for i in images), sorted(i["name"] for i in v1("/v1/images")["items"]))
    check("templates", [t["name"] for t in await g.image_templates() if t["imported"] and t["name"] == "python"], ["python"])
    check("packages", any(c["name"] == "pip" and "numpy" in c["packages"] for c in await g.package_catalog()), True)

    await skills(gw, s)
    await g.destroy(s.id)
    await araises("get what is deleted", m.NotFoundError, g.get(s.id))
    check("list: none", await g.list(), [])


async def raw(gw, method, path, body):
    return await gw._http.request(method, "/api/v1/sandboxes" + path, json=body)


async def skills(gw, s):
    k = gw.skills
    a = await k.create("greet", "Say hello.", description="It greets.")
    check("create a skill", (a.name, a.description, a.source_type), ("greet", "It greets.", "manual"))
    check("what /v1 says of it", v1("/v1/skills/greet")["id"], str(a.id))
    b = await k.upload(content=package({"tool/SKILL.md": HEAD % "tool", "tool/run.sh": "#!/bin/sh\necho hi\n"}), filename="tool.zip")
    check("upload", (b.name, b.skill_metadata["version"], b.source_type), ("tool", "1.2", "imported"))
    with open(os.environ["HOME"] + "/my_skill.md", "w") as f:
        f.write(HEAD % "mine")
    check("upload a file", (await k.upload(file_path=os.environ["HOME"] + "/my_skill.md")).name, "mine")
    check("list skills", sorted(x.name for x in await k.list()), ["greet", "mine", "tool"])
    check("list: pages", [len(await k.list(offset=1, limit=1)), len(await k.list(offset=3))], [1, 0])
    check("list: search, source, published", [[x.name for x in await k.list(search="tool")], [x.name for x in await k.list(source_type="manual")], await k.list(published=True)], [["tool"], ["greet"], []])
    check("get a skill", (await k.get(b.id)).skill_md_content, HEAD % "tool")
    check("get by name", (await k.get("tool")).id, b.id)
    u = await k.update(b.id, skill_md_content=(HEAD % "tool").replace("hello", "good day"))
    check("update the text", (u.id, "good day" in u.skill_md_content), (b.id, True))
    with zipfile.ZipFile(io.BytesIO(await k.download_package(b.id))) as z:
        names = {n.rsplit("/", 1)[-1]: z.read(n) for n in z.namelist() if not n.endswith("/")}
    check("the files beside it stay", (b"good day" in names["SKILL.md"], names["run.sh"]), (True, b"#!/bin/sh\necho hi\n"))
    u = await k.update_package(b.id, package({"SKILL.md": HEAD % "tool", "two.txt": "2"}), "tool.zip")
    check("update the package", u.id, b.id)
    got = await gw.sandboxes.install_skills(s.id, [a.id, b.id])
    check("install", (len(got["installed"]), got["not_found"]), (2, []))
    check("installed", (await gw.sandboxes.exec(s.id, "cat /workspace/skills/tool/two.txt")).stdout, "2")
    check("install again", len((await gw.sandboxes.install_skills(s.id, [a.id]))["already_installed"]), 1)
    missing = uuid.uuid4()
    check("install what is not there", (await gw.sandboxes.install_skills(s.id, [missing]))["not_found"], [str(missing)])
    check("acquire with skills", (await gw.sandboxes.acquire_or_create("one", [a.id])).id, s.id)
    check("templates, catalogue", (await k.templates(), await k.catalog("builtin"), await k.catalog("builtin", search="x")), ([], [], []))
    await araises("a catalogue elsewhere", m.ValidationError, k.catalog("https://github.com/x/y"), "source")
    await araises("one of the catalogue", m.NotFoundError, k.catalog_detail("builtin", "x"))
    await araises("import", m.NotFoundError, k.import_from_catalog("builtin", "x"))
    await araises("import from elsewhere", m.ValidationError, k.import_from_catalog("github", "x", github_repo="a/b"), "source")
    await araises("no zip and no text", SkillMalformedFrontmatter, k.upload(content=b"no front matter", filename="x.zip"))
    await araises("bytes", m.ValidationError, k.upload(content=b"PK\x03\x04" + b"\x00" * 50, filename="x.zip"))
    await araises("an archive without the file", SkillFileMissing, k.upload(content=package({"a.txt": "x"}), filename="x.zip"))
    await araises("a path that leads out", m.ValidationError, k.upload(content=package({"SKILL.md": HEAD % "evil", "../x": "x"}), filename="x.zip"))
    await araises("without a description", SkillFrontmatterMissingField, k.create("x", "text"))
    await araises("a name that is none", m.ValidationError, k.create("A B", "text", description="x"), "name")
    await araises("another name", m.ValidationError, k.update(a.id, name="other"), "name")
    await araises("metadata beside the text", m.ValidationError, k.create("x", "text", description="x", skill_metadata={"a": 1}), "skill_metadata")
    await araises("the portal", m.ValidationError, k.update(a.id, portal_visible=True), "portal_visible")
    await araises("a skill that is none", m.NotFoundError, k.get(uuid.uuid4()))
    async with MCPGateway(api_key=os.environ["OTHER"]) as other:
        check("another project: skills", await other.skills.list(), [])
        await araises("another project: a skill", m.NotFoundError, other.skills.get(b.id))
        await araises("another project: its package", m.NotFoundError, other.skills.download_package(b.id))
        await araises("another project: delete", m.NotFoundError, other.skills.delete(b.id))
    await k.delete(a.id)
    await araises("get a skill that is deleted", m.NotFoundError, k.get(a.id))


# Arguments of what is not here, by their types and names.
ARGUMENTS = {
    "str | UUID": uuid.uuid4(), "str": "x", "dict[str, Any]": {}, "builtins.list[str | UUID]": [uuid.uuid4()], "Sequence[str | UUID]": [uuid.uuid4()], "builtins.list[dict[str, Any]]": [], "builtins.list[str]": ["x"],
    "bytes | str | Path": b"x", "Any": 1, "AuthType": "none", "GenerationInputType": "url",
    "RemoteServerRegistration": RemoteServerRegistration(name="x", display_name="X", url="https://mcp.example.com/mcp", authentication=RemoteAuthentication(type="none", config={}, secrets={})),
    "OAuthAppCreate": OAuthAppCreate(alias="xx", name="X", template_id=uuid.uuid4(), client_id="x", client_secret="x"),
    "OAuthAppCustomCreate": OAuthAppCustomCreate(alias="xx", name="X", client_id="x", auth_url="https://auth.example.com/a", token_url="https://auth.example.com/t"),
    "OAuthAppUpdate": OAuthAppUpdate(client_secret="x"),
}


# What is not sandboxes: each method is called, and finds nothing.
async def others(gw):
    for cls in OTHERS:
        it = cls(gw._http, uuid.uuid4()) if cls.__name__ == "ServerAuthenticationResource" else cls(gw._http)
        for name, do in inspect.getmembers(it, inspect.ismethod):
            if name.startswith("_") or f"{cls.__name__}.{name}" in ("CacheResource.get", "ServersResource.authentication"):
                continue  # these ask nothing, or say of nothing that it is none
            given = {p.name: ARGUMENTS[p.annotation] for p in inspect.signature(do).parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD}
            await araises(f"what is not sandboxes: {cls.__name__}.{name}", m.NotFoundError, do(**given), "docs/gateway.md")
    check("what is not sandboxes: the cache", await gw.cache.get("x"), None)
    check("what is not sandboxes: the authentication of a server", type(gw.servers.authentication(uuid.uuid4())).__name__, "ServerAuthenticationResource")


# Policies that are wider than the operator allows.
async def narrowed(g):
    s = await g.create()
    v1("/v1/settings", "PATCH", json.dumps({"max_network": "off"}).encode())
    for mode, p in {"unrestricted": EgressPolicy.unrestricted(), "allowlist": EgressPolicy.allowlist(domains=["example.com"])}.items():
        await araises("create: wider than the operator allows: " + mode, m.ForbiddenError, g.create(egress_policy=p), "requested_egress_policy", "ask the server's operator")
        await araises("update: wider than the operator allows: " + mode, m.ForbiddenError, g.update(s.id, egress_policy=p), "requested_egress_policy", "ask the server's operator")
    await araises("create: wider than the operator allows: network_enabled", m.ForbiddenError, g.create(network_enabled=True), "ask the server's operator")
    check("create: nothing was made", [x.id for x in await g.list()], [s.id])
    await g.destroy(s.id)


async def main():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # of methods that are asked for what is not here
        logged = []  # the SDK lets no warning of its own raise
        logging.getLogger("mcpgateway_sdk._client").addFilter(lambda record: logged.append(record.getMessage()) or True)
        async with MCPGateway() as gw:
            check("the version is one that the SDK takes", (logged, (await gw._http.request("GET", "/health"))["version"].split(".")[:2]), ([], m.__version__.split(".")[:2]))
            await sandboxes(gw)
            await others(gw)
            await narrowed(gw.sandboxes)


asyncio.run(main())
watching.write(sys.argv[1])
end()
