// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"bytes"
	"strings"
	"testing"

	"sandpit.dev/kernel"
)

func TestPythonCellsShareTheirNames(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.want(
		"x = 20",
		"x + 1 → 21",
		"def f(n):\n    return n * x",
		"f(2) → 40",
		"import math",
		"math.floor(2.5); → ", // the semicolon asks for silence
		"math.floor(2.5) → 2",
		"_ + 1 → 3",
		"None → ",
		"[x for x in range(3)]\n# a comment → [0, 1, 2]",
		"",
		"# only a comment",
		"class A:\n    def __repr__(self): return 'an A'\nA() → an A",
		"from __future__ import annotations",
		"def g(a: no_such_type): pass", // the flag of the cell before holds
		"__name__ → '__main__'",
		"import pickle; pickle.loads(pickle.dumps(A())) → an A",
		"Out[2] → 21",
		"import inspect; inspect.getsource(f) → 'def f(n):\\n    return n * x\\n'",
	)
	if r := b.run("1"); r.Count != 20 {
		t.Errorf("the 20th cell counts as %d", r.Count)
	}
}

func TestPythonOutputKeepsItsOrderAndPurity(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	r := b.run(`import os, sys, subprocess, ctypes
print("a", end="")
os.system("echo b")
sys.stdout.write("c")
os.write(1, b"d\xff\x00\x1f")
subprocess.run(["echo", "e"])
ctypes.CDLL(None).puts(b"f")
ctypes.CDLL(None).fflush(None)
print("g", 1, [2], sep="-")
print("err", file=sys.stderr)
sys.stdout.buffer.write(b"h\n"); sys.stdout.flush()
ctypes.CDLL(None).puts(b"from C, never flushed")
None`)
	if want := "ab\ncd\xff\x00\x1fe\nf\ng-1-[2]\nh\nfrom C, never flushed\n"; r.out != want {
		t.Errorf("stdout is %q, want %q", r.out, want)
	}
	if r.err != "err\n" {
		t.Errorf("stderr is %q", r.err)
	}
	big := b.run(`print("x" * 5_000_000)`)
	if len(big.out) != 5_000_001 || strings.Trim(big.out, "x") != "\n" {
		t.Errorf("5,000,001 bytes came as %d", len(big.out))
	}
	if r := b.run("1"); r.out != "" || r.err != "" {
		t.Errorf("a silent cell has said %q and %q", r.out, r.err)
	}
	// Output of before a result stands before it.
	var order []string
	_, err := b.Execute(t.Context(), kernel.Cell{Code: "print('one'); display(1); print('two'); display(2)"}, kernel.Handler{
		Stdout: func(p []byte) { order = append(order, strings.Fields(string(p))...) },
		Result: func(r kernel.Result) { order = append(order, r.Text) },
	})
	if got := strings.Join(order, " "); err != nil || got != "one 1 two 2" {
		t.Errorf("the order is %q (%v)", got, err)
	}
}

func TestPythonShowsRichForms(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	r := b.run(`import base64
class All:
    def __repr__(self): return "plain"
    def _repr_html_(self): return "<b>ü</b>"
    def _repr_markdown_(self): return "**m**"
    def _repr_svg_(self): return "<svg/>"
    def _repr_latex_(self): return "$x$"
    def _repr_json_(self): return {"a": [1, None]}
    def _repr_png_(self): return b"\x89PNG\r\n\x1a\nrest"
    def _repr_jpeg_(self): return base64.b64encode(b"\xff\xd8\xffrest").decode(), {"width": 1}
All()`)
	got := r.Results[0]
	if len(r.Results) != 1 || !got.Main || got.Text != "plain" || got.HTML != "<b>ü</b>" || got.Markdown != "**m**" || got.SVG != "<svg/>" ||
		got.LaTeX != "$x$" || string(got.JSON) != `{"a":[1,null]}` || string(got.PNG) != "\x89PNG\r\n\x1a\nrest" || string(got.JPEG) != "\xff\xd8\xffrest" {
		t.Errorf("the forms are %+v", got)
	}
	r = b.run(`class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "t", "application/vnd.x.v1+json": {"k": 1}, "image/png": "bm8="}, {}
class Broken:
    def _repr_html_(self): raise ValueError
    def _repr_png_(self): return "not base64"
    def __repr__(self): return "still there"
class Anything:
    def __getattr__(self, name): return lambda *a, **k: "no"
    def __repr__(self): return "a mock"
display(Bundle(), Broken())
display({"text/html": "<i>"}, raw=True)
display(Broken)
Anything()`)
	if len(r.Results) != 5 {
		t.Fatalf("%d results: %+v", len(r.Results), r.Results)
	}
	if x := r.Results[0]; string(x.More["application/vnd.x.v1+json"]) != `{"k":1}` || x.Text != "t" || x.PNG != nil || strings.Join(x.Omitted, "") != "image/png" || x.Main {
		t.Errorf("the bundle is %+v", x)
	}
	if x := r.Results[1]; x.Text != "still there" || x.HTML != "" || x.PNG != nil || strings.Join(x.Omitted, "") != "image/png" {
		t.Errorf("the broken one is %+v", x)
	}
	if x := r.Results[2]; x.HTML != "<i>" || x.Text != "" {
		t.Errorf("the raw one is %+v", x)
	}
	if x := r.Results[3]; x.Text != "<class '__main__.Broken'>" {
		t.Errorf("the class is %+v", x)
	}
	if x := r.Results[4]; x.Text != "a mock" || x.HTML != "" || !x.Main {
		t.Errorf("the mock is %+v", x)
	}
}

func TestPythonResultsAreBounded(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	r := b.run("for i in range(250): display(i)")
	if len(r.Results) != kernel.MaxResults || r.Dropped != 150 {
		t.Errorf("of 250 results came %d, %d dropped", len(r.Results), r.Dropped)
	}
	r = b.run(`class Big:
    def __repr__(self): return "é" * 3_000_000
    def _repr_html_(self): return "h" * (11 << 20)
Big()`)
	if x := r.Results[0]; !x.TextCut || len([]rune(x.Text)) != 1<<20 || x.HTML != "" || strings.Join(x.Omitted, "") != "text/html" {
		t.Errorf("the big one: cut %v, %d bytes of text, %d of html, omitted %v", x.TextCut, len(x.Text), len(x.HTML), x.Omitted)
	}
	r = b.run("for i in range(6): display({'text/html': 'x' * (2 << 20)}, raw=True)")
	all := 0
	for _, x := range r.Results {
		all += len(x.HTML)
	}
	if all > kernel.MaxResultBytes || len(r.Results) != 6 || r.Results[5].Omitted == nil {
		t.Errorf("results of %d bytes: %d", all, len(r.Results))
	}
	b.want("1 → 1")
}

func TestPythonTracebacksShowTheCellsLines(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.run("def f(x):\n    return 1 / x\n")
	r := b.fail("y = 1\nprint('before')\nf(0)")
	var lines []string
	for _, line := range r.Error.Traceback {
		if strings.Trim(line, " ~^") != "" { // newer ones mark the place
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	want := `Traceback (most recent call last):|File "<cell 2>", line 3, in <module>|f(0)|File "<cell 1>", line 2, in f|return 1 / x|ZeroDivisionError: division by zero`
	if strings.Join(lines, "|") != want || r.Error.Name != "ZeroDivisionError" || r.Error.Value != "division by zero" || r.out != "before\n" {
		t.Errorf("the error is %q %q, its traceback:\n%s", r.Error.Name, r.Error.Value, r.trace())
	}
	if strings.Contains(r.trace(), "<kernel>") || r.err != "" {
		t.Errorf("the kernel's own frames are told:\n%s\n%s", r.trace(), r.err)
	}
	r = b.fail("x = (1,\n  2 3)")
	if !strings.Contains(r.trace(), `File "<cell 3>", line 2`) || r.Error.Name != "SyntaxError" || strings.HasPrefix(r.trace(), "Traceback") {
		t.Errorf("the syntax error is:\n%s", r.trace())
	}
	r = b.fail("try:\n    f(0)\nexcept Exception as e:\n    raise KeyError('k') from e")
	if !strings.Contains(r.trace(), "direct cause") || !strings.Contains(r.trace(), "ZeroDivisionError") {
		t.Errorf("the chain is:\n%s", r.trace())
	}
	b.fail("def deep(): deep()\ndeep()")
	b.fail("class E(Exception):\n    def __str__(self): raise ValueError\nraise E")
	r = b.fail("raise ValueError('x' * 10_000_000)")
	if len(r.Error.Value) > 64<<10 || len(r.trace()) > 600<<10 {
		t.Errorf("a huge error came as %d and %d bytes", len(r.Error.Value), len(r.trace()))
	}
	b.want("y → 1")
}

func TestPythonCellsMayExitAndTheContextStays(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.run("x = 5")
	for _, code := range []string{"import sys; sys.exit(3)", "exit()", "quit()", "raise SystemExit('bye')"} {
		if r := b.fail(code); r.Error.Name != "SystemExit" || len(r.Error.Traceback) != 0 {
			t.Errorf("%q: %+v", code, r.Error)
		}
	}
	if r := b.fail("sys.exit(3)"); r.Error.Value != "3" {
		t.Errorf("the exit's value is %q", r.Error.Value)
	}
	if r := b.fail("input('name? ')"); r.Error.Name != "InputError" || !strings.Contains(r.Error.Value, "no stdin") {
		t.Errorf("input: %+v", r.Error)
	}
	b.want("sys.stdin.read() if not sys.stdin.closed else '' → ''", "x → 5")
	if r := b.run("import os\npid = os.fork()\nif pid == 0:\n    print('child')\nelse:\n    os.waitpid(pid, 0)\n    print('parent')\nNone"); r.out != "child\nparent\n" {
		t.Errorf("a fork has said %q", r.out)
	}
	b.want("x → 5")
}

func TestPythonAwaitsAtTheTop(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.want(
		"import asyncio\nasync def f(n):\n    await asyncio.sleep(0.001)\n    return n",
		"await f(3) → 3",
		"y = await f(4)",
		"y → 4",
		"[await f(i) for i in range(2)] → [0, 1]",
		"async with asyncio.Lock():\n    z = 1\nz → 1",
		"asyncio.run(f(5)) → 5", // not within a loop, as in Jupyter
		"await f(6) → 6",
		"done = []\nasync def later():\n    await asyncio.sleep(0.01)\n    done.append(1)\ntask = asyncio.ensure_future(later()); await asyncio.sleep(0)",
		"import time\nfor _ in range(400):\n    if done: break\n    await asyncio.sleep(0.005)\ndone → [1]",
	)
	if r := b.fail("await f(1, 2)"); r.Error.Name != "TypeError" {
		t.Errorf("%+v", r.Error)
	}
}

func TestPythonTasksRunOnBetweenCells(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.run("import asyncio\nasync def later():\n    await asyncio.sleep(0.02)\nt = asyncio.create_task(later())\nawait asyncio.sleep(0)")
	// Nothing but the idle loop can finish it: this cell does not await.
	for ctx := t.Context(); ; {
		if r := b.run("t.done()"); r.value() == "True" {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the task did not run between cells")
		}
	}
}

func TestPythonMagics(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	out := func(code, want string) {
		t.Helper()
		if r := b.run(code); r.out != want {
			t.Errorf("%q has said %q (err %q), want %q", code, r.out, r.err, want)
		}
	}
	out("!echo hello; echo 'it''s' \"two\"", "hello\nits two\n")
	out("name = 'w'\n!echo {name} $name ${HOME:+home} $nope {name.upper()} | cat", "w w home W\n")
	out("for i in range(2):\n    !echo {i}", "0\n1\n")
	out("if True:\n    !echo a \\\n      b\nprint('c')", "a b\nc\n")
	b.want("_exit_code → 0")
	out("!exit 3", "")
	b.want("_exit_code → 3", "x = !printf 'a\\nb\\n'\nx → ['a', 'b']", "x.n → 'a\\nb'")
	out("%cd /", "/\n")
	b.want("%pwd → '/'")
	out("%cd /usr", "/usr\n")
	b.want("import os; os.getcwd() → '/usr'")
	out("%cd -", "/\n")
	out("%env FOO=bar", "env: FOO=bar\n")
	b.want("%env FOO → 'bar'", "os.environ['FOO'] → 'bar'", "y = %env FOO\ny → 'bar'")
	out("%%bash\nset -e\nfor i in 1 2; do echo $i; done", "1\n2\n")
	if r := b.fail("%%bash\nexit 4"); r.Error.Name != "CalledProcessError" || !strings.Contains(r.Error.Value, "4") {
		t.Errorf("%+v", r.Error)
	}
	out("import tempfile\n%cd -q {tempfile.mkdtemp()}", "")
	out("%%writefile a.txt\nline {not} $expanded\n", "Writing a.txt\n")
	out("%%writefile -a a.txt\nmore", "Appending to a.txt\n")
	out("print(open('a.txt').read(), end='')", "line {not} $expanded\nmore\n")
	out("%%writefile m.py\nimport sys\nv = len(sys.argv)\nprint(__name__)", "Writing m.py\n")
	out("%run m.py one two", "__main__\n")
	b.want("v → 3", "%time 1 + 1 → 2", "%%time\nz = 5\nz + 1 → 6", "z → 5")
	if r := b.run("%timeit -n 10 -r 2 sum(range(10))"); !strings.Contains(r.out, "per loop (mean ± std. dev. of 2 runs, 10 loops each)") {
		t.Errorf("timeit has said %q", r.out)
	}
	out("%%capture c\nprint('kept')", "")
	b.want("c.stdout → 'kept\\n'")
	if r := b.run("%%html\n<b>x</b>"); r.Results[0].HTML != "<b>x</b>" {
		t.Errorf("%+v", r.Results)
	}
	out("%matplotlib inline", "")
	if r := b.run("zz = 1\n%who"); !strings.HasSuffix(r.out, "   zz\n") || strings.Contains(r.out, "get_ipython") {
		t.Errorf("who has said %q", r.out)
	}
	if r := b.run("len?"); !strings.Contains(r.out, "Return the number of items") {
		t.Errorf("len? has said %q", r.out)
	}
	for code, part := range map[string]string{
		"%nope 1": "%nope is not known here; there are: ", "%%nope\nx": "%%nope is not known", "%bash": "write %%bash as its first line",
		"%conda install x": "use %pip", "%matplotlib qt": "no screen",
	} {
		if r := b.fail(code); r.Error.Name != "UsageError" || !strings.Contains(r.Error.Value, part) {
			t.Errorf("%q: %+v", code, r.Error)
		}
	}
	if r := b.run("%pip --version"); !strings.HasPrefix(r.out, "pip ") {
		t.Errorf("pip has said %q %q", r.out, r.err)
	}
	out("pip --version", b.run("%pip --version").out)
	out("%reset -f", "")
	b.fail("zz")
}

func TestPythonStringsThatLookLikeMagicsAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.want(
		"s = '''\n!echo no\n%cd no\n'''\n!true\ns → '\\n!echo no\\n%cd no\\n'",
		"5 % (\n3\n) → 2",
		"x = 7\ny = (x\n%4)\n!true\ny → 3",
		"x = '%s' \\\n  % 4\n!true\nx → '4'",
		"d = {'a': 1}  # it's [ (\n!true\nd → {'a': 1}",
		`e = "it's [" + 'a"b(' + '\'{'  # it's`+"\n!true\nlen(e) → 12",
	)
}

func TestPythonInterruptKeepsTheNames(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.run("import time, subprocess, asyncio; n = 0")
	for _, code := range []string{
		"while True: pass", // at once
		"n += 1; print('GO')\ntime.sleep(100)",
		"n += 1; print('GO')\nsubprocess.run(['sleep', '100'])",
		"n += 1; print('GO')\nawait asyncio.sleep(100)",
		"n += 1; print('GO')\nasyncio.run(asyncio.sleep(100))",
		"n += 1; print('GO')\n!sleep 100",
		"n += 1; print('GO')\nwhile True: display('x' * 5000)",
	} {
		r := b.interrupt(code)
		if r.End != kernel.Interrupted || r.Error == nil || r.Error.Name != "KeyboardInterrupt" {
			t.Errorf("%q ended as %s: %+v %s", code, r.End, r.Error, r.err)
		}
	}
	b.want("n → 6")
}

func TestPythonFiguresComeBackAsImages(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	if r := b.cell(kernel.Cell{Code: "import matplotlib"}); r.End != kernel.OK {
		t.Skip("matplotlib is not installed for this python3")
	}
	isPNG := func(r kernel.Result) bool { return bytes.HasPrefix(r.PNG, []byte("\x89PNG")) && len(r.PNG) > 1000 }
	r := b.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('x')\nplt.show()\nprint('y')")
	if len(r.Results) != 1 || !isPNG(r.Results[0]) || r.out != "x\ny\n" || r.err != "" {
		t.Errorf("show: %d results, out %q, err %q", len(r.Results), r.out, r.err)
	}
	r = b.run("fig, (a, c) = plt.subplots(1, 2)\na.bar([1], [2])\nNone")
	if len(r.Results) != 1 || !isPNG(r.Results[0]) || r.Results[0].Main {
		t.Errorf("at the cell's end: %d results", len(r.Results))
	}
	if r = b.run("fig"); len(r.Results) != 1 || !isPNG(r.Results[0]) || !r.Results[0].Main {
		t.Errorf("as a value: %d results", len(r.Results))
	}
	if r = b.run("f2, a2 = plt.subplots(); f2"); len(r.Results) != 1 || !isPNG(r.Results[0]) {
		t.Errorf("as a value and open: %d results", len(r.Results))
	}
	if r = b.run("len(plt.get_fignums())"); r.value() != "0" {
		t.Errorf("%s figures stay open", r.value())
	}
	b.run("%config InlineBackend.figure_format = 'svg'")
	if r = b.run("plt.plot([1]); None"); len(r.Results) != 1 || !strings.Contains(r.Results[0].SVG, "<svg") {
		t.Errorf("svg: %+v", r.Results)
	}
}

func TestPythonKnowsIPythonsDisplay(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	if r := b.cell(kernel.Cell{Code: "import IPython"}); r.End != kernel.OK {
		t.Skip("IPython is not installed for this python3")
	}
	r := b.run("from IPython.display import display, HTML, Markdown, Image, JSON, clear_output\nclear_output()\ndisplay(HTML('<b>'))\nMarkdown('*m*')")
	if len(r.Results) != 2 || r.Results[0].HTML != "<b>" || r.Results[1].Markdown != "*m*" || r.out != "" {
		t.Errorf("%+v %q", r.Results, r.out)
	}
}

func TestPythonEnvironmentIsOfTheCell(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	b.run("import os; os.environ['KEEP'] = 'old'")
	r := b.cell(kernel.Cell{Code: "os.system('echo $KEEP $ONCE'); None", Env: map[string]string{"KEEP": "new", "ONCE": "it's"}})
	if r.out != "new it's\n" {
		t.Errorf("inside: %q", r.out)
	}
	b.want("os.environ['KEEP'], os.environ.get('ONCE') → ('old', None)")
}

func TestPythonEndsWhenACellKillsIt(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Python)
	r := b.cell(kernel.Cell{Code: "import os; print('last'); os._exit(7)"})
	if r.End != kernel.Ended || r.Exit == nil || r.Exit.Code != 7 || r.out != "last\n" || b.Status() != kernel.Dead {
		t.Errorf("%+v %q %s", r.Outcome, r.out, b.Status())
	}
	b = open(t, kernel.Python)
	r = b.cell(kernel.Cell{Code: "import ctypes; ctypes.string_at(0)"})
	if r.End != kernel.Ended || r.Exit.Code != 139 || !strings.Contains(r.err, "Segmentation fault") {
		t.Errorf("%+v %q", r.Outcome, r.err)
	}
}
