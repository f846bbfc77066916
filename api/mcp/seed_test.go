// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/internal/mcpbridge"
	"sandpit.dev/sandbox"
)

// These hold what mcp-sandboxd, whose tools the profile of that name has, got wrong. Each
// is named after what it was.

func TestSeedDefect01ARequestLogHidTheFlusher(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil) // whose guard logs every request
	id := h.asked("chat-1", "echo begin; sleep 60")
	resp := h.get("t-alice", "/mcp/events?run_id="+id)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"chunk":"begin\n"`) { // while the run goes on
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.runs.Cancel(t.Context(), callers["t-alice"], id); err != nil {
		t.Fatal(err)
	}
}

func TestSeedDefect02ArtifactsLostTheirFirstDirectory(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	h.ended(h.asked("chat-1", "cd ../artifacts; mkdir a b; echo 1 > a/same; echo 2 > b/same; echo 3 > same"))
	for path, want := range map[string]string{"a/same": "1\n", "b/same": "2\n", "same": "3\n"} {
		if got := h.body("t-alice", "/artifacts/chat-1/latest/"+path, http.StatusOK); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestSeedDefect03LimitsWereIgnored(t *testing.T) {
	t.Parallel()
	want := sandbox.Limits{CPU: 0.5, MemoryMB: 300, DiskMB: 700, Pids: 99}
	h := openRuns(t, func(o *engine.Options) { o.Defaults.Limits = want })
	h.ended(h.asked("chat-1", "true"))
	s, err := h.engine.Get(t.Context(), callers["t-alice"], "chat-1")
	if err != nil || s.Limits != want {
		t.Errorf("got %+v, %v, want %+v", s.Limits, err, want)
	}
}

func TestSeedDefect04KillsWereTakenForTimeouts(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	for command, want := range map[string]string{"kill -9 $$": "failed", "exit 137": "failed", "exit 124": "failed"} {
		if r := h.ended(h.asked("chat-1", command)); r.Commands[0].Status != want {
			t.Errorf("%s: got %s (%d, %s)", command, r.Commands[0].Status, *r.Commands[0].ExitCode, r.Commands[0].Cause)
		}
	}
	r := h.ended(h.asked("chat-1", arguments{"shell": "sleep 60", "timeout_ms": 200}))
	if c := r.Commands[0]; c.Status != "timed_out" || c.Cause != "timeout" {
		t.Errorf("one whose time passed: %+v", c)
	}
}

func TestSeedDefect05ALongerLifeWasForgottenByARestart(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	s := h.sandboxd(handshake)
	call(t, s, "run_sandbox", arguments{"identifier": "chat-1", "commands": []any{"true"}})
	res := call(t, s, "run_sandbox", arguments{"identifier": "chat-1", "commands": []any{"true"}, "options": arguments{"ttl_seconds": 7200, "await_completion": true}})
	if res.IsError {
		t.Fatal(text(t, res))
	}
	h.restart()
	got, err := h.engine.Get(t.Context(), callers["t-alice"], "chat-1")
	if err != nil || got.TTL != 2*time.Hour {
		t.Errorf("got %v, %v, want two hours without a use", got.TTL, err)
	}
}

func TestSeedDefect06StreamsNeverEndedAndUnknownRunsLeaked(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	id := h.asked("chat-1", "true")
	if all, _ := follow(t, h.get("t-alice", "/mcp/events?run_id="+id).Body); all[len(all)-1].name != "run_finished" { // follow reads to the end
		t.Errorf("the last event: %+v", all[len(all)-1])
	}
	for range 3 {
		h.body("t-alice", "/mcp/events?run_id="+sandbox.NewRunID(), http.StatusNotFound)
	}
}

func TestSeedDefect07VariablesWereShown(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	const secret = "hush-4711"
	res := call(t, h.sandboxd(handshake), "run_sandbox", arguments{
		"identifier": "chat-1", "commands": []any{arguments{"shell": "test -n \"$KEY\"", "env": arguments{"KEY": secret}}, "sleep 0.3"},
		"options": arguments{"default_env": []string{"OTHER=" + secret}, "await_completion": true},
	})
	id := structured[struct {
		RunID string `json:"run_id"`
	}](t, res).RunID
	answer, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	events, err := io.ReadAll(h.get("t-alice", "/mcp/events?run_id="+id).Body)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string]string{
		"the answer": string(answer), "the status": h.body("t-alice", "/mcp/runs/"+id, http.StatusOK), "the events": string(events),
	} {
		if strings.Contains(b, secret) {
			t.Errorf("%s shows a variable: %s", what, b)
		}
		if !strings.Contains(b, "KEY") {
			t.Errorf("%s: %s", what, b)
		}
	}
	if r := h.ended(id); r.Commands[0].Status != "completed" {
		t.Errorf("the command had no variable: %+v", r.Commands[0])
	}
}

func TestSeedDefect08WordsWereForbidden(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	if r := h.ended(h.asked("chat-1", "echo docker mount modprobe nsenter")); r.State != "completed" || r.Commands[0].Stdout != "docker mount modprobe nsenter\n" {
		t.Errorf("got %+v", r)
	}
}

func TestSeedDefect09ArtifactsWereNeverCollected(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	id := h.asked("chat-1", "echo x > ../artifacts/x")
	h.ended(id)
	dir := filepath.Join(h.artifacts, id)
	if _, err := os.Stat(filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	call(t, h.sandboxd(handshake), "delete_sandbox", arguments{"identifier": "chat-1"})
	h.body("t-alice", "/artifacts/chat-1/"+id+"/x", http.StatusNotFound)
	for {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			break
		}
		<-time.After(time.Millisecond)
	}
}

func TestSeedDefect10ASandboxWasDeletedUnderALongCommand(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	res := call(t, h.sandboxd(handshake), "run_sandbox", arguments{
		"identifier": "chat-1", "commands": []any{"echo x > file; sleep 2.5; cat file", "cat file"},
		"options": arguments{"ttl_seconds": 1, "await_completion": true},
	})
	if got := verdict(text(t, res)); !strings.HasPrefix(got, "run completed: 2 of 2 commands ran") {
		t.Errorf("a command that took longer than its sandbox may be unused: %s", text(t, res))
	}
}

func TestSeedDefect11IdentifiersWereJudgedDifferently(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	s := h.sandboxd(handshake)
	for identifier, valid := range map[string]bool{
		"a": true, "-": true, "_": true, "-a-": true, "_a_": true, "A-b_9": true, strings.Repeat("x", 36): true,
		strings.Repeat("x", 37): false, "": false, "a b": false, "a/b": false, "a.b": false, "ä": false, "a\n": false,
	} {
		for tool, args := range map[string]arguments{
			"run_sandbox":     {"identifier": identifier, "commands": []any{"true"}, "options": arguments{"await_completion": true}},
			"restart_sandbox": {"identifier": identifier},
			"delete_sandbox":  {"identifier": identifier},
		} {
			if res := call(t, s, tool, args); res.IsError == valid {
				t.Errorf("%s of %q: %s", tool, identifier, text(t, res))
			}
		}
	}
}

func TestSeedDefect12ARestartMetItsOwnDelete(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	s := h.sandboxd(handshake)
	for i := range 5 {
		call(t, s, "run_sandbox", arguments{"identifier": "chat-1", "commands": []any{"echo x > file"}, "options": arguments{"await_completion": true}})
		if i%2 == 0 {
			if res := call(t, s, "restart_sandbox", arguments{"identifier": "chat-1"}); res.IsError {
				t.Fatal(text(t, res))
			}
		} else {
			call(t, s, "delete_sandbox", arguments{"identifier": "chat-1"})
		}
		if r := h.ended(h.asked("chat-1", "test ! -e file")); r.State != "completed" {
			t.Fatalf("right after it: %+v", r)
		}
	}
}

func TestSeedDefect13AChangedConfigurationDestroyedSandboxes(t *testing.T) {
	t.Parallel()
	limits := sandbox.Limits{CPU: 1, MemoryMB: 512, DiskMB: 1024, Pids: 256}
	h := openRuns(t, func(o *engine.Options) { o.Defaults.Limits = limits })
	first := h.ended(h.asked("chat-1", "echo kept > file"))
	limits = sandbox.Limits{CPU: 2, MemoryMB: 1024, DiskMB: 2048, Pids: 100}
	h.restart()
	second := h.ended(h.asked("chat-1", "cat file"))
	if second.SandboxID != first.SandboxID || second.Commands[0].Stdout != "kept\n" {
		t.Errorf("before: %+v, after: %+v", first, second)
	}
}

// slowImages are built when the test lets them.
type slowImages struct {
	enginetest.Images
	gate chan struct{}
}

func (s slowImages) Ensure(ctx context.Context, name string) (image.Image, error) {
	select {
	case <-s.gate:
		return s.Images.Ensure(ctx, name)
	case <-ctx.Done():
		return image.Image{}, ctx.Err()
	}
}

// Find finds none before.
func (s slowImages) Find(ctx context.Context, name string) (image.Image, error) {
	select {
	case <-s.gate:
		return s.Images.Find(ctx, name)
	default:
		return image.Image{}, fault.New(fault.NotFound, "the image is not built")
	}
}

func TestSeedDefect14AnImageWasBuiltWithinARequest(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	h := openRuns(t, func(o *engine.Options) { o.Images = slowImages{gate: gate} })
	id := h.asked("chat-1", "echo built") // it answers before the image is there
	var r struct{ State string }
	if err := json.Unmarshal([]byte(h.body("t-alice", "/mcp/runs/"+id, http.StatusOK)), &r); err != nil || r.State != "queued" {
		t.Errorf("meanwhile: %+v, %v", r, err)
	}
	close(gate)
	if r := h.ended(id); r.State != "completed" {
		t.Errorf("then: %+v", r)
	}
}

func TestSeedDefect15TheProtocolWasNotKept(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	for _, path := range []string{"/mcp", "/mcp/mcp-sandboxd"} {
		post := func(body string, head ...string) (*http.Response, string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.base+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer t-alice")
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i+1 < len(head); i += 2 {
				req.Header.Set(head[i], head[i+1])
			}
			resp, err := h.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp, string(b)
		}
		if resp := h.get("t-alice", path, "Accept", "application/json"); resp.StatusCode < 400 {
			t.Errorf("GET %s without a stream: %s", path, resp.Status)
		}
		resp, body := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if resp.StatusCode != http.StatusOK || strings.Contains(body, "1999-01-01") || !strings.Contains(body, `"protocolVersion":"20`) {
			t.Errorf("a version that is none: %s %s", resp.Status, body)
		}
		session := resp.Header.Get("Mcp-Session-Id")
		if resp, body := post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session); resp.StatusCode != http.StatusAccepted || body != "" {
			t.Errorf("a notification: %s %q", resp.Status, body)
		}
		for capability, method := range map[string]string{"tools": "tools/list", "resources": "resources/list", "prompts": "prompts/list"} {
			if !strings.Contains(body, fmt.Sprintf("%q:{", capability)) {
				continue
			}
			if _, got := post(`{"jsonrpc":"2.0","id":2,"method":"`+method+`"}`, "Mcp-Session-Id", session); !strings.Contains(got, `"result"`) {
				t.Errorf("%s is claimed, and %s gives %s", capability, method, got)
			}
		}
		if resp, _ := post(`{"jsonrpc":"2.0","id":3,"method":"ping"}`, "Mcp-Session-Id", "made-up"); resp.StatusCode != http.StatusNotFound {
			t.Errorf("a session that is none: %s", resp.Status)
		}
		if resp, _ := post(`{"jsonrpc":"2.0","id":4,"method":"ping"}`, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("another site's page: %s", resp.Status)
		}
	}
}

func TestSeedDefect16TimeoutsKilledOnlyTheLeader(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	r := h.ended(h.asked("chat-1", arguments{"shell": "(sleep 600 & echo $! > child; wait) & wait", "timeout_ms": 500}))
	if r.Commands[0].Status != "timed_out" {
		t.Fatalf("got %+v", r.Commands[0])
	}
	if r := h.ended(h.asked("chat-1", `test -s child && s=$(cut -d' ' -f3 /proc/$(cat child)/stat 2>/dev/null); test -z "$s" -o "$s" = Z`)); r.State != "completed" {
		t.Errorf("a child outlived the timeout: %+v", r.Commands[0])
	}
	id := h.asked("chat-1", "sleep 600")
	if got, err := h.runs.Cancel(t.Context(), callers["t-alice"], id); err != nil || got.State != sandbox.RunCanceled {
		t.Errorf("a cancel: %+v, %v", got, err)
	}
}

func TestSeedDefect17StdioWasAnHTTPServer(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	var out bytes.Buffer
	err := mcpbridge.Run(t.Context(), in, &out, mcpbridge.Options{URL: h.base + "/mcp/mcp-sandboxd", Token: "t-alice"})
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, out.String(), `"id":1`, `"protocolVersion":"2025-11-25"`, `"id":2`, `"name":"run_sandbox"`)
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line that is no message: %q", line)
		}
	}
}
