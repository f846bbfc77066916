// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"io"
	"strings"
	"testing"

	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestFilesAreReplacedByTheirVersion(t *testing.T) {
	h := open(t)
	ctx, box := t.Context(), h.box()
	first, err := h.ReplaceFile(ctx, box, "f", strings.NewReader("one"), client.WriteOptions{IfAbsent: true})
	if err != nil || first == "" {
		t.Fatalf("got %q, %v", first, err)
	}
	f, err := h.ReadFile(ctx, box, "f", client.ReadOptions{})
	must(t, err)
	must(t, f.Close())
	info, err := h.Stat(ctx, box, "f", "")
	must(t, err)
	if f.Version != first || info.Version != first {
		t.Errorf("got %q and %q, want %q", f.Version, info.Version, first)
	}
	second, err := h.ReplaceFile(ctx, box, "f", strings.NewReader("two"), client.WriteOptions{IfVersion: first})
	must(t, err)
	for _, o := range []client.WriteOptions{{IfVersion: first}, {IfAbsent: true}} {
		if e := wantCode(t, h.WriteFile(ctx, box, "f", strings.NewReader("three"), o), fault.PreconditionFailed); e.Version != second {
			t.Errorf("%+v: got the version %q, want %q", o, e.Version, second)
		}
	}
	f, err = h.ReadFile(ctx, box, "f", client.ReadOptions{})
	must(t, err)
	if all, err := io.ReadAll(f); err != nil || string(all) != "two" {
		t.Errorf("got %q, %v", all, err)
	}
	must(t, f.Close())
	wantCode(t, h.RemoveVersion(ctx, box, "f", "", first), fault.PreconditionFailed)
	must(t, h.RemoveVersion(ctx, box, "f", "", second))
	_, err = h.Stat(ctx, box, "f", "")
	wantCode(t, err, fault.NotFound)
}
