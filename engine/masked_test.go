// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
	"sandpit.dev/sandbox"
)

// A secret is in nothing that commands, shells, cells and their processes give, and in
// all of them as a variable; also of a server that was started anew.
func TestSecretsAreMaskedWhereverTheyAreWritten(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	const secret, stars = "tok-4f2a9c77", "************"
	ring, err := seal.Parse(seal.Generate())
	if err != nil {
		t.Fatal(err)
	}
	keys := func(o *engine.Options) { o.Keys = ring }
	h := open(t, t.TempDir(), keys)
	s := h.create(engine.CreateRequest{Key: "box", Secrets: map[string]secrets.Request{"TOKEN": {Name: "TOKEN", Value: secret}}})
	for range 2 {
		if r := h.exec("box", `printf %s "$TOKEN$TOKEN"; [ "$TOKEN" = tok-4f2"a9c77" ]`); string(r.Stdout) != stars+stars || r.ExitCode != 0 {
			t.Errorf("exec: %q %+v", r.Stdout, r.Result)
		}
		rec := h.spawn("box", engine.StartRequest{Shell: `echo "$TOKEN" >&2`})
		if got := h.follow("box", rec.ID, engine.FollowRequest{}); got.stderr.String() != stars+"\n" {
			t.Errorf("a process: %q", got.stderr.String())
		}
		for range 2 {
			r, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: `echo "$TOKEN"`}, nil)
			if err != nil || string(r.Stdout) != stars+"\n" {
				t.Errorf("a shell: %q, %v", r.Stdout, err)
			}
		}
		got := h.cell("box", code.Request{Code: "import os; print(os.environ['TOKEN']); os.environ['TOKEN']"})
		if string(got.Stdout) != stars+"\n" || value(got) != "'"+stars+"'" {
			t.Errorf("a cell: %q %q", got.Stdout, value(got))
		}
		failed := h.cell("box", code.Request{Code: "raise ValueError(os.environ['TOKEN'])"})
		if failed.Error == nil || failed.Error.Value != stars || strings.Contains(strings.Join(failed.Error.Traceback, ""), secret) {
			t.Errorf("an exception: %+v", failed.Error)
		}
		h.recorded()
		for _, ev := range h.events(s.ID) {
			if strings.Contains(ev.Command+ev.Detail, secret) {
				t.Errorf("the event %+v", ev)
			}
		}
		h.restart(keys)
	}
	// What was set later holds for what runs already.
	if _, err := h.secrets().SetSecret(t.Context(), alice, "box", secrets.Request{Name: "LATER", Value: "later-value"}); err != nil {
		t.Fatal(err)
	}
	r, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: `echo "$TOKEN later-value"`}, nil)
	if err != nil || string(r.Stdout) != stars+" ***********\n" || r.Shell.Restarted != "" {
		t.Errorf("the shell, later: %q %+v %v", r.Stdout, r.Shell, err)
	}
}

// The log of a kernel is its talk with the server, with what the session masks.
func TestAKernelsLogIsNotForCallers(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.cell("box", code.Request{Code: "1"})
	if _, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: "true"}, nil); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, ev := range h.events(s.ID) {
		if ev.ContextID == "" || ev.ProcessID == "" || ev.Type != sandbox.EventContext {
			continue
		}
		tried++
		for _, r := range []engine.FollowRequest{{}, {Once: true}, {Recent: 100}} {
			if _, err := h.engine.Follow(t.Context(), alice, "box", ev.ProcessID, r); !fault.Is(err, fault.State) || fault.As(err).Remedy == "" {
				t.Errorf("%+v: %v", r, err)
			}
		}
	}
	if tried != 2 {
		t.Errorf("%d kernels", tried)
	}
	if got := h.follow("box", h.spawn("box", engine.StartRequest{Argv: []string{"bash", "-c", "echo ok"}}).ID, engine.FollowRequest{}); got.stdout.String() != "ok\n" {
		t.Errorf("a plain bash: %q", got.stdout.String())
	}
}
