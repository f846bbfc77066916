// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// watched is a store whose commits are over before who made them knows.
type watched struct {
	store.Store
	after atomic.Pointer[func()]
}

func (w *watched) Update(ctx context.Context, fn func(store.Tx) error) error {
	err := w.Store.Update(ctx, fn)
	if after := w.after.Load(); after != nil {
		(*after)()
	}
	return err
}

// Whoever follows events has one as soon as the store does, and looks then.
func TestASandboxIsWhatItsEventSaysFromTheFirst(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.end()
	var st *watched
	h.serve(func(o *engine.Options) { st = &watched{Store: o.Store}; o.Store = st })
	s := h.create(engine.CreateRequest{Key: "box"})
	var seen atomic.Int32
	look := func() {
		var stored *sandbox.Sandbox
		if err := st.View(context.Background(), func(tx store.Tx) (err error) {
			stored, err = tx.Sandboxes().Get(s.ID)
			return err
		}); err != nil {
			t.Error(err)
			return
		}
		seen.Add(1)
		if is, err := h.engine.Inspect(context.Background(), alice, "box"); err != nil || is.State != stored.State {
			t.Errorf("it is %v, %v, and its record says %v", is.State, err, stored.State)
		}
	}
	st.after.Store(&look)
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Error(err)
	}
	st.after.Store(nil)
	if seen.Load() == 0 {
		t.Error("nothing was committed")
	}
}
