// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestSettingsHoldAtOnce(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir()).engine
	before, _, err := e.Create(t.Context(), alice, engine.CreateRequest{Env: map[string]string{"APP_MODE": "x", "EDITOR": "vi"}})
	if err != nil {
		t.Fatal(err)
	}
	set := *e.Settings()
	set.IdleTimeout, set.ForbidRoot, set.Variables = 7*time.Minute, true, []string{"APP_*", "LANG"}
	set.Network.Most = sandbox.NetworkOff
	if err := e.Set(set); err != nil {
		t.Fatal(err)
	}
	if got := e.InForce(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}).Mode; got != sandbox.NetworkOff {
		t.Errorf("the network of one that had all is %s", got)
	}
	if _, err := e.Exec(t.Context(), alice, string(before.ID), engine.ExecRequest{Argv: []string{"id"}, User: "root"}, nil); !fault.Is(err, fault.Denied) {
		t.Errorf("root: %v", err)
	}
	after, _, err := e.Create(t.Context(), alice, engine.CreateRequest{Env: map[string]string{"APP_MODE": "x", "LANG": "C"}})
	if err != nil {
		t.Fatal(err)
	}
	if after.IdleTimeout != 7*time.Minute || before.IdleTimeout == after.IdleTimeout {
		t.Errorf("idle timeouts of %v and %v", before.IdleTimeout, after.IdleTimeout)
	}
	if _, _, err := e.Create(t.Context(), alice, engine.CreateRequest{Env: map[string]string{"EDITOR": "vi"}}); !fault.Is(err, fault.Denied) {
		t.Errorf("a variable that is not allowed: %v", err)
	}
	env := map[string]string{"LD_PRELOAD": "/x"}
	if _, err := e.Update(t.Context(), alice, string(after.ID), update.Patch{Env: &env}); !fault.Is(err, fault.Denied) {
		t.Errorf("a change to a variable that is not allowed: %v", err)
	}
	set.Limits.CPU = 1e6
	if err := e.Set(set); err == nil {
		t.Error("defaults above the most were taken")
	}
	if e.Settings().Limits.CPU == 1e6 {
		t.Error("refused settings are in force")
	}
}
