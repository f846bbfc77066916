// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

// TestWhateverFailsOfWhatIsKept lets every call to the driver that a verb makes fail, or
// the caller go away at it. After a restart without failures nothing may be halfway, and
// what the verb was not about is as it was.
func TestWhateverFailsOfWhatIsKept(t *testing.T) {
	skiptest.WithShort(t, "each call of each verb fails once")
	type verb struct {
		calls []string
		do    func(ctx context.Context, h *house) error
	}
	verbs := map[string]verb{
		"snapshot": {[]string{"snapshot"}, func(ctx context.Context, h *house) error {
			_, err := h.engine.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{Name: "y"})
			return err
		}},
		"replace": {[]string{"snapshot", "remove snapshot"}, func(ctx context.Context, h *house) error {
			_, err := h.engine.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{Name: "x", Replace: true})
			return err
		}},
		"delete": {[]string{"remove snapshot"}, func(ctx context.Context, h *house) error {
			return h.engine.DeleteSnapshot(ctx, alice, "box", "x")
		}},
		"rollback": {[]string{"stop", "open", "rollback", "start"}, func(ctx context.Context, h *house) error {
			_, err := h.engine.Rollback(ctx, alice, "box", "x")
			return err
		}},
		"reset": {[]string{"rollback"}, func(ctx context.Context, h *house) error {
			_, err := h.engine.Reset(ctx, alice, "box")
			return err
		}},
		"fork": {[]string{"snapshot", "create", "remove", "remove snapshot"}, func(ctx context.Context, h *house) error {
			_, err := h.engine.Fork(ctx, alice, "box", engine.ForkRequest{Count: 3})
			return err
		}},
		"create": {[]string{"create"}, func(ctx context.Context, h *house) error {
			_, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{From: "box/x"})
			return err
		}},
		"delete of the sandbox": {[]string{"remove", "remove snapshot"}, func(ctx context.Context, h *house) error {
			return h.engine.Delete(ctx, alice, "box")
		}},
		"import": {[]string{"import"}, func(ctx context.Context, h *house) error {
			_, err := h.engine.ImportSnapshot(ctx, alice, bytes.NewReader(packed(t, "sandpit.json", goodMeta, nil)), engine.ImportRequest{})
			return err
		}},
		"volume": {[]string{"create volume", "remove volume"}, func(ctx context.Context, h *house) error {
			_, err := h.volumes().CreateVolume(ctx, alice, volume.Request{Name: "v"})
			return err
		}},
		"delete of a volume": {[]string{"remove volume"}, func(ctx context.Context, h *house) error {
			return h.volumes().DeleteVolume(ctx, alice, "old")
		}},
	}
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		for _, call := range verbs[name].calls {
			for _, how := range []string{"fails before", "fails after", "caller gone before", "caller gone after"} {
				t.Run(name+"/"+call+" "+how, func(t *testing.T) { failAtKept(t, verbs[name].do, call, how) })
			}
		}
	}
}

func failAtKept(t *testing.T, verb func(context.Context, *house) error, call, how string) {
	t.Parallel()
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	h.snapshot("box", "x")
	h.snapshot("box", "")
	h.volume("old")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hit := func(_ context.Context, c string) error {
		switch {
		case c != call:
			return nil
		case how == "fails before" || how == "fails after":
			return fault.New(fault.Unavailable, "%s %s", call, how)
		}
		cancel()
		return nil
	}
	if how == "fails before" || how == "caller gone before" {
		h.faulty.set(hit, nil)
	} else {
		h.faulty.set(nil, hit)
	}
	if err := verb(ctx, h); err != nil && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Canceled) {
		t.Errorf("an odd error: %v", err)
	}
	h.faulty.set(nil, nil)
	h.restart()
	h.whole()
	h.settledKept()
	soon(t, "nothing in use", func() bool { return h.engine.HeldSnapshots() == 0 })
	if got := h.get(s.ID); got != nil {
		if got.State == sandbox.Stopped && got.StopCause != sandbox.CauseRestore {
			t.Errorf("it is stopped (%s)", got.StopCause)
		}
		lied := call == "rollback" && how == "fails after" // it did exchange the disk
		if file := h.reads("box", "file"); file != "one\n" && got.Parent != "" && !lied {
			t.Errorf("the file: %q", file)
		}
	}
}
