# A day's work of OpenAI's agents with their sandbox of Daytona.
import asyncio
import io
import pathlib
import urllib.request

from agents.extensions.sandbox.daytona import DaytonaSandboxClient, DaytonaSandboxClientOptions
from agents.sandbox import Manifest
from agents.sandbox.entries import Dir, File
from agents.sandbox.errors import ExecTimeoutError, ExposedPortUnavailableError, WorkspaceReadNotFoundError
from agents.sandbox.files import EntryKind

from checks import araises, check, end, look

root = "/home/daytona/workspace"


async def day():
    async with DaytonaSandboxClient() as client:
        manifest = Manifest(root=root, entries={"notes": Dir(children={"a.txt": File(content=b"one\n")})}, environment={"value": {"E": "2"}})
        s = await client.create(manifest=manifest, options=DaytonaSandboxClientOptions(name="openai", env_vars={"X": "1"}, exposed_ports=(8000,)))
        await s.start()
        box = s.state.sandbox_id
        check("running", await s.running(), True)
        look(Sandbox=box, State="running", Files={root + "/notes/a.txt": "one\n"})

        # Commands and code.
        r = await s.exec("echo out; echo err >&2; pwd; exit 3")
        check("exec", (r.stdout, r.stderr, r.exit_code), (b"out\n" + root.encode() + b"\n", b"err\n", 3))
        r = await s.exec("echo $X $E")
        check("exec: variables", r.stdout, b"1 2\n")
        r = await s.exec("python3", "-c", "print(6 * 7)", shell=False)
        check("exec: code", (r.stdout, r.exit_code), (b"42\n", 0))
        await araises("exec: timeout", ExecTimeoutError, s.exec("sleep 600", timeout=2))
        many = await asyncio.gather(*[s.exec(f"echo {n}") for n in range(10)])
        check("exec: many at once", [m.stdout for m in many], [f"{n}\n".encode() for n in range(10)])

        # Terminals, and commands that are followed.
        t = await s.pty_exec_start("cat", shell=False, tty=True, yield_time_s=0.5)
        check("terminal", (t.process_id is None, t.exit_code), (False, None))
        t2 = await s.pty_write_stdin(session_id=t.process_id, chars="typed\n", yield_time_s=1)
        check("terminal: input", b"typed" in t2.output, True)
        f = await s.pty_exec_start("echo followed; exit 4", yield_time_s=5)
        check("followed", (f.output, f.exit_code, f.process_id), (b"followed\n", 4, None))
        await s.pty_terminate_all()
        look(Sandbox=box, State="running", Commands={"pgrep -x sleep; pgrep -x cat; echo none": "none\n"})

        # Files.
        await s.mkdir("data", parents=True)
        await s.write(pathlib.Path("data/bytes"), io.BytesIO(bytes(range(256))))
        check("read", (await s.read(pathlib.Path("data/bytes"))).read(), bytes(range(256)))
        check("read: a bound", await s.read_bounded(pathlib.Path("notes/a.txt"), max_bytes=100), b"one\n")
        await s.write(pathlib.Path("data/b.txt"), io.BytesIO(b"b\n"))
        await s.mv("data/b.txt", "data/c.txt")
        await s.apply_patch({"type": "update_file", "path": "notes/a.txt", "diff": "@@\n-one\n+two\n"})
        check("ls", sorted((pathlib.PurePath(e.path).name, e.kind) for e in await s.ls("data")), [("bytes", EntryKind.FILE), ("c.txt", EntryKind.FILE)])
        await araises("read what is not there", WorkspaceReadNotFoundError, s.read(pathlib.Path("none")))
        await s.rm("data/bytes")
        look(Sandbox=box, State="running", Files={root + "/data/c.txt": "b\n", root + "/notes/a.txt": "two\n"}, Gone=[root + "/data/bytes", root + "/data/b.txt"])

        # A port.
        await s.exec("nohup python3 -m http.server 8000 >/dev/null 2>&1 & until curl -s -o /dev/null localhost:8000; do :; done")
        port = await s.resolve_exposed_port(8000)
        check("port", (bool(port.host), port.tls), (True, False))
        await araises("port: not exposed", ExposedPortUnavailableError, s.resolve_exposed_port(8001))

        # The workspace goes along: packed, found again by what is on record of the session, and unpacked in another sandbox.
        packed = (await s.persist_workspace()).read()
        again = await client.resume(client.deserialize_session_state(s.state.model_dump(mode="json")))
        check("resume", (again.state.sandbox_id, await again.running()), (box, True))
        other = await client.create(manifest=Manifest(root=root), options=DaytonaSandboxClientOptions(pause_on_exit=True))
        await other.start()
        await other.hydrate_workspace(io.BytesIO(packed))
        check("hydrate", (await other.read(pathlib.Path("data/c.txt"))).read(), b"b\n")
        second = other.state.sandbox_id
        look(Sandbox=second, State="running", Files={root + "/data/c.txt": "b\n"}, Commands={"ls " + root: "data\nnotes\n"})
        await client.delete(other)
        look(Sandbox=second, State="stopped")
        back = await client.resume(other.state)
        check("resume of what is stopped", (back.state.sandbox_id, (await back.read(pathlib.Path("data/c.txt"))).read()), (second, b"b\n"))
        look(Sandbox=second, State="running")
        await client.delete(s)
        look(Sandbox=box)


asyncio.run(day())
end()
