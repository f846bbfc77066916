// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
)

// What it does where it is on is tried with a real sandbox: see test/script (sudo).
func TestSudoIsRefusedWhereNothingCanRunAsRoot(t *testing.T) {
	for name, c := range map[string]struct {
		forbid bool
		want   fault.Code
	}{
		"TheServer": {true, fault.Denied}, "TheRuntime": {false, fault.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, t.TempDir(), func(o *engine.Options) { o.Defaults.ForbidRoot = c.forbid })
			_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box", Sudo: new(true)})
			wantCode(t, err, c.want)
			if _, err := h.engine.Get(t.Context(), alice, "box"); !fault.Is(err, fault.NotFound) {
				t.Errorf("what was refused is there: %v", err)
			}
			h.create(engine.CreateRequest{Key: "box", Sudo: new(false)})
			_, err = h.engine.Update(t.Context(), alice, "box", update.Patch{Sudo: new(true)})
			wantCode(t, err, c.want)
			s, err := h.engine.Update(t.Context(), alice, "box", update.Patch{Sudo: new(false)})
			if err != nil || s.Sudo {
				t.Errorf("%+v, %v", s, err)
			}
			h.exec("box", "true")
		})
	}
}
