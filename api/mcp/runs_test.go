// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/profile/sandboxd"
	"sandpit.dev/api/mcp/profile/sandpit"
	"sandpit.dev/api/mcp/toolset"
	apiruns "sandpit.dev/api/runs"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/runs"
)

// openRuns is a house whose server is as the product's: /mcp, what is below it, and
// /artifacts, behind a guard that logs every request. Its engine keeps artifacts. It
// can be restarted.
type runHouse struct {
	*house
	server    *enginetest.Server
	artifacts string        // the directory that they are in
	after     time.Duration // how long a call takes before it becomes a task; zero: as by default
	base      string
	files     *filelink.Links
	stop      func()
}

func openRuns(t testing.TB, change func(*engine.Options)) *runHouse {
	t.Helper()
	files, err := filelink.New(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	artifacts := filepath.Join(dir, "artifacts")
	kept := runs.Options{Artifacts: runs.ArtifactOptions{Dir: artifacts}}
	if change == nil {
		change = func(*engine.Options) {}
	}
	server := enginetest.StartRuns(t, dir, kept, change)
	h := &runHouse{house: &house{t: t, store: server.Store, http: client(t)}, server: server, artifacts: artifacts, files: files}
	h.serve()
	t.Cleanup(func() { h.stop() })
	return h
}

// serve serves the engine.
func (h *runHouse) serve() {
	t, e, r := h.t, h.server.Engine, h.server.Runs
	handler, err := mcp.New(mcp.Options{Services: service.Of(e, h.server.Files, ports.New(e), h.server.Code, r, deskOf(e), skills.New(e, skills.Options{})), Caller: guard.Caller, Version: "test", Groups: []string{toolset.GroupRuns}, Files: h.files, KeepAlive: 100 * time.Millisecond, TaskAfter: h.after})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Options{Tokens: callers, Logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	served := &apiruns.Handler{Artifacts: r, Links: h.files, Caller: guard.Caller, Refuse: guard.Error}
	byToken, byLink, tools := g.Wrap("artifacts", served), g.WrapOpen(served), g.Wrap("mcp", handler)
	s := startServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, apiruns.Root):
			tools.ServeHTTP(w, r)
		case apiruns.IsLink(r):
			byLink.ServeHTTP(w, r)
		default:
			byToken.ServeHTTP(w, r)
		}
	}))
	h.engine, h.inside, h.runs, h.code, h.handler, h.base, h.url = e, h.server.Files, r, h.server.Code, handler, s.URL, s.URL+"/mcp"
	over := false
	h.stop = func() {
		if over {
			return
		}
		over = true
		h.server.Stop()
		handler.Close()
		// As the server itself ends: over HTTP/2 the end of a stream comes behind its last bytes.
		if err := s.Config.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		s.Close()
	}
}

func (h *runHouse) restart() {
	h.stop()
	h.server.Restart()
	h.serve()
}

// get asks for an address with a token; "": without.
func (h *runHouse) get(token, path string, head ...string) *http.Response {
	h.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = h.base + path
	}
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := h.http.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (h *runHouse) body(token, path string, status int, head ...string) string {
	h.t.Helper()
	resp := h.get(token, path, head...)
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		h.t.Errorf("GET %s: got %s, %v, want %d\n%s", path, resp.Status, err, status, b)
	}
	return string(b)
}

// sandboxd is a session of alice's with the profile of that name.
func (h *runHouse) sandboxd(version string) *sdk.ClientSession {
	h.t.Helper()
	c := *h.house
	c.url = h.base + "/mcp/" + sandboxd.Name
	return c.session("t-alice", version, nil)
}

// status reads a run's status until it has ended.
func (h *runHouse) ended(id string) v1.Run {
	h.t.Helper()
	if _, err := h.runs.Await(h.t.Context(), callers["t-alice"], id, time.Minute); err != nil {
		h.t.Fatal(err)
	}
	var r v1.Run
	if err := json.Unmarshal([]byte(h.body("t-alice", "/mcp/runs/"+id, http.StatusOK)), &r); err != nil {
		h.t.Fatal(err)
	}
	return r
}

// asked starts a run and does not wait for it.
func (h *runHouse) asked(identifier string, commands ...any) (id string) {
	h.t.Helper()
	res := call(h.t, h.sandboxd(handshake), "run_sandbox", arguments{"identifier": identifier, "commands": commands})
	if res.IsError {
		h.t.Fatal(text(h.t, res))
	}
	return structured[struct {
		RunID string `json:"run_id"`
	}](h.t, res).RunID
}

type sseEvent struct {
	id         int
	name, data string
}

// follow reads a stream of events to its end.
func follow(t testing.TB, r io.Reader) (all []sseEvent, comments int) {
	t.Helper()
	var ev sseEvent
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "":
			if strings.HasPrefix(lines.Text(), ":") {
				comments++
			}
			if ev.name != "" {
				all = append(all, ev)
			}
			ev = sseEvent{}
		case "id":
			ev.id, _ = strconv.Atoi(value)
		case "event":
			ev.name = value
		case "data":
			ev.data = value
		}
	}
	if err := lines.Err(); err != nil {
		t.Error("the stream:", err)
	}
	return all, comments
}

func names(all []sseEvent) (out []string) {
	for _, ev := range all {
		out = append(out, ev.name)
	}
	return out
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)

	t.Run("ByPathHasTheThreeToolsExactly", func(t *testing.T) {
		for _, version := range []string{handshake, stateless} {
			res := listed(t, h.sandboxd(version))
			if got, want := toolNames(res), []string{"delete_sandbox", "restart_sandbox", "run_sandbox"}; !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", version, got, want)
			}
			schemas := make(map[string]string)
			for _, tool := range res.Tools {
				b, err := json.Marshal(tool.InputSchema)
				if err != nil {
					t.Fatal(err)
				}
				schemas[tool.Name] = string(b)
				if !strings.Contains(schemas[tool.Name], `"pattern":"^[a-zA-Z0-9_-]{1,36}$"`) {
					t.Errorf("%s: the identifier's schema: %s", tool.Name, b)
				}
			}
			for _, arg := range []string{
				"shell", "argv", "cwd", "env", "timeout_ms", "allow_failure", "ttl_seconds", "default_cwd", "default_env", "as_user",
				"continue_on_error", "lock_sandbox", "await_completion", "await_timeout_ms",
			} {
				if !strings.Contains(schemas["run_sandbox"], strconv.Quote(arg)+":") {
					t.Errorf("run_sandbox does not take %s", arg)
				}
			}
		}
	})

	t.Run("ByToken", func(t *testing.T) {
		if got := toolNames(listed(t, h.session("t-profiled", handshake, nil))); len(got) != 3 {
			t.Errorf("got %v, want the three of the token's profile", got)
		}
		plain := *h.house
		plain.url = h.base + "/mcp/" + sandpit.Name
		if got := toolNames(listed(t, plain.session("t-profiled", handshake, nil))); len(got) < 10 {
			t.Errorf("the path goes before the token; got %v", got)
		}
	})

	t.Run("ByConfiguration", func(t *testing.T) {
		handler, err := mcp.New(mcp.Options{Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{})), Caller: guard.Caller, Profile: sandboxd.Name})
		if err != nil {
			t.Fatal(err)
		}
		g, err := guard.New(guard.Options{Tokens: callers})
		if err != nil {
			t.Fatal(err)
		}
		c := *h.house
		c.url = newServer(t, g.Wrap("mcp", handler))
		defer handler.Close()
		s := c.session("t-alice", handshake, nil)
		if got := toolNames(listed(t, s)); len(got) != 3 {
			t.Errorf("got %v, want the three of the server's profile", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := mcp.New(mcp.Options{Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{})), Caller: guard.Caller, Profile: "nonsense"}); err == nil {
			t.Error("a profile that is none was taken")
		}
	})

	t.Run("AnUnknownOneNamesThoseThereAre", func(t *testing.T) {
		for _, path := range []string{"/mcp/nonsense", "/mcp/sandpit/x", "/mcp/..%2f"} {
			wantParts(t, h.body("t-alice", path, http.StatusNotFound), "there is no profile", sandpit.Name, sandboxd.Name)
		}
	})

	t.Run("AReaderSeesNoToolThatWrites", func(t *testing.T) {
		c := *h.house
		c.url = h.base + "/mcp/" + sandboxd.Name
		s := c.session("t-reader", handshake, nil)
		if got := toolNames(listed(t, s)); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		res := call(t, s, "run_sandbox", arguments{"identifier": "x", "commands": []any{"true"}})
		if !res.IsError || !strings.Contains(text(t, res), "sandboxes:write") {
			t.Errorf("a call all the same: %s", text(t, res))
		}
	})
}

func TestSandboxdTools(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	s := h.sandboxd(handshake)

	t.Run("RunAnswersAtOnceAndSaysWhereToLook", func(t *testing.T) {
		res := call(t, s, "run_sandbox", arguments{"identifier": "chat-1", "commands": []any{"sleep 0.2; echo hi"}})
		got := structured[map[string]any](t, res)
		id, _ := got["run_id"].(string)
		want := map[string]any{
			"tool": "run_sandbox", "run_id": id, "identifier": "chat-1", "sandbox_name": "chat-1",
			"events_url": "/mcp/events?run_id=" + id, "status_url": "/mcp/runs/" + id,
		}
		if len(id) != 36 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
		r := h.ended(id)
		if r.State != "completed" || r.Commands[0].Stdout != "hi\n" || r.SandboxID == "" {
			t.Errorf("the run: %+v", r)
		}
	})

	t.Run("RunWaitsWhereItIsTold", func(t *testing.T) {
		res := call(t, s, "run_sandbox", arguments{
			"identifier": "chat-1", "commands": []any{arguments{"argv": []string{"echo", "a b"}}},
			"options": arguments{"await_completion": true},
		})
		final, _ := structured[map[string]any](t, res)["final"].(map[string]any)
		if final == nil || final["state"] != "completed" {
			t.Errorf("got %v", final)
		}
		res = call(t, s, "run_sandbox", arguments{
			"identifier": "chat-1", "commands": []any{"sleep 5"}, "options": arguments{"await_completion": true, "await_timeout_ms": 1},
		})
		got := structured[map[string]any](t, res)
		if final, there := got["final"]; !there || final != nil {
			t.Errorf("in vain: got the final %v", final)
		}
		if _, err := h.runs.Cancel(t.Context(), callers["t-alice"], got["run_id"].(string)); err != nil {
			t.Error(err)
		}
	})

	t.Run("DeleteAndRestart", func(t *testing.T) {
		h.ended(h.asked("chat-2", "echo old > file"))
		before, err := h.engine.Get(t.Context(), callers["t-alice"], "chat-2")
		if err != nil {
			t.Fatal(err)
		}
		got := structured[struct {
			Tool    string
			Sandbox struct {
				Identifier  string
				ContainerID string `json:"container_id"`
				Name, Image string
				CreatedAt   time.Time `json:"created_at"`
				ExpiresAt   time.Time `json:"expires_at"`
			}
		}](t, call(t, s, "restart_sandbox", arguments{"identifier": "chat-2", "options": arguments{"ttl_seconds": 600}}))
		if b := got.Sandbox; got.Tool != "restart_sandbox" || b.Identifier != "chat-2" || b.ContainerID != string(before.ID) || b.Name != "chat-2" || b.Image != "python" {
			t.Errorf("got %+v", got)
		}
		if left := time.Until(got.Sandbox.ExpiresAt); left > 11*time.Minute || left < 9*time.Minute {
			t.Errorf("it ends in %v, want ten minutes", left)
		}
		if r := h.ended(h.asked("chat-2", "ls file")); r.State != "failed" {
			t.Errorf("a file outlived the restart: %+v", r)
		}
		for range 2 { // one that is not there is no error
			del := structured[map[string]any](t, call(t, s, "delete_sandbox", arguments{"identifier": "chat-2"}))
			if fmt.Sprint(del) != "map[deleted:true identifier:chat-2 tool:delete_sandbox]" {
				t.Errorf("got %v", del)
			}
		}
		if res := call(t, s, "restart_sandbox", arguments{"identifier": "chat-3"}); res.IsError {
			t.Errorf("a restart of one that is not there: %s", text(t, res))
		}
	})
}

func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	id := h.asked("chat-1", "echo one; echo two >&2", "echo file > ../artifacts/x")
	resp := h.get("t-alice", "/mcp/events?run_id="+id)
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("got %s, %v", resp.Status, resp.Header)
	}
	all, _ := follow(t, resp.Body) // which ends by itself
	want := []string{"run_started", "command_started", "command_finished", "command_started", "command_finished", "artifacts_extracted", "run_finished"}
	if got := slices.DeleteFunc(names(all), func(n string) bool { return strings.HasPrefix(n, "command_std") }); !slices.Equal(got, want) {
		t.Errorf("events: got %v, want %v", got, want)
	}
	for i, ev := range all {
		if ev.id != i+1 {
			t.Errorf("event %d has the id %d", i+1, ev.id)
		}
		var d map[string]any
		if err := json.Unmarshal([]byte(ev.data), &d); err != nil || d["run_id"] != id {
			t.Errorf("%s: %s, %v", ev.name, ev.data, err)
		}
	}
	wantParts(t, fmt.Sprint(all), `"chunk":"one\n"`, `"chunk":"two\n"`, `"exit_code":0`, `"count":1`, `"shell":"echo one; echo two \u003e\u00262"`)

	t.Run("GoOnBehindTheLastThatWasSeen", func(t *testing.T) {
		for after := range all {
			rest, _ := follow(t, h.get("t-alice", "/mcp/events?run_id="+id, "Last-Event-ID", strconv.Itoa(after)).Body)
			if fmt.Sprint(rest) != fmt.Sprint(all[after:]) {
				t.Errorf("after %d: got %v", after, names(rest))
			}
		}
		if b := h.body("t-alice", "/mcp/events?run_id="+id, http.StatusNoContent, "Last-Event-ID", strconv.Itoa(len(all))); b != "" {
			t.Errorf("after the last: %q", b)
		}
	})

	t.Run("AreRefusedWhereThereAreNone", func(t *testing.T) {
		h.body("t-alice", "/mcp/events", http.StatusUnprocessableEntity)
		h.body("t-alice", "/mcp/events?run_id=nonsense", http.StatusNotFound)
		h.body("t-alice", "/mcp/events?run_id="+id, http.StatusUnprocessableEntity, "Last-Event-ID", "99")
		h.body("t-alice", "/mcp/events?run_id="+id, http.StatusUnprocessableEntity, "Last-Event-ID", "x")
		h.body("t-stranger", "/mcp/events?run_id="+id, http.StatusNotFound)
		h.body("t-stranger", "/mcp/runs/"+id, http.StatusNotFound)
		h.body("", "/mcp/runs/"+id, http.StatusUnauthorized)
		h.body("", "/mcp/events?run_id="+id, http.StatusUnauthorized)
		h.body("t-alice", "/mcp/runs/", http.StatusNotFound)
		h.body("t-alice", "/mcp/runs/..%2f..", http.StatusNotFound)
		h.body("t-reader", "/mcp/runs/"+id, http.StatusOK)
	})

	t.Run("BeatWhileNothingHappensAndGoOnWithTheNextServer", func(t *testing.T) {
		id := h.asked("chat-1", "echo begin; sleep 1.2; echo end")
		beats := make(chan int, 1)
		var first []sseEvent
		resp := h.get("t-alice", "/mcp/events?run_id="+id)
		go func() {
			all, n := follow(t, resp.Body)
			first = all
			beats <- n
		}()
		time.Sleep(500 * time.Millisecond) // for heartbeats, which come every 100
		h.restart()
		if n := <-beats; n < 2 {
			t.Errorf("%d heartbeats", n)
		}
		last := first[len(first)-1]
		if last.name != "error" || !strings.Contains(last.data, "the server is stopping") {
			t.Errorf("the last event of a server that stops: %+v", last)
		}
		seen := first[len(first)-2].id
		rest, _ := follow(t, h.get("t-alice", "/mcp/events?run_id="+id, "Last-Event-ID", strconv.Itoa(seen)).Body)
		text := fmt.Sprint(first, rest)
		if strings.Count(text, `"chunk":"begin\n"`) != 1 || strings.Count(text, `"chunk":"end\n"`) != 1 || rest[len(rest)-1].name != "run_finished" {
			t.Errorf("over two servers: %s", text)
		}
	})
}

func TestArtifactsAreServed(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	s := h.sandboxd(handshake)
	res := call(t, s, "run_sandbox", arguments{
		"identifier": "chat-1", "options": arguments{"await_completion": true},
		"commands": []any{"cd ../artifacts; printf 0123456789 > 'a b.txt'; mkdir d; echo '<script>alert(1)</script>' > d/page.html; echo '<svg/>' > d/x.svg"},
	})
	id := structured[struct {
		RunID string `json:"run_id"`
	}](t, res).RunID
	var links []string
	for _, c := range res.Content {
		if l, ok := c.(*sdk.ResourceLink); ok {
			links = append(links, l.URI)
		}
	}
	if len(links) != 3 || !strings.HasPrefix(links[0], h.base+"/artifacts/chat-1/"+id+"/a%20b.txt?token=") {
		t.Fatalf("links: %v", links)
	}

	t.Run("ByRunAndAsTheLatest", func(t *testing.T) {
		for _, at := range []string{id, "latest"} {
			if got := h.body("t-alice", "/artifacts/chat-1/"+at+"/a%20b.txt", http.StatusOK); got != "0123456789" {
				t.Errorf("%s: got %q", at, got)
			}
			wantParts(t, h.body("t-reader", "/artifacts/chat-1/"+at+"/", http.StatusOK), `"path":"a b.txt"`, `"path":"d/page.html"`, id)
			wantParts(t, h.body("t-reader", "/artifacts/chat-1/"+at+"/d/", http.StatusOK), `"path":"d/x.svg"`)
		}
		if got := h.body("t-alice", "/artifacts/chat-1/"+id+"/a%20b.txt", http.StatusPartialContent, "Range", "bytes=2-4"); got != "234" {
			t.Errorf("a range: %q", got)
		}
		etag := h.get("t-alice", "/artifacts/chat-1/"+id+"/a%20b.txt").Header.Get("ETag")
		h.body("t-alice", "/artifacts/chat-1/"+id+"/a%20b.txt", http.StatusNotModified, "If-None-Match", etag)
	})

	t.Run("AreDataAndNoPages", func(t *testing.T) {
		for name, inline := range map[string]bool{"a%20b.txt": true, "d/page.html": false, "d/x.svg": false} {
			head := h.get("t-alice", "/artifacts/chat-1/"+id+"/"+name).Header
			if head.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(head.Get("Content-Security-Policy"), "sandbox;") {
				t.Errorf("%s: %v", name, head)
			}
			if got := strings.HasPrefix(head.Get("Content-Disposition"), "inline"); got != inline {
				t.Errorf("%s: %q", name, head.Get("Content-Disposition"))
			}
		}
	})

	t.Run("NeedATokenOrTheirOwnLink", func(t *testing.T) {
		path := "/artifacts/chat-1/" + id + "/a%20b.txt"
		h.body("", path, http.StatusUnauthorized)
		h.body("t-stranger", path, http.StatusNotFound)
		h.body("t-stranger", "/artifacts/chat-1/latest/a%20b.txt", http.StatusNotFound)
		if got := h.body("", links[0], http.StatusOK); got != "0123456789" {
			t.Errorf("by link: %q", got)
		}
		_, token, _ := strings.Cut(links[0], "?")
		h.body("", "/artifacts/chat-1/"+id+"/d/page.html?"+token, http.StatusUnauthorized)
		h.body("", "/artifacts/chat-1/latest/a%20b.txt?"+token, http.StatusUnauthorized)
		h.body("", "/artifacts/chat-1/"+id+"/?"+token, http.StatusUnauthorized)
		h.body("", path+"?"+token[:len(token)-2], http.StatusUnauthorized)
		h.body("t-alice", path+"?token=", http.StatusUnauthorized)
		run, err := h.runs.Get(t.Context(), callers["t-alice"], id)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := http.NewRequest(http.MethodGet, h.base, nil)
		if err != nil {
			t.Fatal(err)
		}
		if overTLS {
			asked.TLS = new(tls.ConnectionState)
		}
		old := apiruns.Link(h.files, asked, run, "a b.txt", time.Now())
		wantParts(t, h.body("", old, http.StatusUnauthorized), "expired")
		// A link to a file of a sandbox, signed by the same key, is none to an artifact.
		foreign := h.files.Token(filelink.Grant{Project: "default", Sandbox: string(run.Sandbox), Path: "a b.txt", Expires: time.Now().Add(time.Hour)})
		h.body("", path+"?token="+foreign, http.StatusUnauthorized)
	})

	t.Run("AreNothingElse", func(t *testing.T) {
		for _, path := range []string{
			"/artifacts/chat-1/" + id + "/../../../records.db", "/artifacts/chat-1/" + id + "/..%2f..%2f..%2frecords.db",
			"/artifacts/chat-1/" + id + "/%2e%2e/%2e%2e/records.db", "/artifacts/chat-1/" + id + "/d", "/artifacts/chat-1/" + id + "/none",
			"/artifacts/chat-1/" + id + "//a%20b.txt", "/artifacts/chat-1/" + id + "/a%20b.txt%00", "/artifacts/other/" + id + "/a%20b.txt",
			"/artifacts/chat-1/00000000-0000-4000-8000-000000000000/a%20b.txt", "/artifacts/chat-1/..", "/artifacts/", "/artifacts/chat-1",
			"/artifacts/chat-1/%2e%2e/" + id + "/a%20b.txt",
		} {
			resp := h.get("t-alice", path)
			if resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s: got %s", path, resp.Status)
			}
		}
	})

	t.Run("TheLatestSurvivesARestart", func(t *testing.T) {
		h.restart()
		if got := h.body("t-alice", "/artifacts/chat-1/latest/a%20b.txt", http.StatusOK); got != "0123456789" {
			t.Errorf("got %q", got)
		}
	})
}
