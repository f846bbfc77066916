# What an older SDK for Python does on its first day: create, commands, code, files, a session, a terminal, list, delete.
import asyncio
import base64
import sys

from daytona import CodeRunParams, CreateSandboxFromSnapshotParams, Daytona, SessionExecuteRequest
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
draw = "import os, sys\nimport matplotlib.pyplot as plt\nprint('before', os.environ['WHO'], sys.argv[1:])\n"
with_env = CodeRunParams(argv=["a", "b"], env={"WHO": "two words"})
r = p.code_run(draw + "plt.plot([1, 2, 3], label='l')\nplt.title('T')\nplt.xlabel('X')\nplt.show()\nprint('after')", with_env)
c = r.artifacts.charts[0]
check("code_run: a chart", (r.exit_code, r.result.splitlines(), len(r.artifacts.charts)), (0, ["before two words ['a', 'b']", "after"], 1))
check("code_run: what it shows", (str(getattr(c.type, "value", c.type)), c.title, c.x_label, c.elements[0].label, [tuple(x) for x in c.elements[0].points]), ("line", "T", "X", "l", [(0, 1), (1, 2), (2, 3)]))
check("code_run: its picture", base64.b64decode(c.png)[:8], b"\x89PNG\r\n\x1a\n")
r = p.code_run("import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2])\nplt.show()\nplt.pie([1, 3], labels=['x', 'y'])\nplt.show()\nplt.scatter([1], [2])\nplt.show()\nplt.boxplot([[1, 2, 3]])\nplt.show()")
check("code_run: charts", [str(getattr(x.type, "value", x.type)) for x in r.artifacts.charts], ["bar", "pie", "scatter", "box_and_whisker"])
r = p.code_run("import matplotlib\nraise SystemExit(4)")
check("code_run: no chart", (r.exit_code, r.artifacts.charts if r.artifacts else []), (4, []))
r = p.code_run("import matplotlib\nraise ValueError('why')")
check("code_run: an exception before a chart", (r.exit_code, "ValueError: why" in r.result), (1, True))
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
