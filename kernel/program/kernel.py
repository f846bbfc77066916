# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0
"""The Python kernel: runs cells in one namespace, as IPython does.

It runs inside a sandbox, as the sandbox's user, on Python 3.9 and later with
the standard library alone. The package doc of sandpit.dev/kernel is the
contract of what it reads and writes. The loader executes this text with TOKEN
in its globals; the cells' names live in a module of their own, so that no
cell sees or prints TOKEN by accident.
"""

import ast
import base64
import builtins
import faulthandler
import fcntl
import importlib
import importlib.util
import io
import json
import linecache
import os
import re
import select
import signal
import sys
import threading
import traceback
import types

MARKER = b"\x1f" + TOKEN.encode() + b":"  # noqa: F821, the loader gives it
CHUNK = 4096 - len(MARKER) - 5  # a write of at most PIPE_BUF is never torn apart
MAX_RESULTS = 100
MAX_RESULT_BYTES = 10 << 20  # of all results of a cell
MAX_TEXT = 1 << 20  # of one plain text, in characters
MAX_VALUE = 64 << 10
MAX_TRACEBACK = 256 << 10
HERE = "<kernel>"  # the file name that the loader compiles this under
CHARTS = ""  # the text of charts.py, which the server puts in here
CHART, DATA = "application/vnd.sandpit.chart+json", "application/vnd.sandpit.data+json"


class UsageError(Exception):
    """A magic was not used as it can be."""


class InputError(EOFError):
    """Code asked for input, and a cell has none."""


class Wire:
    """What the server hears and says, on descriptors of our own.

    Code that reads descriptor 0 gets /dev/null; what it or its children write to
    1 and 2 goes out as it is.
    """

    def __init__(self):
        self.requests = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 64)
        self.out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 64)
        self.err = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 64)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        if null != 0:
            os.close(null)
        self.buffer = b""
        self.lock = threading.RLock()
        self.masked = False  # an interrupt has to wait until a message is whole
        self.pending = False

    def fill(self):
        """Reads on; False at the end."""
        b = os.read(self.requests, 1 << 16)
        self.buffer += b
        return bool(b)

    def request(self):
        """The next request; None when there will be none."""
        while b"\n" not in self.buffer:
            if not self.fill():
                return None
        head, _, self.buffer = self.buffer.partition(b"\n")
        size = int(head)
        while len(self.buffer) < size:
            if not self.fill():
                return None
        text, self.buffer = self.buffer[:size], self.buffer[size:]
        return json.loads(text)

    def send(self, message, fd=None):
        data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        fd = self.out if fd is None else fd
        main = threading.current_thread() is threading.main_thread()
        with self.lock:
            if main:
                self.masked = True
            try:
                for i in range(0, len(data), CHUNK):
                    part = data[i:i + CHUNK]
                    kind = b"." if i + CHUNK >= len(data) else b"+"
                    self.write(fd, MARKER + kind + b"%04x" % len(part) + part)
            finally:
                if main:
                    self.masked = False
        if main and self.pending:
            self.pending = False
            raise KeyboardInterrupt

    @staticmethod
    def write(fd, data):
        while data:
            try:
                data = data[os.write(fd, data):]
            except BlockingIOError:  # some child made the pipe non-blocking
                select.select([], [fd], [])

    def interrupted(self, _signal, _frame):
        if self.masked:  # always of the main thread, as this call is
            self.pending = True
        else:
            raise KeyboardInterrupt


class Output(io.TextIOWrapper):
    """sys.stdout and sys.stderr: each write goes out at once, so that the order
    with what children write is true."""

    def __init__(self, fd, errors):
        raw = io.FileIO(fd, "w", closefd=False)
        super().__init__(io.BufferedWriter(raw), encoding="utf-8", errors=errors, newline="\n")
        self.mode = "w"

    def write(self, text):
        n = super().write(text)
        self.flush()
        return n

    @property
    def name(self):
        return "<stdout>" if self.fileno() == 1 else "<stderr>"


def make_print(plain):
    """print as one write, where it would be one for each part."""

    def print(*args, sep=" ", end="\n", file=None, flush=False):
        to = sys.stdout if file is None else file
        if type(to) is not Output or type(sep) is not str or type(end) is not str:
            return plain(*args, sep=sep, end=end, file=file, flush=flush)
        to.write(sep.join([a if type(a) is str else str(a) for a in args]) + end)

    print.__doc__ = plain.__doc__
    print.__module__ = "builtins"
    print.__qualname__ = "print"
    return print


def no_input(prompt=""):
    raise InputError("input() has nobody to ask: a cell has no stdin; put the value into the code")


class Display:
    """Turns objects into results, within the bounds of a cell."""

    METHODS = (
        ("text/html", "_repr_html_"),
        ("text/markdown", "_repr_markdown_"),
        ("image/svg+xml", "_repr_svg_"),
        ("image/png", "_repr_png_"),
        ("image/jpeg", "_repr_jpeg_"),
        ("application/pdf", "_repr_pdf_"),
        ("text/latex", "_repr_latex_"),
        ("application/json", "_repr_json_"),
        ("application/javascript", "_repr_javascript_"),
    )

    def __init__(self, wire):
        self.wire = wire
        self.pid = os.getpid()
        self.begin(0)

    def begin(self, cell):
        self.cell = cell
        self.count = 0
        self.bytes = 0
        self.dropped = 0

    def __call__(self, *objects, raw=False, include=None, exclude=None, display_id=None, **_):
        for o in objects:
            if raw:
                self.send(dict(o), False)
            else:
                self.show(o, False, include, exclude)
        if display_id is not None:
            return Handle(self, display_id)

    def show(self, obj, main, include=None, exclude=None):
        if not isinstance(obj, type):
            own = method(obj, "_ipython_display_")
            if own is not None:
                try:
                    own()
                    return
                except Exception:
                    pass  # as for one that has none: the other forms may do
        data = self.bundle(obj, include, exclude)
        if include:
            data = {k: v for k, v in data.items() if k in include}
        if exclude:
            data = {k: v for k, v in data.items() if k not in exclude}
        if isinstance(obj, figure_class()):
            SHOWN.add(id(obj))
        self.send(data, main)

    def bundle(self, obj, include, exclude):
        data = {}
        if not isinstance(obj, type):
            whole = method(obj, "_repr_mimebundle_")
            if whole is not None:
                try:
                    got = whole(include=include, exclude=exclude)
                    data.update(got[0] if isinstance(got, tuple) else got or {})
                except Exception:
                    data = {}
            for mime, name in self.METHODS:
                if mime in data:
                    continue
                form = method(obj, name)
                if form is None:
                    continue
                try:
                    value = form()
                except Exception:
                    continue  # the other forms may do
                if isinstance(value, tuple) and len(value) == 2:
                    value = value[0]
                if value is not None:
                    data[mime] = value
            if isinstance(obj, figure_class()):
                if "image/png" not in data:
                    data["image/png"] = picture(obj)
                tell(data, CHART, lambda: charts().chart(obj))
            elif type(obj).__name__ == "DataFrame":
                tell(data, DATA, lambda: charts().table(obj))
        if "text/plain" not in data:
            data["text/plain"] = repr(obj)
        return data

    def send(self, data, main):
        """Sends one result. What cannot be sent, or does not fit, is named."""
        if os.getpid() != self.pid:  # a forked child has no part in the protocol
            builtins.print(data.get("text/plain", ""))
            return
        self.count += 1
        if self.count > MAX_RESULTS:
            self.dropped += 1
            return
        message = {"t": "result", "id": self.cell, "data": {}}
        if main:
            message["main"] = True
        for mime, value in data.items():
            if not isinstance(mime, str):
                continue
            try:
                value, cut = encode(mime, value)
            except Exception:
                message.setdefault("omitted", []).append(mime)
                continue
            size = len(value) if isinstance(value, str) else len(json.dumps(value))
            if self.bytes + size > MAX_RESULT_BYTES:
                message.setdefault("omitted", []).append(mime)
                continue
            self.bytes += size
            message["data"][mime] = value
            if cut:
                message["cut"] = True
        flush()
        self.wire.send(message)


class Handle:
    """What display(…, display_id=…) gives: update shows the object anew."""

    def __init__(self, display, display_id):
        self.show = display
        self.display_id = display_id if isinstance(display_id, str) else "%x" % id(self)

    def display(self, *objects, **kw):
        self.show(*objects, **kw)

    update = display


def encode(mime, value):
    """A form as JSON can carry it, and whether something was cut off."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        if mime.startswith("text/") or mime == "image/svg+xml":
            value = bytes(value).decode("utf-8", "replace")
        else:
            value = base64.b64encode(value).decode()
    if mime == "application/json" or mime.endswith("+json") and not isinstance(value, str):
        json.dumps(value, allow_nan=False)
        return value, False
    if not isinstance(value, str):
        value = str(value)
    if mime == "text/plain" and len(value) > MAX_TEXT:
        return value[:MAX_TEXT], True
    return value, False


def method(obj, name):
    """An object's method, if it is there on purpose and not by a __getattr__ that has every name."""
    try:
        if getattr(obj, "_sandpit_no_object_has_this_", None) is not None:
            return None
        found = getattr(obj, name, None)
    except Exception:
        return None
    return found if callable(found) else None


def charts():
    """The module of charts.py, made when it is first needed."""
    if not CHARTED:
        module = types.ModuleType("sandpit_charts")
        exec(compile(CHARTS, HERE, "exec"), module.__dict__)
        CHARTED.append(module)
    return CHARTED[0]


CHARTED = []


def tell(data, mime, make):
    """Adds a form that says what another one shows. Without it that one must do."""
    try:
        found = make()
    except Exception:
        return
    if found is not None:
        data[mime] = found


# Figures of matplotlib. It is never imported from here, only met.

SHOWN = set()  # ids of figures that this cell has shown
FORMAT = ["png"]


def figure_class():
    module = sys.modules.get("matplotlib.figure")
    found = getattr(module, "Figure", None)
    return found if isinstance(found, type) else ()


def picture(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def show_figures(display):
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None or not hasattr(plt, "get_fignums"):
        return
    for number in plt.get_fignums():
        figure = plt.figure(number)
        try:
            if id(figure) not in SHOWN:
                data = {"text/plain": repr(figure)}
                if FORMAT[0] == "svg":
                    out = io.BytesIO()
                    figure.savefig(out, format="svg", bbox_inches="tight")
                    data["image/svg+xml"] = out.getvalue()
                else:
                    data["image/png"] = picture(figure)
                tell(data, CHART, lambda: charts().chart(figure))
                display.send(data, False)
        finally:
            plt.close(figure)


class Hooks:
    """Meets modules right after their import; first on sys.meta_path."""

    def __init__(self, after):
        self.after = after  # by name

    def find_spec(self, name, path=None, target=None):
        if name not in self.after:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                break
        else:
            return None
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            plain, then = spec.loader.exec_module, self.after[name]

            def exec_module(module):
                plain(module)
                then(module)

            try:
                spec.loader.exec_module = exec_module
            except AttributeError:
                pass
        return spec


class Lines:
    """Finds the lines of a cell that are for IPython and not Python, and says
    them in Python. It reads only as much of Python as it takes to know whether a
    line begins a statement."""

    TOKEN = re.compile(r"""
        \#.* | [rRbBuUfFtT]{0,2}(?P<quote>\"{3}|'{3}|"|') | [()\[\]{}] | \\$ | \w+ | .
    """, re.X)
    ASSIGN = re.compile(r"^(\s*)([^\s=!%'\"#(][^=!%'\"#]*?)\s*=\s*([!%])\s*(\S.*)$")

    def rewrite(self, text):
        out, depth, quote, joined = [], 0, None, False
        lines = iter(text.split("\n"))
        for line in lines:
            if depth == 0 and quote is None and not joined:
                new = self.line(line, lines)
                if new is not None:
                    out.extend(new)
                    continue
            joined = False
            at = 0
            while at < len(line):
                if quote is not None:
                    end = self.close(line, at, quote)
                    if end < 0:
                        if len(quote) == 1 and not line.endswith("\\"):
                            quote = None
                        break
                    at, quote = end, None
                    continue
                m = self.TOKEN.match(line, at)
                at = m.end()
                token = m.group()
                if m.group("quote"):
                    quote = m.group("quote")
                elif token in "([{":
                    depth += 1
                elif token in ")]}":
                    depth = max(0, depth - 1)
                elif token == "\\":
                    joined = True
            out.append(line)
        return "\n".join(out)

    @staticmethod
    def close(line, at, quote):
        while at < len(line):
            if line[at] == "\\":
                at += 2
            elif line.startswith(quote, at):
                return at + len(quote)
            else:
                at += 1
        return -1

    def line(self, line, rest):
        """The lines that take the place of a line, or None for one of Python's."""
        body = line.lstrip()
        indent = line[:len(line) - len(body)]
        assign = self.ASSIGN.match(line)
        if not body or body[0] not in "!%?" and not assign and not body.rstrip().endswith("?") and not AUTOMATIC.match(body):
            return None
        extra = 0
        if body[0] in "!%" or assign:
            while line.endswith("\\"):  # goes on in the next, as in a shell
                more = next(rest, None)
                if more is None:
                    break
                line, extra = line[:-1] + more.lstrip(), extra + 1
            assign = self.ASSIGN.match(line)
            body = line.strip()
        if body.startswith("!!"):
            said = call("getoutput", body[2:])
        elif body.startswith("!"):
            said = call("system", body[1:])
        elif body.startswith("%") and not body.startswith("%%"):
            said = call("line", *self.split(body[1:]))
        elif body.startswith("?") or body.rstrip().endswith("?") and re.match(r"^[\w.]+\?\??$", body.rstrip()):
            said = call("line", "pinfo", body.strip("? "))
        elif assign and assign.group(3) == "!":
            said = assign.group(2) + " = " + call("getoutput", assign.group(4))
            indent = assign.group(1)
        elif assign:
            said = assign.group(2) + " = " + call("line", *self.split(assign.group(4)))
            indent = assign.group(1)
        elif AUTOMATIC.match(body):
            said = call("line", *self.split(body))
        else:
            return None
        return [indent + said] + [""] * extra

    @staticmethod
    def split(text):
        name, _, line = text.strip().partition(" ")
        return name, line.strip()


AUTOMATIC = re.compile(r"^(pip|cd) [^=(\n]*$", re.M)


def call(kind, *args):
    return "get_ipython()." + {"line": "run_line_magic", "system": "system", "getoutput": "getoutput"}[kind] + \
        "(" + ", ".join(repr(a) for a in args) + ")"


class Words(list):
    """Lines of output, as `x = !command` gives them: also as .s and .n."""

    @property
    def s(self):
        return " ".join(self)

    @property
    def n(self):
        return "\n".join(self)

    l = property(lambda self: self)  # noqa: E741


class Captured:
    """What %%capture kept."""

    def __init__(self, stdout, stderr):
        self.stdout, self.stderr = stdout, stderr

    def __str__(self):
        return self.stdout

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)

    __call__ = show


class Shell:
    """What get_ipython() gives: the magics, by name."""

    SHELL_WORDS = ("ls", "ll", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "head", "tail", "less", "more", "man")
    SCRIPTS = {"bash": "bash", "sh": "sh", "python": sys.executable, "python3": sys.executable, "perl": "perl", "ruby": "ruby", "node": "node"}

    def __init__(self, kernel):
        self.kernel = kernel
        self.user_ns = kernel.names
        self.before = None
        self.lines = {n[len("line_"):]: getattr(self, n) for n in dir(self) if n.startswith("line_")}
        self.cells = {n[len("cell_"):]: getattr(self, n) for n in dir(self) if n.startswith("cell_")}
        for word in self.SHELL_WORDS:
            self.lines[word] = self.shell_word(word)
        for name, program in self.SCRIPTS.items():
            self.cells[name] = self.script(program)
        for name, mime in (("html", "text/html"), ("markdown", "text/markdown"), ("latex", "text/latex"), ("svg", "image/svg+xml"),
                           ("javascript", "application/javascript"), ("js", "application/javascript")):
            self.cells[name] = self.shows(mime)

    # What code calls, as on IPython's own.

    def run_line_magic(self, name, line="", _stack_depth=1):
        found = self.lines.get(name)
        if found is None:
            if name in self.cells:
                raise UsageError("%%%s works on a whole cell: write %%%%%s as its first line" % (name, name))
            raise UsageError("line magic %%%s is not known here; there are: %s" % (name, ", ".join("%" + n for n in sorted(self.lines))))
        return found(self.expand(line) if name not in ("time", "timeit", "pinfo") else line)

    def run_cell_magic(self, name, line, cell):
        found = self.cells.get(name)
        if found is None:
            raise UsageError("cell magic %%%%%s is not known here; there are: %s" % (name, ", ".join("%%" + n for n in sorted(self.cells))))
        return found(self.expand(line) if name not in ("time", "timeit") else line, cell)

    def magic(self, line):
        name, _, rest = line.lstrip("%").partition(" ")
        return self.run_line_magic(name, rest.strip())

    def register_magic_function(self, function, magic_kind="line", magic_name=None):
        table = self.cells if magic_kind == "cell" else self.lines
        table[magic_name or function.__name__] = function

    def run_cell(self, text, **_):
        self.kernel.execute(text, "<run_cell>")

    def ex(self, text):
        exec(text, self.user_ns)

    def ev(self, text):
        return eval(text, self.user_ns)

    def system(self, command):
        self.user_ns["_exit_code"] = self.run(self.expand(command))

    def getoutput(self, command):
        out = io.BytesIO()
        self.user_ns["_exit_code"] = self.run(self.expand(command), output=out)
        return Words(out.getvalue().decode("utf-8", "replace").splitlines())

    def expand(self, text):
        """Puts the values of {expressions} and $names in; what is neither stays."""
        def put(m):
            if m.group() in ("{{", "}}", "$$"):
                return m.group()[0]
            inner = m.group("expr")
            if inner is not None:
                try:
                    return str(eval(inner, self.user_ns))
                except Exception:
                    return m.group()
            name = m.group("name")
            return str(self.user_ns[name]) if name in self.user_ns else m.group()
        return re.sub(r"\{\{|\}\}|\$\$|\$?\{(?P<expr>[^{}]+)\}|\$(?P<name>[A-Za-z_]\w*)",
                      lambda m: m.group() if m.group().startswith("${") else put(m), text)

    def run(self, command, output=None, input=None):
        """Runs a program, which has our outputs, and gives its exit code. An
        interrupt has reached it, too; it gets a moment to end of itself."""
        import subprocess
        flush()
        shell = isinstance(command, str)
        program = ("/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh") if shell else None
        p = subprocess.Popen(command, shell=shell, executable=program,
                             stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                             stdout=None if output is None else subprocess.PIPE)
        try:
            got, _ = p.communicate(input)
            if output is not None:
                output.write(got)
        except KeyboardInterrupt:
            try:
                p.wait(1)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
            raise
        importlib.invalidate_caches()  # it may have installed something
        return p.returncode

    # Line magics.

    def line_cd(self, line):
        """Changes the directory."""
        quiet = line.startswith("-q ")
        to = line[3 * quiet:].strip("\"' ") or "~"
        if to == "-":
            if self.before is None:
                raise UsageError("%cd -: there is no directory before this one")
            to = self.before
        now = os.getcwd()
        os.chdir(os.path.expanduser(to))
        self.before = now
        if not quiet:
            print(os.getcwd())

    def line_pwd(self, line):
        """The directory."""
        return os.getcwd()

    def line_env(self, line):
        """All variables, one, or sets one: %env NAME=value."""
        if not line:
            return dict(os.environ)
        name, sep, value = line.partition("=")
        if not sep:
            name, _, value = line.partition(" ")
            if not value:
                if name not in os.environ:
                    raise UsageError("%%env: there is no variable %s" % name)
                return os.environ[name]
        os.environ[name.strip()] = value.strip()
        print("env: %s=%s" % (name.strip(), value.strip()))

    def line_set_env(self, line):
        """Sets a variable: %set_env NAME value."""
        if not line.replace("=", " ", 1).strip().partition(" ")[2]:
            raise UsageError("%set_env needs a name and a value")
        self.line_env(line)

    def line_pip(self, line):
        """pip, of the Python that runs here."""
        import shlex
        args = shlex.split(line)
        if args and args[0] == "uninstall" and "-y" not in args and "--yes" not in args:
            args.insert(1, "-y")  # it could not ask
        self.user_ns["_exit_code"] = self.run([sys.executable, "-m", "pip"] + args)

    def line_conda(self, line):
        """Not here."""
        raise UsageError("%conda: there is no conda here; use %pip")

    def line_debug(self, line):
        """Not here."""
        raise UsageError("%debug needs a terminal; look at values by code")

    line_pdb = line_debug

    def line_system(self, line):
        """Runs a command and gives its lines."""
        return self.getoutput(line)

    line_sx = line_system

    def line_run(self, line):
        """Runs a file of Python, and keeps its names."""
        import runpy
        import shlex
        args = [a for a in shlex.split(line)]
        inside = bool(args) and args[0] == "-i"
        if inside:
            args = args[1:]
        if not args:
            raise UsageError("%run needs a file")
        keep = sys.argv
        sys.argv = args
        try:
            got = runpy.run_path(os.path.expanduser(args[0]), self.user_ns if inside else None, "__main__")
        except SystemExit as e:
            if e.code not in (None, 0):
                raise
            return
        finally:
            sys.argv = keep
        self.user_ns.update({k: v for k, v in got.items() if not k.startswith("__")})

    def line_time(self, line):
        """Runs a statement and says how long it took."""
        return self.timed(line)

    def timed(self, text):
        import time
        parts, name = self.kernel.compile(text, "<time>")
        wall, user = time.perf_counter(), os.times()
        try:
            return self.kernel.evaluate(parts)
        finally:
            wall, end = time.perf_counter() - wall, os.times()
            u, s = end.user - user.user, end.system - user.system
            print("CPU times: user %s, sys: %s, total: %s\nWall time: %s" % (span(u), span(s), span(u + s), span(wall)))

    def line_timeit(self, line):
        """Runs a statement often and says how long one takes."""
        return self.timeit(line, "pass")

    def timeit(self, line, setup):
        import timeit
        loops, runs, quiet, give = 0, 7, False, False
        while True:
            m = re.match(r"-([nr])\s*(\d+)\s*|-([qo])\s+", line)
            if not m:
                break
            if m.group(1) == "n":
                loops = int(m.group(2))
            elif m.group(1) == "r":
                runs = max(1, int(m.group(2)))
            quiet, give = quiet or m.group(3) == "q", give or m.group(3) == "o"
            line = line[m.end():]
        if not line.strip():
            raise UsageError("%timeit needs a statement")
        timer = timeit.Timer(line, setup, globals=self.user_ns)
        if loops == 0:
            loops, _ = timer.autorange()
        each = [t / loops for t in timer.repeat(runs, loops)]
        mean = sum(each) / len(each)
        spread = (sum((t - mean) ** 2 for t in each) / len(each)) ** 0.5
        if not quiet:
            print("%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)" % (
                span(mean), span(spread), runs, "s" * (runs != 1), format(loops, ","), "s" * (loops != 1)))
        if give:
            return types.SimpleNamespace(average=mean, stdev=spread, best=min(each), worst=max(each), loops=loops, repeat=runs)

    def line_matplotlib(self, line):
        """Figures are shown inline, always."""
        if line.strip() not in ("", "inline", "agg", "notebook", "widget"):
            raise UsageError("%%matplotlib %s: there is no screen here; figures come back as images (inline)" % line)

    def line_config(self, line):
        """The format of figures: %config InlineBackend.figure_format = 'svg'."""
        m = re.match(r"^InlineBackend\.figure_formats?\s*=\s*[\[{(]?\s*['\"](\w+)['\"]", line)
        if m is None:
            raise UsageError("%config knows InlineBackend.figure_format only")
        FORMAT[0] = "svg" if m.group(1) == "svg" else "png"

    def mine(self):
        return sorted(k for k in self.user_ns if not k.startswith("_") and k not in ("In", "Out", "get_ipython", "display", "exit", "quit"))

    def line_who(self, line):
        """The names that cells made."""
        print("   ".join(self.mine()) or "Interactive namespace is empty.")

    def line_who_ls(self, line):
        """The names that cells made, as a list."""
        return self.mine()

    def line_whos(self, line):
        """The names that cells made, with types and values."""
        rows = [("Variable", "Type", "Data/Info")]
        for name in self.mine():
            value = self.user_ns[name]
            rows.append((name, type(value).__name__, " ".join(repr(value).split())[:60]))
        wide = [max(len(r[i]) for r in rows) for i in (0, 1)]
        for r in rows:
            print("%-*s   %-*s   %s" % (wide[0], r[0], wide[1], r[1], r[2]))

    def line_reset(self, line):
        """Forgets all names."""
        self.kernel.reset()

    def line_history(self, line):
        """The cells so far."""
        print("\n".join(self.user_ns.get("In", [])[1:]))

    def line_lsmagic(self, line):
        """What magics there are."""
        print("Line magics: " + "  ".join("%" + n for n in sorted(self.lines)))
        print("Cell magics: " + "  ".join("%%" + n for n in sorted(self.cells)))

    def line_load_ext(self, line):
        """Loads an extension that can do with what is here."""
        module = importlib.import_module(line.strip())
        load = getattr(module, "load_ipython_extension", None)
        if load is None:
            raise UsageError("%%load_ext: %s is no extension" % line)
        load(self)

    def line_pinfo(self, line):
        """What an object is: also as name?."""
        import inspect
        try:
            obj = eval(line, self.user_ns)
        except Exception:
            print("Object `%s` not found." % line)
            return
        if callable(obj):
            try:
                print("Signature: %s%s" % (line, inspect.signature(obj)))
            except (TypeError, ValueError):
                pass
        print("Type:      %s" % type(obj).__name__)
        if not callable(obj):
            print("Value:     %s" % repr(obj)[:1000])
        print("Docstring: %s" % (inspect.getdoc(obj) or "<no docstring>"))

    def shell_word(self, word):
        return lambda line: self.system(({"ll": "ls -lF"}.get(word, word) + " " + line).strip())

    # Cell magics.

    def cell_time(self, line, cell):
        """Runs the cell and says how long it took."""
        return self.timed(line + "\n" + cell if line else cell)

    def cell_timeit(self, line, cell):
        """Runs the cell often; the first line is the set-up."""
        options = re.match(r"(?:-[nr]\s*\d+\s*|-[qo]\s+)*", line + " ").group()
        setup = line[len(options):].strip()
        return self.timeit(options + cell, setup or "pass")

    def cell_writefile(self, line, cell):
        """Writes the cell to a file; -a: to its end."""
        import shlex
        args = shlex.split(line)
        add = "-a" in args or "--append" in args
        names = [a for a in args if a not in ("-a", "--append")]
        if len(names) != 1:
            raise UsageError("%%writefile needs one file's name")
        name = os.path.expanduser(names[0])
        there = os.path.exists(name)
        with open(name, "a" if add else "w", encoding="utf-8") as f:
            f.write(cell if cell.endswith("\n") or not cell else cell + "\n")
        print(("Appending to " if add else "Overwriting " if there else "Writing ") + names[0])

    cell_file = cell_writefile

    def cell_capture(self, line, cell):
        """Runs the cell and keeps its output in a variable."""
        import contextlib
        names = [a for a in line.split() if not a.startswith("-")]
        out, err = io.StringIO(), io.StringIO()
        parts, _ = self.kernel.compile(cell, "<capture>")
        with contextlib.ExitStack() as on:
            if "--no-stdout" not in line:
                on.enter_context(contextlib.redirect_stdout(out))
            if "--no-stderr" not in line:
                on.enter_context(contextlib.redirect_stderr(err))
            self.kernel.evaluate(parts)
        if names:
            self.user_ns[names[0]] = Captured(out.getvalue(), err.getvalue())

    def cell_script(self, line, cell):
        """Runs the cell by the program on the line."""
        import shlex
        if not line.strip():
            raise UsageError("%%script needs a program")
        return self.script(*shlex.split(line))("", cell)

    def cell_system(self, line, cell):
        """Runs the cell by the shell and gives its lines."""
        return self.getoutput(cell)

    cell_sx = cell_system

    def script(self, *program):
        def run(line, cell):
            import shlex
            import subprocess
            code = self.run(list(program) + shlex.split(line), input=cell.encode())
            self.user_ns["_exit_code"] = code
            if code:
                raise subprocess.CalledProcessError(code, program[0])
        run.__doc__ = "Runs the cell by %s." % program[0]
        return run

    def shows(self, mime):
        def show(line, cell):
            self.kernel.display.send({mime: cell, "text/plain": "<%s>" % mime}, False)
        show.__doc__ = "Shows the cell as %s." % mime
        return show


def span(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return "%.3g %s" % (seconds / size, unit)
    return "%.3g ns" % (seconds * 1e9)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # a cell may have put anything there, or closed it
    if LIBC:
        LIBC[0](LIBC[1])


LIBC = []  # fflush and the libc's stdout, for extensions that print by it


def meet_libc():
    try:
        import ctypes
        lib = ctypes.CDLL(None)
        stdout = ctypes.c_void_p.in_dll(lib, "stdout")
        lib.fflush.argtypes = [ctypes.c_void_p]
        LIBC[:] = [lib.fflush, stdout]
    except Exception:
        pass  # without it only the buffers of C are not flushed between cells


class Kernel:
    """The cells' names, and how a cell is run in them."""

    def __init__(self):
        self.wire = Wire()
        self.display = Display(self.wire)
        self.main = types.ModuleType("__main__")
        self.names = self.main.__dict__
        self.pid = os.getpid()
        self.count = 0
        self.flags = 0  # of `from __future__ import`, which hold on
        self.loop = None
        self.handler = self.wire.interrupted
        self.shell = Shell(self)
        self.lines = Lines()
        self.reset()

    def reset(self):
        self.names.clear()
        self.names.update(__name__="__main__", __builtins__=builtins, __doc__=None, __package__=None, __spec__=None, __loader__=None,
                          get_ipython=lambda: self.shell, display=self.display, In=[""], Out={}, _="", __="", ___="")

    def set_up(self):
        sys.modules["__main__"] = self.main
        sys.argv = [""]
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
        sys.stdout = sys.__stdout__ = Output(1, "surrogateescape")
        sys.stderr = sys.__stderr__ = Output(2, "backslashreplace")
        builtins.print = make_print(builtins.print)
        builtins.input = no_input
        builtins.display = self.display
        os.environ.setdefault("MPLBACKEND", "agg")
        signal.signal(signal.SIGINT, lambda *_: None)
        faulthandler.enable()

        def pyplot(module):
            module.show = lambda *args, **kw: show_figures(self.display)

        def displays(module):
            if hasattr(module, "display"):
                module.display = self.display
            if hasattr(module, "clear_output"):
                module.clear_output = lambda wait=False: None

        sys.meta_path.insert(0, Hooks({"matplotlib.pyplot": pyplot, "matplotlib.axes": lambda m: charts().watch(m), "IPython.core.display_functions": displays,
                                       "IPython.core.display": displays, "IPython.display": displays}))

    def serve(self):
        self.set_up()
        self.wire.send({"t": "sync", "id": 0}, self.wire.err)
        self.wire.send({"t": "ready", "version": "%d.%d.%d" % sys.version_info[:3]})
        meet_libc()
        while True:
            self.idle()
            request = self.wire.request()
            if request is None:
                return
            if request["op"] == "ping":
                self.wire.send({"t": "pong", "id": request["id"]})
            elif request["op"] == "run":
                self.run(request)

    def idle(self):
        """Lets tasks that cells left run until the next request comes."""
        loop = self.loop
        if loop is None or loop.is_closed() or self.wire.buffer:
            return
        import asyncio
        try:
            if not asyncio.all_tasks(loop):
                return
            come = loop.create_future()
            loop.add_reader(self.wire.requests, lambda: come.done() or come.set_result(None))
            try:
                loop.run_until_complete(come)
            finally:
                loop.remove_reader(self.wire.requests)
        except Exception:
            traceback.print_exc()

    def run(self, request):
        cell = request["id"]
        self.count += 1
        self.display.begin(cell)
        SHOWN.clear()
        end = {"t": "end", "id": cell, "status": "ok"}
        before, code = {}, 0
        for name, value in (request.get("env") or {}).items():
            before[name] = os.environ.get(name)
            os.environ[name] = value
        argv = sys.argv
        if request.get("argv"):
            sys.argv = [""] + request["argv"]
        try:
            try:
                signal.signal(signal.SIGINT, self.handler)
                self.wire.send({"t": "start", "id": cell, "count": self.count})  # from now on it may be interrupted
                try:
                    self.execute(request["code"], "<cell %d>" % self.count)
                finally:
                    if os.getpid() == self.pid:
                        show_figures(self.display)
            finally:
                # A cell's own handler for the signal is its own again in the next cell.
                self.handler = signal.getsignal(signal.SIGINT) or self.wire.interrupted
                signal.signal(signal.SIGINT, lambda *_: None)
        except BaseException as e:
            signal.signal(signal.SIGINT, lambda *_: None)
            if os.getpid() == self.pid:
                end["status"] = "interrupted" if isinstance(e, KeyboardInterrupt) else "error"
                flush()
                self.wire.send(self.error(cell, e))
            else:
                code = e.code if isinstance(e, SystemExit) else 1
                if not isinstance(e, SystemExit):
                    traceback.print_exc()
        if os.getpid() != self.pid:  # a child that a cell forked has come to the cell's end
            flush()
            os._exit(code if isinstance(code, int) else 0 if code is None else 1)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if request.get("argv"):
            sys.argv = argv
        flush()
        self.wire.pending = False
        if self.display.dropped:
            end["dropped"] = self.display.dropped
        self.wire.send({"t": "sync", "id": cell}, self.wire.err)
        self.wire.send(end)

    def execute(self, text, name):
        parts, quiet = self.compile(text, name)
        self.names["In"].append(text) if isinstance(self.names.get("In"), list) else None
        value = self.evaluate(parts)
        if value is None or quiet:
            return
        names = self.names
        if not names.get("_") is value:
            names["___"], names["__"] = names.get("__"), names.get("_")
        names["_"] = names["_%d" % self.count] = value
        if isinstance(names.get("Out"), dict):
            names["Out"][self.count] = value
        self.display.show(value, True)

    def compile(self, text, name):
        """The cell as code objects, the last of them an expression or None; and
        whether its value is not to be shown."""
        magic = re.match(r"\s*%%(\w+)[ \t]*([^\n]*)\n?", text)
        if magic:
            text = "get_ipython().run_cell_magic(%r, %r, %r)" % (magic.group(1), magic.group(2), text[magic.end():])
        flags = self.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        remember(name, text)
        word = AUTOMATIC.search(text)
        if word and word.group(1) not in self.names:  # "pip --version" is a difference, too
            text = self.lines.rewrite(text)
        try:
            tree = compile(text, name, "exec", flags | ast.PyCF_ONLY_AST, True)
        except SyntaxError:
            said = self.lines.rewrite(text)
            if said == text:
                raise
            text = said
            remember(name, text)
            tree = compile(text, name, "exec", flags | ast.PyCF_ONLY_AST, True)
        body = tree.body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        first = compile(tree, name, "exec", flags, True)
        self.flags |= first.co_flags & FUTURE
        value = compile(ast.Expression(last.value), name, "eval", flags | self.flags, True) if last is not None else None
        return (first, value), last is not None and re.search(r";\s*(#[^\n]*)?\s*$", text) is not None

    def evaluate(self, parts):
        first, last = parts
        awaits = first.co_flags | (last.co_flags if last is not None else 0)
        if awaits & 0x80:  # CO_COROUTINE
            return self.wait_for(self.steps(parts))
        eval(first, self.names)
        return eval(last, self.names) if last is not None else None

    async def steps(self, parts):
        value = None
        for code in parts:
            if code is not None:
                value = eval(code, self.names)
                if code.co_flags & 0x80:
                    value = await value
        return value if parts[1] is not None else None

    def wait_for(self, coroutine):
        import asyncio
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt:
            if not task.done():
                task.cancel()
                try:
                    self.loop.run_until_complete(task)
                except BaseException:
                    pass  # its cancellation; the interrupt is what is told
            raise

    def error(self, cell, e):
        try:
            value = str(e)
        except Exception:
            value = "<its text could not be made>"
        if isinstance(e, SystemExit):
            return {"t": "error", "id": cell, "name": "SystemExit", "value": value, "traceback": []}
        try:
            told = traceback.TracebackException(type(e), e, e.__traceback__)
            clean(told)
            lines = "".join(told.format())
            if not told.stack and not told.__cause__ and (not told.__context__ or told.__suppress_context__):
                lines = lines[lines.find("\n") + 1:] if lines.startswith("Traceback ") else lines
        except Exception:
            lines = "%s: %s" % (type(e).__name__, value)
        if len(lines) > MAX_TRACEBACK:
            lines = lines[:MAX_TRACEBACK // 2] + "\n…\n" + lines[-MAX_TRACEBACK // 2:]
        return {"t": "error", "id": cell, "name": type(e).__name__, "value": value[:MAX_VALUE], "traceback": lines.splitlines()}


def remember(name, text):
    """Keeps a cell's lines for tracebacks and inspect."""
    linecache.cache[name] = (len(text), None, (text + "\n").splitlines(True), name)


FUTURE = 0
for _name in __import__("__future__").all_feature_names:
    FUTURE |= getattr(__import__("__future__"), _name).compiler_flag
FUTURE &= ~0x10  # nested_scopes shares its bit with CO_NESTED


def clean(told):
    """Takes our own frames out of a traceback."""
    seen, todo = set(), [told]
    while todo:
        t = todo.pop()
        if t is None or id(t) in seen:
            continue
        seen.add(id(t))
        kept = [f for f in t.stack if f.filename != HERE]
        t.stack[:] = kept
        todo += [t.__cause__, t.__context__] + list(getattr(t, "exceptions", None) or [])


Kernel().serve()
