# What Python's SDK does over TLS, with the local files of a declarative image first.
import asyncio
import os
import pathlib
import tempfile
import urllib.request

from daytona import AsyncDaytona, CreateSandboxFromImageParams, CreateSandboxFromSnapshotParams, CreateSnapshotParams, Daytona, Image, SessionExecuteRequest
from daytona.common import errors as e
from checks import check, end, raises

local = pathlib.Path(tempfile.mkdtemp())
(local / "src/sub").mkdir(parents=True)
(local / "one.txt").write_text("one")
(local / "src/a.txt").write_text("a")
(local / "src/sub/b.txt").write_text("b")
(local / "big").write_bytes(os.urandom(11 << 20))  # in parts


def image():
    return (
        Image.base("python").add_local_file(local / "one.txt", "/opt/one.txt").add_local_dir(local / "src", "/opt/src").add_local_file(local / "big", "/opt/big")
        .run_commands("cat /opt/one.txt /opt/src/a.txt /opt/src/sub/b.txt > /opt/all")
    )


d = Daytona()
logs = []
s = d.snapshot.create(CreateSnapshotParams(name="local", image=image()), on_logs=logs.append)
check("local files", (s.state.value, len(s.build_info.context_hashes)), ("active", 3))
check("local files: the log", ("SnapshotState.BUILDING" in logs[0], "SnapshotState.ACTIVE" in logs[-1]), (True, True))
box = d.create(CreateSandboxFromSnapshotParams(snapshot="local"))
check("local files: there", box.process.exec("cat /opt/all").result, "oneab")
check("local files: every byte", box.fs.download_file("/opt/big") == (local / "big").read_bytes(), True)
check("the toolbox's address", box.toolbox_proxy_url.startswith(os.environ["DAYTONA_API_URL"]), True)
raises("a name that is taken", e.DaytonaConflictError, lambda: d.snapshot.create(CreateSnapshotParams(name="local", image=image())))

# All else that has connections of its own.
p = box.process
p.create_session("s")
r = p.execute_session_command("s", SessionExecuteRequest(command="for i in 1 2; do echo $i; sleep 0.1; done", run_async=True))
out = []
asyncio.run(p.get_session_command_logs_async("s", r.cmd_id, out.append, out.append))
check("a session, followed", "".join(out), "1\n2\n")
box.fs.upload_file(b"up", "up")
url = box.download_url("up")
check("a signed address", (url.startswith("https://localhost:"), urllib.request.urlopen(url).read()), (True, b"up"))
pty = p.create_pty_session(id="t")
pty.send_input("exit 3\n")
check("a terminal", pty.wait().exit_code, 3)
check("the interpreter", box.code_interpreter.run_code("print(6 * 7)").stdout, "42\n")
p.exec("nohup python3 -m http.server 3000 --directory /opt >/dev/null 2>&1 & until curl -s -o /dev/null localhost:3000; do :; done")
check("a preview's address", box.create_signed_preview_url(3000).url.startswith("https://"), True)
box.delete()


async def same():
    async with AsyncDaytona() as a:
        b = await a.create(CreateSandboxFromImageParams(image=Image.base("python").add_local_file(local / "one.txt", "/opt/two.txt")), on_snapshot_create_logs=lambda _: None)
        check("async: local files", (await b.process.exec("cat /opt/two.txt")).result, "one")
        pty = await b.process.create_pty_session(id="t", on_data=lambda _: None)
        await pty.send_input("exit 4\n")
        check("async: a terminal", (await pty.wait()).exit_code, 4)
        await b.delete()


asyncio.run(same())
d.snapshot.delete("local")
end()
