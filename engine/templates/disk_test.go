// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"sync"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/templates"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// A version that takes the disk of another one over, while that is deleted with its disk, does its steps itself.
func TestADiskThatGoesMeanwhileIsMadeAnew(t *testing.T) {
	t.Parallel()
	var h *house
	var disk sandbox.ID
	var once sync.Once
	h = with(t, templates.Options{Resolve: enginetest.Images{}.Resolve, Checkpoint: func(at string) {
		if at == "template.known" {
			once.Do(func() {
				if err := h.Engine.DeleteSnapshot(t.Context(), alice, "", string(disk)); err != nil {
					t.Error(err)
				}
			})
		}
	}})
	box := h.make(alice, engine.CreateRequest{})
	snap, err := h.Engine.CreateSnapshot(t.Context(), alice, string(box.ID), engine.SnapshotRequest{Name: "disk"})
	if err != nil {
		t.Fatal(err)
	}
	disk = snap.ID
	first := h.add(alice, "first", template.Spec{Steps: []string{"true"}})
	h.Await(t, "the first build", func() bool {
		got, err := h.templates().Get(t.Context(), alice, first.ID)
		return err == nil && got.Status == template.Failed // the memory runtime has no root
	})
	// What a host with a root would have made of it.
	made := *first
	made.ID, made.Name, made.Status, made.Snapshot, made.CreatedAt = "tmpl_0000000000000001", "made", template.Ready, disk, h.Engine.Now()
	if err := h.Store.Update(t.Context(), func(tx store.Tx) error { return tx.Templates().Insert(&made) }); err != nil {
		t.Fatal(err)
	}
	second := h.add(alice, "second", template.Spec{Steps: []string{"true"}})
	h.Await(t, "the second build", func() bool {
		got, err := h.templates().Get(t.Context(), alice, second.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status == template.Ready {
			t.Fatalf("it is ready with the disk %s, which is gone", got.Snapshot)
		}
		return got.Status == template.Failed && got.Failure.Step == 1
	})
}
