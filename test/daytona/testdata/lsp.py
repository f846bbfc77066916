# What Python's SDK does with language servers, and what comes of it.

from daytona import CreateSandboxFromSnapshotParams, Daytona, LspCompletionPosition
from daytona.common import errors as e
from checks import check, end, raises

d = Daytona()

# The image that is the default here has the servers.
s = d.create()
check("the default image", s.snapshot, "daytona")

BASKET = '''"""What is bought."""


class Basket:
    def add(self, fruit: str, count: int = 1) -> int:
        """Put fruit into the basket."""
        return count
'''
SHOP = '''from goods.basket import Basket

basket = Basket()
basket.
'''
s.fs.upload_file(b"", "shop/goods/__init__.py")
s.fs.upload_file(BASKET.encode(), "shop/goods/basket.py")
s.fs.upload_file(SHOP.encode(), "shop/main.py")
s.fs.upload_file(b"\xff\xfe\x00", "shop/data.py")

lsp = s.create_lsp_server("python", "shop")
raises("before a start", e.DaytonaLspServerNotInitializedError, lambda: lsp.did_open("main.py"), "start it first")
lsp.start()
lsp.start()
here = LspCompletionPosition(line=3, character=7)
lsp.did_open("shop/main.py")


def proposed(server, path, at):
    return {i.label for i in server.completions(path, at).items}


check("completions", "add" in proposed(lsp, "main.py", here), True)
add = [i for i in lsp.completions("/home/daytona/shop/main.py", here).items if i.label == "add"][0]
check("a completion", (add.kind, type(add.documentation) in (dict, type(None))), (2, True))
symbols = lsp.document_symbols("goods/basket.py")
check("symbols of a file", [(x.name, x.kind, x.location.range.start.line) for x in symbols if x.name in ("Basket", "add")], [("Basket", 5, 3), ("add", 6, 4)])
check("its address", {x.location.uri for x in symbols}, {"file:///home/daytona/shop/goods/basket.py"})
check("symbols of all files", [x.location.uri for x in lsp.sandbox_symbols("Basket") if x.name == "Basket" and x.kind == 5], ["file:///home/daytona/shop/goods/basket.py"])
s.fs.upload_file(BASKET.replace("add", "put").encode(), "shop/goods/basket.py")
check("a file that changed", "put" in {x.name for x in lsp.document_symbols("goods/basket.py")}, True)
check("what depends on it", {"put", "add"} & proposed(lsp, "main.py", here), {"put"})
lsp.did_close("shop/main.py")
lsp.did_close("shop/main.py")
raises("a file that is not there", e.DaytonaFileNotFoundError, lambda: lsp.did_open("none.py"), "none.py")
raises("no text", e.DaytonaBadRequestError, lambda: lsp.did_open("data.py"), "uri", "UTF-8")
raises("no directory", e.DaytonaBadRequestError, lambda: s.create_lsp_server("python", "none").start(), "pathToProject", "none")
raises("a file as a project", e.DaytonaBadRequestError, lambda: s.create_lsp_server("python", "shop/main.py").start(), "pathToProject")
raises("another language", e.DaytonaBadRequestError, lambda: s.create_lsp_server("cobol", "shop").start(), "languageId", "cobol")

# Another language in the same sandbox is another server.
s.fs.upload_file(b"{}", "web/tsconfig.json")
s.fs.upload_file(b"export class Basket {\n  add(n: number): number { return n }\n}\nnew Basket().\n", "web/basket.ts")
ts = s.create_lsp_server("typescript", "/home/daytona/web")
ts.start()
ts.did_open("basket.ts")
check("typescript: completions", "add" in proposed(ts, "basket.ts", LspCompletionPosition(line=3, character=13)), True)
check("typescript: symbols", {"Basket", "add"} <= {x.name for x in ts.document_symbols("basket.ts")}, True)
check("typescript: symbols of all files", "Basket" in {x.name for x in ts.sandbox_symbols("Bask")}, True)


def running(name):
    return s.process.exec(f"pgrep -fc '[/]{name}'").result.strip() != "0"


check("both run", (running("pyright-langserver"), running("typescript-language-server")), (True, True))
ts.stop()
ts.stop()
check("one runs", (running("pyright-langserver"), running("typescript-language-server")), (True, False))
raises("after a stop", e.DaytonaLspServerNotInitializedError, lambda: ts.document_symbols("basket.ts"))

# One that was killed is started anew.
s.process.exec("pkill -9 -f '[/]pyright-langserver'")
lsp.start()
check("after a kill", "put" in {x.name for x in lsp.document_symbols("goods/basket.py")}, True)
s.stop()
s.start()
raises("after a stop of the sandbox", e.DaytonaLspServerNotInitializedError, lambda: lsp.document_symbols("goods/basket.py"))
lsp.start()
check("started again", "put" in {x.name for x in lsp.document_symbols("goods/basket.py")}, True)
d.delete(s)

# An image without them says so, and one that has another program of the name has it checked.
s = d.create(CreateSandboxFromSnapshotParams(snapshot="python"))
lsp = s.create_lsp_server("python", ".")
raises("an image without", e.DaytonaUnprocessableEntityError, lsp.start, "pyright-langserver", "image daytona")
for name, script, words in [
    ("says nonsense", "echo nonsense; cat", "is no header"),
    ("says too much", "printf 'Content-Length: 99999999999\\r\\n\\r\\n'; cat", "more than"),
    ("ends at once", "echo no license >&2; exit 3", "no license"),
]:
    s.fs.upload_file(f"#!/bin/sh\n{script}\n".encode(), ".local/bin/pyright-langserver")
    s.fs.set_file_permissions(".local/bin/pyright-langserver", mode="755")
    raises("a server that " + name, e.DaytonaServiceUnavailableError, lsp.start, words)
check("none is left", s.process.exec("pgrep -fc '[/]pyright-langserver'").result.strip(), "0")
d.delete(s)

end()
