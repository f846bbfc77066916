// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestCreateExec(t *testing.T) {
	t.Parallel()
	t.Run("MakesASandboxAndRunsTheCommandInIt", func(t *testing.T) {
		h := open(t, t.TempDir())
		var told []string
		p, res, err := h.engine.CreateExec(t.Context(), alice, engine.CreateRequest{Env: map[string]string{"A": "1"}},
			engine.ExecRequest{Shell: "echo $A > f; cat f", Started: func(id string) { told = append(told, "process "+id) }},
			func(p engine.Place) { told = append(told, "sandbox "+string(p.Sandbox.ID)) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Created || string(res.Stdout) != "1\n" || res.ExitCode != 0 {
			t.Errorf("created %v, got %+v", p.Created, res)
		}
		if d := cmp.Diff([]string{"sandbox " + string(p.Sandbox.ID), "process " + res.ProcessID}, told); d != "" {
			t.Errorf("told (-want +got)\n%s", d)
		}
		h.wantEvents(p.Sandbox.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec)
		if res := h.exec(string(p.Sandbox.ID), "cat f"); string(res.Stdout) != "1\n" {
			t.Errorf("the next command reads %q", res.Stdout)
		}
	})
	t.Run("ManyAtOnceWithOneKeyShareOneSandbox", func(t *testing.T) {
		h := open(t, t.TempDir())
		const callers = 12
		places := make([]engine.Place, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				var err error
				if places[i], _, err = h.engine.CreateExec(t.Context(), alice, engine.CreateRequest{Key: "k"}, engine.ExecRequest{Shell: "echo x >> all"}, nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		made := 0
		for _, p := range places {
			if p.Created {
				made++
			}
			if p.Sandbox == nil || p.Sandbox.ID != places[0].Sandbox.ID {
				t.Errorf("two sandboxes: %+v and %+v", p.Sandbox, places[0].Sandbox)
			}
		}
		if made != 1 {
			t.Errorf("%d callers made it", made)
		}
		if res := h.exec("k", "wc -l < all"); strings.TrimSpace(string(res.Stdout)) != "12" {
			t.Errorf("%s of %d commands ran", res.Stdout, callers)
		}
	})
	t.Run("StartsWhatACallerStopped", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "k"})
		if _, err := h.engine.Stop(t.Context(), alice, "k"); err != nil {
			t.Fatal(err)
		}
		p, res, err := h.engine.CreateExec(t.Context(), alice, engine.CreateRequest{Key: "k"}, engine.ExecRequest{Shell: "true"}, nil, nil)
		if err != nil || p.Created || p.Sandbox.ID != s.ID || res.ExitCode != 0 {
			t.Errorf("got %+v, %+v, %v", p, res, err)
		}
	})
	t.Run("AWrongCommandMakesNothing", func(t *testing.T) {
		h := open(t, t.TempDir())
		_, _, err := h.engine.CreateExec(t.Context(), alice, engine.CreateRequest{Key: "k"}, engine.ExecRequest{}, nil, nil)
		wantCode(t, err, fault.Invalid)
		h.nothing()
	})
	t.Run("NamesTheSandboxsFieldsBelowSandbox", func(t *testing.T) {
		h := open(t, t.TempDir())
		_, _, err := h.engine.CreateExec(t.Context(), alice,
			engine.CreateRequest{Key: "a/b", Runtime: "vax", Env: map[string]string{"1A": "", "2A": ""}}, engine.ExecRequest{Shell: "true"}, nil, nil)
		wantCode(t, err, fault.Invalid)
		e := fault.As(err)
		for _, f := range e.Fields {
			if !strings.HasPrefix(f.Name, "sandbox.") || !strings.Contains(e.Message, f.Name+": "+f.Message) {
				t.Errorf("field %q %q of %q", f.Name, f.Message, e.Message)
			}
		}
		if len(e.Fields) != 4 || strings.Contains(e.Message, "sandbox.sandbox.") {
			t.Errorf("got %q, %v", e.Message, e.Fields)
		}
		h.nothing()
	})
	t.Run("WhatCannotBeginTakesItsSandboxWithIt", func(t *testing.T) {
		h := open(t, t.TempDir())
		var id sandbox.ID
		p, res, err := h.engine.CreateExec(t.Context(), alice, engine.CreateRequest{}, engine.ExecRequest{Shell: "true", Cwd: "nosuch"},
			func(p engine.Place) { id = p.Sandbox.ID }, nil)
		if err == nil || res.ProcessID != "" || p.Sandbox.ID != id {
			t.Fatalf("got %+v, %+v, %v", p, res, err)
		}
		h.nothing()
		evs := h.events(id)
		if last := evs[len(evs)-1]; last.Type != sandbox.EventDeleted || !strings.Contains(last.Detail, "its first command could not begin: ") {
			t.Errorf("the last event: %+v", last)
		}
	})
	t.Run("ButNotOneThatHasAKey", func(t *testing.T) {
		h := open(t, t.TempDir())
		p, _, err := h.engine.CreateExec(t.Context(), alice, engine.CreateRequest{Key: "k"}, engine.ExecRequest{Shell: "true", Cwd: "nosuch"}, nil, nil)
		if err == nil {
			t.Fatal("it ran")
		}
		if s := h.get(p.Sandbox.ID); s.State != sandbox.Running || s.Key != "k" {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("WhoGoesAwayLeavesACommandThatGoesOn", func(t *testing.T) {
		h := open(t, t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		p, res, err := h.engine.CreateExec(ctx, alice, engine.CreateRequest{}, engine.ExecRequest{Shell: "echo on; while [ ! -e go ]; do sleep 0.01; done"},
			nil, func(sandbox.Frame) error { cancel(); return nil })
		if err == nil || res.ProcessID == "" {
			t.Fatalf("got %+v, %v", res, err)
		}
		h.exec(string(p.Sandbox.ID), "touch go")
		h.await("its end", func() bool {
			r, err := h.engine.Process(t.Context(), alice, string(p.Sandbox.ID), res.ProcessID)
			return err == nil && r.Result != nil
		})
	})
	t.Run("WaitBeginsWithTheCommand", func(t *testing.T) {
		h := open(t, t.TempDir())
		_, res, err := h.engine.CreateExec(t.Context(), alice, engine.CreateRequest{}, engine.ExecRequest{Shell: "sleep 600", Wait: 50 * time.Millisecond}, nil, nil)
		if err != nil || !res.Running || res.ProcessID == "" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("NeedsTheScope", func(t *testing.T) {
		h := open(t, t.TempDir())
		reader := alice
		reader.Scopes = []access.Scope{access.SandboxesRead}
		_, _, err := h.engine.CreateExec(t.Context(), reader, engine.CreateRequest{}, engine.ExecRequest{Shell: "true"}, nil, nil)
		wantCode(t, err, fault.Denied)
		h.nothing()
	})
}
