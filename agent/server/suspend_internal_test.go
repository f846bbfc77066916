// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/agent/server/view"
)

// Where a server was killed before it froze what it had suspended, nobody tells the
// agent to go on.
func TestASuspensionThatNoFreezeFollowsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{User: view.Plain(view.Identity{Name: "sandbox"}), Log: os.Stdin})
		began := time.Now()
		if err := s.suspend(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := s.pause.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.pause.leave()
		if took := time.Since(began); took != suspensionTick*suspensionTicks {
			t.Errorf("it ended after %v", took)
		}
		if err := s.suspend(t.Context(), 2); err != nil { // and the next one holds
			t.Fatal(err)
		}
		if s.pause.over == nil {
			t.Error("it was not suspended again")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Who suspends while a command is being started is told when it is over, or leaves;
// then the suspension holds all the same.
func TestASuspensionWaitsForStarts(t *testing.T) {
	s := New(Options{User: view.Plain(view.Identity{Name: "sandbox"}), Log: os.Stdin})
	defer s.Close()
	if err := s.pause.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	suspended := make(chan error, 1)
	go func() { suspended <- s.suspend(t.Context(), 1) }()
	for held := false; !held; {
		s.pause.mu.Lock()
		held = s.pause.idle != nil
		s.pause.mu.Unlock()
	}
	select {
	case err := <-suspended:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	s.pause.leave()
	if err := <-suspended; err != nil {
		t.Error(err)
	}
	if err := s.proceed(2); err != nil {
		t.Error(err)
	}
	if err := s.suspend(t.Context(), 1); err == nil {
		t.Error("one that came late had an effect")
	}
}
