// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/skiptest"
)

// keyedVerb is a request that changes a sandbox, or a repository in it, and makes nothing that has an id.
type keyedVerb struct {
	id, path string // below the sandbox
	body     object
	other    object // another request
	before   string // a verb that goes before
	status   int
	event    string // that tells of it; empty: none does
}

func keyedVerbs() []keyedVerb {
	return []keyedVerb{
		{id: "startSandbox", path: "/start", before: "/stop", event: "sandbox.started"},
		{id: "stopSandbox", path: "/stop", body: object{"grace_seconds": 0}, other: object{"grace_seconds": 1}, event: "sandbox.stopped"},
		{id: "restartSandbox", path: "/restart", event: "sandbox.started"},
		{id: "resetSandbox", path: "/reset", event: "sandbox.restored"},
		{id: "pauseSandbox", path: "/pause", event: "sandbox.paused"},
		{id: "resumeSandbox", path: "/resume", before: "/pause", event: "sandbox.resumed"},
		{id: "promoteSandbox", path: "/promote", before: "/fork", body: object{"name": "n"}, other: object{"name": "m"}, event: "sandbox.promoted"},
		{id: "rollbackSandbox", path: "/rollback", body: object{"to": "base"}, other: object{"to": "other"}, event: "sandbox.restored"},
	}
}

func (h *house) happened(box, event string) (n int) {
	for _, e := range want[v1.EventPage](h, 200, "GET", "/v1/sandboxes/"+box+"/activity?limit=100", nil).Items {
		if e.Type == event {
			n++
		}
	}
	return n
}

// A verb is done once, whether its answer is kept or was lost in a crash; what happened to the sandbox since stays.
func TestAVerbWithAKeyIsDoneOnce(t *testing.T) {
	t.Parallel()
	for _, v := range keyedVerbs() {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lost=%v", v.id, lost), func(t *testing.T) {
				h := open(t)
				box := h.create().ID
				at := "/v1/sandboxes/" + box
				if v.before == "/fork" { // what is promoted is the fork
					box = want[v1.SandboxList](h, 201, "POST", at+v.before, nil).Items[0].ID
					at = "/v1/sandboxes/" + box
				} else if v.before != "" {
					want[v1.Sandbox](h, 200, "POST", at+v.before, nil)
				}
				on := func() *house {
					if lost {
						return h.forgetful()
					}
					return h
				}
				var body any // none, where none is described
				if v.body != nil {
					body = v.body
				}
				first := on().do("POST", at+v.path, body, "Idempotency-Key", "k")
				if first.StatusCode != 200 || first.Header.Get("Idempotent-Replayed") != "" {
					t.Fatalf("got %d %s", first.StatusCode, first.body)
				}
				n := h.happened(box, v.event)
				again := on().do("POST", at+v.path, body, "Idempotency-Key", "k")
				if again.StatusCode != 200 || again.Header.Get("Idempotent-Replayed") != "true" {
					t.Fatalf("again: got %d %s", again.StatusCode, again.body)
				}
				if got := h.happened(box, v.event); got != n || n == 0 {
					t.Errorf("%s happened %d times, and had %d times", v.event, got, n)
				}
				if !lost {
					if diff := cmp.Diff(string(first.body), string(again.body)); diff != "" {
						t.Error(diff)
					}
				}
				// The other request with the key is told; what another key asks for is done.
				if v.other != nil {
					p := want[v1.Problem](h, 422, "POST", at+v.path, v.other, "Idempotency-Key", "k")
					if !lost && (len(p.Errors) != 1 || p.Errors[0].Field != "Idempotency-Key") {
						t.Errorf("another body: got %+v", p)
					}
				}
				if v.event == "sandbox.restored" || v.id == "restartSandbox" {
					want[v1.Sandbox](h, 200, "POST", at+v.path, body, "Idempotency-Key", "k2")
					if got := h.happened(box, v.event); got != n+1 {
						t.Errorf("with another key %s happened %d times, want %d", v.event, got, n+1)
					}
				}
			})
		}
	}
}

func keyedGit() []keyedVerb {
	repo := func(o object) object { o["path"] = "from"; return o }
	return []keyedVerb{
		{id: "gitInit", path: "init", body: object{"path": "from", "branch": "main"}, status: 200},
		{id: "gitAdd", path: "add", body: repo(object{"all": true}), status: 204},
		{id: "gitCommit", path: "commit", body: repo(object{"message": "once", "author": "a", "email": "a@b.example", "allow_empty": true}), other: repo(object{"message": "other"}), status: 200},
		{id: "gitCreateBranch", path: "branches", body: repo(object{"name": "topic"}), status: 201},
		{id: "gitCheckout", path: "checkout", body: repo(object{"target": "topic"}), status: 200},
		{id: "gitReset", path: "reset", body: repo(object{"mode": "hard"}), status: 200},
		{id: "gitRestore", path: "restore", body: repo(object{"files": []string{"file"}}), status: 204},
		{id: "gitAddRemote", path: "remotes", body: repo(object{"name": "origin", "url": "../bare"}), status: 201},
		{id: "gitPush", path: "push", body: repo(object{"remote": "origin", "branch": "topic", "set_upstream": true}), status: 200},
		{id: "gitPull", path: "pull", body: repo(object{"remote": "origin", "branch": "topic"}), status: 200},
		{id: "gitClone", path: "clone", body: object{"url": "./from", "path": "to"}, status: 200},
	}
}

func TestGitWithAKeyIsDoneOnce(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := open(t)
	at := "/v1/sandboxes/" + h.create().ID
	want[v1.ExecResult](h, 200, "POST", at+"/exec", object{"command": "git init -q --bare -b main bare && mkdir from && echo text > from/file"})
	for _, v := range keyedGit() {
		first := h.do("POST", at+"/git/"+v.path, v.body, "Idempotency-Key", v.id)
		if first.StatusCode != v.status {
			t.Fatalf("%s: got %d %s", v.id, first.StatusCode, first.body)
		}
		again := h.do("POST", at+"/git/"+v.path, v.body, "Idempotency-Key", v.id)
		if again.StatusCode != v.status || again.Header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(first.body) {
			t.Errorf("%s again: got %d %s %v, want %s", v.id, again.StatusCode, again.body, again.Header, first.body)
		}
		if v.other != nil {
			want[v1.Problem](h, 422, "POST", at+"/git/"+v.path, v.other, "Idempotency-Key", v.id)
		}
	}
	log := want[v1.GitLog](h, 200, "GET", at+"/git/log?path=from", nil)
	if len(log.Items) != 1 {
		t.Errorf("a commit was made %d times", len(log.Items))
	}
}

// Of a thousand creates with one key one makes a sandbox, and all learn of that one; another body is refused.
func TestAThousandCreatesWithOneKey(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := object{"metadata": object{"of": "all"}}
	var mu sync.Mutex
	made := make(map[string]int)
	slots := make(chan struct{}, 32)
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a := h.do("POST", "/v1/sandboxes", body, "Idempotency-Key", "one")
			for a.StatusCode == 409 { // the first is being served
				a = h.do("POST", "/v1/sandboxes", body, "Idempotency-Key", "one")
			}
			var s v1.Sandbox
			if err := json.Unmarshal(a.body, &s); err != nil || a.StatusCode != 201 {
				t.Errorf("got %d %s (%v)", a.StatusCode, a.body, err)
			}
			mu.Lock()
			defer mu.Unlock()
			made[s.ID]++
		})
	}
	wg.Wait()
	if len(made) != 1 || want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil).Total != 1 {
		t.Errorf("sandboxes: %v", made)
	}
	p := want[v1.Problem](h, 422, "POST", "/v1/sandboxes", object{"metadata": object{"of": "another"}}, "Idempotency-Key", "one")
	if len(p.Errors) != 1 || p.Errors[0].Field != "Idempotency-Key" {
		t.Errorf("another body: got %+v", p)
	}
	if n := want[v1.SandboxPage](h, 200, "GET", "/v1/sandboxes", nil).Total; n != 1 {
		t.Errorf("there are %d", n)
	}
}
