# Runs each block of Python in the readme of an installed package, as it is written but for the server's address and key, and writes
# to the file of the second argument what came of each, by its heading: ["ok"], or the name of what it raised. The first argument is
# the package.
import ast
import asyncio
import contextlib
import importlib.metadata
import inspect
import io
import json
import os
import re
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request

from checks import check, end

PACKAGE, RESULT = sys.argv[1], sys.argv[2]
# Addresses and keys of readmes.
PLACES = {"http://localhost:8000": "MCPGATEWAY_URL", "https://gateway.example.com": "MCPGATEWAY_URL", "sk-...": "MCPGATEWAY_TOKEN"} if PACKAGE == "mcpgateway-sdk" else {}


def blocks():
    """The blocks of Python by the heading that they are below; a second one of a heading is called HEADING, 2."""
    text, found, heading = importlib.metadata.metadata(PACKAGE).get_payload(), {}, ""
    for part in re.finditer(r"(?ms)^#+ ([^\n]+)$|^```(\w*)\n(.*?)^```", text):
        if part[1]:
            heading = part[1].strip()
        elif part[2] == "python":
            name, n = heading, 1
            while name in found:
                n += 1
                name = f"{heading}, {n}"
            found[name] = part[3]
    return found


# What an example takes for granted: what is run before it, where its names are.
BOX = "from orkestr import Sandbox\nimport sys\nsbx = Sandbox.create(template='python-3.12')\n"
SETUP = {
    "orkestr": {
        "Quick start": "",
        "Live metrics": BOX + "sbx.exec('sleep 600', background=True)",
        "Run a command": BOX + "sbx.files.write('/workspace/main.py', 'print(42)')",
        "Stream a long command": BOX + "sbx.files.write('long_task.py', 'import sys; print(\"out\"); print(\"err\", file=sys.stderr)')",
        "Files": BOX + "sbx.files.write('/workspace/out.txt', 'out'); sbx.files.mkdir('/workspace/out'); sbx.files.write('/workspace/out/report.pdf', 'pdf')",
        "Lifecycle webhooks": "import hashlib, hmac\nkept, secret, raw_body = [], 'whsec_x', b'{}'\nsave = kept.append\nsig_header = 'sha256=' + hmac.new(secret.encode(), raw_body, hashlib.sha256).hexdigest()",
    },
    "mcpgateway-sdk": {
        "Create a server from an API spec or docs": "spec_text = '{}'",
        "Register an authenticated remote MCP server, 2": "import os\nos.environ['OAUTH_CLIENT_SECRET'] = 'x'",
        "Register an authenticated remote MCP server, 3": "import os, uuid\nserver_id = uuid.uuid4()",
        "Work with skills": "open('my_skill.md', 'w').write('---\\nname: mine\\ndescription: It greets.\\n---\\n\\nSay hello.\\n')",
    },
}[PACKAGE]
DEFAULT = BOX if PACKAGE == "orkestr" else "from mcpgateway_sdk import MCPGateway\nimport os\n"


def served(scope):
    """Whether what example serves comes by its host's name."""
    for _ in range(200):
        try:
            return urllib.request.urlopen(urllib.request.Request(os.environ["ADDRESS"], headers={"Host": scope["host"]})).status == 200
        except urllib.error.HTTPError:
            time.sleep(0.05)  # it does not listen yet
    return False


# What is so after an example that works: of its names and of what it printed.
AFTER = {
    "orkestr": {
        "Quick start": lambda scope, out: out.startswith("499999500000\n"),
        "Custom egress allowlist (restricted sandboxes)": lambda scope, out: scope["sbx"].network == "restricted",
        "Check your tier limits": lambda scope, out: re.search(r"small 1(\.0)? 1024 True", out),
        "Live metrics": lambda scope, out: scope["m"].memory.usage_bytes > 0,
        "Expose a port (preview URLs)": lambda scope, out: served(scope),
        "Run a command": lambda scope, out: (scope["result"].stdout, scope["result"].exit_code) == ("42\n", 0),
        "Stream a long command": lambda scope, out: out == "out\nerr\n" or out == "out\n",
        "Files": lambda scope, out: (scope["content"], scope["raw"], "data.json False 8" in out, [r.error for r in scope["results"]]) == ("out", b"\x00\x01\x02", True, [None, None]),
        "Lifecycle webhooks": lambda scope, out: (scope["returned"], [k[:6] for k in scope["kept"]]) == (None, ["whsec_"]),
        "Pause + resume": lambda scope, out: (scope["sbx"].id, scope["sbx"].status) == (scope["sandbox_id"], "running"),
        "Snapshot fork": lambda scope, out: [x.files.read("/workspace/state") for x in (scope["a"], scope["b"])] == ["ready\n"] * 2,
        "Terminate": lambda scope, out: scope["sbx"].status == "terminated",
        "List your sandboxes": lambda scope, out: out.count("python-3.12") == 1,
    },
    "mcpgateway-sdk": {
        "Configuration": lambda scope, out: scope["os"].environ["MCPGATEWAY_URL"] == os.environ["MCPGATEWAY_URL"],
        "Work with skills": lambda scope, out: (scope["skill"].name, scope["entries"]) == ("mine", []),
        "Sandbox execution": lambda scope, out: (scope["result"].stdout, scope["files"]) == ("2\n", []),
        "Error handling": lambda scope, out: out == "Server not found\n",
        "MCP connection": lambda scope, out: os.environ["MCPGATEWAY_URL"] + "/mcp/gateway" in out and os.environ["MCPGATEWAY_TOKEN"] in out,
    },
}[PACKAGE]
# Examples that do not run as they are written, and the words for which they do.
MENDED = {
    "orkestr": {
        "Create a sandbox": ({'region="fsn1"': 'region="local"'}, lambda scope, out: out.endswith("\nrunning\n")),
        "Persistent volumes": ({"sbx.run(": "sbx.exec("}, lambda scope, out: out == "trained-weights-v1\n\nmy-cache\n"),
        "Persistent volumes, 2": ({'"rbx"': '"local"', '"hel1"': '"local"'}, lambda scope, out: "datasets 51200 available local\n" in out and scope["job"].max_lifetime_hours == 6),
    },
    "mcpgateway-sdk": {},
}[PACKAGE]


def compiled(name, text):
    """The code of an example, which may wait; one that returns is the body of a function."""
    for wrapped in text, "def example():\n" + textwrap.indent(text, "    ") + "\nreturned = example()\n":
        with contextlib.suppress(SyntaxError):
            return compile(wrapped, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return compile(text, name, "exec")


async def run(name, text, scope):
    """Runs an example. It returns what it printed."""
    for place, variable in PLACES.items():
        text = text.replace(place, os.environ[variable])
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        exec(SETUP.get(name, DEFAULT), scope)
        if "asyncio.run(" not in text:
            waits = eval(compiled(name, text), scope)
            if inspect.iscoroutine(waits):
                await waits
            return out.getvalue()
        raised = []  # it has a loop of its own, and so a thread

        def alone():
            try:
                exec(compiled(name, text), scope)
            except Exception as x:
                raised.append(x)
        thread = threading.Thread(target=alone)
        thread.start()
        thread.join()
        for x in raised:
            raise x
    return out.getvalue()


@contextlib.asynccontextmanager
async def scope_of():
    """The names of an example. What it made is gone afterwards."""
    if PACKAGE == "mcpgateway-sdk":
        from mcpgateway_sdk import MCPGateway
        async with MCPGateway() as gw:
            yield {"gw": gw}
            for s in await gw.sandboxes.list():
                await gw.sandboxes.destroy(s.id)
    else:
        from orkestr import Sandbox
        yield {}
        for s in Sandbox.list():
            s.terminate()


async def main():
    os.chdir(os.environ["HOME"])
    outcomes = {}
    for name, text in blocks().items():
        async with scope_of() as scope:
            try:
                out = await run(name, text, scope)
            except Exception as x:
                outcomes[name] = [type(x).__name__]
                print("#", name, "raised", type(x).__name__, x)
            else:
                outcomes[name] = ["ok"]
                check("example: " + name, bool(AFTER[name](scope, out)), True)
        if name in MENDED:
            words, after = MENDED[name]
            for was, now in words.items():
                check(f"example: {name}: has {was}", was in text, True)
                text = text.replace(was, now)
            async with scope_of() as scope:
                out = await run(name, text, scope)
                check("example: " + name + ", mended", bool(after(scope, out)), True)
    with open(RESULT, "w", encoding="utf-8") as f:
        json.dump(outcomes, f, indent=1)


asyncio.run(main())
end()
