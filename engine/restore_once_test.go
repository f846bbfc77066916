// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// atOnce is a driver whose instances exchange their disk at once, or fail to after
// they were killed.
type atOnce struct {
	*faulty
	fails bool
	calls int
}

func (d *atOnce) Create(ctx context.Context, s runtime.Spec) (runtime.Instance, error) {
	i, err := d.faulty.Create(ctx, s)
	return d.once(i), err
}

func (d *atOnce) Open(ctx context.Context, h runtime.Handle) (runtime.Instance, error) {
	i, err := d.faulty.Open(ctx, h)
	return d.once(i), err
}

func (d *atOnce) once(i runtime.Instance) runtime.Instance {
	if f, ok := i.(*faultyInstance); ok {
		return &atOnceInstance{f, d}
	}
	return i
}

type atOnceInstance struct {
	*faultyInstance
	d *atOnce
}

func (i *atOnceInstance) Restore(ctx context.Context, s runtime.Spec, from sandbox.ID) error {
	i.d.calls++
	if i.d.fails {
		_ = i.Stop(ctx, 0)
		return fault.New(fault.Unavailable, "the host has had enough")
	}
	return i.faultyInstance.Instance.(runtime.Restorer).Restore(ctx, s, from)
}

func TestRollbackAtOnce(t *testing.T) {
	t.Parallel()
	for title, fails := range map[string]bool{"Works": false, "GoesStepByStepWhereItFails": true} {
		t.Run(title, func(t *testing.T) {
			d := &atOnce{fails: fails}
			h := open(t, t.TempDir(), func(o *engine.Options) {
				d.faulty = o.Runtimes["memory"].(*faulty)
				o.Runtimes = map[string]runtime.Driver{"memory": d}
			})
			s := h.create(engine.CreateRequest{Key: "box"})
			h.exec("box", "echo one > file")
			one := h.snapshot("box", "one")
			h.exec("box", "echo two > file")
			ended := make(chan engine.ExecResult, 1)
			go func() {
				r, _ := h.engine.Exec(context.Background(), alice, "box", engine.ExecRequest{Shell: "echo begun > begun; sleep 600"}, nil)
				ended <- r
			}()
			h.await("the command runs", func() bool { return h.reads("box", "begun") == "begun\n" })
			got, err := h.engine.Rollback(t.Context(), alice, "box", "one")
			if err != nil || got.ID != s.ID || got.State != sandbox.Running || got.Parent != one.ID || got.Restore != "" {
				t.Fatalf("%+v, %v", got, err)
			}
			if d.calls != 1 {
				t.Errorf("the driver was asked %d times", d.calls)
			}
			select {
			case r := <-ended:
				if r.Cause != sandbox.CauseRestore {
					t.Errorf("the command ended with %+v", r.Result)
				}
			case <-time.After(20 * time.Second):
				t.Error("the command does not end")
			}
			if got := h.reads("box", "file"); got != "one\n" {
				t.Errorf("the file: %q", got)
			}
			h.exec("box", "echo three > file")
			if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
				t.Error(err)
			}
		})
	}
}
