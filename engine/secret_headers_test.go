// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// TestASecretIsNoHeaderThatIsThereAlready: its value would be on record in plain text, and shown to who sees the sandbox.
func TestASecretIsNoHeaderThatIsThereAlready(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	box := h.create(engine.CreateRequest{Key: "box"})
	const value = "shared-value-4711"
	with := func(headers sandbox.HostHeaders) {
		t.Helper()
		// On record as a runtime with a network has it.
		if err := h.store.Update(t.Context(), func(tx store.Tx) error {
			s, err := tx.Sandboxes().Get(box.ID)
			if err != nil {
				return err
			}
			now := *s
			now.Network = sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, Headers: headers}
			return tx.Sandboxes().Update(&now)
		}); err != nil {
			t.Fatal(err)
		}
	}
	set := func(ref string) error {
		_, err := h.secrets().SetSecret(t.Context(), chief, ref, secrets.Request{Name: "TOKEN", Value: value})
		return err
	}
	with(sandbox.HostHeaders{"api.example.org": {"x-org": "acme", "x-key": "Bearer " + value}})
	for _, ref := range []string{"box", ""} {
		err := set(ref)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "the header x-key for api.example.org") || fault.As(err).Remedy == "" {
			t.Errorf("of %q: got %v", ref, err)
		}
		if strings.Contains(fmt.Sprint(err, fault.As(err).Remedy), value) {
			t.Errorf("of %q: the error tells the value: %v", ref, err)
		}
		if all, err := h.secrets().Secrets(t.Context(), chief, ref); err != nil || len(all) != 0 {
			t.Errorf("of %q: got %v, %v", ref, all, err)
		}
	}
	// The value may be the host, and is told of neither.
	with(sandbox.HostHeaders{value + ".example.org": {"x-" + value: "on"}})
	if err := set("box"); !fault.Is(err, fault.Conflict) || strings.Contains(err.Error(), value) {
		t.Errorf("got %v", err)
	}
	// What is short may be any word, and what is no part of a header is fine.
	with(sandbox.HostHeaders{"api.example.org": {"x-org": "acme"}})
	if _, err := h.secrets().SetSecret(t.Context(), chief, "box", secrets.Request{Name: "SHORT", Value: "acme"}); err != nil {
		t.Error(err)
	}
	for _, ref := range []string{"box", ""} {
		if err := set(ref); err != nil {
			t.Errorf("of %q: %v", ref, err)
		}
	}
}
