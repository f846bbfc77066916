// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sandpit.dev/api/mcp"
)

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

func TestTheLogHasWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	var out lines
	var messages, tools atomic.Bool
	h := open(t).again(func(o *mcp.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&out, nil))
		o.Logs = mcp.Logs{Messages: messages.Load, Tools: tools.Load}
	})
	s := h.alice()
	create := func() { ok(t, s, "run_command", arguments{"command": "echo not-for-the-log"}) }
	create()
	if got := out.take(); got != "" {
		t.Errorf("with nothing asked for: %s", got)
	}
	tools.Store(true)
	create()
	call(t, s, "read_file", arguments{"path": "/none"})
	got := out.take()
	if strings.Count(got, "call of a tool") != 2 || !strings.Contains(got, "tool=run_command") || !strings.Contains(got, "failed=true") || !strings.Contains(got, "actor=alice") {
		t.Errorf("calls of tools: %s", got)
	}
	if strings.Contains(got, "not-for-the-log") {
		t.Errorf("an argument is in the log: %s", got)
	}
	if _, err := s.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := out.take(); got != "" {
		t.Errorf("a message that is no call: %s", got)
	}
	messages.Store(true)
	if _, err := s.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := out.take(); !strings.Contains(got, "method=tools/list") {
		t.Errorf("a message: %s", got)
	}
}
