// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/store/keyed"
)

// forgetful returns the house as it is after a crash: a coat that has lost its answers,
// with the records of what was begun.
func (h *house) forgetful() *house {
	o := h.made
	o.Keys = keyed.New(h.store, keyed.Options{})
	return h.serve(o)
}

// keyedOps are requests that make or begin something, with how many of it there are.
func keyedOps(h *house) map[string]keyedOp {
	box := h.create()
	path := "/v1/sandboxes/" + box.ID
	want[v1.CodeResult](h, 200, "POST", path+"/code", object{"code": "n=0", "language": "bash"})
	lines := func(file string) func() int {
		return func() int {
			a := h.do("GET", path+"/files/"+file, nil)
			return strings.Count(string(a.body), "once\n")
		}
	}
	items := func(path string) func() int {
		return func() int {
			return len(want[struct{ Items []json.RawMessage }](h, 200, "GET", path, nil).Items)
		}
	}
	ops := map[string]keyedOp{
		"createSandbox":  {"/v1/sandboxes", object{"metadata": object{"a": "b"}}, 201, items("/v1/sandboxes")},
		"createExec":     {"/v1/exec", object{"command": "echo out; echo err >&2", "sandbox": object{}}, 200, items("/v1/sandboxes")},
		"forkSandbox":    {path + "/fork", object{"count": 2}, 201, items("/v1/sandboxes")},
		"exec":           {path + "/exec", object{"command": "echo once >> exec; echo out; echo err >&2; exit 3"}, 200, lines("exec")},
		"startProcess":   {path + "/processes", object{"command": "echo once >> process"}, 201, items(path + "/processes")},
		"startRun":       {path + "/runs", object{"commands": []object{{"shell": "echo once >> run"}}, "wait_seconds": 20}, 202, items(path + "/runs")},
		"createShell":    {path + "/shells", object{"name": "made"}, 201, items(path + "/shells")},
		"shellExec":      {path + "/shells/main/exec", object{"command": "echo once >> shell; echo out"}, 200, lines("shell")},
		"runCode":        {path + "/code", object{"code": "echo once >> code; echo out", "language": "bash"}, 200, lines("code")},
		"createContext":  {path + "/code/contexts", object{"language": "bash"}, 201, items(path + "/code/contexts")},
		"createSnapshot": {path + "/snapshots", object{}, 201, items("/v1/snapshots")},
		"createVolume":   {"/v1/volumes", object{"name": "data"}, 201, items("/v1/volumes")},
		"createToken":    {"/v1/tokens", object{"name": "t"}, 201, items("/v1/tokens")},
	}
	return ops
}

type keyedOp struct {
	path   string
	body   object
	status int
	count  func() int
}

func needBash(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this host has no bash, which the memory runtime would run")
	}
}

func TestARepeatedRequestBeginsNothing(t *testing.T) {
	t.Parallel()
	needBash(t)
	h := open(t)
	for name, op := range keyedOps(h) {
		t.Run(name, func(t *testing.T) {
			first := h.do("POST", op.path, op.body, "Idempotency-Key", "k-"+name)
			if first.StatusCode != op.status || first.Header.Get("Idempotent-Replayed") != "" {
				t.Fatalf("got %d %s %v", first.StatusCode, first.body, first.Header)
			}
			n := op.count()
			for _, spelled := range []string{"k-" + name, `"k-` + name + `"`} {
				again := h.do("POST", "/api"+op.path, op.body, "Idempotency-Key", spelled)
				if again.StatusCode != op.status || again.Header.Get("Idempotent-Replayed") != "true" {
					t.Fatalf("again: got %d %s %v", again.StatusCode, again.body, again.Header)
				}
				a, b := comparable(t, first.body), comparable(t, again.body)
				if name == "createToken" {
					if a["token"] == "" || b["token"] != "" || b["token_omitted"] != true {
						t.Errorf("got the secrets %q and %q (%v)", a["token"], b["token"], b["token_omitted"])
					}
					delete(a, "token")
					delete(b, "token")
					delete(b, "token_omitted")
				}
				if diff := cmp.Diff(a, b); diff != "" {
					t.Error(diff)
				}
				for _, header := range []string{"Location", "Sandpit-Process-Id", "Sandpit-Sandbox-Id"} {
					if a, b := first.Header.Get(header), again.Header.Get(header); a != b {
						t.Errorf("%s: got %q, want %q", header, b, a)
					}
				}
			}
			if again := op.count(); again != n || n == 0 {
				t.Errorf("there are %d, and were %d", again, n)
			}
			other := object{}
			for k, v := range op.body {
				other[k] = v
			}
			other["metadata"] = object{"c": "d"}
			p := want[v1.Problem](h, 422, "POST", op.path, other, "Idempotency-Key", "k-"+name)
			if len(p.Errors) != 1 || p.Errors[0].Field != "Idempotency-Key" {
				t.Errorf("another body: got %+v", p)
			}
		})
	}
}

// comparable is an answer without what may differ from a process to its record.
func comparable(t *testing.T, body []byte) object {
	t.Helper()
	var out object
	must(t, json.Unmarshal(body, &out))
	for _, field := range []string{"status", "ended_at", "exit_code", "duration_ms", "last_seq", "pid", "cause", "started_at", "stdout_bytes", "stderr_bytes"} {
		if out["process_id"] != nil && out["argv"] == nil && out["cwd"] != nil { // a process, which goes on meanwhile
			delete(out, field)
		}
	}
	return out
}

// What was begun is found again where the answer was lost, as by a crash.
func TestARequestWhoseAnswerIsLostIsAnsweredFromWhatItMade(t *testing.T) {
	t.Parallel()
	needBash(t)
	h := open(t)
	for name, op := range keyedOps(h) {
		t.Run(name, func(t *testing.T) {
			first := h.forgetful().do("POST", op.path, op.body, "Idempotency-Key", "k-"+name)
			if first.StatusCode != op.status {
				t.Fatalf("got %d %s", first.StatusCode, first.body)
			}
			n := op.count()
			again := h.forgetful().do("POST", op.path, op.body, "Idempotency-Key", "k-"+name)
			if again.StatusCode != op.status || again.Header.Get("Idempotent-Replayed") != "true" {
				t.Fatalf("again: got %d %s", again.StatusCode, again.body)
			}
			if again := op.count(); again != n {
				t.Errorf("there are %d, and were %d", again, n)
			}
			a, b := comparable(t, first.body), comparable(t, again.body)
			for _, field := range []string{"id", "process_id", "sandbox_id", "run_id", "shell_id", "context_id", "cell_id", "exit_code", "stderr", "name"} {
				if diff := cmp.Diff(a[field], b[field]); diff != "" {
					t.Errorf("%s: %s", field, diff)
				}
			}
			if name != "runCode" && a["stdout"] != b["stdout"] { // of a cell it is not on record
				t.Errorf("stdout: got %q, want %q", b["stdout"], a["stdout"])
			}
			if a, b := fmt.Sprint(idsOf(a["items"])), fmt.Sprint(idsOf(b["items"])); a != b {
				t.Errorf("got %v, want %v", b, a)
			}
		})
	}
}

func idsOf(items any) (out []any) {
	list, _ := items.([]any)
	for _, i := range list {
		out = append(out, i.(object)["id"])
	}
	return out
}

// Each POST takes a key, or says why not; and each that takes one is tried above.
func TestPostsTakeAKeyOrSayWhyNot(t *testing.T) {
	t.Parallel()
	h := open(t)
	tried := keyedOps(h)
	tried["archiveSandbox"] = keyedOp{} // not repeated: this house has no archive, and it is served as the verbs above are
	for _, more := range append(keyedVerbs(), keyedGit()...) {
		tried[more.id] = keyedOp{}
	}
	takes := 0
	for id, says := range h.api.Posts() {
		if says == "" {
			t.Errorf("%s takes no idempotency key and does not say why, or is no POST and takes one", id)
		}
		if _, ok := tried[id]; says == "takes a key" && !ok && id != "importSnapshot" {
			t.Errorf("%s takes a key, and no test repeats it", id)
		}
		if says == "takes a key" {
			takes++
		}
	}
	if takes < len(tried) {
		t.Errorf("%d operations take a key, and %d are tried", takes, len(tried))
	}
}

func TestARequestWithAKey(t *testing.T) {
	t.Parallel()
	h := open(t)
	path := "/v1/sandboxes/" + h.create().ID
	t.Run("IsRefusedWhileTheFirstIsServed", func(t *testing.T) {
		body := object{"command": "touch begun; until test -e go; do sleep 0.01; done; echo done"}
		var wg sync.WaitGroup
		var first answer
		wg.Go(func() { first = h.do("POST", path+"/exec", body, "Idempotency-Key", "slow") })
		for h.do("GET", path+"/files/begun", nil).StatusCode != 200 {
		}
		a := h.do("POST", path+"/exec", body, "Idempotency-Key", "slow")
		if a.StatusCode != 409 || a.Header.Get("Retry-After") == "" {
			t.Errorf("got %d %s %v", a.StatusCode, a.body, a.Header)
		}
		want[v1.Problem](h, 422, "POST", path+"/exec", object{"command": "true"}, "Idempotency-Key", "slow")
		h.do("PUT", path+"/files/go", []byte{})
		wg.Wait()
		again := h.do("POST", path+"/exec", body, "Idempotency-Key", "slow")
		if again.StatusCode != 200 || string(again.body) != string(first.body) {
			t.Errorf("got %d %s, want %s", again.StatusCode, again.body, first.body)
		}
	})
	t.Run("GoesOnWithoutItsClient", func(t *testing.T) {
		body := `{"command":"echo once >> left; until test -e go2; do sleep 0.01; done; echo done"}`
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", h.url+path+"/exec", strings.NewReader(body))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+h.token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "left")
		gone := make(chan struct{})
		go func() { defer close(gone); _, _ = plain.Do(req) }() //nolint:bodyclose // there is none
		for h.do("GET", path+"/files/left", nil).StatusCode != 200 {
		}
		cancel()
		<-gone
		h.do("PUT", path+"/files/go2", []byte{})
		a := h.do("POST", path+"/exec", body, "Idempotency-Key", "left")
		for a.StatusCode == 409 { // until the server has seen that the client is gone
			a = h.do("POST", path+"/exec", body, "Idempotency-Key", "left")
		}
		var r v1.ExecResult
		must(t, json.Unmarshal(a.body, &r))
		if a.StatusCode != 200 || r.Stdout != "done\n" {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
		if got := string(h.do("GET", path+"/files/left", nil).body); got != "once\n" {
			t.Errorf("it ran as %q", got)
		}
	})
	t.Run("IsFollowedFromItsFirstFrame", func(t *testing.T) {
		body := object{"command": "echo a; echo b >&2; exit 4"}
		first := h.do("POST", path+"/exec", body, "Idempotency-Key", "sse", "Accept", "text/event-stream")
		for _, h := range []*house{h, h.forgetful()} {
			again := h.do("POST", path+"/exec", body, "Idempotency-Key", "sse", "Accept", "text/event-stream")
			a, b := eventsOf(first.body), eventsOf(again.body)
			if a["start"] != b["start"] || !strings.Contains(b["stdout"], `"a\n"`) || !strings.Contains(b["stderr"], `"b\n"`) || !strings.Contains(b["exit"], `"exit_code":4`) {
				t.Errorf("got %s, want %s", again.body, first.body)
			}
			r := want[v1.ExecResult](h, 200, "POST", path+"/exec", body, "Idempotency-Key", "sse")
			if r.Stdout != "a\n" || r.Stderr != "b\n" || *r.ExitCode != 4 {
				t.Errorf("as JSON: got %+v", r)
			}
		}
	})
	t.Run("IsWaitedForAsTheFirst", func(t *testing.T) {
		body := object{"command": "until test -e go3; do sleep 0.01; done; echo done", "wait_seconds": 0}
		first := want[v1.ExecResult](h, 202, "POST", path+"/exec", body, "Idempotency-Key", "wait")
		again := want[v1.ExecResult](h, 202, "POST", path+"/exec", body, "Idempotency-Key", "wait")
		if first.ProcessID == "" || first.ProcessID != again.ProcessID {
			t.Errorf("got the processes %s and %s", first.ProcessID, again.ProcessID)
		}
		h.do("PUT", path+"/files/go3", []byte{})
		want[v1.Process](h, 200, "GET", path+"/processes/"+first.ProcessID+"/wait?timeout=60", nil)
		if r := want[v1.ExecResult](h, 200, "POST", path+"/exec", object{"command": body["command"], "wait_seconds": 0}, "Idempotency-Key", "wait"); r.Stdout != "done\n" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("ThatIsWrongKeepsNothing", func(t *testing.T) {
		want[v1.Problem](h, 422, "POST", path+"/exec", object{"command": ""}, "Idempotency-Key", "wrong")
		want[v1.Problem](h, 404, "POST", "/v1/sandboxes/none/exec", object{"command": "true"}, "Idempotency-Key", "wrong")
		want[v1.ExecResult](h, 200, "POST", path+"/exec", object{"command": "true"}, "Idempotency-Key", "wrong")
	})
	t.Run("HasOneThatIsPrintable", func(t *testing.T) {
		for _, bad := range []string{"\xff", strings.Repeat("a", 256), "a\tb"} {
			p := want[v1.Problem](h, 422, "POST", path+"/exec", object{"command": "true"}, "Idempotency-Key", bad)
			if len(p.Errors) != 1 || p.Errors[0].Field != "Idempotency-Key" {
				t.Errorf("%q: got %+v", bad, p)
			}
		}
		want[v1.ExecResult](h, 200, "POST", path+"/exec", object{"command": "true"}, "Idempotency-Key", strings.Repeat("~", 255))
	})
	t.Run("IsOneOfItsProjectAndRoute", func(t *testing.T) {
		a := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{}, "Idempotency-Key", "mine")
		other := h.as("other", access.SandboxesWrite)
		b := want[v1.Sandbox](other, 201, "POST", "/v1/sandboxes", object{"metadata": object{"a": "b"}}, "Idempotency-Key", "mine")
		if a.ID == b.ID {
			t.Errorf("two projects have the sandbox %s", a.ID)
		}
		want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/"+a.ID+"/exec", object{"command": "true"}, "Idempotency-Key", "mine")
		same := h.as("default", access.SandboxesWrite)
		if c := want[v1.Sandbox](same, 201, "POST", "/v1/sandboxes", object{}, "Idempotency-Key", "mine"); c.ID != a.ID {
			t.Errorf("another token of the project: got %s, want %s", c.ID, a.ID)
		}
		for _, key := range []string{"mine", "nobodys"} {
			want[v1.Problem](h.as("default", access.SandboxesRead), 403, "POST", "/v1/sandboxes", object{}, "Idempotency-Key", key)
		}
	})
	t.Run("OfATokenIsItsMakersOwn", func(t *testing.T) {
		want[v1.CreatedToken](h, 201, "POST", "/v1/tokens", object{"name": "x", "project": "another"}, "Idempotency-Key", "t")
		p := want[v1.Problem](h.as("default", access.Admin), 403, "POST", "/v1/tokens", object{"name": "x", "project": "another"}, "Idempotency-Key", "t")
		if p.Code != "denied" {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("OfASandboxThatIsGoneSaysSo", func(t *testing.T) {
		lost := h.forgetful()
		s := want[v1.Sandbox](lost, 201, "POST", "/v1/sandboxes", object{}, "Idempotency-Key", "gone")
		h.do("DELETE", "/v1/sandboxes/"+s.ID, nil)
		if p := want[v1.Problem](h.forgetful(), 404, "POST", "/v1/sandboxes", object{}, "Idempotency-Key", "gone"); !strings.Contains(p.Detail, "is gone") {
			t.Errorf("got %+v", p)
		}
		if again := want[v1.Sandbox](lost, 201, "POST", "/v1/sandboxes", object{}, "Idempotency-Key", "gone"); again.ID != s.ID {
			t.Errorf("of an answer that is kept: got %s, want %s", again.ID, s.ID)
		}
	})
}

// eventsOf returns the data of the last event of each name.
func eventsOf(body []byte) map[string]string {
	out := make(map[string]string)
	name := ""
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Scan() {
		if n, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = n
		} else if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			out[name] = d
		}
	}
	return out
}
