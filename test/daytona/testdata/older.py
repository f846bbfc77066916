# What an older SDK for Python does on its first day: create, commands, code, files, a session, a terminal, list, delete. Of
# charts it asks the image for a newer matplotlib than ours has, before 0.167.
import asyncio
import sys

from daytona import CreateSandboxFromSnapshotParams, Daytona, SessionExecuteRequest
from daytona.common.pty import PtySize
from checks import check, end

d = Daytona()
s = d.create(CreateSandboxFromSnapshotParams(labels={"team": "a"}, env_vars={"X": "1"}))
check("create", (s.state.value, s.labels["team"], s.cpu, s.env), ("started", "a", 1, {"X": "1"}))
check("get", d.get(s.id).id, s.id)
pages = hasattr(d.list(), "items")  # before 0.180
listed = d.list({"team": "a"}) if pages else d.list()
check("list", [x.id for x in (listed.items if pages else listed)], [s.id])
if pages:
    check("list: pages", (listed.total, listed.page, listed.total_pages), (1, 1, 1))
    check("list: nothing", d.list({"team": "b"}).items, [])
p = s.process
r = p.exec("echo $X; echo err >&2; exit 3")
check("exec", (r.exit_code, r.result.strip()), (3, "1\nerr"))  # before 0.167 the client takes the last end of line away
r = p.code_run("import sys\nprint('a\"b', sys.version_info > (3, 8))")
check("code_run", (r.exit_code, r.result.strip()), (0, 'a"b True'))
check("code_run: an exception", p.code_run("1/0").exit_code, 1)
fs = s.fs
fs.create_folder("a", "755")
fs.upload_file(b"hello", "a/b.txt")
check("files", (fs.download_file("a/b.txt"), fs.get_file_info("a/b.txt").size, [f.name for f in fs.list_files("a")]), (b"hello", 5, ["b.txt"]))
check("files: find", [m.content for m in fs.find_files("a", "hell")], ["hello"])
fs.move_files("a/b.txt", "a/c.txt")
fs.delete_file("a/c.txt")
check("files: deleted", fs.list_files("a"), [])
p.create_session("s")
r = p.execute_session_command("s", SessionExecuteRequest(command="cd /tmp; echo out; echo err >&2"))
check("session", (r.exit_code, r.stdout, r.stderr), (0, "out\n", "err\n"))
r = p.execute_session_command("s", SessionExecuteRequest(command="pwd; for i in 1 2; do echo $i >&2; sleep 0.1; done", run_async=True))
seen = {"out": "", "err": ""}


def add(name):
    def f(text):
        seen[name] += text
    return f


asyncio.run(p.get_session_command_logs_async("s", r.cmd_id, add("out"), add("err")))
check("session: followed", seen, {"out": "/tmp\n", "err": "1\n2\n"})
logs = p.get_session_command_logs("s", r.cmd_id)
check("session: logs", (logs.stdout, logs.stderr), ("/tmp\n", "1\n2\n"))
check("session: its end", p.get_session_command("s", r.cmd_id).exit_code, 0)
p.delete_session("s")
out = bytearray()
h = p.create_pty_session(id="t", cwd="/tmp", envs={"FOO": "bar"}, pty_size=PtySize(rows=30, cols=100))
h.send_input("echo $FOO; stty size; pwd; exit\n")
r = h.wait(on_data=out.extend)
check("terminal", (r.exit_code, b"bar\r\n30 100\r\n/tmp\r\n" in out), (0, True))  # the client never tells another exit code
v = d.volume.get("data", create=True)
check("volume", [x.name for x in d.volume.list()], ["data"])
d.volume.delete(v)
check("preview", s.get_preview_link(3000).url.startswith("http"), True)
s.stop()
check("stop", s.state.value, "stopped")
s.start()
check("start", s.state.value, "started")
s.delete()
check("delete", list(d.list().items if pages else d.list()), [])
end()
