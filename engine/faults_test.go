// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// TestWhateverFails lets every call to the driver fail, or the caller go away
// at it, in every verb. At once nothing may lie; after a restart without
// failures nothing may be halfway: records and instances are the same set, no
// state is an intent, no command is without its end.
func TestWhateverFails(t *testing.T) {
	skiptest.WithShort(t, "each call of each verb fails once")
	verbs := map[string]func(ctx context.Context, h *house) error{
		"create": func(ctx context.Context, h *house) error {
			_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Key: "new"})
			return err
		},
		"create without a key": func(ctx context.Context, h *house) error {
			_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{})
			return err
		},
		"start": func(ctx context.Context, h *house) error {
			_, err := h.engine.Start(ctx, alice, "down")
			return err
		},
		"stop": func(ctx context.Context, h *house) error {
			_, err := h.engine.Stop(ctx, alice, "up")
			return err
		},
		"restart": func(ctx context.Context, h *house) error {
			_, err := h.engine.Restart(ctx, alice, "up")
			return err
		},
		"restart paused": func(ctx context.Context, h *house) error {
			_, err := h.engine.Restart(ctx, alice, "frozen")
			return err
		},
		"pause": func(ctx context.Context, h *house) error {
			_, err := h.engine.Pause(ctx, alice, "up")
			return err
		},
		"resume": func(ctx context.Context, h *house) error {
			_, err := h.engine.Resume(ctx, alice, "frozen")
			return err
		},
		"stop paused": func(ctx context.Context, h *house) error {
			_, err := h.engine.Stop(ctx, alice, "frozen")
			return err
		},
		"delete paused": func(ctx context.Context, h *house) error { return h.engine.Delete(ctx, alice, "frozen") },
		"update": func(ctx context.Context, h *house) error {
			_, err := h.engine.Update(ctx, alice, "up", update.Patch{CPU: ptr(2.0)})
			return err
		},
		"delete": func(ctx context.Context, h *house) error { return h.engine.Delete(ctx, alice, "up") },
		"delete stopped": func(ctx context.Context, h *house) error {
			return h.engine.Delete(ctx, alice, "down")
		},
		"exec": func(ctx context.Context, h *house) error {
			_, err := h.engine.Exec(ctx, alice, "up", engine.ExecRequest{Shell: "echo"}, nil)
			return err
		},
	}
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		t.Run(verb, func(t *testing.T) {
			calls := []string{"create", "open", "start", "dial", "stop", "remove"}
			if strings.Contains("pause resume stop paused delete paused update", verb) {
				calls = []string{"open", "dial", "stop", "remove", "pause", "resume", "resize"}
			}
			for _, call := range calls {
				for _, how := range []string{"fails before", "fails after", "caller gone before", "caller gone after"} {
					t.Run(call+" "+how, func(t *testing.T) { failAt(t, verbs[verb], call, how) })
				}
			}
		})
	}
}

func failAt(t *testing.T, verb func(context.Context, *house) error, call, how string) {
	t.Parallel()
	h := open(t, t.TempDir())
	up := h.create(engine.CreateRequest{Key: "up"})
	down := h.create(engine.CreateRequest{Key: "down"})
	if _, err := h.engine.Stop(t.Context(), alice, "down"); err != nil {
		t.Fatal(err)
	}
	var frozen *sandbox.Sandbox // where the verb is about one
	if strings.Contains(t.Name(), "paused") || strings.Contains(t.Name(), "resume") {
		frozen = h.create(engine.CreateRequest{Key: "frozen"})
		h.exec("frozen", "echo kept > file")
		h.pause("frozen")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hit := func(_ context.Context, c string) error {
		switch {
		case c != call:
			return nil
		case how == "fails before" || how == "fails after":
			return fault.New(fault.Unavailable, "%s %s", call, how)
		}
		cancel()
		return nil
	}
	if how == "fails before" || how == "caller gone before" {
		h.faulty.set(hit, nil)
	} else {
		h.faulty.set(nil, hit)
	}
	err := verb(ctx, h)
	if err != nil && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Canceled) {
		t.Errorf("an odd error: %v", err)
	}
	h.faulty.set(nil, nil)
	h.restart()
	h.whole()
	// What the verb was not about is as it was.
	if s := h.get(up.ID); s != nil && s.State == sandbox.Running {
		h.exec("up", "true")
	}
	if s := h.get(down.ID); s != nil && s.State == sandbox.Stopped && s.StopCause != sandbox.CauseUser {
		t.Errorf("the cause of its stop was lost: %+v", s)
	}
	if frozen != nil && h.get(frozen.ID) != nil {
		if _, err := h.engine.Start(t.Context(), alice, "frozen"); err != nil {
			t.Fatal(err)
		}
		if res := h.exec("frozen", "cat file"); string(res.Stdout) != "kept\n" {
			t.Errorf("what was written is lost: %q", res.Stdout)
		}
	}
}

// agree checks that a record says what its driver has.
func (h *house) agree(s *sandbox.Sandbox) {
	h.t.Helper()
	inst, err := h.host.Driver().Open(context.Background(), runtime.Handle{ID: s.ID})
	if err != nil {
		h.t.Errorf("%s is %s, and its instance: %v", s.Ref(), s.State, err)
		return
	}
	conn, err := inst.Dial(context.Background())
	if err == nil {
		_ = conn.Close()
	}
	up, frozen := err == nil, inst.(runtime.Pauser).Paused()
	if up != (s.State == sandbox.Running || s.State == sandbox.Paused) || frozen != (s.State == sandbox.Paused) {
		h.t.Errorf("%s is %s, and its instance up: %v, frozen: %v", s.Ref(), s.State, up, frozen)
	}
	if s.State.Intent() || s.State == sandbox.Failed {
		h.t.Errorf("%s is %s", s.Ref(), s.State)
	}
	if (s.State == sandbox.Running) == s.RunningSince.IsZero() || s.RunTime < 0 {
		h.t.Errorf("%s is %s, and its meter runs since %v, from %v", s.Ref(), s.State, s.RunningSince, s.RunTime)
	}
	if l, err := h.host.Limits(s.ID); err != nil || up && l != s.Limits {
		h.t.Errorf("%s has the limits %+v on record, and its instance %+v, %v", s.Ref(), s.Limits, l, err)
	}
}

// whole checks that nothing is halfway.
func (h *house) whole() {
	h.t.Helper()
	p, err := h.engine.List(context.Background(), alice, engine.SandboxesRequest{Limit: store.MaxPage})
	if err != nil {
		h.t.Fatal(err)
	}
	var records []sandbox.ID
	for _, s := range p.Items {
		records = append(records, s.ID)
		h.agree(s)
	}
	instances := h.instances()
	slices.Sort(records)
	slices.Sort(instances)
	if !slices.Equal(records, instances) {
		h.t.Errorf("records %v, instances %v", records, instances)
	}
	// One that still ran at the restart is followed to its end.
	h.await("the end of every command", func() bool {
		return !slices.ContainsFunc(h.events(""), func(ev *sandbox.Event) bool { return !ev.Done })
	})
}
