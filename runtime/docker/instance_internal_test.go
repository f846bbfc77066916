// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"testing"

	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// TestWhoWaitsForAVerbEndsWithHisContext: the verb before may wait for an Engine that hangs.
func TestWhoWaitsForAVerbEndsWithHisContext(t *testing.T) {
	t.Parallel()
	i := new(Driver).newInstance(sandbox.NewID())
	end, err := i.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 4)
	for _, verb := range []func(context.Context) error{
		i.Remove, i.Pause, i.Resume, func(ctx context.Context) error { return i.Stop(ctx, 0) },
	} {
		go func() { waits <- verb(ctx) }()
	}
	cancel()
	for range cap(waits) {
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("a verb that waits for another one, and whose caller has gone: %v", err)
		}
	}
	end()
	if end, err = i.begin(t.Context()); err != nil {
		t.Fatalf("the next verb: %v", err)
	}
	end()
}

// TestPausesThatAreToldLateAreNobodyElses: an Engine may tell of a pause only after the next one has begun and ended.
func TestPausesThatAreToldLateAreNobodyElses(t *testing.T) {
	t.Parallel()
	i := new(Driver).newInstance(sandbox.NewID())
	i.container = "c"
	told := engineapi.Event{Action: actionPause}
	told.Actor.ID = i.container
	for range 2 {
		i.expectPauses(1)
	}
	for n := range 3 {
		if err := i.heard(t.Context(), told); err != nil {
			t.Fatal(err)
		}
		if i.frozen != (n == 2) {
			t.Errorf("after %d of 2 pauses of its own and then another: frozen is %v", n+1, i.frozen)
		}
	}
}
