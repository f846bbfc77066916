# What Orkestr's SDK does, and what comes of it. Answers are compared with what /v1 says.
import http.client
import http.server
import inspect
import json
import os
import queue
import sys
import threading
import time
import urllib.request
from datetime import datetime, timedelta, timezone

import orkestr as o
from orkestr import OrkestrClient, Sandbox, Snapshot, Volume, Webhook, verify_webhook_signature
import watching
from checks import check, end, raises

for module in o.sandbox, o.agents, o._client:
    for name, cls in inspect.getmembers(module, inspect.isclass):
        if cls.__module__ == module.__name__:
            watching.watch(name, cls, "orkestr")


def v1(path, method="GET", body=None):
    r = urllib.request.Request(os.environ["ADDRESS"] + path, method=method, headers={"Authorization": "Bearer " + os.environ["ORKESTR_API_KEY"], "Content-Type": "application/json"}, data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(r) as resp:
        return json.loads(resp.read() or "null")


def client(token):
    return OrkestrClient(api_key=token, base_url=os.environ["ORKESTR_BASE_URL"])


# Limits and lists.
l = Sandbox.limits()
check("limits: sizes", [(s.size, s.cpu, s.memory_mb) for s in l.sizes], [("small", 1, 1024), ("medium", 2, 4096), ("large", 4, 8192)])
check("limits: one region", ([r.id for r in l.regions], "small" in l.allowed_sizes, l.max_concurrent > 0), (["local"], True, True))
check("list: none", Sandbox.list(), [])

s = Sandbox.create(template="python-3.12", env={"X": "1"}, metadata={"user": "42"}, timeout_seconds=900, auto_resume=True, volume="data")
there = v1("/v1/sandboxes/" + s.id)
check("create", (s.status, s.template, s.network, s.cpu, s.memory_mb, s.region, s.on_timeout, s.auto_resume, s.metadata, s.volume), ("running", "python-3.12", "off", 1, 1024, "local", "kill", True, {"user": "42"}, "data"))
check("create: its end", timedelta(seconds=890) < s.expires_at - datetime.now(timezone.utc) <= timedelta(seconds=901), True)
check("create: what /v1 says", (there["memory_mb"], there["metadata"], there["idle_timeout_seconds"]), (1024, {"user": "42"}, 0))
check("get", Sandbox.get(s.id).id, s.id)
check("refresh", (s.refresh().status, s.metadata), ("running", {"user": "42"}))
t = Sandbox.create(template="python", on_timeout="pause", metadata={"user": "43", "a[b]": "c d"})
check("create: pause at its end", (t.on_timeout, t.auto_resume, t.volume), ("pause", False, None))
check("list: newest first", [x.id for x in Sandbox.list()], [t.id, s.id])
check("list: pages", [x.id for x in Sandbox.list(limit=1)], [t.id, s.id])
check("list: one page", len(Sandbox.list(limit=1, max_results=1)), 1)
following = o.get_default_client().get("/v1/sandboxes", params={"limit": 1})["next_cursor"]
raises("list: a cursor of another project", o.APIError, lambda: client(os.environ["OTHER"]).get("/v1/sandboxes", params={"cursor": following}), "cursor", "begin again without a cursor")
raises("list: a cursor that is none", o.APIError, lambda: o.get_default_client().get("/v1/sandboxes", params={"cursor": "none"}), "cursor", "begin again without a cursor")
for n in 0, 201:
    raises(f"list: pages of {n}", o.APIError, lambda: Sandbox.list(limit=n), "limit", "1 to 200")
check("list by metadata", [[x.id for x in Sandbox.list(metadata=m)] for m in ({"user": "42"}, {"user": "43", "a[b]": "c d"}, {"user": "42", "none": "x"})], [[s.id], [t.id], []])
check("list by status", [len(Sandbox.list(status=x)) for x in ("running", "paused", "terminated")], [2, 0, 0])

# Commands.
r = s.exec("echo $X-$Y; echo err >&2; pwd; exit 3", env={"Y": "2"})
check("exec", (r.stdout, r.stderr, r.exit_code, r.duration_ms >= 0), ("1-2\n/workspace\n", "err\n", 3, True))
check("exec: a directory", s.exec("pwd", cwd="/tmp").stdout, "/tmp\n")
raises("exec: out of time", o.ExecTimeout, lambda: s.exec("sleep 60", timeout_seconds=1))
raises("exec: ended by a signal", o.ExecKilled, lambda: s.exec("kill -9 $$"), "SIGKILL")
raises("exec: nothing", o.APIError, lambda: s.exec(""), "command")
raises("exec: a limit of 0", o.APIError, lambda: s.exec("true", timeout_seconds=0), "timeout_seconds")
r = s.exec("echo begin; head -c 17000000 /dev/zero | tr '\\0' a; echo end", timeout_seconds=60)
check("exec: the first 16 MiB are told", (r.stdout[:7], r.stdout[-43:], len(r.stdout)), ("begin\na", "a\n[only the first 16777216 bytes are shown]", (16 << 20) + 42))
raises("exec: a limit of a year", o.APIError, lambda: s.exec("true", timeout_seconds=365 * 86400), "timeout_seconds")
chunks = list(s.exec_stream("echo out; echo err >&2; exit 4"))
check("stream: both", ["".join(c.data for c in chunks if c.stream == k and not c.is_final) for k in ("stdout", "stderr")], ["out\n", "err\n"])
check("stream: its end", (chunks[-1].exit_code, chunks[-1].is_final), (4, True))
raises("stream: out of time", o.ExecTimeout, lambda: list(s.exec_stream("sleep 60", timeout_seconds=1)))
raises("stream: ended by a signal", o.ExecKilled, lambda: list(s.exec_stream("kill -15 $$")))
raises("stream: nothing", o.APIError, lambda: list(s.exec_stream(" ")))

b = s.exec("echo begun; echo more >&2; read x < fifo; echo done", background=True) if s.exec("mkfifo fifo").exit_code == 0 else None
check("background", (b.status, b.exit_code, b.command[:10]), ("running", None, "echo begun"))
check("background: the list", [c.id for c in s.commands()], [b.id])
for _ in range(200):
    if b.logs().size == len("begun\nmore\n"):
        break
    time.sleep(0.05)
check("background: logs", (b.logs().content, b.logs(offset=6).content, b.logs(offset=100).content, b.logs().truncated), ("begun\nmore\n", "more\n", "", False))
raises("background: wait", o.ExecTimeout, lambda: b.wait(timeout=0.2, poll_seconds=0.1))
raises("background: followed too short", o.OrkestrError, lambda: list(b.stream(timeout_seconds=1)), "goes on")
s.exec("echo go > fifo")
check("background: its end", (b.wait(timeout=30, poll_seconds=0.05), b.status), (0, "exited"))
check("background: followed from a byte on", "".join(c.data for c in b.stream(offset=6)), "more\ndone\n")
k = s.exec("sleep 600", background=True)
k.kill()
check("background: killed", (k.status, k.exit_code), ("killed", None))
k.kill()
check("background: killed again", k.status, "killed")
k = s.exec("head -c 3000000 /dev/zero | tr '\\0' b", background=True)
check("background: much", k.wait(timeout=60, poll_seconds=0.05), 0)
l = k.logs()
check("background: a MiB of logs at a time", (len(l.content), l.size, l.truncated, len(k.logs(offset=1 << 20).content), k.logs(offset=2 << 20).truncated), (1 << 20, 3000000, True, 1 << 20, False))
raises("background: followed for more than an hour", o.APIError, lambda: list(k.stream(timeout_seconds=3601)), "timeout_seconds")
raises("background: none", o.SandboxNotFound, lambda: o.BackgroundCommand("aaaaaaaaaaaaaaaa", "", None, "", None, None, s).refresh())

# Code.
e = s.run_code("import pandas as pd\nx = 41\nprint('hi')\npd.DataFrame({'a': [1]})")
check("run_code", (e.stdout, e.error, e.interrupted, e.results[0].type, "<table" in e.results[0].html), ("hi\n", None, False, "html", True))
check("run_code: what it knew", s.run_code("x + 1").text, "42")
e = s.run_code("1 / 0")
check("run_code: an exception", (e.error.name, e.error.value), ("ZeroDivisionError", "division by zero"))
e = s.run_code("import time; time.sleep(60)", timeout_seconds=1)
check("run_code: out of time", (e.interrupted, s.run_code("x").text), (True, "41"))
e = s.run_code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
check("run_code: a figure", (e.results[0].type, e.results[0].chart["type"], e.results[0].png_bytes()[:4]), ("chart", "line", b"\x89PNG"))
events = list(s.run_code_stream("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx"))
check("code stream", (sorted((v.stream, v.text) for v in events if v.kind == "stream"), events[-1].execution.text, events[-1].kind), ([("stderr", "err\n"), ("stdout", "out\n")], "41", "done"))
events = list(s.run_code_stream("1 / 0"))
check("code stream: an exception", [v.error.name for v in events if v.kind == "error"] + [events[-1].execution.error.name], ["ZeroDivisionError"] * 2)
c = s.create_code_context(cwd="/tmp")
check("a context", (c.language, c.cwd, c.alive), ("python", "/tmp", True))
check("a context has its own names", (c.run_code("import os; y = 1; os.getcwd()").text, c.run_code("'x' in globals()").text), ("'/tmp'", "False"))
check("contexts", len(s.code_contexts()), 2)
c.restart()
check("a context anew", c.run_code("'y' in globals()").text, "False")
c.remove()
check("a context less", len(s.code_contexts()), 1)
raises("a context that is none", o.SandboxNotFound, lambda: s.run_code("1", context_id=c.id))
raises("a language that is none", o.APIError, lambda: s.run_code("1", language="cobol"))

# Files.
f = s.files
f.write("/workspace/a/b.txt", "ä\n", mode=0o600)
check("write, read", (f.read("/workspace/a/b.txt"), s.exec("stat -c %a a/b.txt").stdout), ("ä\n", "600\n"))
f.write_bytes("bin", bytes(range(256)))
check("bytes", f.read_bytes("/workspace/bin"), bytes(range(256)))
f.write("empty", "")
check("an empty file", f.read_bytes("empty"), b"")
check("list", [(x.name, x.is_dir, x.size) for x in f.list("/workspace/a")], [("b.txt", False, 3)])
check("stat", (f.stat("bin").size, f.stat("a").is_dir, f.stat("bin").mode), (256, True, 0o644))
check("stat: none", (f.stat("none").exists, f.exists("bin")), (False, True))
f.mkdir("/workspace/d/e")
f.mkdir("/workspace/d/e")
f.move("bin", "d/e/moved")
check("mkdir, move", [x.name for x in f.list("d/e")], ["moved"])
f.delete("d/e/moved")
check("delete", f.exists("d/e/moved"), False)
raises("delete: a directory", o.APIError, lambda: f.delete("d"), "directory")
raises("read: a directory", o.OrkestrError, lambda: f.read("d"))
raises("read: none", o.SandboxNotFound, lambda: f.read("none"))
raises("write: where it may not", o.AuthError, lambda: f.write("/etc/x", "x"))
raises("write: a mode of years", o.APIError, lambda: f.write("x", "x", mode=10**6), "mode")
raises("write: more than 16 MiB", o.APIError, lambda: f.write_bytes("x", bytes((16 << 20) + 1)), "presign_upload")
s.exec("""cd /dev/shm && mkdir many && cd many && python3 -c 'import os
for i in range(100001): os.mknod(str(i))'""")
raises("list: 100,001 entries", o.APIError, lambda: f.list("/dev/shm/many"), "100000 entries", "list a directory below it")
s.exec("cd /dev/shm/many && rm 100000")
check("list: 100,000 entries", len(f.list("/dev/shm/many")), 100000)
s.exec("rm -r /dev/shm/many")
rows = f.write_batch({"one": "1", "two/three": b"\x00\xff", "/etc/no": "x"})
check("batch", [(x.path, x.bytes_written, x.error) for x in rows], [("one", 1, None), ("two/three", 2, None), ("/etc/no", None, "denied")])
raises("batch: 65 files", o.APIError, lambda: f.write_batch({str(i): "x" for i in range(65)}), "files")
raises("batch: none", o.APIError, lambda: f.write_batch({}), "files")
up = f.presign_upload("big.bin", expires_in=60)
data = os.urandom(20 << 20)
urllib.request.urlopen(urllib.request.Request(up.url, method=up.method, data=data)).read()
down = f.presign_download("/workspace/big.bin")
check("presigned: 20 MiB up and down", urllib.request.urlopen(down.url).read() == data, True)
raises("presigned: too large a file within JSON", o.APIError, lambda: f.read_bytes("big.bin"), "presign_download")
for name, url, method in (("to read, for writing", down.url, "PUT"), ("to write, for reading", up.url, "GET"), ("of another file", down.url.replace("big.bin", "one"), "GET")):
    try:
        urllib.request.urlopen(urllib.request.Request(url, method=method, data=b"x" if method == "PUT" else None))
        check("presigned: a link " + name, "taken", "refused")
    except urllib.error.HTTPError as x:
        check("presigned: a link " + name, x.code in (403, 404, 405), True)
raises("presigned: a day", o.APIError, lambda: f.presign_upload("one", expires_in=3601), "expires_in")
try:
    urllib.request.urlopen(urllib.request.Request(up.url, method="PUT", headers={"Content-Length": str((5 << 30) + 1)}, data=iter([b"x"])))
    check("presigned: more than 5 GiB", "taken", "refused")
except urllib.error.HTTPError as x:
    check("presigned: more than 5 GiB", x.code, 413)
if os.environ.get("SANDPIT_SOAK"):
    # After its time: the shortest there is.
    short, code = f.presign_download("one", expires_in=60), 200
    for _ in range(90):
        try:
            urllib.request.urlopen(short.url)
        except urllib.error.HTTPError as x:
            code, text = x.code, x.read().decode()
            break
        time.sleep(1)
    check("presigned: after its time", (code, "expired at" in text), (401, True))
raises("presigned: a second", o.APIError, lambda: f.presign_download("one", expires_in=1), "expires_in")
raises("presigned: what is not there", o.SandboxNotFound, lambda: f.presign_download("none"))

# Time.
s.set_timeout(3600)
check("set_timeout", abs(s.expires_at - datetime.now(timezone.utc) - timedelta(hours=1)) < timedelta(minutes=1), True)
raises("set_timeout: 0", o.APIError, lambda: s.set_timeout(0), "timeout_seconds")
raises("set_timeout: a hundred years", o.APIError, lambda: s.set_timeout(100 * 365 * 86400), "timeout_seconds")
raises("resume: it runs", o.SandboxNotReady, lambda: Sandbox.resume(s.id))
check("pause", (t.pause(), t.status, Sandbox.get(t.id).status), (t.id, "paused", "paused"))
raises("exec: it is paused", o.SandboxNotReady, lambda: t.exec("true"))
raises("set_timeout: it is paused", o.SandboxNotReady, lambda: t.set_timeout(600))
check("list by status: paused", [x.id for x in Sandbox.list(status="paused")], [t.id])
check("resume", Sandbox.resume(t.id).status, "running")
v1("/v1/sandboxes/" + t.id + "/stop", "POST")
check("what is stopped is told as paused", Sandbox.get(t.id).status, "paused")
check("resume: of what is stopped", Sandbox.resume(t.id).status, "running")
s.pause()
check("a call wakes what says so", s.exec("echo awake").stdout, "awake\n")
m = s.metrics()
check("metrics", (m.sandbox_status, m.cpu.cores, m.memory.limit_bytes, m.memory.usage_bytes > 0, m.lifetime.cpu_seconds > 0), ("running", 1, 1 << 30, True, True))
check("metrics: of later", s.metrics(since=datetime.now() + timedelta(hours=1)).samples, [])

# A port.
web = s.exec("python3 -u -m http.server 8000 --directory /workspace/a", background=True)
for _ in range(200):
    if web.logs().size:
        break
    time.sleep(0.05)
host = s.get_host(8000)
check("host: the same again", (s.get_host(8000), s.preview_url(8000)), (host, "https://" + host))
check("host: what the port serves", urllib.request.urlopen(urllib.request.Request(os.environ["ADDRESS"] + "/b.txt", headers={"Host": host})).read(), "ä\n".encode())
raises("host: a port that is none", o.APIError, lambda: s.get_host(70000), "port")
web.kill()
check("host: no token", (s.preview_auth, s.preview_auth_token), (False, None))


def asked(url, host, headers={}):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers={"Host": host, **headers})).read().decode()
    except urllib.error.HTTPError as x:
        return x.code


with Sandbox.create(template="python", preview_auth=True) as q:
    token = q.preview_auth_token
    check("preview_auth", (q.preview_auth, token[:6], Sandbox.get(q.id).preview_auth_token), (True, "spp_s.", token))
    check("preview_auth: what /v1 says", v1("/v1/sandboxes/" + q.id + "/previews")["token"], token)
    check("preview_auth: not for who only reads", [(x.preview_auth, x.preview_auth_token) for x in Sandbox.list(client=client(os.environ["READER"])) if x.id == q.id], [(True, None)])
    q.files.write("seen.py", "import http.server\nclass H(http.server.BaseHTTPRequestHandler):\n def do_GET(self):\n  self.send_response(200); self.end_headers(); self.wfile.write((self.path + ' ' + str(self.headers.get('X-Orkestr-Preview-Token'))).encode())\nimport threading\nfor p in 8000, 8001:\n s = http.server.ThreadingHTTPServer(('127.0.0.1', p), H); threading.Thread(target=s.serve_forever).start()\nprint('up', flush=True)\n")
    web = q.exec("python3 seen.py", background=True)
    for _ in range(200):
        if web.logs().size:
            break
        time.sleep(0.05)
    at, host, other_host = os.environ["ADDRESS"] + "/a?b=c", q.get_host(8000), q.get_host(8001)
    check("preview_auth: the host stays", (q.get_host(8000), q.preview_url(8000)), (host, "https://" + host + "?ork_preview_token=" + token))
    check("preview_auth: without the token", (asked(at, host), asked(at, host, {"X-Orkestr-Preview-Token": "x"}), asked(at + "&ork_preview_token=x", host)), (401, 401, 401))
    check("preview_auth: with it, which the program does not see", (asked(at + "&ork_preview_token=" + token, host), asked(at, host, {"X-Orkestr-Preview-Token": token}), asked(at, other_host, {"X-Orkestr-Preview-Token": token})), ("/a?b=c None",) * 3)
    got = http.client.HTTPConnection(os.environ["ADDRESS"].removeprefix("http://"))
    got.request("GET", "/a?b=c&ork_preview_token=" + token, headers={"Host": host, "Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"})
    sent = got.getresponse()
    sent.read()
    check("preview_auth: a browser gets a cookie", (sent.status, sent.headers["Location"], asked(at, host, {"Cookie": sent.headers["Set-Cookie"].split(";")[0], "Sec-Fetch-Site": "same-origin"})), (302, "http://" + host + "/a?b=c", "/a?b=c None"))
    with Sandbox.create(template="python", preview_auth=True) as y:
        check("preview_auth: each its own", (y.preview_auth_token != token, asked(at, host, {"X-Orkestr-Preview-Token": y.preview_auth_token})), (True, 401))
    p = q.snapshot()
    with Sandbox.create(snapshot=p.id) as y, Sandbox.create(snapshot=p.id, preview_auth=True) as z:
        check("preview_auth: of forks", (y.preview_auth, z.preview_auth, z.preview_auth_token != token), (False, True, True))
    Snapshot.delete(p.id)
    v1("/v1/sandboxes/" + q.id + "/previews", "PATCH", {"token": False})
    check("preview_auth: taken back", (asked(at, host, {"X-Orkestr-Preview-Token": token}), Sandbox.get(q.id).preview_auth), (401, False))

# Snapshots and volumes.
p = s.snapshot("before")
check("snapshot", (p.status, p.name, p.source_sandbox_id, p.cpu), ("ready", "before", s.id, 1))
check("snapshots", ([x.id for x in Snapshot.list()], Snapshot.get(p.id).name), ([p.id], "before"))
g = Sandbox.create(snapshot=p.id, timeout_seconds=600, metadata={"fork": "1"})
check("a fork has the files", (g.files.read("one"), g.metadata), ("1", {"fork": "1"}))
g.terminate()
raises("snapshot: the name again", o.SandboxNotReady, lambda: s.snapshot("before"))
Snapshot.delete(p.id)
Snapshot.delete(p.id)
check("snapshot: deleted, twice", Snapshot.list(), [])
raises("snapshot: none", o.SandboxNotFound, lambda: Snapshot.get(p.id))
s.exec("echo kept > /persist/f")
vs = Volume.list()
check("volumes", [(v.name, v.size_mb, v.status, v.attached_sandbox_id) for v in vs], [("data", 10240, "attached", s.id)])
raises("volume: in use", o.SandboxNotReady, lambda: Volume.delete(vs[0].id))
w = Volume.create("small", size_gb=0.25, region="local")
check("volume", (w.name, w.size_mb, w.status, w.expires_at), ("small", 256, "available", None))
raises("volume: elsewhere", o.APIError, lambda: Volume.create("x", region="mars"), "region")
for name, kw in {"0 days": {"max_lifetime_days": 0}, "3651 days": {"max_lifetime_days": 3651}, "25 hours": {"max_lifetime_hours": 25}, "half a day": {"max_lifetime_days": 0.5}, "a word": {"max_lifetime_hours": "soon"}, "both": {"max_lifetime_days": 1, "max_lifetime_hours": 1}}.items():
    raises("volume: a lifetime of " + name, o.APIError, lambda: Volume.create("x", **kw), list(kw)[-1])
raises("volume: too small", o.APIError, lambda: Volume.create("x", size_gb=0.001), "size_gb")
check("volume: no lifetime", (Volume.update("small", max_lifetime_hours=None).expires_at, v1("/v1/volumes/small")["expires_at"]), (None, None))
h = Volume.create("hours", max_lifetime_hours=6)
there = v1("/v1/volumes/" + h.id)
check("volume: a lifetime of hours", (h.max_lifetime_days, h.max_lifetime_hours, there["lifetime_seconds"], datetime.fromisoformat(h.expires_at)), (None, 6, 6 * 3600, datetime.fromisoformat(there["created_at"]) + timedelta(hours=6)))
h = Volume.update(h.id, max_lifetime_days=3650)
check("volume: a lifetime of days, from its creation", (h.max_lifetime_days, h.max_lifetime_hours, datetime.fromisoformat(h.expires_at)), (3650, None, datetime.fromisoformat(there["created_at"]) + timedelta(days=3650)))
check("volume: none again", (Volume.update(h.id, max_lifetime_days=None).expires_at, v1("/v1/volumes/" + h.id)["lifetime_seconds"]), (None, None))
raises("volume: a lifetime of one that is none", o.SandboxNotFound, lambda: Volume.update("nowhere", max_lifetime_days=1))
Volume.delete(h.id)
check("volume: moved to where it is", Volume.move("small", "local").region, "local")
raises("volume: moved elsewhere", o.APIError, lambda: Volume.move("small", "mars"), "region")
Volume.delete("small")
s.terminate()
s.terminate()
check("terminate, twice", s.status, "terminated")
raises("exec: it is gone", o.SandboxNotFound, lambda: Sandbox.get(s.id))
with Sandbox.create(template="python", volume="data") as again:
    check("a volume outlives its sandbox", again.exec("cat /persist/f").stdout, "kept\n")

# What is refused.
raises("create: a template that is none", o.SandboxNotFound, lambda: Sandbox.create(template="tmpl_none"))
raises("create: a template that is none, with a volume", o.SandboxNotFound, lambda: Sandbox.create(template="tmpl_none", volume="unmade"))
check("create: leaves no volume where it fails", [v.name for v in Volume.list()], ["data"])
raises("create: a size that is none", o.APIError, lambda: Sandbox.create(template="python", size="huge"), "size")
raises("create: elsewhere", o.APIError, lambda: Sandbox.create(template="python", region="mars"), "region")
raises("create: 0 seconds", o.APIError, lambda: Sandbox.create(template="python", timeout_seconds=0), "timeout_seconds")
with Sandbox.create(template="python", timeout_seconds=365 * 86400) as year:
    check("create: a year", abs(year.expires_at - datetime.now(timezone.utc) - timedelta(days=365)) < timedelta(minutes=1), True)
raises("create: more than 366 days", o.APIError, lambda: Sandbox.create(template="python", timeout_seconds=366 * 86400 + 1), "timeout_seconds")
too_large = [x.size for x in Sandbox.limits().sizes if not x.allowed]
for x in too_large:
    raises("create: more than there may be", o.PlanLimitError, lambda: Sandbox.create(template="python", size=x), "size", "use a smaller one")
raises("create: a network that is none", o.APIError, lambda: Sandbox.create(template="python", network="some"), "network")
for name, domains in {"a space": ["a b"], "all": ["*"], "nothing": [""], "a URL": ["https://example.com"], "a port": ["example.com:22"], "all within": ["*.*.example.com"], "1,000": ["e%d.example.com" % i for i in range(1000)]}.items():
    raises("create: a domain that is none: " + name, o.APIError, lambda: Sandbox.create(template="python", network="restricted", allow_domains=domains), "allow_domains")
for name in "a/b", "..", "x" * 300, "a\n":
    raises("create: a volume's name that is none: " + repr(name[:3]), o.APIError, lambda: Sandbox.create(template="python", volume=name), "volume: ")
raises("create: 1,000 labels", o.APIError, lambda: Sandbox.create(template="python", metadata={str(i): "x" for i in range(1000)}), "metadata")
raises("list: 1,000 labels", o.APIError, lambda: Sandbox.list(metadata={str(i): "x" for i in range(1000)}), "metadata")
raises("list: a status that is none", o.APIError, lambda: Sandbox.list(status="ill"), "status")

# Webhooks, at a receiver of our own, which verifies each by the SDK's function.
came, keys = queue.Queue(), {}


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        came.put((self.path, self.headers, body))
        self.send_response(500 if self.path == "/broken" else 204)
        self.end_headers()

    def log_message(self, *args):
        pass


receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
at = "http://127.0.0.1:%d" % receiver.server_port
hook = Webhook.create(at + "/all")
check("webhook", (hook.secret[:6], hook.url, hook.event_types, hook.active, hook.consecutive_failures, hook.last_delivery_at, hook.last_error), ("whsec_", at + "/all", None, True, 0, None, None))
some = Webhook.create(at + "/some", event_types=["sandbox.terminated"])
other_form = v1("/v1/webhooks", "POST", {"url": at + "/own"})
check("webhooks: the list, without secrets", [(w.id, w.event_types, w.secret) for w in Webhook.list()], [(hook.id, None, None), (some.id, ["sandbox.terminated"], None)])
raises("webhooks: a secret asked for twice", o.APIError, lambda: o.get_default_client().get("/v1/sandboxes/webhooks/" + hook.id + "/secret"), "not told again")
check("webhooks: one, without its secret", "secret" in o.get_default_client().get("/v1/sandboxes/webhooks/" + hook.id), False)
check("webhooks: what /v1 says", [(w["id"], w["format"], "secret" in w) for w in v1("/v1/webhooks")["items"]], [(hook.id, "orkestr", False), (some.id, "orkestr", False), (other_form["id"], "sandpit", False)])
v1("/v1/webhooks/" + other_form["id"], "DELETE")
x = Sandbox.create(template="python", metadata={"user": "7"})
x.pause()
Sandbox.resume(x.id)
v1("/v1/sandboxes/" + x.id + "/stop", "POST")
Sandbox.resume(x.id)
x.terminate()
told = [came.get(timeout=60) for _ in range(7)]
of_all = [(h, b, json.loads(b)) for path, h, b in told if path == "/all"]
check("webhooks: the events, in order", [h["X-Orkestr-Event"] for h, _, _ in of_all], ["sandbox." + e for e in ("created", "paused", "resumed", "paused", "resumed", "terminated")])
check("webhooks: their bodies", [(e["event_type"], e["data"]["id"], e["data"]["metadata"]) for _, _, e in of_all], [(h["X-Orkestr-Event"], x.id, {"user": "7"}) for h, _, _ in of_all])
check("webhooks: only some", [(h["X-Orkestr-Event"], verify_webhook_signature(some.secret, b, h["X-Orkestr-Signature"])) for path, h, b in told if path == "/some"], [("sandbox.terminated", True)])
check("webhooks: signed", [verify_webhook_signature(hook.secret, b, h["X-Orkestr-Signature"]) for h, b, _ in of_all], [True] * 6)
h, b, _ = of_all[0]
check("webhooks: not with another secret, body or signature", [verify_webhook_signature(*a) for a in ((some.secret, b, h["X-Orkestr-Signature"]), (hook.secret, b + b" ", h["X-Orkestr-Signature"]), (hook.secret, b, None))], [False] * 3)
check("webhooks: each a delivery of its own", len({h["X-Orkestr-Delivery"] for h, _, _ in of_all}), 6)
for _ in range(200):
    if all(w.last_delivery_at for w in Webhook.list()):
        break
    time.sleep(0.05)
check("webhooks: the last delivery", abs(Webhook.list()[0].last_delivery_at - datetime.now(timezone.utc)) < timedelta(minutes=2), True)
v1("/v1/webhooks/" + hook.id, "PATCH", {"url": at + "/broken"})
with Sandbox.create(template="python"):
    check("webhooks: at one that fails", came.get(timeout=60)[0], "/broken")
    for _ in range(200):
        if Webhook.list()[0].consecutive_failures:
            break
        time.sleep(0.05)
    w = Webhook.list()[0]
    check("webhooks: a failure", (w.consecutive_failures, w.last_error, w.active), (1, "it answered 500", True))
    v1("/v1/webhooks/" + hook.id, "PATCH", {"enabled": False})
    check("webhooks: switched off", Webhook.list()[0].active, False)
    w = Webhook.enable(hook.id)
    check("webhooks: enabled", (w.active, w.consecutive_failures, w.last_error, w.secret), (True, 0, None, None))
    check("webhooks: what was pending comes again", came.get(timeout=60)[0], "/broken")
    Webhook.delete(hook.id)
Webhook.delete(some.id)
check("webhooks: none is left", (Webhook.list(), v1("/v1/webhooks")["items"]), ([], []))
foreign, reading = client(os.environ["OTHER"]), client(os.environ["READER"])
mine = Webhook.create("https://example.com/x", event_types=["volume.expired"])
for name, do in {"enable": lambda c: Webhook.enable(mine.id, client=c), "delete": lambda c: Webhook.delete(mine.id, client=c), "its secret": lambda c: c.get("/v1/sandboxes/webhooks/" + mine.id + "/secret")}.items():
    raises("webhooks of another project: " + name, o.SandboxNotFound, lambda: do(foreign))
    raises("webhooks: who only reads: " + name, o.AuthError, lambda: do(reading))
raises("webhooks: who only reads", o.AuthError, lambda: Webhook.create("https://example.com", client=reading))
for name, url in {"no URL": "x", "a file": "file:///etc/passwd", "a private address": "https://10.0.0.1/x", "this server": "http://localhost/x", "without TLS": "http://example.com/x", "metadata of a cloud": "http://169.254.169.254/"}.items():
    raises("webhooks: " + name, o.APIError, lambda: Webhook.create(url), "url")
raises("webhooks: an event that is none", o.APIError, lambda: Webhook.create("https://example.com", event_types=["sandbox.started"]), "event_types")
raises("webhooks: no events", o.APIError, lambda: Webhook.create("https://example.com", event_types=[]), "event_types")
for w in range(19):
    Webhook.create("https://example.com/%d" % w)
raises("webhooks: a 21st", o.PlanLimitError, lambda: Webhook.create("https://example.com/more"))
for w in Webhook.list():
    Webhook.delete(w.id)
raises("webhooks: deleted twice", o.SandboxNotFound, lambda: Webhook.delete(mine.id))
receiver.shutdown()

other, reader = client(os.environ["OTHER"]), client(os.environ["READER"])
raises("another project: get", o.SandboxNotFound, lambda: Sandbox.get(t.id, client=other))
check("another project: list", (Sandbox.list(client=other), Snapshot.list(client=other), Volume.list(client=other)), ([], [], []))
for name, do in {
    "exec": lambda x: x.exec("true"), "files": lambda x: x.files.read("a"), "write": lambda x: x.files.write("a", "b"), "batch": lambda x: x.files.write_batch({"a": "b"}), "stat": lambda x: x.files.stat("a"),
    "presign": lambda x: x.files.presign_upload("a"), "snapshot": lambda x: x.snapshot(), "pause": lambda x: x.pause(), "metrics": lambda x: x.metrics(), "code": lambda x: x.run_code("1"), "host": lambda x: x.get_host(80),
    "timeout": lambda x: x.set_timeout(60), "commands": lambda x: x.commands(), "delete": lambda x: x.terminate(),
}.items():
    foreign = Sandbox.get(t.id)
    foreign._client = other
    raises("another project: " + name, o.SandboxNotFound, lambda: do(foreign))
foreign._client, foreign.status = reader, "running"
for name, do in {"exec": lambda x: x.exec("true"), "batch": lambda x: x.files.write_batch({"a": "b"}), "presign": lambda x: x.files.presign_upload("a"), "delete": lambda x: x.terminate()}.items():
    raises("who only reads: " + name, o.AuthError, lambda: do(foreign))
raises("nobody", o.AuthError, lambda: Sandbox.list(client=client("nobody's")))
t.terminate()
check("all are gone", Sandbox.list(), [])

# A network that is wider than the operator allows.
v1("/v1/settings", "PATCH", {"max_network": "off"})
for mode in "restricted", "open":
    raises("create: wider than the operator allows: " + mode, o.NetworkPolicyError, lambda: Sandbox.create(template="python", network=mode, allow_domains=["example.com"]), "network", "ask the server's operator")
check("create: nothing was made", Sandbox.list(), [])

# There are no agents; of some of it the SDK says that there is no sandbox.
OF_SANDBOXES = "create", "stream", "a run's stream", "credentials", "toolsets", "a toolset"
agent, run = o.Agent({"id": "agt_x", "name": "x"}, client(os.environ["ORKESTR_API_KEY"])), o.AgentRun({"id": "run_x", "approval": {"request_id": "x"}}, client(os.environ["ORKESTR_API_KEY"]))
for name, do in {
    "get": lambda: o.Agent.get("x"), "list": o.Agent.list, "create": lambda: o.Agent.create("x", {}), "update": lambda: agent.update(name="y"), "invoke": lambda: agent.invoke("x"), "stream": lambda: list(agent.stream("x")),
    "end_session": lambda: agent.end_session("x"), "versions": agent.versions, "version": agent.version, "publish": lambda: agent.publish({}), "set_alias": lambda: agent.set_alias("x", 1), "schedules": agent.schedules,
    "add_schedule": lambda: agent.add_schedule("x", "y"), "update_schedule": lambda: agent.update_schedule("x", schedule="y"), "remove_schedule": lambda: agent.remove_schedule("x"), "webhooks": agent.webhooks,
    "add_webhook": lambda: agent.add_webhook("x"), "rotate_webhook": lambda: agent.rotate_webhook("x"), "remove_webhook": lambda: agent.remove_webhook("x"), "usage": agent.usage, "memory": lambda: agent.memory("x"),
    "clear_memory": lambda: agent.clear_memory("x"), "erase_end_user": lambda: agent.erase_end_user("x"),
    "a run": lambda: o.AgentRun.get("x"), "a run's stream": lambda: list(run.stream()), "approve": run.approve, "deny": run.deny, "credentials": o.ModelCredential.list, "toolsets": o.Toolset.list,
    "a toolset": lambda: o.Toolset.create("x", "mcp", "https://example.com"), "toolset: update": lambda: o.Toolset.update("x", name="y"), "toolset: catalog": o.Toolset.catalog, "toolset: connect": lambda: o.Toolset.connect("x"),
    "toolset: connections": lambda: o.Toolset.connections("x"), "toolset: disconnect_end_user": lambda: o.Toolset.disconnect_end_user("x", "y"), "toolset: disconnect": lambda: o.Toolset.disconnect("x"), "toolset: refresh": lambda: o.Toolset.refresh("x"),
}.items():
    raises("agents: " + name, o.SandboxNotFound if name in OF_SANDBOXES or name.startswith("toolset") else o.AgentNotFound, do, "docs/orkestr.md")
o.get_default_client().close()
watching.write(sys.argv[1])
end()
