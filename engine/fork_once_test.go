// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// forker is a driver that forks at once. Its hooks see that as "fork".
type forker struct {
	*faulty
	copied func() // called once the disk is copied, before the rest is done
}

func (d *forker) Fork(ctx context.Context, of sandbox.ID, s runtime.Spec, copied func()) (inst runtime.Instance, err error) {
	err = d.call(ctx, "fork", func() (err error) {
		inst, err = d.Driver.(runtime.Forker).Fork(ctx, of, s, func() {
			copied()
			if d.copied != nil {
				d.copied()
			}
		})
		return err
	})
	if err != nil {
		if inst != nil { // all or nothing holds for a driver that fails late, too
			_ = inst.Remove(context.WithoutCancel(ctx))
		}
		return nil, err
	}
	return d.wrap(inst), nil
}

func openForker(t *testing.T) (*house, *forker) {
	d := &forker{}
	h := open(t, t.TempDir(), func(o *engine.Options) {
		d.faulty = o.Runtimes["memory"].(*faulty)
		o.Runtimes = map[string]runtime.Driver{"memory": d}
	})
	h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	return h, d
}

func TestForkAtOnce(t *testing.T) {
	h, d := openForker(t)
	var calls []string
	d.set(func(_ context.Context, call string) error {
		calls = append(calls, call)
		return nil
	}, nil)
	// Once the disk is copied, the sandbox is free for others.
	d.copied = func() {
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Errorf("a stop while the fork starts: %v", err)
		}
	}
	s, err := h.engine.Get(t.Context(), alice, "box")
	if err != nil {
		t.Fatal(err)
	}
	f := h.fork("box", engine.ForkRequest{Key: "fork"})[0]
	d.set(nil, nil)
	if f.State != sandbox.Running || f.ForkedFrom != s.ID || f.Key != "fork" {
		t.Errorf("got %+v", f)
	}
	if !slices.Contains(calls, "fork") || slices.Contains(calls, "snapshot") || slices.Contains(calls, "create") {
		t.Errorf("the driver was asked to %q", calls)
	}
	if got := h.reads("fork", "file"); got != "one\n" {
		t.Errorf("the file: %q", got)
	}
	if got := h.get(s.ID); got.State != sandbox.Stopped {
		t.Errorf("the parent is %s", got.State)
	}
	h.whole()
	h.keptWhole()
}

// Of several, the disk is the same: it is kept for as long as they are made.
func TestSeveralForksAreOfOneInstant(t *testing.T) {
	h, d := openForker(t)
	d.set(failing("fork"), nil)
	for _, f := range h.fork("box", engine.ForkRequest{Count: 2}) {
		if got := h.reads(string(f.ID), "file"); got != "one\n" {
			t.Errorf("the file: %q", got)
		}
	}
	h.keptWhole()
}

func TestAForkAtOnceThatFails(t *testing.T) {
	h, d := openForker(t)
	h.recorded()
	for what, arm := range map[string]func(){
		"fork":      func() { d.set(failing("fork"), nil) },
		"late fork": func() { d.set(nil, failing("fork")) },
	} {
		arm()
		_, err := h.engine.Fork(t.Context(), alice, "box", engine.ForkRequest{Key: "fork"})
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", what, err)
		}
		d.set(nil, nil)
		if got := h.instances(); len(got) != 1 {
			t.Errorf("%s: instances are left: %v", what, got)
		}
		h.keptWhole()
		if got := h.reads("box", "file"); got != "one\n" {
			t.Errorf("%s: the parent's file: %q", what, got)
		}
	}
	h.fork("box", engine.ForkRequest{Key: "fork"})
	d.set(func(_ context.Context, call string) error {
		if call == "open" {
			return fault.New(fault.NotFound, "no such disk")
		}
		return nil
	}, nil)
	_, err := h.engine.Fork(t.Context(), alice, "box", engine.ForkRequest{})
	wantCode(t, err, fault.State)
	d.set(nil, nil)
}
