// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os/exec"
	"testing"
	"time"

	"sandpit.dev/code"
)

// needs skips where this host, whose programs the fake runtime runs, has no such program.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("this host has no %s, which the memory runtime would run", program)
	}
}

// cell runs code that has to be run, however it ends.
func (h *house) cell(ref string, r code.Request) code.Result {
	h.t.Helper()
	res, err := h.code.RunCode(h.t.Context(), alice, ref, r, nil)
	if err != nil {
		h.t.Fatalf("RunCode %.80q: %v", r.Code, err)
	}
	return res
}

// value is what the cell's last expression came to.
func value(r code.Result) string {
	for _, x := range r.Results {
		if x.Main {
			return x.Text
		}
	}
	return ""
}

// soon asks again and again until it is so, where no commit tells.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}
