// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/api/mcp"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/internal/budget"
)

// batch is so many calls in one body.
func batch(n int) string {
	calls := make([]string, n)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i+100)
	}
	return " [" + strings.Join(calls, ",") + "]"
}

func TestABatchHasABound(t *testing.T) {
	t.Parallel()
	h := open(t)
	resp, body := h.post("t-alice", "", strings.Replace(initialize, handshake, "2025-03-26", 1), nil)
	session := resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatalf("initialize: %s, %s", resp.Status, body)
	}
	h.post("t-alice", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	resp, body = h.post("t-alice", session, batch(50), nil)
	if resp.StatusCode != http.StatusOK || strings.Count(body, `"result"`) != 50 {
		t.Errorf("50 messages: got %s, %d answers", resp.Status, strings.Count(body, `"result"`))
	}
	for name, of := range map[string]string{"OfASession": session, "OfNone": ""} {
		resp, body = h.post("t-alice", of, batch(51), nil)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "-32600") || !strings.Contains(body, "more than 50") {
			t.Errorf("%s: 51 messages: got %s %.200s", name, resp.Status, body)
		}
	}
}

func TestAProjectThatHoldsItsShareIsRefusedAndAnotherIsNot(t *testing.T) {
	t.Parallel()
	h := open(t)
	b := budget.New(budget.Options{Total: 16 << 20, Wait: time.Millisecond})
	_, h.url = serveWith(t, mcp.Options{Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{})), Version: "test", Memory: b})
	alice, mary := callers["t-alice"], callers["t-stranger"]
	if alice.Project == mary.Project {
		t.Fatal("the two are of one project")
	}
	var rooms []*budget.Room
	for range 4 {
		r := b.Open(alice.Project)
		if _, err := r.Take(t.Context(), 2<<20); err != nil {
			t.Fatal(err)
		}
		rooms = append(rooms, r)
	}
	resp, body := h.post("t-alice", "", initialize, nil)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "-32600") {
		t.Errorf("got %s %s", resp.Status, body)
	}
	if resp, body := h.post("t-stranger", "", initialize, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("another project: got %s %s", resp.Status, body)
	}
	for _, r := range rooms {
		r.Close()
	}
	if resp, body := h.post("t-alice", "", initialize, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("when there is room again: got %s %s", resp.Status, body)
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are counted when all is answered", b.Used())
	}
}
