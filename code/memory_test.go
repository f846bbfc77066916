// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code_test

import (
	"testing"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/internal/budget"
)

func TestWhatAShellRemembersCounts(t *testing.T) {
	b := budget.New(budget.Options{Total: 1 << 30})
	h := open(t, t.TempDir(), func(o *code.Options) { o.Memory = b })
	s := h.create(engine.CreateRequest{})
	for range 40 { // more than it remembers
		res, err := h.code.ShellExec(t.Context(), alice, string(s.ID), "main", engine.ExecRequest{Shell: "head -c 100000 /dev/zero | tr '\\0' x", MaxStdout: 1 << 17, MaxStderr: 1}, nil)
		if err != nil || len(res.Stdout) != 100000 {
			t.Fatalf("got %d bytes, %v", len(res.Stdout), err)
		}
	}
	if used := b.Used(); used < 31*98304 || used > 33*2*131072 {
		t.Errorf("%d bytes are counted, for 32 commands of 131072", used)
	}
}
