// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package taskstest has what agents are asked to do, with nothing but the default tools of the default profile, of whichever
// server.
package taskstest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// Task is one of them.
type Task struct {
	Name string
	Most int // calls that it may take
	do   func(*Agent)
}

// All returns them.
func All() []Task {
	return []Task{
		{"script", 2, script},
		{"clone-edit-test", 4, cloneEditTest},
		{"server-and-link", 2, serverAndLink},
		{"plot", 1, plot},
		{"big-file-in-parts", 3, bigFile},
		{"search-and-replace", 3, searchAndReplace},
		{"background-job", 3, backgroundJob},
		{"input", 2, input},
		{"three-forks-and-a-choice", 9, forks},
		{"time-out", 3, timeOut},
		{"memory", 3, memory},
		{"full-table", 3, fullTable},
		{"full-disk", 3, fullDisk},
		{"artifact", 1, artifact},
	}
}

// Options are of an agent.
type Options struct {
	// Call calls a tool of the server's, whose answer may be an error.
	Call func(ctx context.Context, tool string, with map[string]any) (Answer, error)
	// Browser follows links of the server's, and leads all names to it.
	Browser *http.Client
}

// Answer is what a model would see.
type Answer struct {
	Text    string
	Images  int
	IsError bool
}

// Run has an agent do a task in a sandbox that has its name, and reports what that costs a model.
func (task Task) Run(t *testing.T, o Options) {
	a := New(t, o, task.Name)
	a.Call("create_sandbox", Args{"name": a.Sandbox, "memory_mb": 256, "disk_mb": 128})
	a.Calls, a.bytes = 0, 0
	task.do(a)
	a.Report(task.Name)
	if a.Calls > task.Most {
		t.Errorf("it took %d calls, want at most %d", a.Calls, task.Most)
	}
}

// Args are a tool's arguments.
type Args = map[string]any

// Agent calls tools, and counts what that costs: the calls, and the tokens of their arguments and answers at four bytes each.
type Agent struct {
	Sandbox string // that it works in; "": its default sandbox
	Calls   int

	t     *testing.T
	o     Options
	bytes int
}

// New returns an agent that works in a sandbox.
func New(t *testing.T, o Options, sandbox string) *Agent { return &Agent{t: t, o: o, Sandbox: sandbox} }

// handle finds the process in what run_command says of one in the background.
var handle = regexp.MustCompile(`process ([a-z0-9]{6,})`)

// Report reports what a task has cost.
func (a *Agent) Report(task string) {
	a.t.Attr("task/"+task, fmt.Sprintf("%d calls, about %d tokens", a.Calls, a.bytes/4))
}

// Call calls a tool, whose answer may be an error. None is a dead end: each names the next call.
func (a *Agent) Call(tool string, with Args) Answer {
	a.t.Helper()
	with = maps.Clone(with)
	switch tool {
	case "create_sandbox", "delete_snapshot", "list_sandboxes":
	default:
		if with["sandbox"] == nil && a.Sandbox != "" {
			with["sandbox"] = a.Sandbox
		}
	}
	said, err := a.o.Call(a.t.Context(), tool, with)
	if err != nil {
		a.t.Fatalf("%s %v: %v", tool, with, err)
	}
	asked, err := json.Marshal(with)
	if err != nil {
		a.t.Fatal(err)
	}
	a.Calls++
	a.bytes += len(tool) + len(asked) + len(said.Text)
	if said.IsError && !strings.Contains(said.Text, "\nnext: ") {
		a.t.Errorf("%s %v leaves nothing to do next:\n%s", tool, with, said.Text)
	}
	return said
}

// Do calls a tool, which must not fail, and returns its answer, which has all of wants.
func (a *Agent) Do(tool string, with Args, wants ...string) string {
	a.t.Helper()
	said := a.Call(tool, with)
	if said.IsError {
		a.t.Fatalf("%s %v:\n%s", tool, with, said.Text)
	}
	a.wants(said.Text, wants)
	return said.Text
}

func (a *Agent) wants(text string, wants []string) {
	a.t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			a.t.Fatalf("there is no %q in:\n%s", want, text)
		}
	}
}

// find returns what the pattern's group matches in a text.
func (a *Agent) find(text, pattern string) string {
	a.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		a.t.Fatalf("nothing matches %s in:\n%s", pattern, text)
	}
	return m[1]
}

// process returns the id of the process that an answer names.
func (a *Agent) process(said string) string {
	a.t.Helper()
	m := handle.FindStringSubmatch(said)
	if m == nil {
		a.t.Fatalf("no process is named in:\n%s", said)
	}
	return m[1]
}

// get returns what a link of the server's leads to. A preview's host name is below localhost,
// which browsers resolve by themselves.
func (a *Agent) get(link string) string {
	a.t.Helper()
	r, err := a.o.Browser.Get(link)
	if err != nil {
		a.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<10))
	if err != nil || r.StatusCode != http.StatusOK {
		a.t.Errorf("%s gives %d, %v", link, r.StatusCode, err)
	}
	return string(body)
}

func script(a *Agent) {
	a.Do("write_file", Args{"path": "primes.py", "content": "print([n for n in range(2, 30) if all(n % d for d in range(2, n))])\n"})
	a.Do("run_command", Args{"command": "python3 primes.py"}, "exit 0 ", "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29]")
}

func cloneEditTest(a *Agent) {
	a.Do("run_command", Args{"command": `set -e
mkdir -p /tmp/src && cd /tmp/src && git init -q && git config user.name A && git config user.email a@example.com
printf 'def add(a, b):\n    return a - b\n' > calc.py
printf 'import unittest\nfrom calc import add\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n' > test_calc.py
git add . && git commit -qm first`}, "exit 0 ")
	a.Calls, a.bytes = 0, 0
	a.Do("run_command", Args{"command": "git clone -q /tmp/src calc && cd calc && python3 -m unittest 2>&1"}, "exit 1 ", "-1 != 5")
	a.Do("read_file", Args{"path": "calc/calc.py"}, "return a - b")
	a.Do("edit_file", Args{"path": "calc/calc.py", "old_text": "a - b", "new_text": "a + b"})
	a.Do("run_command", Args{"command": "cd calc && python3 -m unittest 2>&1"}, "exit 0 ", "OK")
}

func serverAndLink(a *Agent) {
	a.Do("run_command", Args{"command": "echo from inside > index.html; exec python3 -m http.server 8000", "background": true})
	link := a.find(a.Do("expose_port", Args{"port": 8000}), `(http://\S+)`)
	if got := a.get(link); got != "from inside\n" {
		a.t.Errorf("the link gives %q", got)
	}
}

func plot(a *Agent) {
	said := a.Call("run_code", Args{"code": "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"})
	if said.IsError || said.Images != 1 {
		a.t.Errorf("got %d images and\n%s", said.Images, said.Text)
	}
}

func bigFile(a *Agent) {
	a.Do("run_command", Args{"command": "seq 1 20000 > numbers.txt"}, "exit 0 ")
	a.Calls, a.bytes = 0, 0
	part := a.Do("read_file", Args{"path": "numbers.txt"})
	start := a.find(part, `start_line[": ]+(\d+)`)
	a.Do("read_file", Args{"path": "numbers.txt", "start_line": json.Number(start), "line_count": 3}, start+"\t"+start)
	a.Do("read_file", Args{"path": "numbers.txt", "start_line": 19999}, "20000\t20000")
}

func searchAndReplace(a *Agent) {
	a.Do("run_command", Args{"command": "mkdir p; for i in 1 2 3; do echo \"old_name($i)\" > p/$i.py; done; echo nothing > p/4.py"}, "exit 0 ")
	a.Calls, a.bytes = 0, 0
	a.Do("search_files", Args{"pattern": `old_name\(`, "path": "p"}, "p/1.py", "p/2.py", "p/3.py")
	a.Do("run_command", Args{"command": "sed -i 's/old_name/new_name/' p/*.py"}, "exit 0 ", "p/1.py", "p/2.py", "p/3.py")
	if said := a.Do("search_files", Args{"pattern": "new_name", "path": "p"}, "p/1.py"); strings.Contains(said, "p/4.py") {
		a.t.Errorf("a file that has it not is there:\n%s", said)
	}
}

func backgroundJob(a *Agent) {
	id := a.process(a.Do("run_command", Args{"command": "for i in 1 2 3; do echo step $i; done; sleep 1000", "background": true}))
	a.Do("read_process", Args{"process": id, "wait_seconds": 1}, "step 3")
	a.Do("stop_process", Args{"process": id})
}

func input(a *Agent) {
	id := a.process(a.Do("run_command", Args{"command": `python3 -c 'print("hello", input("name? "))'`, "background": true}))
	a.Do("write_process", Args{"process": id, "input": "Ada\n", "wait_seconds": 10}, "hello Ada")
}

func forks(a *Agent) {
	a.Do("run_command", Args{"command": "echo base > base.txt"}, "exit 0 ")
	a.Calls, a.bytes = 0, 0
	for _, flag := range []string{"1", "2", "3"} {
		a.Do("fork_sandbox", Args{"name": "choice-" + flag})
		a.Do("run_command", Args{"sandbox": "choice-" + flag, "command": "cat base.txt; expr 10 \\* " + flag + " > score; cat score"}, "exit 0 ", "base", flag+"0")
	}
	for _, flag := range []string{"1", "2"} {
		a.Do("delete_sandbox", Args{"sandbox": "choice-" + flag})
	}
	if said := a.Do("list_sandboxes", Args{"search": "choice"}, "choice-3"); strings.Contains(said, "choice-1") {
		a.t.Errorf("one that was not chosen is left:\n%s", said)
	}
}

func timeOut(a *Agent) {
	a.Do("run_command", Args{"command": "echo begun; sleep 1000", "timeout_seconds": 1}, "time", "begun")
	id := a.process(a.Do("run_command", Args{"command": "echo begun; sleep 1000", "wait_seconds": 1}, "begun", "read_process"))
	a.Do("stop_process", Args{"process": id})
}

func memory(a *Agent) {
	a.Do("run_command", Args{"command": "python3 -c 'b = bytearray(1 << 30); b[::4096] = b\"x\" * len(b[::4096])'"}, "exit 137 ", "memory", "256")
	a.Do("get_sandbox_limits", Args{}, "256")
	a.Do("run_command", Args{"command": "echo lives on"}, "exit 0 ")
}

func fullTable(a *Agent) {
	a.Do("run_command", Args{"command": "b() { b | b & b | b & }; b 2>/dev/null & sleep 1000", "wait_seconds": 1})
	a.Calls, a.bytes = 0, 0
	refused := false
	for range 100 { // between two of its deaths a place may be free
		a.Calls, a.bytes = 0, 0
		if said := a.Call("run_command", Args{"command": "echo in"}); said.IsError {
			refused = true
			a.wants(said.Text, []string{"stop_process", `"all": true`})
			break
		}
	}
	if !refused {
		a.t.Error("a hundred commands found a place beside the bomb")
	}
	a.Do("stop_process", Args{"all": true})
	a.Do("run_command", Args{"command": "echo lives on"}, "exit 0 ", "lives on")
}

func fullDisk(a *Agent) {
	a.Do("run_command", Args{"command": "head -c 500M /dev/urandom > big"}, "exit 1 ", "disk", "128")
	said := a.Call("write_file", Args{"path": "more.bin", "content": strings.Repeat("0123456789abcdef", 64)})
	if said.IsError {
		a.wants(said.Text, []string{"(full)"})
	}
	a.Do("run_command", Args{"command": "rm big && sync && echo room > more && cat more"}, "exit 0 ", "room")
}

func artifact(a *Agent) {
	link := a.find(a.Do("run_command", Args{"command": "echo 'a,b' > /artifacts/table.csv"}, "table.csv"), `(http://\S+)`)
	if got := a.get(link); got != "a,b\n" {
		a.t.Errorf("the link gives %q", got)
	}
}
