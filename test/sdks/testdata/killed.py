# What programs with both SDKs see of a server that is killed under them, and find again. Says "ready" when it may be killed, "gone"
# when it may start again, and reads a line after each.
import asyncio
import os
import sys
import threading

import mcpgateway_sdk as m
import orkestr as o
from mcpgateway_sdk import MCPGateway
from orkestr import Sandbox, Snapshot, Volume
from checks import araises, check, end, raises


def until(word):
    print(word, flush=True)
    sys.stdin.readline()


def begin(calls):
    """Begins each of the calls, by name, in a thread of its own. Returns the threads, and a dictionary that has, once they have
    ended, the class of what each call raised, or what it returned."""
    outcomes = {}

    def outcome(name, call):
        try:
            outcomes[name] = call()
        except Exception as x:
            outcomes[name] = type(x)
    threads = [threading.Thread(target=outcome, args=one) for one in calls.items()]
    for t in threads:
        t.start()
    return threads, outcomes


async def main():
    async with MCPGateway() as gw:
        g = gw.sandboxes
        s = Sandbox.create(template="python", metadata={"a": "b"}, volume="data", timeout_seconds=3600)
        dead = Sandbox.create(template="python")
        dead.terminate()
        s.files.write("/persist/f", "kept")
        s.files.write_batch({f"d/{n}": str(n) for n in range(64)})
        snap = s.snapshot("before")
        b = s.exec("echo begun; until [ -e go ]; do sleep 0.05; done; echo done >&2; exit 7", background=True)
        other = await g.create(session_key="one", metadata={"c": "d"})
        await g.upload_file(other.id, "up.bin", content=bytes(range(256)))
        check("before: labels land on the audit log", (await g.exec(other.id, "true", metadata={"step": "x"})).exit_code, 0)
        threads, outcomes = begin({
            "exec": lambda: s.exec("touch runs; sleep 600", timeout_seconds=600), "stream": lambda: list(s.exec_stream("touch streams; sleep 600", timeout_seconds=600)), "follow": lambda: list(b.stream()),
        })
        hung = asyncio.create_task(g.exec(other.id, "touch runs; sleep 600", timeout=600))
        while s.exec("ls runs streams").exit_code != 0 or (await g.exec(other.id, "ls runs")).exit_code != 0:
            pass

        until("ready")
        for t in threads:
            t.join()
        for name, outcome in outcomes.items():
            check("cut off: " + name, outcome, o.ConnectionError)
        await araises("cut off: exec of the gateway's", m.GatewayError, hung)
        raises("gone: get", o.ConnectionError, lambda: Sandbox.get(s.id))
        raises("gone: a write", o.ConnectionError, lambda: s.files.write("lost", "x"))
        await araises("gone: the gateway's", m.GatewayError, g.get(other.id))
        await araises("gone: the gateway's upload", m.GatewayError, g.upload_file(other.id, "lost", content=b"x"))

        until("gone")
        check("again: what there was", sorted(x.id for x in Sandbox.list()), sorted([s.id, Sandbox.get("one").id]))
        check("again: what it is", (Sandbox.get(s.id).status, Sandbox.get(s.id).metadata, Sandbox.get(s.id).volume, Sandbox.get(s.id).expires_at), ("running", {"a": "b"}, "data", s.expires_at))
        raises("again: what was terminated", o.SandboxNotFound, lambda: Sandbox.get(dead.id))
        await araises("again: what was terminated, by the gateway's", m.NotFoundError, g.get(dead.id))
        check("again: files", ([s.files.read(f"d/{n}") for n in range(64)], s.files.read("/persist/f"), s.files.exists("lost")), ([str(n) for n in range(64)], "kept", False))
        check("again: a snapshot", (Snapshot.get(snap.id).status, [v.name for v in Volume.list()]), ("ready", ["data"]))
        check("again: a command that goes on", (b.refresh().status, b.logs().content, [c.id for c in s.commands()]), ("running", "begun\n", [b.id]))
        s.exec("touch go")
        check("again: its end and its log", (b.wait(timeout=60, poll_seconds=0.05), "".join(c.data for c in b.stream() if not c.is_final)), (7, "begun\ndone\n"))
        check("again: the gateway's", ((await g.get(other.id)).session_key, (await g.get(other.id)).metadata, await g.download_file(other.id, "up.bin")), ("one", {"c": "d"}, bytes(range(256))))
        await araises("again: what was never written", m.NotFoundError, g.download_file(other.id, "lost"))
        check("again: logs by labels", [r["metadata"] for r in (await g.logs(other.id, meta=["step=x"]))["items"]], [{"step": "x"}])
        check("again: a fork", Sandbox.create(snapshot=snap.id).files.read("d/1"), "1")


asyncio.run(main())
end()
