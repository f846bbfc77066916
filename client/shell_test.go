// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestShell(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this host has no bash, which the memory runtime would run")
	}
	h := open(t)
	id := h.box()
	s, err := h.CreateShell(t.Context(), id, v1.CreateShell{Name: new("main")})
	must(t, err)
	_, err = h.CreateShell(t.Context(), id, v1.CreateShell{Name: new("main")})
	wantCode(t, err, fault.Exists)
	if _, err := s.Exec(t.Context(), v1.Exec{Command: new("x=5")}); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	var command string
	out, err := s.ExecStarted(t.Context(), v1.Exec{Command: new("echo $x; exit 3")}, func(id string) { command = id }, func(f client.Frame) error {
		text.Write(f.Data)
		return nil
	})
	must(t, err)
	if text.String() != "5\n" || *out.ExitCode != 3 || !out.Shell.Ended || command != out.ProcessID || command == "" {
		t.Errorf("%q: %q %+v", command, text.String(), out)
	}
	again, err := s.Command(t.Context(), command, time.Minute)
	must(t, err)
	if again.Stdout != "5\n" || *again.ExitCode != 3 {
		t.Errorf("%+v", again)
	}
	r, err := h.OpenShell(id, s.Name()).Exec(t.Context(), v1.Exec{Command: new("sleep 1000"), WaitSeconds: new(0.05)})
	must(t, err)
	if r.Status != "running" || r.Shell.Restarted != "" {
		t.Errorf("%+v", r) // what it had to say of its begin comes with its end
	}
	must(t, h.Kill(t.Context(), id, r.ProcessID))
	if r, err = s.Command(t.Context(), r.ProcessID, time.Minute); err != nil || *r.ExitCode != 137 || r.Shell.Restarted == "" {
		t.Errorf("%+v, %v", r, err)
	}
	wantCode(t, s.Interrupt(t.Context()), fault.State)
	all, err := h.Shells(t.Context(), id)
	must(t, err)
	if len(all) != 1 || all[0].Name != "main" {
		t.Errorf("%+v", all)
	}
	must(t, s.Delete(t.Context()))
	_, err = s.Get(t.Context())
	wantCode(t, err, fault.NotFound)
}

func TestTerminalThatStays(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.box()
	one, err := h.Terminal(t.Context(), id, client.TerminalOptions{Command: "stty -echo; echo ready; read x; echo got $x; exit 6", Stays: true})
	must(t, err)
	buf := make([]byte, 5)
	_, err = io.ReadFull(one, buf)
	must(t, err)
	must(t, one.Close())
	found := 0
	for p, err := range h.Terminals(t.Context(), id) {
		must(t, err)
		if found++; p.ProcessID != one.ID() {
			t.Errorf("%+v", p)
		}
	}
	two, err := h.AttachTerminal(t.Context(), id, one.ID(), 0)
	must(t, err)
	defer two.Close()
	must(t, two.Resize(100, 30))
	_, err = two.Write([]byte("it\n"))
	must(t, err)
	text, err := io.ReadAll(two)
	must(t, err)
	if string(text) != "ready\r\ngot it\r\n" || found != 1 {
		t.Errorf("%d, %q", found, text)
	}
	if end, err := two.Wait(); err != nil || end.ExitCode != 6 {
		t.Errorf("%+v, %v", end, err)
	}
	_, err = h.AttachTerminal(t.Context(), id, "nosuchprocess000", 0)
	wantCode(t, err, fault.NotFound)
}
