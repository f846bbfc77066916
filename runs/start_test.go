// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/store"
)

// A run keeps its commands on record as they are.
func TestARunThatHasTheValueOfASecretIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	chief := access.Caller{Project: "default", Actor: "chief", Via: "rest", Scopes: []access.Scope{access.Admin}}
	if _, err := secrets.NewService(h.engine).SetSecret(t.Context(), chief, "", secrets.Request{Name: "TOKEN", Value: "value-4711"}); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]runs.Request{
		"command":   {Sandbox: "box", Commands: []runs.Command{{Shell: "echo value-4711"}}},
		"argument":  {Sandbox: "box", Commands: []runs.Command{{Argv: []string{"echo", "value-4711"}}}},
		"variable":  {Sandbox: "box", Commands: []runs.Command{{Shell: "true", Env: map[string]string{"A": "xvalue-4711"}}}},
		"directory": {Sandbox: "box", Commands: []runs.Command{{Shell: "true", Cwd: "/value-4711"}}},
		"sandbox":   {Sandbox: "value-4711", Commands: []runs.Command{{Shell: "true"}}},
	} {
		if _, err := h.runner.Start(t.Context(), alice, r); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want invalid", name, err)
		}
	}
	if page, err := h.runner.List(t.Context(), alice, runs.ListRequest{}); err != nil || len(page.Items) != 0 {
		t.Errorf("on record: %+v, %v", page.Items, err)
	}
}

// full is a store whose disk has no room for new work.
type full struct{ store.Store }

func (full) Room() error {
	return fault.NoSpace(fault.RecordsDisk, nil, "the disk of the records is full")
}

func TestARunIsNotBegunWithoutRoomForItsRecord(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	r := runs.New(h.engine, full{h.store}, runs.Options{})
	_, err := r.Start(t.Context(), alice, runs.Request{Sandbox: "box", Commands: shells("true")})
	wantCode(t, err, fault.Full)
	_, err = h.engine.Get(t.Context(), alice, "box")
	wantCode(t, err, fault.NotFound)
}
