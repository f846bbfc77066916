// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func rollbacks(t *testing.T, s *suite) {
	spec := s.spec()
	b := s.create(t, spec)
	b.ok("echo one > file; mkdir one")
	one := s.keep(t, b)
	b.ok("echo two > file; rmdir one; mkdir two")
	two := s.keep(t, b)
	for _, to := range []struct {
		id   sandbox.ID
		want string
	}{{one, "one\none"}, {two, "two\ntwo"}, {one, "one\none"}, {one, "one\none"}} {
		s.rollBack(t, b, spec, to.id)
		if got := b.ok("cat file; ls -d one two 2>/dev/null || :"); got != to.want {
			t.Errorf("got %q, want %q", got, to.want)
		}
		b.ok("echo spoilt > file; rm -rf one two; echo > more")
	}
	if s.has(t, runtime.RootUser) {
		if o := b.asRoot("rm /etc/profile; echo > /srv/made"); o.ExitCode != 0 {
			t.Fatalf("%+v", o)
		}
	}
	s.rollBack(t, b, spec, "")
	if got := b.ok("ls; echo fine > file; cat file"); got != "fine" {
		t.Errorf("a fresh disk: got %q", got)
	}
	if s.has(t, runtime.RootUser) {
		if o := b.asRoot("ls /etc/profile; ls /srv"); o.Stdout != "/etc/profile\n" {
			t.Errorf("a fresh disk's image: got %+v", o)
		}
	}
	if got := s.create(t, s.from(s.keep(t, b))).ok("cat file"); got != "fine" {
		t.Errorf("a fork of a fresh disk has %q", got)
	}
	if s.has(t, runtime.LimitDisk) {
		spec.Limits.DiskMB = 48
		s.rollBack(t, b, spec, one)
		if o := b.run("head -c 80M /dev/urandom > big && sync big"); o.ExitCode == 0 || !full(o) {
			t.Errorf("80 MiB within a limit of 48 that a rollback set: %+v", o)
		}
		if got := b.ok("cat file"); got != "one" {
			t.Errorf("got %q", got)
		}
	}
}

// restores exchanges disks under what runs.
func restores(t *testing.T, s *suite) {
	spec := s.spec()
	b := s.create(t, spec)
	r, ok := b.Instance.(runtime.Restorer)
	if !ok {
		s.need(t, runtime.CheapSnapshots) // without them there is nothing to win
		t.Skip("the instances are no runtime.Restorer")
	}
	b.ok("echo kept > file")
	id := s.keep(t, b)
	wantCode(t, "Restore to a snapshot that is not there", r.Restore(t.Context(), spec, sandbox.NewID()), fault.NotFound)
	b.ok("true") // nothing was done
	for _, paused := range []bool{false, true} {
		b.begin(agent.Command{Shell: "echo begun; while :; do echo spoilt > file; sleep 0.01; done"}, "begun\n")
		exits := make(chan runtime.Exit, 1)
		waiting := make(chan struct{})
		go func() {
			close(waiting)
			e, _ := b.Wait(t.Context())
			exits <- e
		}()
		<-waiting
		if paused && s.has(t, runtime.Pause) {
			b.pause()
		}
		if err := r.Restore(t.Context(), spec, id); err != nil {
			t.Fatalf("Restore (paused before: %v): %v", paused, err)
		}
		if got := b.ok("a=$(cat file); sleep 0.1; cat file; echo $a"); got != "kept\nkept" {
			t.Errorf("after a restore (paused before: %v): %q", paused, got)
		}
		if err := b.Stop(t.Context(), 0); err != nil { // who came too late to see the first end sees this one
			t.Fatal(err)
		}
		if e := <-exits; e.Cause != sandbox.CauseStopped {
			t.Errorf("who waited got %+v", e)
		}
		if err := b.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Restore(t.Context(), spec, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.ok("ls"); got != "" {
		t.Errorf("a fresh disk has %q", got)
	}
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "Restore of one that is down", r.Restore(t.Context(), spec, id), fault.State)
}
