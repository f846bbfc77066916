// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/sandbox"
)

// TestAServerThatEndsUnderWhatGoesOn has the store refuse everything from a commit
// point on, as if the server had been killed there, while the host and what is up on
// it live on; and looks at what the next server makes of it.
func TestAServerThatEndsUnderWhatGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point string
		want  sandbox.State
		cpu   float64
	}{
		{"pause.intent", sandbox.Running, 1},
		{"pause.done", sandbox.Running, 1},
		{"pause.outcome", sandbox.Paused, 1},
		{"resume.intent", sandbox.Running, 1},
		{"resume.done", sandbox.Running, 1},
		{"resume.outcome", sandbox.Running, 1},
		{"update.done", sandbox.Running, 1},
		{"update.outcome", sandbox.Running, 2},
		{"stop.intent", sandbox.Stopped, 1},
		{"start.intent", sandbox.Stopped, 1},
		{"start.done", sandbox.Stopped, 1},
	} {
		t.Run(c.point, func(t *testing.T) {
			var st *stubborn
			var armed atomic.Bool
			h := open(t, t.TempDir(), func(o *engine.Options) {
				st = &stubborn{Store: o.Store}
				o.Store = st
				o.Checkpoint = func(name string) {
					if armed.Load() && name == c.point {
						st.after(0)
					}
				}
			})
			s := h.create(engine.CreateRequest{Key: "box"})
			h.exec("box", "echo kept > file")
			rec, err := h.engine.StartProcess(t.Context(), alice, "box", engine.StartRequest{Shell: "until [ -e go ]; do sleep 0.01; done; exit 4"})
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			switch c.point {
			case "resume.intent", "resume.done", "resume.outcome":
				h.pause("box")
			case "start.intent", "start.done":
				if _, err := h.engine.Stop(ctx, alice, "box"); err != nil {
					t.Fatal(err)
				}
			}
			armed.Store(true)
			switch c.point {
			case "pause.intent", "pause.done", "pause.outcome":
				_, err = h.engine.Pause(ctx, alice, "box")
			case "resume.intent", "resume.done", "resume.outcome":
				_, err = h.engine.Resume(ctx, alice, "box")
			case "update.done", "update.outcome":
				_, err = h.engine.Update(ctx, alice, "box", update.Patch{CPU: ptr(2.0)})
			case "stop.intent":
				_, err = h.engine.Stop(ctx, alice, "box")
			default:
				_, err = h.engine.Start(ctx, alice, "box")
			}
			t.Log("the caller was told:", err)
			h.end()
			h.serve()
			got := h.get(s.ID)
			if got == nil || got.State != c.want || got.Limits.CPU != c.cpu {
				t.Fatalf("got %+v, want %s", got, c.want)
			}
			h.agree(got)
			if _, err := h.engine.Start(ctx, alice, "box"); err != nil {
				t.Fatal(err)
			}
			if res := h.exec("box", "cat file; touch go"); string(res.Stdout) != "kept\n" {
				t.Errorf("stdout: %q", res.Stdout)
			}
			h.await("the end of the command", func() bool { return h.events(s.ID)[3].Done })
			if ev := h.events(s.ID)[3]; ev.ProcessID != rec.ID || c.want != sandbox.Stopped && c.point[:5] != "start" && ev.ExitCode != 4 {
				t.Errorf("its command: %+v", ev)
			}
		})
	}
}
