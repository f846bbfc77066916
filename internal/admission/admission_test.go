// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/internal/admission"
)

func enter(t *testing.T, g *admission.Gate, project string) (leave func()) {
	t.Helper()
	leave, err := g.Enter(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

func TestNoMoreAtOnceThanThereArePlaces(t *testing.T) {
	t.Parallel()
	g := admission.New(admission.Options{AtOnce: 8, Lease: time.Hour})
	var mu sync.Mutex
	now, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		most = max(most, now)
	}
	var wg sync.WaitGroup
	for n := range 1000 {
		wg.Go(func() {
			leave, err := g.Enter(t.Context(), []string{"a", "b", "c"}[n%3])
			if err != nil {
				t.Error(err)
				return
			}
			count(1)
			count(-1)
			leave()
			leave() // twice is as once
		})
	}
	wg.Wait()
	if f := g.Figures(); f != (admission.Figures{}) || most > 8 || most == 0 {
		t.Errorf("%d were at once, and then %+v", most, f)
	}
}

func TestProjectsHaveTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Options{AtOnce: 1, Lease: time.Hour})
		leave := enter(t, g, "a")
		var order []string
		for _, who := range []string{"a1", "a2", "a3", "b1", "c1", "b2"} {
			go func() {
				leave := enter(t, g, who[:1])
				order = append(order, who) // one at a time has the place
				leave()
			}()
			synctest.Wait() // until it waits
		}
		if f := g.Figures(); f.Waiting != 6 || f.Taken != 1 {
			t.Errorf("%+v", f)
		}
		leave()
		synctest.Wait()
		if want := []string{"a1", "b1", "c1", "a2", "b2", "a3"}; !slices.Equal(order, want) {
			t.Errorf("admitted were %v, want %v", order, want)
		}
	})
}

func TestWhoWouldWaitTooLongIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Options{What: "creates", AtOnce: 2, Waiting: 4, Wait: time.Minute, Lease: time.Hour})
		leaves := []func(){enter(t, g, "a"), enter(t, g, "a")}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := g.Enter(ctx, "a")
				left <- err
			}()
			synctest.Wait()
		}
		// A project has half of what may wait, and leaves the rest to others.
		began := time.Now()
		_, err := g.Enter(t.Context(), "a")
		if e := fault.As(err); err == nil || e.Code != fault.Exhausted || !e.Busy || e.Retry < time.Second || e.Remedy == "" || time.Since(began) != 0 {
			t.Errorf("a third that waits: %v after %v", err, time.Since(began))
		}
		others := make(chan func(), 2)
		for _, p := range []string{"b", "c"} {
			go func() { others <- enter(t, g, p) }()
			synctest.Wait()
		}
		if _, err := g.Enter(t.Context(), "d"); !fault.Is(err, fault.Exhausted) {
			t.Errorf("a fifth that waits: %v", err)
		}
		cancel()
		synctest.Wait()
		if err := <-left; len(left) != 1 || !errors.Is(err, context.Canceled) || g.Figures().Waiting != 2 {
			t.Errorf("who went away got %v, and %+v", err, g.Figures())
		}
		for _, leave := range leaves {
			leave()
		}
		synctest.Wait()
		if len(others) != 2 || g.Figures() != (admission.Figures{Taken: 2, Refused: 2}) {
			t.Errorf("%d of the others were admitted: %+v", len(others), g.Figures())
		}
		(<-others)()
		(<-others)()
	})
}

func TestTheWaitIsForeseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Options{AtOnce: 1, Wait: 5 * time.Second, Lease: time.Hour})
		for range 100 { // each takes ten seconds of the place
			leave := enter(t, g, "a")
			time.Sleep(10 * time.Second) // of the bubble's clock
			leave()
		}
		leave := enter(t, g, "a")
		began := time.Now()
		_, err := g.Enter(t.Context(), "b")
		if e := fault.As(err); err == nil || e.Code != fault.Exhausted || e.Retry < 9*time.Second || e.Retry > 11*time.Second || time.Since(began) != 0 {
			t.Errorf("%v (%v) after %v", err, fault.As(err).Retry, time.Since(began))
		}
		leave()
	})
}

func TestAPlaceIsLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Options{AtOnce: 1, Lease: 10 * time.Second})
		slow := enter(t, g, "a") // waits for something else than the host
		began := time.Now()
		leave := enter(t, g, "b")
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("waited for %v", waited)
		}
		slow() // which gives nothing back that is another's by now
		if f := g.Figures(); f.Taken != 1 {
			t.Errorf("%+v", f)
		}
		leave()
		if f := g.Figures(); f.Taken != 0 {
			t.Errorf("%+v", f)
		}
	})
}

func TestNobodyWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Options{AtOnce: 1, Wait: time.Second, Lease: time.Hour})
		leave := enter(t, g, "a")
		began := time.Now()
		if _, err := g.Enter(t.Context(), "b"); !fault.Is(err, fault.Exhausted) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if f := g.Figures(); f != (admission.Figures{Taken: 1, Refused: 1}) {
			t.Errorf("%+v", f)
		}
		leave()
	})
}
