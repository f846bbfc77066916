// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

// crashKept is what the process that is to die does with snapshots and volumes. Before,
// there is a sandbox "entry", whose file held one when the snapshot "x" was taken, and two
// afterwards.
func crashKept(ctx context.Context, e *engine.Engine, scenario string, armed *atomic.Bool) error {
	r := engine.CreateRequest{Key: "box"}
	if scenario == "checkpoint" {
		r.Checkpoints = after(sandbox.CheckpointsOff)
	}
	if _, _, err := e.Create(ctx, alice, r); err != nil {
		return err
	}
	run := func(shell string) error {
		_, err := e.Exec(ctx, alice, "box", engine.ExecRequest{Shell: shell}, nil)
		return err
	}
	if err := run("echo one > file"); err != nil {
		return err
	}
	if _, err := e.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{Name: "x"}); err != nil {
		return err
	}
	if err := run("echo two > file"); err != nil {
		return err
	}
	if err := e.Recorded(ctx); err != nil {
		return err
	}
	var archive bytes.Buffer
	var err error
	switch scenario {
	case "rollback of a stopped one":
		_, err = e.Stop(ctx, alice, "box")
	case "import":
		err = e.ExportSnapshot(ctx, alice, "box", "x", &archive)
	case "delete of the sandbox":
		_, err = e.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{})
	case "promote":
		if _, err = e.Fork(ctx, alice, "box", engine.ForkRequest{Key: "fork"}); err == nil {
			_, err = e.Exec(ctx, alice, "fork", engine.ExecRequest{Shell: "echo three > file"}, nil)
		}
		if err == nil {
			err = e.Recorded(ctx)
		}
	case "delete of a volume":
		_, err = volume.NewService(e).CreateVolume(ctx, alice, volume.Request{Name: "v"})
	case "checkpoint":
		_, err = e.Update(ctx, alice, "box", update.Patch{Checkpoints: after(sandbox.CheckpointsCommand)})
	}
	if err != nil {
		return err
	}
	armed.Store(true)
	switch strings.TrimSuffix(scenario, stepByStep) {
	case "snapshot":
		_, err = e.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{Name: "y"})
	case "replace":
		_, err = e.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{Name: "x", Replace: true})
	case "delete":
		err = e.DeleteSnapshot(ctx, alice, "box", "x")
	case "rollback", "rollback of a stopped one":
		_, err = e.Rollback(ctx, alice, "box", "x")
	case "reset":
		_, err = e.Reset(ctx, alice, "box")
	case "fork":
		_, err = e.Fork(ctx, alice, "box", engine.ForkRequest{Count: 3})
	case "promote":
		_, err = e.Promote(ctx, alice, "fork", engine.PromoteRequest{Name: "before"})
	case "fork at once":
		_, err = e.Fork(ctx, alice, "box", engine.ForkRequest{})
	case "create":
		_, _, err = e.Create(ctx, alice, engine.CreateRequest{Key: "made", From: "box/x"})
	case "import":
		_, err = e.ImportSnapshot(ctx, alice, &archive, engine.ImportRequest{Name: "i"})
	case "delete of the sandbox":
		if err = e.Delete(ctx, alice, "box"); err == nil {
			select {} // its snapshots go behind the answer
		}
	case "volume":
		_, err = volume.NewService(e).CreateVolume(ctx, alice, volume.Request{Name: "v"})
	case "delete of a volume":
		err = volume.NewService(e).DeleteVolume(ctx, alice, "v")
	case expiryOfAVolume:
		if _, err = volume.NewService(e).CreateVolume(ctx, alice, volume.Request{Name: "v", Lifetime: time.Second}); err == nil {
			select {} // the janitor deletes it
		}
	case "checkpoint":
		err = run("echo three > file")
	}
	return err
}

// expiryOfAVolume is the scenario whose engine looks often for volumes that have expired.
const expiryOfAVolume = "expiry of a volume"

// stepByStep ends the name of a scenario whose runtime exchanges no disk at once.
const stepByStep = ", step by step"

// TestAServerThatIsKilledAtWhatItKeeps kills a server with SIGKILL at every commit point of
// every verb of snapshots and volumes. The next one finds all of it, or nothing.
func TestAServerThatIsKilledAtWhatItKeeps(t *testing.T) {
	skiptest.WithShort(t, "a server is killed at each step of each verb")
	type expect struct {
		state     sandbox.State // of entry; Deleted: it is gone
		cause     sandbox.Cause
		file      string // what it holds in the end
		snapshots int
		others    int // sandboxes beside it
		volumes   int
	}
	up := expect{sandbox.Stopped, sandbox.CauseHost, "two\n", 1, 0, 0}
	with := func(x expect, change func(*expect)) expect { change(&x); return x }
	more := with(up, func(x *expect) { x.snapshots = 2 })
	none := with(up, func(x *expect) { x.snapshots = 0 })
	back := with(up, func(x *expect) { x.cause, x.file = sandbox.CauseRestore, "one\n" })
	fresh := with(up, func(x *expect) { x.cause, x.file = sandbox.CauseRestore, "" })
	still := with(up, func(x *expect) { x.cause, x.file = sandbox.CauseUser, "one\n" })
	forks := with(up, func(x *expect) { x.others = 3 })
	for _, c := range []struct {
		scenario, point string
		want            expect
	}{
		{"snapshot", "snapshot.intent", up},
		{"snapshot", "snapshot.done", up},
		{"snapshot", "snapshot.outcome", more},
		{"replace", "snapshot.intent", up},
		{"replace", "snapshot.done", up},
		{"replace", "snapshot.outcome", up},
		{"delete", "unsnapshot.intent", none},
		{"delete", "unsnapshot.done", none},
		{"delete", "unsnapshot.outcome", none},
		{"rollback", "rollback.intent", back},
		{"rollback" + stepByStep, "rollback.down", back},
		{"rollback" + stepByStep, "rollback.done", back},
		{"rollback" + stepByStep, "rollback.started", back},
		{"rollback", "rollback.started", back},
		{"rollback", "rollback.outcome", with(back, func(x *expect) { x.cause = sandbox.CauseHost })},
		{"rollback of a stopped one", "rollback.intent", still},
		{"rollback of a stopped one", "rollback.down", still},
		{"rollback of a stopped one", "rollback.done", still},
		{"rollback of a stopped one", "rollback.outcome", still},
		{"reset", "rollback.intent", fresh},
		{"reset", "rollback.started", fresh},
		{"reset" + stepByStep, "rollback.done", fresh},
		{"reset", "rollback.outcome", with(fresh, func(x *expect) { x.cause = sandbox.CauseHost })},
		{"fork", "fork.intent", up},
		{"fork", "fork.kept", up},
		{"fork", "fork.intents", up},
		{"fork", "fork.done", up},
		{"fork", "fork.outcome", forks},
		{"fork", "unsnapshot.done", forks},
		{"fork", "unsnapshot.outcome", forks},
		{"fork at once", "fork.intents", up},
		{"fork at once", "fork.done", up},
		{"fork at once", "fork.outcome", with(up, func(x *expect) { x.others = 1 })},
		{"create", "create.intent", up},
		{"create", "create.done", up},
		{"create", "create.outcome", with(up, func(x *expect) { x.others = 1 })},
		{"import", "import.intent", up},
		{"import", "import.done", up},
		{"import", "import.outcome", more},
		{"delete of the sandbox", "delete.intent", expect{state: sandbox.Deleted, snapshots: 1}},
		{"delete of the sandbox", "delete.outcome", expect{state: sandbox.Deleted, snapshots: 1}},
		{"delete of the sandbox", "unsnapshot.done", expect{state: sandbox.Deleted, snapshots: 1}},
		{"delete of the sandbox", "unsnapshot.outcome", expect{state: sandbox.Deleted, snapshots: 1}},
		{"volume", "volume.intent", up},
		{"volume", "volume.done", up},
		{"volume", "volume.outcome", with(up, func(x *expect) { x.volumes = 1 })},
		{"delete of a volume", "unvolume.intent", up},
		{"delete of a volume", "unvolume.done", up},
		{"delete of a volume", "unvolume.outcome", up},
		{expiryOfAVolume, "unvolume.intent", up},
		{expiryOfAVolume, "unvolume.done", up},
		{expiryOfAVolume, "unvolume.outcome", up},
		{"checkpoint", "snapshot.intent", with(up, func(x *expect) { x.file = "three\n" })},
		{"checkpoint", "snapshot.done", with(up, func(x *expect) { x.file = "three\n" })},
		{"checkpoint", "snapshot.outcome", with(more, func(x *expect) { x.file = "three\n" })},
	} {
		t.Run(strings.ReplaceAll(c.scenario, " ", "_")+"_"+c.point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			killAt(t, dir, fmt.Sprintf("kept:%s:%s", c.scenario, c.point))
			h := open(t, dir)
			h.whole()
			h.keptWhole()
			id := h.events("")[0].Sandbox
			got := expect{state: sandbox.Deleted}
			if s := h.get(id); s != nil {
				got.state, got.cause = s.State, s.StopCause
			}
			snaps, vols := h.keptRecords()
			got.snapshots, got.volumes = len(snaps), len(vols)
			if c.scenario == expiryOfAVolume {
				h.expiredOnce()
			}
			p, err := h.engine.List(t.Context(), alice, engine.SandboxesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			got.others = len(p.Items)
			for _, s := range p.Items {
				if s.ID == id {
					got.others--
				}
			}
			if got.state != sandbox.Deleted {
				if got.cause == sandbox.CauseUser {
					if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
						t.Fatal(err)
					}
				}
				got.file = h.reads("box", "file")
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			for _, snap := range snaps {
				want := "one\n"
				switch {
				case snap.Name == "y", c.scenario == "replace" && c.point == "snapshot.outcome":
					want = "two\n"
				case snap.Auto:
					want = "three\n"
				}
				if got := h.holds(string(snap.ID), "file"); got != want {
					t.Errorf("the snapshot %s holds %q, want %q", describeKept(snap), got, want)
				}
			}
		})
	}
}

// expiredOnce fails unless the one volume that there was is told as expired, and then as deleted.
func (h *house) expiredOnce() {
	h.t.Helper()
	var got []sandbox.EventType
	for _, ev := range h.events("") {
		if strings.HasPrefix(string(ev.Type), "volume.") {
			got = append(got, ev.Type)
		}
	}
	if want := []sandbox.EventType{sandbox.EventVolume, sandbox.EventVolumeExpired, sandbox.EventVolumeDeleted}; !slices.Equal(got, want) {
		h.t.Errorf("got the events %v, want %v", got, want)
	}
}

func describeKept(s *sandbox.Snapshot) string { return fmt.Sprintf("%s %q", s.ID, s.Name) }
