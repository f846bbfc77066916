// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// Commands run while the server is killed again and again. After each kill the audit log verifies, and has each command
// that was answered, those of deleted sandboxes, too.
func TestTheAuditLogSurvivesKill9(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	var mu sync.Mutex
	answered := make(map[string]string) // the command's text, and its sandbox
	for round := range length(5, 100) {
		const callers = 3
		alive, end := context.WithCancel(ctx)
		g := group{limit: callers}
		var enough sync.WaitGroup
		enough.Add(callers)
		for caller := range callers {
			g.do(func() error {
				ready := sync.OnceFunc(enough.Done)
				defer ready()
				box, _, err := h.client.Create(alive, v1.CreateSandbox{MemoryMB: new(64), DiskMB: new(64)})
				if err != nil {
					return nil // the kill came first
				}
				for n := 0; ; n++ {
					command := fmt.Sprintf("echo audited-%d-%d-%d; exit 4", round, caller, n)
					r, err := h.client.Exec(alive, box.ID, v1.Exec{Command: &command})
					if err != nil {
						return nil
					}
					if *r.ExitCode != 4 {
						return fmt.Errorf("%s: exit code %d", command, *r.ExitCode)
					}
					mu.Lock()
					answered[command] = box.ID
					mu.Unlock()
					if n == 3 {
						ready()
					}
				}
			})
		}
		enough.Wait()
		h.kill()
		end()
		if err := g.wait(); err != nil {
			t.Fatal(err)
		}
		h.start()
		if r, err := h.client.VerifyAudit(ctx); err != nil || len(r.Altered) > 0 || len(r.Chains) != 1 {
			t.Fatalf("round %d: the audit log: %+v, %v", round, r, err)
		}
	}
	if len(answered) == 0 {
		t.Fatal("no command was answered")
	}
	for box, err := range h.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		// The row of a command whose answer was sent, and whose outcome was not yet written, comes with the repair.
		if err := h.client.Delete(ctx, box.ID); err != nil {
			t.Fatal(err)
		}
	}
	rows := make(map[string]*v1.AuditRecord)
	for r, err := range h.client.Audit(ctx, client.AuditQuery{Types: []string{"exec"}, Since: time.Now().Add(-time.Hour)}, 500) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Command != nil && r.Outcome != "running" {
			if rows[*r.Command] != nil {
				t.Errorf("two rows tell the end of %q", *r.Command)
			}
			rows[*r.Command] = r
		}
	}
	for command, box := range answered {
		r := rows[command]
		switch {
		case r == nil:
			t.Errorf("%q was answered, and has no row", command)
		case r.SandboxID == nil || *r.SandboxID != box || r.Actor == nil:
			t.Errorf("the row of %q: %+v", command, r)
		}
	}
	t.Logf("%d commands were answered, %d have a row", len(answered), len(rows))
}
