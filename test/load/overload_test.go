// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// answered is what came of requests that were sent at once.
type answered struct {
	mu      sync.Mutex
	ok      []time.Duration
	refused []time.Duration
	wrong   []string
}

// send sends a request again and again from many clients at once, and notes each answer; none is sent twice.
func (h *host) send(ctx context.Context, clients, each int, path string, body any, check func(body []byte) error) *answered {
	h.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer c.CloseIdleConnections()
	out := new(answered)
	one := func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+path, bytes.NewReader(text))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+h.token)
		r.Header.Set("Content-Type", "application/json")
		began := time.Now()
		resp, err := c.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		got, err := io.ReadAll(resp.Body)
		took := time.Since(began)
		if err != nil {
			return err
		}
		out.mu.Lock()
		defer out.mu.Unlock()
		if resp.StatusCode != http.StatusTooManyRequests {
			out.ok = append(out.ok, took)
			if resp.StatusCode >= 300 {
				return fmt.Errorf("%s: %s", resp.Status, got)
			}
			return check(got)
		}
		out.refused = append(out.refused, took)
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || n < 1 {
			return fmt.Errorf("a refusal has the Retry-After %q", resp.Header.Get("Retry-After"))
		}
		var p v1.Problem
		if err := json.Unmarshal(got, &p); err != nil || p.Code != "exhausted" {
			return fmt.Errorf("a refusal is %s", got)
		}
		return nil
	}
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				if err := one(); err != nil {
					out.mu.Lock()
					out.wrong = append(out.wrong, err.Error())
					out.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(out.ok)
	slices.Sort(out.refused)
	return out
}

func at(sorted []time.Duration, of float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(of*float64(len(sorted)-1))].Round(10 * time.Microsecond)
}

// Ten times as many clients as a server lets begin and wait: what it admits is done, whole, and what it does not is refused with Retry-After
// and leaves nothing. How long each takes is told, and not held.
func TestTenTimesTheLoadHarmsNothingThatIsAdmitted(t *testing.T) {
	const places, waiting = 4, 8 // of one project half of the waiting
	h := openOn(t, "127.0.0.1:0", func(string) {})
	h.kill()
	file := filepath.Join(h.dir, "sandpit.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "limits: {at_once: {creates: %d, commands: %d, waiting: %d}}\n", places, places, waiting), 0o600); err != nil {
		t.Fatal(err)
	}
	h.flags = append(h.flags, "--config", file)
	h.start()
	ctx := t.Context()
	fits := places + waiting/2
	each := length(3, 30)
	box, _, err := h.client.Create(ctx, v1.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.says(ctx, box.ID, "echo alive", "alive\n"); err != nil {
		t.Fatal(err)
	}
	told := func(what string, clients int, a *answered) {
		t.Helper()
		if len(a.wrong) > 0 {
			t.Errorf("%s by %d: %d went wrong, the first by %s", what, clients, len(a.wrong), a.wrong[0])
		}
		t.Logf("%s by %d clients: %d were admitted, p50 %v, p99 %v; %d were refused, p50 %v, p99 %v", what, clients,
			len(a.ok), at(a.ok, .5), at(a.ok, .99), len(a.refused), at(a.refused, .5), at(a.refused, .99))
	}

	says := func(got []byte) error {
		var o v1.ExecResult
		if err := json.Unmarshal(got, &o); err != nil || o.ExitCode == nil || *o.ExitCode != 0 || o.Stdout != "alive\n" {
			return fmt.Errorf("a command that was admitted gave %s", got)
		}
		return nil
	}
	path, body := "/v1/sandboxes/"+box.ID+"/exec", v1.Exec{Command: new("echo alive")}
	a := h.send(ctx, fits, 10*each, path, body, says)
	told("commands", fits, a)
	if len(a.refused) > 0 {
		t.Errorf("of as many commands as have a place, or wait for one, %d were refused", len(a.refused))
	}
	a = h.send(ctx, 10*fits, 10*each, path, body, says)
	told("commands", 10*fits, a)
	if len(a.ok) == 0 || len(a.refused) == 0 || len(a.ok)+len(a.refused)+len(a.wrong) != 100*fits*each {
		t.Errorf("of %d commands %d were done and %d refused", 100*fits*each, len(a.ok), len(a.refused))
	}

	before := h.look()
	var mu sync.Mutex
	var made []string
	creates := func(got []byte) error {
		var s v1.Sandbox
		if err := json.Unmarshal(got, &s); err != nil || s.Status != "running" {
			return fmt.Errorf("a create that was admitted gave %s", got)
		}
		mu.Lock()
		defer mu.Unlock()
		made = append(made, s.ID)
		return nil
	}
	small := v1.CreateSandbox{MemoryMB: new(64), DiskMB: new(64), Pids: new(16)}
	a = h.send(ctx, 10*fits, each, "/v1/sandboxes", small, creates)
	told("creates", 10*fits, a)
	if len(made) != len(a.ok) || len(a.refused) == 0 {
		t.Errorf("of %d creates %d were refused, %d were done and %d sandboxes made", 10*fits*each, len(a.refused), len(a.ok), len(made))
	}
	// All that was admitted is there and works, and nothing else is.
	there := 0
	for s, err := range h.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if there++; s.ID != box.ID && !slices.Contains(made, s.ID) {
			t.Errorf("the sandbox %s was made by nobody", s.ID)
		}
	}
	if there != len(made)+1 {
		t.Errorf("there are %d sandboxes, and %d were made", there, len(made)+1)
	}
	g := group{limit: 2}
	for _, id := range made {
		g.do(func() error {
			if err := h.says(ctx, id, "echo alive", "alive\n"); err != nil {
				return err
			}
			return h.client.Delete(ctx, id)
		})
	}
	if err := g.wait(); err != nil {
		t.Error(err)
	}
	h.holdNothingBeyond(before)
}
