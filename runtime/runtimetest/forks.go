// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"slices"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// forksAtOnce makes instances with the disks of others, without a snapshot.
func forksAtOnce(t *testing.T, s *suite) {
	d, ok := s.driver.(runtime.Forker)
	if !ok {
		s.need(t, runtime.CheapSnapshots) // without them there is nothing to win
		t.Skip("the driver is no runtime.Forker")
	}
	parent := s.create(t, s.spec())
	fork := func(of sandbox.ID) *box {
		t.Helper()
		copied := 0
		i, err := d.Fork(t.Context(), of, s.spec(), func() { copied++ })
		if err != nil {
			t.Fatalf("Fork: %v", err)
		}
		if copied != 1 {
			t.Errorf("a fork said %d times that it has the disk", copied)
		}
		f := &box{t: t, Instance: i, agent: newAgent(i)}
		f.removeLater()
		return f
	}
	id := parent.Handle().ID
	before, err := s.snapshotter(t).Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parent.begin(agent.Command{Shell: steps}, "begun\n")
	var last string
	for n := range 6 {
		f := fork(id)
		got := f.ok(checkSteps)
		if n > 0 && got == last {
			t.Errorf("the writer did not go on after fork %d: it stands at %s", n, got)
		}
		last = got
		f.ok("echo fork > file")
		if err := f.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	parent.ok("[ ! -e file ] && echo parent > file")
	if s.has(t, runtime.Pause) {
		parent.pause()
		if got := fork(id).ok("cat file"); got != "parent" {
			t.Errorf("of a paused one: got %q", got)
		}
		if !parent.pauser().Paused() {
			t.Error("a fork resumed it")
		}
		parent.silent("after a fork of it")
		parent.resume()
	}
	if err := parent.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	f := fork(id)
	if got := f.ok("cat file"); got != "parent" {
		t.Errorf("of one that is down: got %q", got)
	}
	if after, err := s.snapshotter(t).Snapshots(t.Context()); err != nil || len(after) != len(before) {
		t.Errorf("forks left snapshots: %v, %v; before there were %v", after, err, before)
	}
	wrong := map[string]struct {
		of   sandbox.ID
		id   sandbox.ID
		want fault.Code
	}{
		"of nothing":     {sandbox.NewID(), sandbox.NewID(), fault.NotFound},
		"onto another":   {id, f.Handle().ID, fault.Exists},
		"onto its own":   {id, id, fault.Exists},
		"with a bad id":  {id, "../x", fault.Invalid},
		"of a bad id":    {"../x", sandbox.NewID(), fault.Invalid},
		"with no id":     {id, "", fault.Invalid},
		"of an empty id": {"", sandbox.NewID(), fault.Invalid},
	}
	for what, c := range wrong {
		spec, copied := s.spec(), 0
		spec.ID = c.id
		_, err := d.Fork(t.Context(), c.of, spec, func() { copied++ })
		if c.want == fault.Invalid && fault.Is(err, fault.NotFound) {
			err = fault.New(fault.Invalid, "%s", err) // it may look for it first
		}
		wantCode(t, "Fork "+what, err, c.want)
		if copied != 1 {
			t.Errorf("a fork %s said %d times that it is done with the disk", what, copied)
		}
	}
	if got := f.ok("cat file"); got != "parent" {
		t.Errorf("after forks that failed: got %q", got)
	}
	list, err := s.driver.List(t.Context())
	for what, c := range wrong {
		if err != nil || c.id != f.Handle().ID && c.id != id && slices.ContainsFunc(list, func(h runtime.Handle) bool { return h.ID == c.id }) {
			t.Errorf("a fork %s left an instance: %v, %v", what, list, err)
		}
	}
}
