// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"io"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// BenchmarkExec is a command through the engine; BenchmarkExecBare is the same
// through the agent and the store alone. The difference is what the engine costs.
func BenchmarkExec(b *testing.B) {
	h := open(b, b.TempDir())
	if _, _, err := h.engine.Create(b.Context(), alice, engine.CreateRequest{Key: "box"}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.engine.Exec(b.Context(), alice, "box", engine.ExecRequest{Argv: []string{"/bin/true"}}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExecBare(b *testing.B) {
	h := open(b, b.TempDir())
	s, _, err := h.engine.Create(b.Context(), alice, engine.CreateRequest{Key: "box"})
	if err != nil {
		b.Fatal(err)
	}
	h.end()
	inst, err := h.host.Driver().Open(b.Context(), runtime.Handle{ID: s.ID})
	if err != nil {
		b.Fatal(err)
	}
	client := agent.NewClient(inst.Dial)
	for b.Loop() {
		ev := &sandbox.Event{Sandbox: s.ID, Project: s.Project, Type: sandbox.EventExec, ProcessID: sandbox.NewProcessID()}
		if err := h.store.Update(b.Context(), func(tx store.Tx) error { return tx.Events().Append(ev) }); err != nil {
			b.Fatal(err)
		}
		p, err := client.Start(b.Context(), agent.Command{ID: ev.ProcessID, Argv: []string{"/bin/true"}, Env: map[string]string{"IMAGE": "python"}})
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = p.Next(b.Context())
		}
		if err != io.EOF {
			b.Fatal(err)
		}
		_ = p.Close()
		err = h.store.Update(b.Context(), func(tx store.Tx) error {
			if err := tx.Sandboxes().Update(s); err != nil {
				return err
			}
			return tx.Events().Finish(ev)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
