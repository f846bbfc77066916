// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/sandbox"
)

func TestRename(t *testing.T) {
	t.Parallel()
	rename := func(h *house, ref, key string) (*sandbox.Sandbox, error) {
		return h.engine.Update(t.Context(), alice, ref, update.Patch{Key: &key})
	}
	hostname := func(h *house, id sandbox.ID) string {
		h.t.Helper()
		name, err := h.host.Hostname(id)
		if err != nil {
			h.t.Fatal(err)
		}
		return name
	}
	t.Run("HasItFoundByTheNewKeyAlone", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		got, err := rename(h, "box", "lab")
		if err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, "the key", got.Key, "lab")
		checktest.Equal(t, "the host name", hostname(h, s.ID), "lab")
		if _, err := h.engine.Get(t.Context(), alice, "box"); !fault.Is(err, fault.NotFound) {
			t.Errorf("by the old key: %v", err)
		}
		if got, err := h.engine.Get(t.Context(), alice, "lab"); err != nil || got.ID != s.ID {
			t.Errorf("by the new key: %+v, %v", got, err)
		}
		ev := h.events(s.ID)
		if last := ev[len(ev)-1]; last.Type != sandbox.EventUpdated || last.Detail != `changed key; the key was "box" and is "lab"` {
			t.Errorf("the event: %+v", last)
		}
		// Once more is no change, by any name that it has.
		for _, ref := range []string{"lab", string(s.ID)} {
			if got, err := rename(h, ref, "lab"); err != nil || got.Revision == 0 || len(h.events(s.ID)) != len(ev) {
				t.Errorf("once more by %s: %+v, %v", ref, got, err)
			}
		}
		other := h.create(engine.CreateRequest{Key: "box"})
		if other.ID == s.ID {
			t.Error("the old key leads to the same sandbox still")
		}
		h.end()
		h.serve()
		if got, err := h.engine.Get(t.Context(), alice, "lab"); err != nil || got.ID != s.ID {
			t.Errorf("after a restart of the server: %+v, %v", got, err)
		}
		if got, err := h.engine.Get(t.Context(), alice, "box"); err != nil || got.ID != other.ID {
			t.Errorf("the other one, after a restart of the server: %+v, %v", got, err)
		}
	})
	t.Run("ToAKeyInUseIsRefusedAndChangesNothing", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		other := h.create(engine.CreateRequest{Key: "lab"})
		_, err := h.engine.Update(t.Context(), alice, "box", update.Patch{Key: ptr("lab"), MemoryMB: ptr(1024)})
		wantCode(t, err, fault.Exists)
		if e := fault.As(err); !strings.Contains(e.Message, "lab") || !strings.Contains(e.Remedy, "another key") {
			t.Errorf("%v (%s)", err, e.Remedy)
		}
		if got := h.get(s.ID); got.Key != "box" || got.Limits != s.Limits || hostname(h, s.ID) != "box" {
			t.Errorf("got %+v, with the host name %s", got, hostname(h, s.ID))
		}
		if got, err := h.engine.Get(t.Context(), alice, "lab"); err != nil || got.ID != other.ID {
			t.Errorf("who had it: %+v, %v", got, err)
		}
		for _, bad := range []string{"", "a/b", "..", string(s.ID), strings.Repeat("x", sandbox.MaxKey+1)} {
			_, err := rename(h, "box", bad)
			wantCode(t, err, fault.Invalid)
		}
	})
	t.Run("OfOneThatIsDownOrHasNoKey", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{})
		if got, err := rename(h, string(s.ID), "box"); err != nil || got.Key != "box" || hostname(h, s.ID) != "box" {
			t.Errorf("without a key: %+v, %v", got, err)
		}
		h.pause("box")
		if _, err := rename(h, "box", "paused"); err != nil || hostname(h, s.ID) != "paused" {
			t.Errorf("while it is paused: %v, with the host name %s", err, hostname(h, s.ID))
		}
		if _, err := h.engine.Stop(t.Context(), alice, "paused"); err != nil {
			t.Fatal(err)
		}
		if _, err := rename(h, "paused", "lab"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.engine.Start(t.Context(), alice, "lab"); err != nil || hostname(h, s.ID) != "lab" {
			t.Errorf("started afterwards: %v, with the host name %s", err, hostname(h, s.ID))
		}
	})
	t.Run("WhoseHostNameCannotBeSetIsGivenItLater", func(t *testing.T) {
		for name, mend := range map[string]func(h *house){
			"WithTheNextVerb": func(h *house) {
				if _, err := h.engine.Start(t.Context(), alice, "lab"); err != nil {
					h.t.Error(err)
				}
			},
			"WithTheNextServer": func(h *house) { h.end(); h.serve() },
		} {
			t.Run(name, func(t *testing.T) {
				h := open(t, t.TempDir())
				s := h.create(engine.CreateRequest{Key: "box"})
				h.faulty.set(failing("name"), nil)
				if got, err := rename(h, "box", "lab"); err != nil || got.Key != "lab" {
					t.Fatalf("%+v, %v", got, err)
				}
				checktest.Equal(t, "the host name", hostname(h, s.ID), "box")
				h.faulty.set(nil, nil)
				mend(h)
				checktest.Equal(t, "the host name later", hostname(h, s.ID), "lab")
			})
		}
	})
	t.Run("WhoseRecordTheStoreRefusesChangesNothing", func(t *testing.T) {
		var st *stubborn
		h := open(t, t.TempDir(), func(o *engine.Options) { st = &stubborn{Store: o.Store}; o.Store = st })
		s := h.create(engine.CreateRequest{Key: "box"})
		st.after(0)
		_, err := rename(h, "box", "lab")
		wantCode(t, err, fault.Unavailable)
		st.heal()
		if got, err := h.engine.Get(t.Context(), alice, "box"); err != nil || got.ID != s.ID || hostname(h, s.ID) != "box" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := rename(h, "box", "lab"); err != nil {
			t.Errorf("once more: %v", err)
		}
	})
}

// Of many who give many sandboxes one key, and create one by it, one has it.
func TestOneKeyHasOneSandbox(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	const many = 8
	ids := make(chan sandbox.ID, many+1)
	for range many {
		go func() {
			s, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{})
			if err != nil {
				t.Error(err)
				ids <- ""
				return
			}
			_, err = h.engine.Update(t.Context(), alice, string(s.ID), update.Patch{Key: ptr("one")})
			switch {
			case err == nil:
				ids <- s.ID
			case !fault.Is(err, fault.Exists):
				t.Error(err)
				fallthrough
			default:
				ids <- ""
			}
		}()
	}
	go func() {
		s, created, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "one"})
		if err != nil {
			t.Error(err)
		}
		if !created {
			s = &sandbox.Sandbox{}
		}
		ids <- s.ID
	}()
	var has []sandbox.ID
	for range many + 1 {
		if id := <-ids; id != "" {
			has = append(has, id)
		}
	}
	s, err := h.engine.Get(t.Context(), alice, "one")
	if err != nil || len(has) != 1 || s.ID != has[0] {
		t.Errorf("%v have it, and it leads to %+v (%v)", has, s, err)
	}
}
