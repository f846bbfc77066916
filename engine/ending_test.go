// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestACreateMayRefuseAKeyThatExists(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Refuse: true}) // nothing is there to be refused for
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box", Refuse: true})
	wantCode(t, err, fault.Exists)
	if !strings.Contains(err.Error(), string(s.ID)) {
		t.Errorf("the error does not name the sandbox: %v", err)
	}
	if got := h.get(s.ID); got.State != sandbox.Stopped {
		t.Errorf("the sandbox is %s, and was stopped", got.State)
	}
	// Of many at once with one new key exactly one has it.
	var all sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 8 {
		all.Go(func() {
			_, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "new", Refuse: true})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && created:
				made++
			case !fault.Is(err, fault.Exists):
				t.Errorf("created %v, %v", created, err)
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Errorf("%d of 8 made it", made)
	}
}

func TestVariablesAreChangedOneByOne(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"A": "1", "B": "2"}})
	change := func(p update.Patch) error {
		_, err := h.engine.Update(t.Context(), alice, "box", p)
		return err
	}
	has := func(want map[string]string) {
		t.Helper()
		if got := h.get(s.ID).Env; !maps.Equal(got, want) {
			t.Errorf("the variables are %v, want %v", got, want)
		}
	}
	if err := change(update.Patch{EnvSet: map[string]string{"B": "3", "C": "4"}, EnvUnset: []string{"A", "NONE"}}); err != nil {
		t.Fatal(err)
	}
	has(map[string]string{"B": "3", "C": "4"})
	res, err := h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "echo $A-$B-$C"}, nil)
	if err != nil || string(res.Stdout) != "-3-4\n" {
		t.Errorf("a command has %q, %v", res.Stdout, err)
	}
	// Many at once, each with another variable: none is lost.
	var all sync.WaitGroup
	want := map[string]string{"B": "3"}
	for n := range 10 {
		name := fmt.Sprintf("N%d", n)
		want[name] = "x"
		all.Go(func() {
			if err := change(update.Patch{EnvSet: map[string]string{name: "x"}, EnvUnset: []string{"C"}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	has(want)
	events := len(h.events(s.ID))
	if err := change(update.Patch{EnvSet: map[string]string{"B": "3"}, EnvUnset: []string{"C"}}); err != nil || len(h.events(s.ID)) != events {
		t.Errorf("what changes nothing: %v, %d events more", err, len(h.events(s.ID))-events)
	}
	many := make(map[string]string)
	for n := range 250 {
		many[fmt.Sprintf("M%d", n)] = "x"
	}
	for name, bad := range map[string]struct {
		p     update.Patch
		field string
	}{
		"a name":            {update.Patch{EnvSet: map[string]string{"1A": "x"}}, "env_set"},
		"a value":           {update.Patch{EnvSet: map[string]string{"A": "x\x00"}}, "env_set"},
		"a name to unset":   {update.Patch{EnvUnset: []string{"A=B"}}, "env_unset"},
		"both":              {update.Patch{EnvSet: map[string]string{"A": "x"}, EnvUnset: []string{"A"}}, "env_unset"},
		"beside all":        {update.Patch{Env: &map[string]string{}, EnvSet: map[string]string{"A": "x"}}, "env"},
		"too many together": {update.Patch{EnvSet: many}, "env_set"},
	} {
		err := change(bad.p)
		if fault.Of(err) != fault.Invalid || fault.As(err).Fields[0].Name != bad.field {
			t.Errorf("%s: %v, want %s to be refused", name, err, bad.field)
		}
	}
	has(want)
}

func TestAnExtensionMovesTheExpiryLaterAndNeverEarlier(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", TTL: time.Hour})
	extend := func(to time.Time) (time.Time, error) {
		got, err := h.engine.Update(t.Context(), alice, "box", update.Patch{ExtendTo: &to})
		if err != nil {
			return time.Time{}, err
		}
		return got.ExpiresAt, nil
	}
	if got, err := extend(s.ExpiresAt.Add(-time.Minute)); err != nil || !got.Equal(s.ExpiresAt) {
		t.Errorf("an earlier time: %v, %v", got, err)
	}
	later := s.ExpiresAt.Add(time.Hour)
	if got, err := extend(later); err != nil || !got.Equal(later) {
		t.Errorf("a later time: %v, %v", got, err)
	}
	if _, err := extend(time.Now().Add(-time.Minute)); fault.Of(err) != fault.Invalid || fault.As(err).Fields[0].Name != "extend_to" {
		t.Errorf("a time that has passed: %v", err)
	}
	if _, err := h.engine.Update(t.Context(), alice, "box", update.Patch{ExtendTo: &later, TTL: ptr(time.Hour)}); fault.Of(err) != fault.Invalid {
		t.Errorf("beside a lifetime: %v", err)
	}
	if _, err := h.engine.Update(t.Context(), alice, "box", update.Patch{TTL: ptr(time.Duration(0))}); err != nil {
		t.Fatal(err)
	}
	if got, err := extend(later); err != nil || !got.IsZero() {
		t.Errorf("one that never expires: %v, %v", got, err)
	}
}
