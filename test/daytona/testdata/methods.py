# Calls every public method of Python's SDK, sync or async by the first argument, and writes to the file of the second
# one what came of each: {"Class.method": ["ok", "DaytonaXError"]}, with nothing for a method that was not called.
import asyncio
import datetime
import importlib
import inspect
import io
import pkgutil
import sys

import daytona
from daytona import (
    CodeRunParams, CreateSandboxFromSnapshotParams, CreateSecretParams, CreateSnapshotParams, FileDownloadRequest, FileUpload,
    Image, LspCompletionPosition, PtySize, Resources, ScreenshotOptions, ScreenshotRegion, SessionExecuteRequest, UpdateSecretParams,
    VolumeMount,
)

import strict
from watching import watch, write

SIDE, RESULT = sys.argv[1], sys.argv[2]


def classes():
    modules = [m.name for m in pkgutil.walk_packages(daytona.__path__, "daytona.") if f"._{SIDE}." in m.name]
    modules += ["daytona.handle.pty_handle" if SIDE == "sync" else "daytona.handle.async_pty_handle", "daytona.common.image"]
    for name in modules:
        module = importlib.import_module(name)
        for cls_name, cls in inspect.getmembers(module, inspect.isclass):
            if cls.__module__ == name and not cls_name.startswith("_"):
                yield cls_name.removeprefix("Async"), cls


for cls_name, cls in classes():
    watch(cls_name, cls, "daytona")


async def value(x):
    """What a call gives: the same whether its class is a sync or an async one."""
    if inspect.isawaitable(x):
        x = await x
    if inspect.isasyncgen(x):
        return [y async for y in x]
    if inspect.isgenerator(x):
        return list(x)
    return x


async def tried(do):
    """What a call gives, or None where it is refused: which that is the table says."""
    try:
        return await value(do())
    except Exception:
        return None


def quiet(text):
    pass


async def sandboxes(d, s):
    v = await value(d.volume.create("other"))
    await value(d.volume.list())
    await value(d.volume.delete(v))
    await value(d.get(s.id))
    await value(d.list())
    await value(d.stop(s))
    await value(s.wait_for_sandbox_stop())
    await value(d.start(s))
    await value(s.wait_for_sandbox_start())
    await value(s.set_labels({"a": "b"}))
    for do in s.set_autostop_interval, s.set_auto_archive_interval, s.set_auto_delete_interval, s.set_ttl:
        await value(do(60))
    await value(s.set_autostop_interval(0))
    await value(s.set_auto_pause_interval(60))
    await value(s.set_public(True))
    await value(s.set_public(False))
    await value(s.update_network_settings(domain_allow_list="example.com"))
    await value(s.update_env({"A": "b"}, unset=["C"]))
    await value(s.refresh_activity())
    await value(s.refresh_data())
    for do in s.get_user_home_dir, s.get_user_root_dir, s.get_work_dir, s.get_metrics_latest:
        await value(do())
    await value(s.get_metrics(datetime.datetime.now() - datetime.timedelta(hours=1), datetime.datetime.now()))
    await value(s.get_preview_link(3000))
    signed = await value(s.create_signed_preview_url(3000, 60))
    await value(s.expire_signed_preview_url(3000, signed.token))
    await tried(lambda: s.download_url("/etc/hostname"))
    await tried(lambda: s.upload_url("/tmp/x"))
    await tried(s.rotate_signing_key)
    await tried(lambda: s.create_ssh_access(10))
    await tried(lambda: s.validate_ssh_access("x"))
    await tried(lambda: s.revoke_ssh_access("x"))


async def resources(d, s):
    """What is kept beside sandboxes: snapshots, secrets and pools."""
    await tried(lambda: s.create_snapshot("of-a-sandbox"))
    await tried(lambda: d.snapshot.create(CreateSnapshotParams(name="of-an-image", image="python", entrypoint=["echo", "began"])))
    began = await value(d.create(CreateSandboxFromSnapshotParams(snapshot="of-an-image")))
    await tried(began.process.get_entrypoint_session)
    await tried(lambda: began.process.get_entrypoint_logs_async(quiet, quiet))
    await tried(began.process.get_entrypoint_logs)
    await value(began.delete())
    await tried(d.snapshot.list)
    await tried(lambda: d.snapshot.get("of-a-sandbox"))
    await tried(lambda: d.snapshot.activate("of-a-sandbox"))
    secret = await tried(lambda: d.secret.create(CreateSecretParams(name="TOKEN", value="a-value-of-a-secret", description="a token", hosts=["example.com"])))
    of = secret.id if secret else "none"
    await tried(d.secret.list)
    await tried(lambda: d.secret.get(of))
    await tried(lambda: d.secret.update(of, UpdateSecretParams(value="another-value")))
    await tried(lambda: s.update_secrets({"TOKEN": "TOKEN"}))
    await tried(lambda: s.update_secrets({}))
    await tried(lambda: d.secret.delete(of))
    pool = await tried(lambda: d.warm_pool.create("python", 1))
    of = pool.id if pool else "none"
    await tried(d.warm_pool.list)
    await tried(lambda: d.warm_pool.update(of, 2))
    await tried(lambda: d.warm_pool.delete(of))
    await tried(lambda: d.snapshot.delete("of-a-sandbox"))


async def states(d, s):
    """What a sandbox can be beside running."""
    await value(s.resize(Resources(cpu=2)))
    await value(s.wait_for_resize_complete())
    f = await value(s.fork())
    await value(f.pause())
    await value(f.start())
    await value(f.stop())
    await value(f.recover())
    await value(f.stop())
    await value(f.archive())
    await value(f.delete())
    await value(d.delete(s))


async def processes(s):
    p = s.process
    await value(p.exec("true"))
    await value(p.code_run("print(1)", params=CodeRunParams(argv=["a"])))
    await value(p.create_session("s"))
    await value(p.list_sessions())
    r = await value(p.execute_session_command("s", SessionExecuteRequest(command="read x; echo $x", run_async=True)))
    await value(p.send_session_command_input("s", r.cmd_id, "y\n"))
    await value(p.get_session_command_logs_async("s", r.cmd_id, quiet, quiet))
    await value(p.get_session_command_logs("s", r.cmd_id))
    await value(p.get_session_command("s", r.cmd_id))
    await value(p.get_session("s"))
    await value(p.delete_session("s"))
    on_data = {} if SIDE == "sync" else {"on_data": quiet}
    h = await value(p.create_pty_session(id="t", pty_size=PtySize(rows=30, cols=100), **on_data))
    await value(h.wait_for_connection())
    await value(h.is_connected())
    await value(p.list_pty_sessions())
    await value(p.get_pty_session_info("t"))
    await value(p.resize_pty_session("t", PtySize(rows=31, cols=101)))
    await value(h.resize(PtySize(rows=32, cols=102)))
    other = await value(p.connect_pty_session("t", **on_data))
    await value(other.disconnect())
    await value(h.send_input("exit 3\n"))
    await value(h.wait())
    h = await value(p.create_pty_session(id="u", **on_data))
    await value(h.kill())
    h = await value(p.create_pty_session(id="v", **on_data))
    await value(p.kill_pty_session("v"))
    c = s.code_interpreter
    own = await value(c.create_context(cwd="/tmp"))
    await value(c.list_contexts())
    await value(c.run_code("1", context=own))
    await value(c.delete_context(own))


async def files(s):
    fs = s.fs
    await value(fs.create_folder("a", "755"))
    await value(fs.upload_file(b"hello", "a/b"))
    await value(fs.upload_files([FileUpload(source=b"x", destination="a/c"), FileUpload(source=b"y", destination="a/d")]))
    await value(fs.upload_file_stream(io.BytesIO(b"z" * 100_000), "a/e"))
    await value(fs.list_files("a"))
    await value(fs.get_file_info("a/b"))
    await value(fs.find_files("a", "hell"))
    await value(fs.search_files("a", "b*"))
    await value(fs.replace_in_files(["a/b"], "hello", "bye"))
    await value(fs.set_file_permissions("a/b", "600"))
    await value(fs.move_files("a/b", "a/f"))
    await value(fs.download_file("a/f"))
    await value(fs.download_files([FileDownloadRequest(source="a/c"), FileDownloadRequest(source="a/d")]))
    got = b"".join(await value(await value(fs.download_file_stream("a/e"))))
    assert got == b"z" * 100_000, len(got)
    await value(fs.delete_file("a", recursive=True))


SERVE = r"""mkdir -p srv/cgi-bin && git init -q --bare -b main srv/r.git && git -C srv/r.git config http.receivepack true
printf '#!/bin/sh\nexport GIT_PROJECT_ROOT=%s/srv GIT_HTTP_EXPORT_ALL=1\nexec git http-backend\n' "$HOME" > srv/cgi-bin/git
chmod +x srv/cgi-bin/git; cd srv; python3 -u -m http.server --bind 127.0.0.1 --cgi 8000"""


async def repositories(s):
    g, at = s.git, "http://127.0.0.1:8000/cgi-bin/git/r.git"
    await value(s.process.create_session("git"))
    await value(s.process.execute_session_command("git", SessionExecuteRequest(command=SERVE, run_async=True)))
    await value(s.process.exec("until curl -s -o /dev/null http://127.0.0.1:8000/; do sleep 0.1; done", timeout=60))
    await value(g.init("r", initial_branch="main"))
    await value(g.configure_user("A", "a@b.c"))
    await value(g.set_config("core.abbrev", "12"))
    await value(g.get_config("core.abbrev"))
    await value(s.fs.upload_file(b"x", "r/a"))
    await value(g.add("r", ["a"]))
    await value(g.commit("r", "first", "A", "a@b.c"))
    await value(g.status("r"))
    await value(g.create_branch("r", "dev"))
    await value(g.branches("r"))
    await value(g.checkout_branch("r", "main"))
    await value(g.delete_branch("r", "dev"))
    await value(s.fs.upload_file(b"y", "r/a"))
    await value(g.restore("r", ["a"]))
    await value(g.reset("r", "hard"))
    await value(g.remote_add("r", "origin", at))
    await value(g.remotes("r"))
    await value(g.remote_get("r", "origin"))
    await value(g.push("r", remote="origin", branch="main", set_upstream=True))
    await value(g.clone(at, "r2"))
    await value(g.pull("r2"))
    await tried(lambda: g.dangerously_authenticate("user", "password", host="127.0.0.1:8000", protocol="http"))


async def language_servers(s):
    await value(s.fs.upload_file(b"def hello():\n    return 1\n\nhello()\n", "lsp/main.py"))
    server = await value(s.create_lsp_server("python", "lsp"))
    await tried(server.start)
    await tried(lambda: server.did_open("main.py"))
    await tried(lambda: server.document_symbols("main.py"))
    await tried(lambda: server.workspace_symbols("hello"))
    await tried(lambda: server.sandbox_symbols("hello"))
    here = LspCompletionPosition(line=3, character=2)
    await tried(lambda: server.completions("main.py", here))
    await value(s.fs.upload_file(b"def hellos():\n    return 2\n", "lsp/other.py"))
    await value(server.did_open("other.py"))
    while not any(i.documentation for i in (await value(server.completions("main.py", here))).items):
        pass  # it proposes names of other files, and where they are from, when it has read those
    await tried(lambda: server.did_close("main.py"))
    await tried(server.stop)
    # What is no identifier is written otherwise than it is called.
    await value(s.fs.upload_file(b'const o = { "a-b": 1 }\no.\nclass Basket { fruit = 1; count() { fru } }\n', "lsp/main.ts"))
    server = await value(s.create_lsp_server("typescript", "lsp"))
    await value(server.start())
    await value(server.completions("main.ts", LspCompletionPosition(line=1, character=2)))
    await value(server.completions("main.ts", LspCompletionPosition(line=2, character=39)))
    await value(server.stop())


async def desktop(s):
    c = s.computer_use
    m, k, shot, show, a11y, rec = c.mouse, c.keyboard, c.screenshot, c.display, c.accessibility, c.recording
    region = ScreenshotRegion(x=0, y=0, width=10, height=10)
    for do in [
        c.start, c.get_status, lambda: c.get_process_status("xvfb"), lambda: c.restart_process("xvfb"), lambda: c.get_process_logs("xvfb"),
        lambda: c.get_process_errors("xvfb"), m.get_position, lambda: m.move(1, 1), lambda: m.down(1, 1), lambda: m.up(1, 1), lambda: m.click(1, 1),
        lambda: m.drag(1, 1, 2, 2), lambda: m.scroll(1, 1, "up"), lambda: k.type("x"), lambda: k.press("x"), lambda: k.hotkey("ctrl+c"), lambda: k.down("x"),
        lambda: k.up("x"), shot.take_full_screen, lambda: shot.take_region(region), lambda: shot.take_compressed(ScreenshotOptions()),
        lambda: shot.take_compressed_region(region), show.get_info, show.get_windows, a11y.get_tree, a11y.find_nodes, lambda: a11y.focus_node("x"),
        lambda: a11y.invoke_node("x"), lambda: a11y.set_node_value("x", "y"), rec.start, lambda: rec.stop("x"), rec.list, lambda: rec.get("x"),
        lambda: rec.delete("x"), lambda: rec.download("x", "/dev/null"), c.stop,
    ]:
        await tried(do)


async def main():
    if SIDE == "sync":
        strict.watch()
    d = daytona.Daytona() if SIDE == "sync" else daytona.AsyncDaytona()
    v = await value(d.volume.get("data", create=True))
    s = await value(d.create(CreateSandboxFromSnapshotParams(volumes=[VolumeMount(volume_id=v.id, mount_path="/data")])))
    for part in sandboxes(d, s), processes(s), files(s), repositories(s), language_servers(s), desktop(s), resources(d, s):
        await part
    if SIDE == "sync":
        strict.more(d, s)
    await states(d, s)
    if SIDE == "async":
        await d.close()
    write(RESULT)
    if SIDE == "sync" and (wrong := list(strict.wrong())):
        sys.exit("\n".join(wrong))


asyncio.run(main())
