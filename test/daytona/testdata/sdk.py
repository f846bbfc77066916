# What Python's SDK does, and what comes of it.
import asyncio
import datetime
import os
import sys
import time
import urllib.error
import urllib.request

from daytona import (
    CodeRunParams, CreateSandboxFromImageParams, CreateSandboxFromSnapshotParams, CreateSecretParams, Daytona, PtySize, Resources,
    SessionExecuteRequest, UpdateSecretParams, VolumeMount,
)
from daytona.common import errors as e
from daytona_api_client import exceptions as api  # what the services of secrets and pools let through
from checks import check, end, raises


def fetch(url, method="GET", file=None):
    """Returns the status and the bytes of what is at an address, to whom nobody gave a token."""
    r = urllib.request.Request(url, method=method)
    if file is not None:
        r.data = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + file + b"\r\n--b--\r\n"
        r.add_header("Content-Type", "multipart/form-data; boundary=b")
    try:
        with urllib.request.urlopen(r) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as x:
        return x.code, x.read()


def status(url, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers)).status
    except urllib.error.HTTPError as x:
        return x.code


d = Daytona()

# Sandboxes.
v = d.volume.get("data", create=True)
s = d.create(CreateSandboxFromSnapshotParams(name="one", labels={"team": "a"}, env_vars={"X": "1"}, volumes=[VolumeMount(volume_id=v.id, mount_path="/data")]))
check("create: state", s.state.value, "started")
check("create: sizes", (s.cpu, s.memory, s.disk), (1, 1, 3))
check("create: labels", s.labels, {"team": "a", "code-toolbox-language": "python"})
check("create: user, clocks", (s.user, s.auto_stop_interval, s.auto_delete_interval), ("daytona", 15, -1))
check("create: env", s.env, {"X": "1"})
raises("create: a name that is taken", e.DaytonaConflictError, lambda: d.create(CreateSandboxFromSnapshotParams(name="one")))
raises("create: a long name", e.DaytonaBadRequestError, lambda: d.create(CreateSandboxFromSnapshotParams(name="x" * 10000)), "name:")
raises("create: a GPU", e.DaytonaUnprocessableEntityError, lambda: d.create(CreateSandboxFromImageParams(image="python", resources=Resources(gpu=1))), "gpu:")
raises("create: an image that is none", e.DaytonaNotFoundError, lambda: d.create(CreateSandboxFromImageParams(image="none-such")))
raises("create: a registry that is none", e.DaytonaError, lambda: d.create(CreateSandboxFromImageParams(image="nowhere.example/none:1", name="nowhere")))
check("create: why it has failed", "nowhere.example" in d.get("nowhere").error_reason, True)
d.get("nowhere").delete()
raises("create: a clock of years", e.DaytonaBadRequestError, lambda: d.create(CreateSandboxFromSnapshotParams(auto_stop_interval=10**9)), "autoStopInterval:")
raises("create: a list of addresses that is none", e.DaytonaBadRequestError, lambda: d.create(CreateSandboxFromSnapshotParams(network_allow_list="nonsense")), "networkAllowList:")
check("get by name", d.get("one").id, s.id)
check("list by labels", [x.id for x in d.list()], [s.id])
raises("get what is not there", e.DaytonaNotFoundError, lambda: d.get("none"))
check("labels", s.set_labels({"team": "b"}), {"team": "b", "code-toolbox-language": "python"})
s.set_autostop_interval(30)
s.set_auto_archive_interval(60)
s.set_auto_delete_interval(0)
s.refresh_data()
check("clocks", (s.auto_stop_interval, s.auto_archive_interval, s.auto_delete_interval), (30, 60, 0))
s.set_auto_delete_interval(-1)
s.stop()
check("stop", s.state.value, "stopped")
s.start()
check("start", s.state.value, "started")
s.pause()
check("pause", s.state.value, "paused")
s.start()
check("start of what is paused", s.state.value, "started")
s.resize(Resources(cpu=2))
check("resize", s.cpu, 2)
f = s.fork()
check("fork", (f.state.value, f.id != s.id), ("started", True))
f.delete()

# Commands and code.
p = s.process
r = p.exec("id -un; pwd; echo err >&2; exit 3")
check("exec", (r.exit_code, r.result), (3, "daytona\n/home/daytona\nerr\n"))
check("exec: variables", p.exec("echo $X-$Y", env={"Y": "2"}, cwd="/tmp").result, "1-2\n")
check("exec: a volume", p.exec("echo kept > /data/f && cat /data/f").result, "kept\n")
raises("exec: timeout", e.DaytonaProcessExecutionTimeoutError, lambda: p.exec("sleep 60", timeout=1))
r = p.code_run("from __future__ import annotations\nimport sys\nprint(sys.argv[1:])", params=CodeRunParams(argv=["a b", "c"]))
check("code_run: arguments", (r.exit_code, r.result), (0, "['a b', 'c']\n"))
r = p.code_run("raise ValueError('no')")
check("code_run: an exception", (r.exit_code, "ValueError: no" in r.result), (1, True))
r = p.code_run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('T')\nplt.show()")
check("code_run: a chart", [(c.type, c.title, bool(c.png)) for c in r.artifacts.charts], [("line", "T", True)])
r = p.code_run("import matplotlib.pyplot as plt\nplt.boxplot([[1, 2, 3], [2, 3, 4]])\nplt.show()")
check("code_run: a chart of boxes", [(c.type, [e.median for e in c.elements]) for c in r.artifacts.charts], [("box_and_whisker", [2, 3])])
r = p.code_run("import datetime, matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2.5])\nplt.show()\nplt.plot([datetime.date(1970, 1, d) for d in (2, 3)], [1, float('nan')])\nplt.show()\nf, a = plt.subplots(1, 2)\na[0].plot([1, 2])\na[1].pie([1, 2])\nplt.show()")
check("code_run: charts", [c.type for c in r.artifacts.charts], ["bar", "line", "composite_chart"])
check("code_run: what they show", ([(e.label, e.value) for e in r.artifacts.charts[0].elements], r.artifacts.charts[1].elements[0].points, [e.type for e in r.artifacts.charts[2].elements]), ([("a", "1"), ("b", "2.5")], [[86400, 1]], ["line", "pie"]))
check("code_run: sys.exit", [(x.exit_code, x.result) for x in (p.code_run(f"import sys\nprint(1)\nsys.exit({how})") for how in ("", "4", "256 + 7", "'words'"))], [(0, "1\n"), (4, "1\n"), (7, "1\n"), (1, "1\nwords\n")])

# Sessions.
p.create_session("s")
raises("session: a name that is taken", e.DaytonaConflictError, lambda: p.create_session("s"))
r = p.execute_session_command("s", SessionExecuteRequest(command="cd /tmp; export A=5; echo out; echo err >&2; false"))
check("session: outputs apart", (r.exit_code, r.stdout, r.stderr), (1, "out\n", "err\n"))
check("session: what stays", p.execute_session_command("s", SessionExecuteRequest(command="pwd; echo $A")).stdout, "/tmp\n5\n")
r = p.execute_session_command("s", SessionExecuteRequest(command="read x; echo got $x; for i in 1 2; do echo $i >&2; sleep 0.1; done", run_async=True))
check("session: a command that goes on", r.exit_code, None)
p.send_session_command_input("s", r.cmd_id, "hey\n")
seen = {"out": "", "err": ""}


def add(name):
    def f(text):
        seen[name] += text
    return f


asyncio.run(p.get_session_command_logs_async("s", r.cmd_id, add("out"), add("err")))
check("session: followed", seen, {"out": "got hey\n", "err": "1\n2\n"})
check("session: logs", p.get_session_command_logs("s", r.cmd_id).stdout, "got hey\n")
check("session: its end", p.get_session_command("s", r.cmd_id).exit_code, 0)
raises("session: input to what has ended", e.DaytonaCommandAlreadyCompletedError, lambda: p.send_session_command_input("s", r.cmd_id, "x"))
check("session: commands", [c.exit_code for c in p.get_session("s").commands], [1, 0, 0])
first = p.execute_session_command("s", SessionExecuteRequest(command="read x; echo first $x", run_async=True))
second = p.execute_session_command("s", SessionExecuteRequest(command="echo second; read y; echo $y; (exit 4)", run_async=True))
check("session: in turn", ([c.id for c in p.get_session("s").commands][-2:], p.get_session_command("s", second.cmd_id).exit_code), ([first.cmd_id, second.cmd_id], None))
check("session: logs of what waits", p.get_session_command_logs("s", second.cmd_id).output, "")


async def followed():
    seen["out"] = ""
    follower = asyncio.create_task(p.get_session_command_logs_async("s", second.cmd_id, add("out"), add("err")))
    await asyncio.to_thread(p.send_session_command_input, "s", first.cmd_id, "go\n")
    await asyncio.to_thread(p.send_session_command_input, "s", second.cmd_id, "on\n")
    await follower


asyncio.run(followed())
check("session: followed from before its turn", seen["out"], "second\non\n")
check("session: each its own", (p.get_session_command_logs("s", first.cmd_id).output, p.get_session_command("s", second.cmd_id).exit_code), ("first go\n", 4))
p.execute_session_command("s", SessionExecuteRequest(command="sleep 600", run_async=True))
never = p.execute_session_command("s", SessionExecuteRequest(command="echo never", run_async=True))
p.delete_session("s")
check("session: what never began", (p.get_session_command("s", never.cmd_id).exit_code, p.get_session_command_logs("s", never.cmd_id).output), (127, ""))
seen = {"out": "", "err": ""}
asyncio.run(p.get_session_command_logs_async("s", never.cmd_id, add("out"), add("err")))
check("session: what never began, followed", seen, {"out": "", "err": ""})
raises("session: deleted", e.DaytonaNotFoundError, lambda: p.get_session("s"))

# Terminals.
out = bytearray()
h = p.create_pty_session(id="t", cwd="/tmp", envs={"FOO": "bar"}, pty_size=PtySize(rows=30, cols=100))
h.send_input("echo $FOO; stty size; pwd; exit 3\n")
r = h.wait(on_data=out.extend)
check("terminal", (r.exit_code, b"bar\r\n30 100\r\n/tmp\r\n" in out), (3, True))
h = p.create_pty_session(id="u")
check("terminal: list", [(x.id, x.active, x.cols, x.rows) for x in p.list_pty_sessions()], [("u", True, 80, 24)])
info = p.resize_pty_session("u", PtySize(rows=50, cols=120))
check("terminal: resize", (info.rows, info.cols), (50, 120))
p.kill_pty_session("u")
check("terminal: killed", h.wait().exit_code, 137)
raises("terminal: resize of what has ended", e.DaytonaSessionEndedError, lambda: p.resize_pty_session("u", PtySize(rows=50, cols=120)))

# The interpreter.
c = s.code_interpreter
check("interpreter: output", c.run_code("x = 41\nprint('one')").stdout, "one\n")
check("interpreter: what stays", c.run_code("x + 1").stdout, "42\n")
check("interpreter: an error", c.run_code("1/0").error.name, "ZeroDivisionError")
own = c.create_context(cwd="/tmp")
check("interpreter: a context", c.run_code("import os; print(os.getcwd())", context=own).stdout, "/tmp\n")
raises("interpreter: timeout", e.DaytonaTimeoutError, lambda: c.run_code("import time; time.sleep(60)", timeout=1))
c.delete_context(own)

# Files.
fs = s.fs
fs.upload_file(b"hello", "a/b.txt")
check("files: down", fs.download_file("a/b.txt"), b"hello")
check("files: list", [(x.name, x.is_dir) for x in fs.list_files(".") if x.name == "a"], [("a", True)])
i = fs.get_file_info("a/b.txt")
check("files: info", (i.size, i.permissions, i.owner), (5, "0644", "daytona"))
check("files: find", [(m.file, m.line, m.content) for m in fs.find_files(".", "hell")], [("/home/daytona/a/b.txt", 1, "hello")])
check("files: search", fs.search_files(".", "*.txt").files, ["/home/daytona/a/b.txt"])
check("files: replace", [(x.file, x.success) for x in fs.replace_in_files(["a/b.txt"], "hello", "bye")], [("a/b.txt", True)])
fs.create_folder("x", "750")
fs.move_files("a/b.txt", "x/c.txt")
fs.set_file_permissions("x/c.txt", "600")
check("files: moved", (fs.get_file_info("x/c.txt").permissions, fs.download_file("x/c.txt")), ("0600", b"bye"))
fs.delete_file("x/c.txt")
raises("files: deleted", e.DaytonaFileNotFoundError, lambda: fs.get_file_info("x/c.txt"))
raises("files: down of what is not there", e.DaytonaFileNotFoundError, lambda: fs.download_file("none"))
big = os.urandom(5 << 20)
fs.upload_file(big, "big")
check("files: 5 MiB", fs.download_file("big") == big, True)
check("files: home", (s.get_user_home_dir(), s.get_work_dir()), ("/home/daytona", "/home/daytona"))

# Signed addresses of files.
down, up = s.download_url("x/a b+ü.txt"), s.upload_url("x/a b+ü.txt", 60)
check("signed: up", fetch(up, "POST", b"by an address")[0], 200)
check("signed: down", fetch(down), (200, b"by an address"))
check("signed: it is the user's", fs.get_file_info("x/a b+ü.txt").owner, "daytona")
check("signed: without an end", fetch(s.download_url("x/a b+ü.txt", 0))[0], 200)
check("signed: nothing there", fetch(s.download_url("none"))[0], 404)
check("signed: for the other", (fetch(down.replace("/files/download", "/files/upload-v2"), "POST", b"x")[0], fetch(up.replace("/files/upload-v2", "/files/download"))[0]), (401, 401))
s.rotate_signing_key()
check("signed: after another key", (fetch(down)[0], fetch(up, "POST", b"x")[0], fetch(s.download_url("x/a b+ü.txt"))), (401, 401, (200, b"by an address")))

# Git.
g = s.git
g.init("repo")
fs.upload_file(b"x", "repo/a.txt")
fs.upload_file(b"y", "repo/b.txt")
g.add("repo", ["a.txt"])
check("git: status", [(x.name, x.staging.value, x.worktree.value) for x in g.status("repo").file_status], [("a.txt", "Added", "Unmodified"), ("b.txt", "Untracked", "Untracked")])
check("git: commit", len(g.commit("repo", "first", "A", "a@b.c").sha), 40)
first = g.status("repo").current_branch
g.create_branch("repo", "dev")
check("git: branches", sorted(g.branches("repo").branches), sorted(["dev", first]))
raises("git: a branch that exists", e.DaytonaGitBranchExistsError, lambda: g.create_branch("repo", "dev"))
raises("git: a branch that does not", e.DaytonaGitBranchNotFoundError, lambda: g.checkout_branch("repo", "none"))
raises("git: no server", e.DaytonaGitTransportFailedError, lambda: g.clone("http://127.0.0.1:9/x.git", "c"))
raises("git: no repository", e.DaytonaGitRepoNotFoundError, lambda: g.status("nowhere"))

# Secrets.
key = d.secret.create(CreateSecretParams(name="anthropic-prod", value="sk-ant-value", description="of tests", hosts=["api.example.com"]))
check("secrets: create", (key.name, key.hosts, key.description, "sk-ant-value" in key.model_dump_json()), ("anthropic-prod", ["api.example.com"], "of tests", False))
raises("secrets: a name that is taken", api.ConflictException, lambda: d.secret.create(CreateSecretParams(name="anthropic-prod", value="other", hosts=["a.example.com"])))
raises("secrets: for every host", api.UnprocessableEntityException, lambda: d.secret.create(CreateSecretParams(name="everywhere", value="value")), "hosts:")
raises("secrets: a host that is none", api.BadRequestException, lambda: d.secret.create(CreateSecretParams(name="x", value="value", hosts=["a b"])), "hosts:")
other = d.secret.create(CreateSecretParams(name="other", value="value-of-other", hosts=["*.example.com"]))
page = d.secret.list(limit=1)
check("secrets: a page", ([x.name for x in page.items], page.total), (["other"], 2))
page = d.secret.list(limit=1, cursor=page.next_cursor)
check("secrets: the next", ([x.name for x in page.items], page.next_cursor), (["anthropic-prod"], None))
check("secrets: by name", [x.name for x in d.secret.list(name="anthropic", sort="name", order="asc").items], ["anthropic-prod"])
check("secrets: none without", p.exec("echo [$KEY]").result, "[]\n")
with_key = d.create(CreateSandboxFromSnapshotParams(secrets={"KEY": "anthropic-prod"}))
check("secrets: at create", with_key.process.exec("echo $KEY").result, key.placeholder + "\n")
with_key.delete()
raises("secrets: at create, one that is not", e.DaytonaNotFoundError, lambda: d.create(CreateSandboxFromSnapshotParams(secrets={"KEY": "none"})), "none")
s.update_secrets({"KEY": "anthropic-prod", "OTHER": "other"})
check("secrets: attached", p.exec("echo $KEY $OTHER").result, key.placeholder + " " + other.placeholder + "\n")
raises("secrets: attach one that is not", e.DaytonaNotFoundError, lambda: s.update_secrets({"A": "none"}), "none")
changed = d.secret.update(key.id, UpdateSecretParams(value="sk-ant-next", hosts=["api.example.com", "*.example.org"]))
check("secrets: update", (changed.hosts, changed.placeholder, changed.description), (["api.example.com", "*.example.org"], key.placeholder, "of tests"))
s.update_secrets({"OTHER": "other"})
check("secrets: detached", p.exec("echo [$KEY] $OTHER").result, "[] " + other.placeholder + "\n")
d.secret.delete(other.id)
check("secrets: deleted", p.exec("echo [$OTHER]").result, "[]\n")
raises("secrets: get what is deleted", api.NotFoundException, lambda: d.secret.get(other.id))
check("secrets: get", d.secret.get(key.id).name, "anthropic-prod")
d.secret.delete(key.id)

# Pools.
pool = d.warm_pool.create("python", 1)
check("pools: create", (pool.snapshot, pool.pool, pool.cpu, pool.mem, pool.disk), ("python", 1, 1, 1, 3))
raises("pools: of an image that has one", api.ConflictException, lambda: d.warm_pool.create("python", 2))
raises("pools: of no image", api.NotFoundException, lambda: d.warm_pool.create("none-such", 1))
raises("pools: too large", api.BadRequestException, lambda: d.warm_pool.create("python", 1001))
check("pools: update", d.warm_pool.update(pool.id, 2).pool, 2)
check("pools: list", [(x.id, x.pool) for x in d.warm_pool.list()], [(pool.id, 2)])
d.warm_pool.delete(pool.id)
check("pools: deleted", d.warm_pool.list(), [])
raises("pools: update what is deleted", api.NotFoundException, lambda: d.warm_pool.update(pool.id, 1))

# Previews.
p.create_session("web")
p.execute_session_command("web", SessionExecuteRequest(command="python3 -m http.server 3000", run_async=True))
for _ in range(100):
    if p.exec("curl -s -o /dev/null http://127.0.0.1:3000/").exit_code == 0:
        break
    time.sleep(0.1)
link = s.get_preview_link(3000)
check("preview", (status(link.url), status(link.url, **{"x-daytona-preview-token": link.token}), status(link.url + "?DAYTONA_SANDBOX_AUTH_KEY=" + link.token)), (401, 200, 200))
signed = s.create_signed_preview_url(3000, 60)
check("preview: signed", status(signed.url), 200)
s.expire_signed_preview_url(3000, signed.token)
check("preview: expired", status(signed.url), 401)

# What there is not.
samples = s.get_metrics()
check("metrics: some, of its sizes", bool(samples) and {(m.cpu_count, m.mem_total, m.disk_total) for m in samples}, {(s.cpu, s.memory << 30, s.disk << 30)})
check("metrics: it used memory and a disk", samples[-1].mem_used > 0 and samples[-1].disk_used > 0, True)
check("metrics: in order", [m.timestamp for m in samples], sorted(m.timestamp for m in samples))
check("metrics: of another day", s.get_metrics(datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 2)), [])
raises("metrics: an end before the start", e.DaytonaBadRequestError, lambda: s.get_metrics(datetime.datetime(2000, 1, 2), datetime.datetime(2000, 1, 1)), "to:")
raises("SSH", e.DaytonaUnprocessableEntityError, lambda: s.create_ssh_access(10))
raises("a desktop", e.DaytonaServiceUnavailableError, lambda: s.computer_use.start())

s.stop()
s.archive()
check("archive", s.state.value, "archived")
s.start()
check("start of what is archived", s.state.value, "started")
s.delete()
raises("deleted", e.DaytonaNotFoundError, lambda: d.get("one"))
d.volume.delete(v)
raises("volume: deleted", e.DaytonaNotFoundError, lambda: d.volume.get("data"))
end()
