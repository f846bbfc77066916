// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// task is something that an agent is asked to do, with nothing but the default tools of
// the default profile.
type task struct {
	name string
	most int // calls that it may take
	do   func(*agent)
}

// TestAnAgentDoesItsTasksByTheDefaultToolsAlone reports what each task costs a model: its calls,
// and the tokens of their arguments and answers at four bytes each. No error is a dead end:
// each one names the next call.
func TestAnAgentDoesItsTasksByTheDefaultToolsAlone(t *testing.T) {
	s := serve(t)
	server := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	var dialer net.Dialer
	browser := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", server)
	}}}
	t.Cleanup(browser.CloseIdleConnections)
	for _, task := range []task{
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
	} {
		t.Run(task.name, func(t *testing.T) {
			a := openAgent(t, s, task.name)
			a.browser = browser
			a.call("create_sandbox", args{"name": a.sandbox, "memory_mb": 256, "disk_mb": 128})
			a.calls, a.bytes = 0, 0
			task.do(a)
			a.report(task.name)
			if a.calls > task.most {
				t.Errorf("it took %d calls, want at most %d", a.calls, task.most)
			}
		})
	}
}

type args = map[string]any

// agent calls tools, and counts what that costs.
type agent struct {
	t       *testing.T
	client  client
	browser *http.Client
	sandbox string // that it works in; "": its default sandbox
	calls   int
	bytes   int
}

func openAgent(t *testing.T, s *server, sandbox string) *agent {
	t.Helper()
	transport := &sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(s.token)}}
	return &agent{t: t, client: openGo(t, transport, ""), sandbox: sandbox}
}

// report reports what a task has cost.
func (a *agent) report(task string) {
	a.t.Attr("task/"+task, fmt.Sprintf("%d calls, about %d tokens", a.calls, a.bytes/4))
}

// call calls a tool, whose answer may be an error.
func (a *agent) call(tool string, with args) answer {
	a.t.Helper()
	with = maps.Clone(with)
	switch tool {
	case "create_sandbox", "delete_snapshot", "list_sandboxes":
	default:
		if with["sandbox"] == nil && a.sandbox != "" {
			with["sandbox"] = a.sandbox
		}
	}
	said, err := a.client.call(a.t.Context(), tool, with)
	if err != nil {
		a.t.Fatalf("%s %v: %v", tool, with, err)
	}
	asked, err := json.Marshal(with)
	if err != nil {
		a.t.Fatal(err)
	}
	a.calls++
	a.bytes += len(tool) + len(asked) + len(said.text)
	if said.isError && !strings.Contains(said.text, "\nnext: ") {
		a.t.Errorf("%s %v leaves nothing to do next:\n%s", tool, with, said.text)
	}
	return said
}

// do calls a tool, which must not fail, and returns its answer, which has all of wants.
func (a *agent) do(tool string, with args, wants ...string) string {
	a.t.Helper()
	said := a.call(tool, with)
	if said.isError {
		a.t.Fatalf("%s %v:\n%s", tool, with, said.text)
	}
	a.wants(said.text, wants)
	return said.text
}

func (a *agent) wants(text string, wants []string) {
	a.t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			a.t.Fatalf("there is no %q in:\n%s", want, text)
		}
	}
}

// find returns what the pattern's group matches in a text.
func (a *agent) find(text, pattern string) string {
	a.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		a.t.Fatalf("nothing matches %s in:\n%s", pattern, text)
	}
	return m[1]
}

// process returns the id of the process that an answer names.
func (a *agent) process(said string) string {
	a.t.Helper()
	m := handle.FindStringSubmatch(said)
	if m == nil {
		a.t.Fatalf("no process is named in:\n%s", said)
	}
	return m[1]
}

// get returns what a link of the server's leads to. A preview's host name is below localhost,
// which browsers resolve by themselves.
func (a *agent) get(link string) string {
	a.t.Helper()
	r, err := a.browser.Get(link)
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

func script(a *agent) {
	a.do("write_file", args{"path": "primes.py", "content": "print([n for n in range(2, 30) if all(n % d for d in range(2, n))])\n"})
	a.do("run_command", args{"command": "python3 primes.py"}, "exit 0 ", "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29]")
}

func cloneEditTest(a *agent) {
	a.do("run_command", args{"command": `set -e
mkdir -p /tmp/src && cd /tmp/src && git init -q && git config user.name A && git config user.email a@example.com
printf 'def add(a, b):\n    return a - b\n' > calc.py
printf 'import unittest\nfrom calc import add\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n' > test_calc.py
git add . && git commit -qm first`}, "exit 0 ")
	a.calls, a.bytes = 0, 0
	a.do("run_command", args{"command": "git clone -q /tmp/src calc && cd calc && python3 -m unittest 2>&1"}, "exit 1 ", "-1 != 5")
	a.do("read_file", args{"path": "calc/calc.py"}, "return a - b")
	a.do("edit_file", args{"path": "calc/calc.py", "old_text": "a - b", "new_text": "a + b"})
	a.do("run_command", args{"command": "cd calc && python3 -m unittest 2>&1"}, "exit 0 ", "OK")
}

func serverAndLink(a *agent) {
	a.do("run_command", args{"command": "echo from inside > index.html; exec python3 -m http.server 8000", "background": true})
	link := a.find(a.do("expose_port", args{"port": 8000}), `(http://\S+)`)
	if got := a.get(link); got != "from inside\n" {
		a.t.Errorf("the link gives %q", got)
	}
}

func plot(a *agent) {
	said := a.call("run_code", args{"code": "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"})
	if said.isError || said.images != 1 {
		a.t.Errorf("got %d images and\n%s", said.images, said.text)
	}
}

func bigFile(a *agent) {
	a.do("run_command", args{"command": "seq 1 20000 > numbers.txt"}, "exit 0 ")
	a.calls, a.bytes = 0, 0
	part := a.do("read_file", args{"path": "numbers.txt"})
	start := a.find(part, `start_line[": ]+(\d+)`)
	a.do("read_file", args{"path": "numbers.txt", "start_line": json.Number(start), "line_count": 3}, start+"\t"+start)
	a.do("read_file", args{"path": "numbers.txt", "start_line": 19999}, "20000\t20000")
}

func searchAndReplace(a *agent) {
	a.do("run_command", args{"command": "mkdir p; for i in 1 2 3; do echo \"old_name($i)\" > p/$i.py; done; echo nothing > p/4.py"}, "exit 0 ")
	a.calls, a.bytes = 0, 0
	a.do("search_files", args{"pattern": `old_name\(`, "path": "p"}, "p/1.py", "p/2.py", "p/3.py")
	a.do("run_command", args{"command": "sed -i 's/old_name/new_name/' p/*.py"}, "exit 0 ", "p/1.py", "p/2.py", "p/3.py")
	if said := a.do("search_files", args{"pattern": "new_name", "path": "p"}, "p/1.py"); strings.Contains(said, "p/4.py") {
		a.t.Errorf("a file that has it not is there:\n%s", said)
	}
}

func backgroundJob(a *agent) {
	id := a.process(a.do("run_command", args{"command": "for i in 1 2 3; do echo step $i; done; sleep 1000", "background": true}))
	a.do("read_process", args{"process": id, "wait_seconds": 1}, "step 3")
	a.do("stop_process", args{"process": id})
}

func input(a *agent) {
	id := a.process(a.do("run_command", args{"command": `python3 -c 'print("hello", input("name? "))'`, "background": true}))
	a.do("write_process", args{"process": id, "input": "Ada\n", "wait_seconds": 10}, "hello Ada")
}

func forks(a *agent) {
	a.do("run_command", args{"command": "echo base > base.txt"}, "exit 0 ")
	a.calls, a.bytes = 0, 0
	for _, flag := range []string{"1", "2", "3"} {
		a.do("fork_sandbox", args{"name": "choice-" + flag})
		a.do("run_command", args{"sandbox": "choice-" + flag, "command": "cat base.txt; expr 10 \\* " + flag + " > score; cat score"}, "exit 0 ", "base", flag+"0")
	}
	for _, flag := range []string{"1", "2"} {
		a.do("delete_sandbox", args{"sandbox": "choice-" + flag})
	}
	if said := a.do("list_sandboxes", args{"search": "choice"}, "choice-3"); strings.Contains(said, "choice-1") {
		a.t.Errorf("one that was not chosen is left:\n%s", said)
	}
}

func timeOut(a *agent) {
	a.do("run_command", args{"command": "echo begun; sleep 1000", "timeout_seconds": 1}, "time", "begun")
	id := a.process(a.do("run_command", args{"command": "echo begun; sleep 1000", "wait_seconds": 1}, "begun", "read_process"))
	a.do("stop_process", args{"process": id})
}

func memory(a *agent) {
	a.do("run_command", args{"command": "python3 -c 'b = bytearray(1 << 30); b[::4096] = b\"x\" * len(b[::4096])'"}, "exit 137 ", "memory", "256")
	a.do("get_sandbox_limits", args{}, "256")
	a.do("run_command", args{"command": "echo lives on"}, "exit 0 ")
}

func fullTable(a *agent) {
	a.do("run_command", args{"command": "b() { b | b & b | b & }; b 2>/dev/null & sleep 1000", "wait_seconds": 1})
	a.calls, a.bytes = 0, 0
	refused := false
	for range 100 { // between two of its deaths a place may be free
		a.calls, a.bytes = 0, 0
		if said := a.call("run_command", args{"command": "echo in"}); said.isError {
			refused = true
			a.wants(said.text, []string{"stop_process", `"all": true`})
			break
		}
	}
	if !refused {
		a.t.Error("a hundred commands found a place beside the bomb")
	}
	a.do("stop_process", args{"all": true})
	a.do("run_command", args{"command": "echo lives on"}, "exit 0 ", "lives on")
}

func fullDisk(a *agent) {
	a.do("run_command", args{"command": "head -c 500M /dev/urandom > big"}, "exit 1 ", "disk", "128")
	said := a.call("write_file", args{"path": "more.bin", "content": strings.Repeat("0123456789abcdef", 64)})
	if said.isError {
		a.wants(said.text, []string{"(full)"})
	}
	a.do("run_command", args{"command": "rm big && sync && echo room > more && cat more"}, "exit 0 ", "room")
}

func artifact(a *agent) {
	link := a.find(a.do("run_command", args{"command": "echo 'a,b' > /artifacts/table.csv"}, "table.csv"), `(http://\S+)`)
	if got := a.get(link); got != "a,b\n" {
		a.t.Errorf("the link gives %q", got)
	}
}
