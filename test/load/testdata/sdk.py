# Clients of Daytona's SDK for Python under a server that is killed. Lines of input say what to do: "work" has all do random
# things, and is done when some are; "rest MS" has them stop, and says when the server was killed; "look" holds the server to
# all that it answered; "end" says what there was. Each is answered with one line when it is done; a line that begins with
# FAILED is what is wrong.
import asyncio
import collections
import json
import random
import sys
import time

from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, FileDownloadRequest, FileUpload, PtySize, SessionExecuteRequest
from daytona.common import errors as e

own, clients, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
BOUND = 60  # of what is waited for: far more than it takes
NEVER_BEGAN = 127  # the exit code of a command on record whose turn had not come when the server was killed
KEEP = 20  # records of a kind and sandbox that are looked at again each time


def now():
    return time.time() * 1000


class Wrong(Exception):
    """Is an answer that is not what it shall be."""


class Box:
    def __init__(self, sandbox, watched):
        self.sandbox, self.id, self.leaving, self.watched = sandbox, sandbox.id, False, watched
        self.files, self.no_files, self.sessions, self.ended, self.commands, self.terminals = {}, [], {}, [], {}, set()


class Clients:
    def __init__(self, d):
        self.d, self.boxes, self.dead, self.unsure, self.names = d, {}, [], [], 0
        self.kinds, self.errors, self.streams = collections.Counter(), collections.Counter(), collections.Counter()
        self.resting, self.busy, self.tasks, self.connected = asyncio.Event(), asyncio.Event(), [], {}

    def fail(self, *words):
        print("FAILED", *words, flush=True)

    # What clients do.

    async def work(self):
        self.resting.clear()
        self.busy.clear()
        self.answers = 0
        self.connected = {}
        self.tasks = [asyncio.create_task(self.client()) for _ in range(clients)]
        for b in self.boxes.values():
            self.tasks += [asyncio.create_task(self.watch_terminal(b)), asyncio.create_task(self.watch_logs(b))]
        await asyncio.wait_for(self.busy.wait(), BOUND)

    async def client(self):
        while not self.resting.is_set():
            began, b = now(), self.some()
            kind = "create" if b is None else random.choice(["exec", "files", "no_file", "session", "session", "command", "no_session", "terminal", "terminal", "delete"])
            if kind == "delete" and random.randrange(5):
                kind = "exec"
            self.names += 1
            try:
                await asyncio.wait_for(getattr(self, kind)(b, f"{own}-{self.names}"), BOUND)
                self.kinds[kind] += 1
                self.answers += 1
                if self.answers >= 5 * clients:
                    self.busy.set()
            except Exception as x:
                if await self.broken(kind, b, began, x):
                    await self.resting.wait()

    async def broken(self, kind, b, began, x):
        """Reports whether an error is that the server is gone, and fails for one that should not be."""
        self.errors[type(x).__name__] += 1
        if isinstance(x, Wrong) and b is not None and b.leaving:
            pass
        elif not isinstance(x, e.DaytonaError):
            self.fail(kind, "raises", repr(x))
        elif isinstance(x, e.DaytonaRateLimitError) or b is not None and b.leaving and (x.status_code or 0) < 500:
            return x.status_code is None
        elif isinstance(x, (e.DaytonaConflictError, e.DaytonaNotFoundError, e.DaytonaGoneError)):
            self.unsure.append((kind, began, now(), x))  # the SDK may have asked twice, since the first answer was lost
        elif isinstance(x, e.DaytonaConnectionError) or x.status_code in (None, 503):
            self.unsure.append((kind, began, now(), x))  # only a kill explains it, and the start after it
            return True
        else:
            self.fail(kind, type(x).__name__, x.status_code, x)
        return False

    def some(self):
        there = [b for b in self.boxes.values() if not b.leaving]
        if not there or len(there) < most and random.randrange(4) == 0:
            return None
        return random.choice(there)

    async def create(self, _, name):
        s = await self.d.create(CreateSandboxFromSnapshotParams(name=name, network_block_all=True))
        await s.refresh_data()  # an event of what was before may have come after the answer
        if s.state.value != "started" or s.name != name:
            raise Wrong("a create of", name, "gives", s.name, s.state)
        await s.process.create_session("watched")
        r = await s.process.execute_session_command("watched", SessionExecuteRequest(command="echo begun; sleep 6000", run_async=True))
        self.boxes[s.id] = Box(s, r.cmd_id)

    async def exec(self, b, name):
        code = random.randrange(100)
        r = await b.sandbox.process.exec(f"echo {name}; echo err >&2; exit {code}")
        if (r.exit_code, r.result) != (code, name + "\nerr\n"):
            raise Wrong(b.id, "a command that ends with", code, "gives", r.exit_code, repr(r.result))

    async def files(self, b, name):
        new = {"dir/" + name: name * random.randrange(1, 2000), name: name}
        await b.sandbox.fs.upload_files([FileUpload(source=text.encode(), destination=path) for path, text in new.items()])
        b.files.update(new)

    async def no_file(self, b, name):
        await b.sandbox.fs.upload_file(name.encode(), "gone-" + name)
        await b.sandbox.fs.delete_file("gone-" + name)
        b.no_files.append("gone-" + name)

    async def a_session(self, b, name):
        if len(b.sessions) >= 3:
            return random.choice(list(b.sessions))
        await b.sandbox.process.create_session("s-" + name)
        await b.sandbox.process.execute_session_command("s-" + name, SessionExecuteRequest(command="kept=first"))
        b.sessions["s-" + name] = "first"
        return "s-" + name

    async def session(self, b, name):
        s = await self.a_session(b, name)
        r = await b.sandbox.process.execute_session_command(s, SessionExecuteRequest(command=f'kept="$kept {name}"; echo "$kept"'))
        if r.exit_code != 0 or not r.stdout.endswith(" " + name + "\n"):
            raise Wrong(b.id, "the session", s, "gives", r.exit_code, repr(r.stdout))
        if len(r.stdout) > len(b.sessions[s]):  # another client may have had its answer before
            b.sessions[s] = r.stdout.rstrip("\n")

    async def command(self, b, name):
        s, code = await self.a_session(b, name), random.randrange(100)
        r = await b.sandbox.process.execute_session_command(s, SessionExecuteRequest(command=f"echo begun {name}; sleep 0.0{random.randrange(10)}; (exit {code})", run_async=True))
        b.commands[r.cmd_id] = (s, f"begun {name}\n", code)

    async def no_session(self, b, name):
        await b.sandbox.process.create_session("e-" + name)
        await b.sandbox.process.delete_session("e-" + name)
        b.ended.append("e-" + name)

    async def terminal(self, b, name):
        if len(b.terminals) >= 2:
            t = random.choice(list(b.terminals))
            await self.types(b, t, name)
            return
        t = "t-" + name
        await self.typed(await self.heard(lambda on: b.sandbox.process.create_pty_session(t, on, pty_size=PtySize(cols=200, rows=24))), f'kept=$((6*7)){t}; echo "<$kept>"', f"<42{t}>")
        b.terminals.add(t)

    async def types(self, b, t, name):
        await self.typed(await self.heard(lambda on: b.sandbox.process.connect_pty_session(t, on)), f'echo "<$kept-$((6*7))-{name}>"', f"<42{t}-42-{name}>")

    async def heard(self, connect):
        said = bytearray()
        more = asyncio.Event()

        def on(data):
            said.extend(data)
            more.set()

        h = await connect(on)
        return h, said, more

    async def typed(self, heard, line, want):
        h, said, more = heard
        try:
            await h.send_input(line + "\n")
            while want.encode() not in said:
                waiting = [asyncio.create_task(more.wait()), asyncio.create_task(h.wait())]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                ended = waiting[1].done()
                for w in waiting:
                    w.cancel()
                if ended and want.encode() not in said:
                    if h.exit_code is not None:
                        raise Wrong("a terminal ended with", h.exit_code, h.error)
                    raise e.DaytonaConnectionError("the terminal's connection ended")
                more.clear()
        finally:
            await h.disconnect()

    async def delete(self, b, _):
        b.leaving = True
        await self.d.delete(b.sandbox)
        if self.boxes.pop(b.id, None) is not None:
            self.dead.append(b.id)

    # What follows something, to the end of its connection.

    async def watch_terminal(self, b):
        began = now()
        try:
            t = next(iter(b.terminals), None)
            if t is None or b.leaving:
                return
            h, _, _ = await self.heard(lambda on: b.sandbox.process.connect_pty_session(t, on))
            self.connected[asyncio.current_task()] = now()
            r = await h.wait()
            self.streams[f"terminal: exit code {r.exit_code}"] += 1
            if r.exit_code is not None and not b.leaving:
                self.fail("the terminal", t, "of", b.id, "ended with", r.exit_code, r.error)
            await h.disconnect()
        except Exception as x:
            await self.broken("watch_terminal", b, began, x)

    async def watch_logs(self, b):
        began, task = now(), asyncio.current_task()
        if b.leaving or not b.watched:
            return

        def on(_):
            self.connected[task] = now()

        try:
            await b.sandbox.process.get_session_command_logs_async("watched", b.watched, on, on)
            self.streams["logs: ended"] += 1
            if not b.leaving:
                self.unsure.append(("the end of logs", began, now(), "of a command that goes on"))
        except Exception as x:
            self.streams["logs: " + type(x).__name__] += 1
            await self.broken("watch_logs", b, began, x)

    async def rest(self, killed):
        self.resting.set()
        for t in self.tasks:
            if self.connected.get(t, killed) > killed:
                t.cancel()  # it follows what goes on
        done, late = await asyncio.wait(self.tasks, timeout=BOUND)
        if late:
            self.fail(len(late), "clients wait for something since the server was killed:", [t.get_stack()[-1] for t in late][:3])
        for t in done:
            if not t.cancelled():
                t.result()
        for kind, began, ended, x in self.unsure:
            answered = isinstance(x, e.DaytonaError) and x.status_code not in (None, 503)
            if ended < killed or answered and began > killed:
                self.fail(kind, type(x).__name__, x, f"{ended - killed:.0f} ms after the kill, begun {began - killed:.0f} ms after it")
        self.unsure = []

    # What the server is held to.

    async def look(self):
        boxes = list(self.boxes.values())
        for x in await asyncio.gather(*[asyncio.wait_for(self.kept(b), BOUND) for b in boxes], return_exceptions=True):
            if x is not None:
                self.fail("a look raised", repr(x))
        for dead in self.dead[-KEEP:]:
            await self.raises(e.DaytonaNotFoundError, self.d.get(dead), dead, "was deleted")

    async def raises(self, kind, awaited, *words):
        try:
            got = await awaited
        except Exception as x:
            if type(x) is not kind:
                self.fail(*words, "and raises", repr(x))
        else:
            self.fail(*words, "and there is", repr(got))

    async def kept(self, b):
        try:
            b.sandbox = await self.d.get(b.id)
        except e.DaytonaNotFoundError as x:
            if not b.leaving:
                self.fail(b.id, "was created, and is not there:", x)
            del self.boxes[b.id]
            self.dead.append(b.id)
            return
        b.leaving = False  # the delete was not begun
        if b.sandbox.state.value != "started":
            self.fail(b.id, "is", b.sandbox.state)
        p = b.sandbox.process
        await self.exec(b, "here")
        paths = list(b.files)[-KEEP:]
        if paths:
            got = await b.sandbox.fs.download_files([FileDownloadRequest(source=path) for path in paths])
            for g in got:
                if g.error or g.result.decode() != b.files[g.source]:
                    self.fail(b.id, g.source, "has", g.error or len(g.result), "not", len(b.files[g.source]))
            if len(got) != len(paths):
                self.fail(b.id, len(got), "files of", len(paths))
        for path in b.no_files[-KEEP:]:
            await self.raises(e.DaytonaFileNotFoundError, b.sandbox.fs.get_file_info(path), b.id, path, "was deleted")
        there = {s.session_id for s in await p.list_sessions()}
        for s, want in b.sessions.items():
            if s not in there:
                self.fail(b.id, "the session", s, "is not among", there)
            r = await p.execute_session_command(s, SessionExecuteRequest(command='echo "$kept"'))
            if not r.stdout.startswith(want):
                self.fail(b.id, "the session", s, "has", repr(r.stdout), "and had", repr(want))
        for s in b.ended[-KEEP:]:
            await self.raises(e.DaytonaNotFoundError, p.get_session(s), b.id, "the session", s, "was deleted")
        for c in list(b.commands)[-KEEP:]:
            await self.kept_command(b, c, *b.commands[c])
        if b.watched:
            code = (await p.get_session_command("watched", b.watched)).exit_code
            if code == NEVER_BEGAN:
                b.watched = None
            elif code is not None:
                self.fail(b.id, "the command", b.watched, "goes on, and has the exit code", code)
        active = {t.id for t in await p.list_pty_sessions() if t.active}
        for t in b.terminals:
            if t not in active:
                self.fail(b.id, "the terminal", t, "is not among", active)
            self.names += 1
            await self.types(b, t, f"again-{self.names}")

    async def kept_command(self, b, c, session, says, code):
        p, said = b.sandbox.process, []
        await p.get_session_command_logs_async(session, c, said.append, said.append)
        got = "".join(said), (await p.get_session_command(session, c)).exit_code
        if got == ("", NEVER_BEGAN):
            self.kinds["never began"] += 1
        elif got != (says, code):
            self.fail(b.id, "the command", c, "gives", got, "not", (says, code))


async def main():
    inputs = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(inputs), sys.stdin)
    async with AsyncDaytona() as d:
        all_of = Clients(d)
        print("ready", flush=True)
        while line := (await inputs.readline()).decode().split():
            if line[0] == "work":
                await all_of.work()
            elif line[0] == "rest":
                await all_of.rest(float(line[1]))
            elif line[0] == "look":
                await all_of.look()
            print("done", line[0], json.dumps([all_of.kinds, all_of.errors, all_of.streams]), flush=True)
            if line[0] == "end":
                return


asyncio.run(main())
