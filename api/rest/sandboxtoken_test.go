// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

// insideOperations are all that a token of one sandbox may do, in that one. Every other operation of the document
// refuses it, also one that is new: a verb has to ask for it.
func insideOperations() []string {
	return strings.Fields(`whoami getSandbox startSandbox stopSandbox restartSandbox pauseSandbox resumeSandbox listActivity networkLog
		exec startProcess listProcesses getProcess waitProcess processLogs followProcess writeStdin signalProcess resizeProcess killProcess killProcessByPost killProcesses
		openTerminal listTerminals attachTerminal createShell listShells getShell deleteShell interruptShell shellExec shellCommand
		runCode createContext listContexts getContext restartContext interruptContext deleteContext listPorts connectPort
		readOrListFiles readFile writeFile writeFileJSON writeFileByQuery deleteFile deleteFileByQuery statFile packFiles unpackFiles makeDir moveFile watchFiles changeFile findFiles searchFiles replaceInFiles`)
}

// withToken returns the house with a token of one sandbox.
func (h *house) withToken(ref string, body object) *house {
	h.t.Helper()
	t := want[v1.SandboxToken](h, 201, "POST", "/v1/sandboxes/"+ref+"/tokens", body)
	other := *h
	other.token = t.Secret
	return &other
}

// everyRoute returns all operations of the document, also those without a parameter, with their bodies.
func everyRoute(t *testing.T) (all []route, body map[string]any) {
	t.Helper()
	_, body = routes(t)
	text, err := os.ReadFile("testdata/openapi.json")
	must(t, err)
	var doc struct {
		Paths map[string]map[string]struct {
			ID   string `json:"operationId"`
			Body struct {
				Content map[string]struct{ Example any }
			} `json:"requestBody"`
		}
	}
	must(t, json.Unmarshal(text, &doc))
	for path, methods := range doc.Paths {
		for method, o := range methods {
			all = append(all, route{o.ID, strings.ToUpper(method), path})
			if c, ok := o.Body.Content["application/json"]; ok && body[o.ID] == nil {
				body[o.ID] = c.Example
			}
		}
	}
	slices.SortFunc(all, func(a, b route) int { return strings.Compare(a.id, b.id) })
	return all, body
}

// pathOf puts values in the place of a route's parameters.
func pathOf(r route, of map[string]string) string {
	path := "/v1" + r.path
	for name, value := range of {
		if begin, own := strings.CutPrefix(name, "/"); own {
			if full := "/v1/" + begin; strings.HasPrefix(path, full) {
				path = "/v1" + name[:strings.Index(name, "{")] + value + strings.TrimPrefix(path, full)
			}
		}
	}
	for name, value := range of {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	last := r.path[strings.LastIndex(r.path, "/"):]
	if r.method != "POST" && strings.HasPrefix(r.path, "/sandboxes/") && slices.Contains([]string{"/files", "/stat", "/archive", "/watch"}, last) {
		path += "?path=keep.txt"
	}
	if q := queries[r.id]; q != "" {
		path += "?" + q
	}
	return path
}

// TestATokenOfOneSandboxReachesNothingElse walks the document: with a token that may do all that such a token can,
// whatever is not of the inside of its sandbox is refused, and so is everything of another one.
func TestATokenOfOneSandboxReachesNothingElse(t *testing.T) {
	t.Parallel()
	h := open(t)
	red := h.as("red", access.Admin)
	of := owned(t, red)
	of["name"], of["digest"], of["layer"] = "main", "none", "none"
	own := want[v1.Sandbox](red, 201, "POST", "/v1/sandboxes", object{"key": "own"})
	caged := red.withToken("own", object{"name": "caged", "scopes": []string{"read", "write", "ports"}})
	before := seen(t, red, "/v1/sandboxes/"+of["id"])
	all, body := everyRoute(t)
	inside := insideOperations()
	for _, git := range all {
		if strings.HasPrefix(git.path, "/sandboxes/{id}/git/") {
			inside = append(inside, git.id)
		}
	}
	tried, opened := 0, make(map[string]bool)
	for _, place := range []struct {
		id    string
		other bool
	}{{of["id"], true}, {"box", true}, {own.ID, false}} {
		at := maps.Clone(of)
		at["id"] = place.id
		for _, r := range all {
			if r.id == "getOpenAPI" || r.id == "signIn" || place.other && !strings.Contains(r.path, "/sandboxes/{id}") { // the first two need no token
				continue
			}
			// What ends the sandbox's processes is tried elsewhere.
			if !place.other && slices.Contains([]string{"stopSandbox", "restartSandbox", "pauseSandbox", "killProcesses", "killProcess", "killProcessByPost", "openTerminal", "watchFiles"}, r.id) {
				continue
			}
			path := pathOf(r, at)
			if strings.ContainsAny(path, "{}") {
				t.Errorf("%s: no value for a parameter of %s", r.id, path)
				continue
			}
			a := caged.do(r.method, path, body[r.id])
			if a.StatusCode == http.StatusUpgradeRequired {
				a = caged.do(r.method, path, body[r.id], "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
			}
			tried++
			if strings.Contains(string(a.body), "of-red-alone") {
				t.Errorf("%s tells a secret: %s", r.id, a.body)
			}
			refused := a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusForbidden
			if a.StatusCode == http.StatusNotImplemented { // this server has none of it, for nobody
				refused = h.do(r.method, path, body[r.id]).StatusCode == http.StatusNotImplemented
			}
			if !place.other && slices.Contains(inside, r.id) {
				opened[r.id] = opened[r.id] || a.StatusCode != http.StatusForbidden
				if a.StatusCode == http.StatusForbidden {
					t.Errorf("%s %s: %s %.200s, which the token is for", r.method, path, a.Status, a.body)
				}
				continue
			}
			if !refused {
				t.Errorf("%s, %s %s: %s %.200s", r.id, r.method, path, a.Status, a.body)
			}
			if place.other && slices.Contains(inside, r.id) && a.StatusCode != http.StatusNotFound {
				t.Errorf("%s, %s %s: %s tells that there is such a sandbox", r.id, r.method, path, a.Status)
			}
		}
	}
	t.Logf("%d requests, of which %d operations are for it", tried, len(opened))
	after := seen(t, red, "/v1/sandboxes/"+of["id"])
	for path, was := range before {
		if path != "/v1/sandboxes" && after[path] != was { // the list has its own sandbox, which it changed
			t.Errorf("%s changed:\n%s\n%s", path, was, after[path])
		}
	}
}

func TestTheScopesOfASandboxesToken(t *testing.T) {
	t.Parallel()
	h := open(t)
	red := h.as("red")
	s := red.create()
	at := "/v1/sandboxes/" + s.ID
	reads, writes, ports := red.withToken(s.ID, object{"scopes": []string{"read"}}), red.withToken(s.ID, object{"scopes": []string{"write"}}), red.withToken(s.ID, object{"scopes": []string{"sandboxes:ports"}})
	for _, c := range []struct {
		name   string
		of     *house
		method string
		path   string
		body   any
		status int
	}{
		{"ReadReads", reads, "GET", at + "/processes", nil, 200},
		{"ReadDoesNotWrite", reads, "POST", at + "/exec", object{"command": "true"}, 403},
		{"ReadDoesNotStop", reads, "POST", at + "/stop", nil, 403},
		{"ReadDoesNotConnect", reads, "GET", at + "/ports/80/connect", nil, 403},
		{"WriteWrites", writes, "POST", at + "/exec", object{"command": "true"}, 200},
		{"WriteDoesNotRead", writes, "GET", at + "/processes", nil, 403},
		{"PortsDoNotRead", ports, "GET", at + "/files", nil, 403},
		{"PortsDoNotWrite", ports, "PUT", at + "/files/x", []byte("x"), 403},
		{"NoneMakesAnother", writes, "POST", at + "/tokens", object{}, 403},
		{"NoneEndsThem", writes, "POST", at + "/tokens/rotate", nil, 403},
		{"NoneDeletes", writes, "DELETE", at, nil, 403},
		{"NoneHasAnotherProject", writes, "POST", at + "/exec", object{"command": "true"}, 403},
	} {
		var header []string
		if c.name == "NoneHasAnotherProject" {
			header = []string{guard.ProjectHeader, "blue"}
		}
		if strings.HasSuffix(c.path, "/connect") {
			header = []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
		}
		if a := c.of.do(c.method, c.path, c.body, header...); a.StatusCode != c.status {
			t.Errorf("%s: got %s %s, want %d", c.name, a.Status, a.body, c.status)
		}
	}
	who := want[v1.Whoami](reads, 200, "GET", "/v1/whoami", nil)
	if who.SandboxID == nil || *who.SandboxID != s.ID || who.Name != "sandbox:token" || who.Project != "red" || who.Left != nil {
		t.Errorf("whoami: %+v", who)
	}
	page := want[v1.EventPage](red, 200, "GET", at+"/activity?type=exec", nil)
	if len(page.Items) != 1 || page.Items[0].Actor != "sandbox:token" {
		t.Errorf("the activity has %+v", page.Items)
	}
	// Who may only read gives nobody more.
	reader := h.as("red", access.SandboxesRead)
	if a := reader.do("POST", at+"/tokens", object{"scopes": []string{"read"}}); a.StatusCode != 403 {
		t.Errorf("a reader made one: %s", a.Status)
	}
	writer := h.as("red", access.SandboxesWrite)
	if a := writer.do("POST", at+"/tokens", object{"scopes": []string{"read"}}); a.StatusCode != 403 {
		t.Errorf("who may not read made one that may: %s", a.Status)
	}
}

func TestBadRequestsForASandboxesToken(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.create()
	for name, c := range map[string]struct {
		body  object
		field string
	}{
		"AnUnknownScope":  {object{"scopes": []string{"admin"}}, "scopes"},
		"TheServersScope": {object{"scopes": []string{"server:admin"}}, "scopes"},
		"ALongName":       {object{"name": strings.Repeat("x", 65)}, "name"},
		"AnOddName":       {object{"name": "a\nb"}, "name"},
		"NoTime":          {object{"expires_in_seconds": 0}, "expires_in_seconds"},
		"APastTime":       {object{"expires_in_seconds": -1}, "expires_in_seconds"},
		"TooLong":         {object{"expires_in_seconds": int64(1) << 62}, "expires_in_seconds"},
	} {
		p := want[v1.Problem](h, 422, "POST", "/v1/sandboxes/"+s.ID+"/tokens", c.body)
		if len(p.Errors) != 1 || p.Errors[0].Field != c.field {
			t.Errorf("%s: got %+v", name, p)
		}
		p = want[v1.Problem](h, 422, "POST", "/v1/sandboxes", object{"token": c.body, "key": "made-of-" + name})
		if len(p.Errors) != 1 || p.Errors[0].Field != "token."+c.field {
			t.Errorf("%s, of a create: got %+v", name, p)
		}
		if a := h.do("GET", "/v1/sandboxes/made-of-"+name, nil); a.StatusCode != 404 {
			t.Errorf("%s: the create made a sandbox: %s", name, a.Status)
		}
	}
	if a := h.do("POST", "/v1/sandboxes/none/tokens", object{}); a.StatusCode != 404 {
		t.Errorf("of none: %s", a.Status)
	}
}

func TestATokenComesWithACreate(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := object{"key": "agent", "token": object{"name": "agent-7", "scopes": []string{"read"}, "expires_in_seconds": 60}}
	first := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", body, v1.IdempotencyKey, "a-create")
	if first.Token == nil || first.Token.Secret == "" || first.Token.Name != "agent-7" || first.Token.ExpiresAt == nil || first.Token.SandboxID != first.ID {
		t.Fatalf("got %+v", first.Token)
	}
	other := *h
	other.token = first.Token.Secret
	if got := want[v1.Sandbox](&other, 200, "GET", "/v1/sandboxes/agent", nil); got.ID != first.ID || got.Token != nil {
		t.Errorf("got %+v", got)
	}
	// What is kept of the answer has no token in it.
	again := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", body, v1.IdempotencyKey, "a-create")
	if again.ID != first.ID || again.Token == nil || again.Token.Secret != "" || !again.Token.SecretOmitted {
		t.Errorf("repeated: %+v", again.Token)
	}
	known := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes", body)
	if known.ID != first.ID || known.Token == nil || known.Token.Secret == "" {
		t.Errorf("of a known key: %+v", known.Token)
	}
}

// What a token has open ends when the tokens of its sandbox do, and when the sandbox is deleted.
func TestWhatASandboxesTokenHasOpenEndsWithIt(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, end := range map[string]func(id string){
		"ByRotate": func(id string) {
			if a := h.do("POST", "/v1/sandboxes/"+id+"/tokens/rotate", nil); a.StatusCode != 204 {
				t.Errorf("got %s %s", a.Status, a.body)
			}
		},
		"ByDelete": func(id string) {
			if a := h.do("DELETE", "/v1/sandboxes/"+id, nil); a.StatusCode != 204 {
				t.Errorf("got %s %s", a.Status, a.body)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := h.create()
			at := "/v1/sandboxes/" + s.ID
			other := h.withToken(s.ID, object{})
			p := want[v1.Process](other, 201, "POST", at+"/processes", object{"argv": []string{"sleep", "1000"}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			header := http.Header{"Authorization": {"Bearer " + other.token}}
			term, _, err := websocket.Dial(ctx, strings.Replace(h.url, "http", "ws", 1)+at+"/terminal", &websocket.DialOptions{HTTPHeader: header})
			must(t, err)
			defer term.CloseNow()
			if _, _, err := term.Read(ctx); err != nil {
				t.Fatalf("the terminal says nothing: %v", err)
			}
			req, err := http.NewRequestWithContext(ctx, "GET", h.url+at+"/processes/"+p.ProcessID+"/output", nil)
			must(t, err)
			req.Header = header.Clone()
			req.Header.Set("Accept", "text/event-stream")
			resp, err := plain.Do(req)
			must(t, err)
			defer resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Fatalf("the stream: %s", resp.Status)
			}
			end(s.ID)
			_, _ = io.Copy(io.Discard, resp.Body)
			if ctx.Err() != nil {
				t.Fatal("the stream went on")
			}
			for err = nil; err == nil; {
				_, _, err = term.Read(ctx)
			}
			if ctx.Err() != nil {
				t.Error("the terminal went on")
			}
			if a := other.do("GET", at, nil); a.StatusCode != 401 {
				t.Errorf("the token is valid still: %s", a.Status)
			}
			if name == "ByRotate" {
				if got := want[v1.Process](h, 200, "GET", at+"/processes/"+p.ProcessID, nil); got.Status != "running" {
					t.Errorf("the process is %s: what it began is not its own", got.Status)
				}
				want[v1.Sandbox](h.withToken(s.ID, object{}), 200, "GET", at, nil)
			}
		})
	}
}

func TestATokenOfAPromotedSandboxSaysWhoHasItsPlace(t *testing.T) {
	t.Parallel()
	h := open(t)
	parent := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{"key": "own"})
	caged := h.withToken("own", object{"name": "caged"})
	forks := want[v1.SandboxList](h, 201, "POST", "/v1/sandboxes/own/fork", object{"key": "copy"})
	fork := forks.Items[0].ID
	want[v1.Sandbox](caged, 200, "GET", "/v1/sandboxes/"+parent.ID, nil)
	want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes/copy/promote", object{})
	for _, ref := range []string{parent.ID, "own", fork} {
		p := want[v1.Problem](caged, 401, "GET", "/v1/sandboxes/"+ref, nil)
		if p.Reason != sandbox.ReasonPromoted || !strings.Contains(p.Detail, parent.ID) || !strings.Contains(p.Detail, fork) || !strings.Contains(p.Remedy, fork) {
			t.Errorf("%s: got %+v, want that %s has the place", ref, p, fork)
		}
	}
	if p := want[v1.Problem](h, 404, "GET", "/v1/sandboxes/"+parent.ID, nil); p.Reason != sandbox.ReasonPromoted || !strings.Contains(p.Detail, fork) {
		t.Errorf("by the id: got %+v", p)
	}
	if p := want[v1.Problem](h.as("strange"), 404, "GET", "/v1/sandboxes/"+parent.ID, nil); p.Reason != sandbox.ReasonNoSandbox || strings.Contains(p.Detail+p.Remedy, fork) {
		t.Errorf("of another project: got %+v", p)
	}
}
