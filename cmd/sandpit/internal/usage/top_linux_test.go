// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/terminaltest"
)

func TestTopGivesTheScreenBackAfterAnInterrupt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := json.Marshal(v1.StatsList{Items: []v1.SandboxStats{{ID: "box", Status: "running"}}})
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: stats\ndata: %s\n\n", data)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	person, tty := terminaltest.Pair(t)
	c := NewTop(App{
		Client: func() (*client.Client, error) { return client.New(server.URL, "t", client.Options{}), nil }, Out: tty,
		Takes: func(int, int) cobra.PositionalArgs { return cobra.ArbitraryArgs },
	})
	c.SetArgs([]string{})
	c.SilenceErrors, c.SilenceUsage = true, true
	over := make(chan error, 1)
	go func() { over <- c.ExecuteContext(t.Context()) }()
	screen := bufio.NewReader(person)
	var seen strings.Builder
	until := func(text string) {
		t.Helper()
		for !strings.HasSuffix(seen.String(), text) {
			b, err := screen.ReadByte()
			if err != nil {
				t.Fatalf("%v after %q", err, seen.String())
			}
			seen.WriteByte(b)
		}
	}
	until("box")
	until("\x1b[J")
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	until("\x1b[?25h\x1b[?1049l")
	if e, ok := errors.AsType[*exit.Error](<-over); !ok || e.Status != 130 {
		t.Errorf("got %v", e)
	}
	if !strings.HasPrefix(seen.String(), "\x1b[?1049h") {
		t.Errorf("it begins with %q", seen.String()[:20])
	}
}
