// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admitted_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/admitted"
	"sandpit.dev/api/service"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/fault"
	"sandpit.dev/internal/admission"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// one is a gate with one place, for which nobody may wait.
func one(t *testing.T) (g *admission.Gate, fill func() (leave func())) {
	g = admission.New(admission.Options{What: "things", AtOnce: 1, Waiting: 1, Lease: time.Hour})
	return g, func() func() {
		t.Helper()
		leave, err := g.Enter(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		// The only place of those who wait is another project's, too.
		waits := make(chan func())
		go func() {
			l, err := g.Enter(t.Context(), "another")
			if err != nil {
				t.Error(err)
				l = func() {}
			}
			waits <- l
		}()
		for g.Figures().Waiting == 0 {
			runtime.Gosched()
		}
		return func() { leave(); (<-waits)() }
	}
}

func TestWhatBeginsNeedsAPlace(t *testing.T) {
	t.Parallel()
	s := enginetest.Start(t, t.TempDir())
	ctx := t.Context()
	c := access.Caller{Project: "p", Actor: "a", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	reader := access.Caller{Project: "p", Actor: "r", Scopes: []access.Scope{access.SandboxesRead}}
	creates, fillCreates := one(t)
	commands, fillCommands := one(t)
	all := admitted.Gates{Creates: creates, Commands: commands}.Wrap(service.Services{
		Sandboxes: s.Engine, Snapshots: s.Engine, Commands: s.Engine, Processes: s.Engine, Code: s.Code, Shells: s.Code, Runs: s.Runs,
	})
	box, _, err := all.Sandboxes.Create(ctx, c, engine.CreateRequest{Key: "box"})
	if err != nil {
		t.Fatal(err)
	}
	echo := engine.ExecRequest{Shell: "echo alive"}
	of := map[string]func(access.Caller) error{
		"Create": func(c access.Caller) error {
			_, _, err := all.Sandboxes.Create(ctx, c, engine.CreateRequest{})
			return err
		},
		"Start":   func(c access.Caller) error { _, err := all.Sandboxes.Start(ctx, c, "box"); return err },
		"Restart": func(c access.Caller) error { _, err := all.Sandboxes.Restart(ctx, c, "box"); return err },
		"Reset":   func(c access.Caller) error { _, err := all.Sandboxes.Reset(ctx, c, "box"); return err },
		"Fork": func(c access.Caller) error {
			_, err := all.Snapshots.Fork(ctx, c, "box", engine.ForkRequest{})
			return err
		},
		"Rollback": func(c access.Caller) error {
			_, err := all.Snapshots.Rollback(ctx, c, "box", "none")
			return err
		},
		"CreateExec": func(c access.Caller) error {
			_, _, err := all.Commands.CreateExec(ctx, c, engine.CreateRequest{}, echo, nil, nil)
			return err
		},
		"Exec": func(c access.Caller) error { _, err := all.Commands.Exec(ctx, c, "box", echo, nil); return err },
		"StartProcess": func(c access.Caller) error {
			_, err := all.Processes.StartProcess(ctx, c, "box", engine.StartRequest{Shell: "true"})
			return err
		},
		"Terminal": func(c access.Caller) error {
			_, err := all.Processes.Terminal(ctx, c, "box", engine.TerminalRequest{})
			return err
		},
		"RunCode": func(c access.Caller) error {
			_, err := all.Code.RunCode(ctx, c, "box", code.Request{Code: "1"}, nil)
			return err
		},
		"CreateContext": func(c access.Caller) error {
			_, err := all.Code.CreateContext(ctx, c, "box", code.ContextRequest{})
			return err
		},
		"CreateShell": func(c access.Caller) error {
			_, err := all.Shells.CreateShell(ctx, c, "box", code.ShellRequest{})
			return err
		},
		"ShellExec": func(c access.Caller) error {
			_, err := all.Shells.ShellExec(ctx, c, "box", "sh", echo, nil)
			return err
		},
		"Run": func(c access.Caller) error {
			_, err := all.Runs.Start(ctx, c, runs.Request{Sandbox: "box", Commands: []runs.Command{{Shell: "true"}}})
			return err
		},
	}
	leaveCreates, leaveCommands := fillCreates(), fillCommands()
	for name, do := range of {
		err := do(c)
		if e := fault.As(err); err == nil || e.Code != fault.Exhausted || !e.Busy || e.Retry <= 0 || !strings.Contains(e.Remedy, "nothing was begun") {
			t.Errorf("%s without a place: %v", name, err)
		}
		// Who may not do it at all does not learn how much goes on.
		if err := do(reader); !fault.Is(err, fault.Denied) {
			t.Errorf("%s by who may not: %v", name, err)
		}
	}
	page, err := s.Engine.List(ctx, c, engine.SandboxesRequest{})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != box.ID {
		t.Errorf("there is %v, %v", page.Items, err)
	}
	leaveCreates()
	leaveCommands()
	// What has begun holds no place: while a command runs others begin, with one place for all.
	began, end := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := all.Commands.Exec(ctx, c, "box", engine.ExecRequest{Shell: "read line", StreamStdin: true, Started: func(id string) {
			close(began)
		}}, func(sandbox.Frame) error { return nil })
		end <- err
	}()
	<-began
	for range 3 {
		if res, err := all.Commands.Exec(ctx, c, "box", echo, nil); err != nil || string(res.Stdout) != "alive\n" {
			t.Errorf("beside one that runs: %q, %v", res.Stdout, err)
		}
	}
	if err := s.Engine.KillAll(ctx, c, "box"); err != nil {
		t.Error(err)
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
	for what, g := range map[string]*admission.Gate{"creates": creates, "commands": commands} {
		if f := g.Figures(); f.Taken != 0 || f.Waiting != 0 || f.Refused == 0 {
			t.Errorf("of %s %+v", what, f)
		}
	}
}
