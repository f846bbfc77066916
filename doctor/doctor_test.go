// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

func operator() access.Caller {
	return access.Caller{Project: "p", Scopes: []access.Scope{access.ServerAdmin}}
}

func TestOnlyTheOperatorAsks(t *testing.T) {
	s := New([]Check{{"x", func(context.Context) []Finding { t.Error("it was looked at"); return nil }}}, Options{})
	for _, scope := range []access.Scope{access.Admin, access.SandboxesRead, access.SandboxesWrite} {
		if _, err := s.Report(t.Context(), access.Caller{Project: "p", Scopes: []access.Scope{scope}}); fault.Of(err) != fault.Denied {
			t.Errorf("%s: got %v", scope, err)
		}
	}
}

func TestWhoAsksAtTheSameTimeGetsOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looked atomic.Int64
		goes := make(chan struct{})
		s := New([]Check{
			{"first", func(context.Context) []Finding {
				looked.Add(1)
				<-goes
				return []Finding{{"first", Warned, "it is so", "mend it"}, {"first/part", Passed, "yes", ""}}
			}},
			{"second", func(context.Context) []Finding { return []Finding{{"second", Passed, "yes", ""}} }},
			{"third", func(context.Context) []Finding { return nil }},
		}, Options{})
		reports := make(chan Report)
		for range 5 {
			go func() {
				r, err := s.Report(t.Context(), operator())
				if err != nil {
					t.Error(err)
				}
				reports <- r
			}()
		}
		synctest.Wait()
		// Who leaves takes it from nobody.
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := s.Report(ctx, operator()); left <- err }()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: got %v", err)
		}
		close(goes)
		for range 5 {
			r := <-reports
			if len(r.Findings) != 3 || r.Findings[0].Name != "first" || r.Findings[1].Name != "first/part" || r.Findings[2].Name != "second" || r.Worst() != Warned || r.At.IsZero() {
				t.Errorf("got %+v", r)
			}
		}
		if n := looked.Load(); n != 1 {
			t.Errorf("it was looked %d times for 6 who asked at once", n)
		}
		if r, err := s.Report(t.Context(), operator()); err != nil || len(r.Findings) != 3 || looked.Load() != 2 {
			t.Errorf("later: got %+v, %v after %d looks", r, err, looked.Load())
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A check that hangs holds up nobody for longer than the bound, and is there once, however often it is asked for.
func TestACheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun, obedient atomic.Int64
		goes := make(chan struct{})
		s := New([]Check{
			{"hangs", func(context.Context) []Finding { begun.Add(1); <-goes; return []Finding{{"hangs", Failed, "late", ""}} }},
			{"obeys", func(ctx context.Context) []Finding {
				if obedient.Add(1) == 1 {
					<-ctx.Done()
				}
				return []Finding{{"obeys", Passed, "yes", ""}}
			}},
		}, Options{Bound: 8 * time.Second})
		for n := range 3 {
			began := time.Now()
			r, err := s.Report(t.Context(), operator())
			if err != nil || len(r.Findings) != 2 {
				t.Fatalf("round %d: got %+v, %v", n, r, err)
			}
			if took := time.Since(began); took > 8*time.Second { // of the bubble's clock
				t.Errorf("round %d took %v", n, took)
			}
			if f := r.Findings[0]; f.Name != "hangs" || f.Status != Warned || f.Remedy == "" || !strings.Contains(f.Detail, "no answer") {
				t.Errorf("round %d: got %+v", n, f)
			}
			if f := r.Findings[1]; f.Name != "obeys" || f.Status != Passed {
				t.Errorf("round %d: got %+v", n, f)
			}
		}
		if begun.Load() != 1 {
			t.Errorf("it was begun %d times", begun.Load())
		}
		close(goes)
		synctest.Wait()
		r, err := s.Report(t.Context(), operator())
		if err != nil || begun.Load() != 2 || r.Worst() != Failed {
			t.Errorf("when it has ended: got %+v, %v after %d", r, err, begun.Load())
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goes := make(chan struct{})
		s := New([]Check{
			{"obeys", func(ctx context.Context) []Finding { <-ctx.Done(); return nil }},
			{"hangs", func(context.Context) []Finding { <-goes; return nil }},
		}, Options{Bound: time.Hour})
		asked := make(chan Report)
		go func() { r, _ := s.Report(t.Context(), operator()); asked <- r }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with one that hangs: got %v", err)
		}
		<-asked
		if _, err := s.Report(t.Context(), operator()); fault.Of(err) != fault.Unavailable {
			t.Errorf("afterwards: got %v", err)
		}
		close(goes)
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
