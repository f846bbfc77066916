// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// withArtifacts keeps them in a directory of the house's.
func withArtifacts(dir string) func(*runs.Options) {
	return func(o *runs.Options) { o.Artifacts.Dir = filepath.Join(dir, "artifacts") }
}

func shells(lines ...string) []runs.Command {
	var out []runs.Command
	for _, l := range lines {
		out = append(out, runs.Command{Shell: l})
	}
	return out
}

// start begins a run that has to be taken.
func (h *house) startRun(r runs.Request) *sandbox.Run {
	h.t.Helper()
	if r.Sandbox == "" {
		r.Sandbox = "box"
	}
	run, err := h.runner.Start(h.t.Context(), alice, r)
	if err != nil {
		h.t.Fatal("StartRun:", err)
	}
	return run
}

// ended waits for a run's end.
func (h *house) ended(id string) *sandbox.Run {
	h.t.Helper()
	run, err := h.runner.Await(h.t.Context(), alice, id, time.Minute)
	if err != nil {
		h.t.Fatal("AwaitRun:", err)
	}
	if !run.State.Ended() {
		h.t.Fatalf("the run has not ended: %+v", run)
	}
	return run
}

func (h *house) run(r runs.Request) *sandbox.Run {
	h.t.Helper()
	return h.ended(h.startRun(r).ID)
}

// output returns what is kept of a command's streams.
func (h *house) output(run *sandbox.Run, i int) (stdout, stderr string) {
	h.t.Helper()
	all, err := h.runner.Streams(h.t.Context(), alice, run.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(all[i].Stdout), string(all[i].Stderr)
}

// runEvents returns all events of a run that has ended, one page after the other.
func (h *house) runEvents(id string) (all []*sandbox.RunEvent) {
	h.t.Helper()
	for after := int64(0); ; {
		_, page, err := h.runner.Events(h.t.Context(), alice, id, after, 0)
		if err != nil {
			h.t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1].Seq
	}
}

func runTypes(evs []*sandbox.RunEvent) (out []sandbox.RunEventType) {
	for _, ev := range evs {
		if n := len(out); n > 0 && out[n-1] == ev.Type && len(ev.Data) > 0 {
			continue // how output is cut into chunks is nobody's business
		}
		out = append(out, ev.Type)
	}
	return out
}

func statuses(run *sandbox.Run) (out []sandbox.CommandStatus) {
	for _, c := range run.Commands {
		out = append(out, c.Status)
	}
	return out
}

// wantWhole holds what is true of every run that has ended.
func (h *house) wantWhole(run *sandbox.Run) {
	h.t.Helper()
	evs := h.runEvents(run.ID)
	begun, over, ends := map[int]int{}, map[int]int{}, 0
	for i, ev := range evs {
		if ev.Seq != int64(i)+1 {
			h.t.Fatalf("event %d has the number %d", i+1, ev.Seq)
		}
		switch ev.Type {
		case sandbox.RunCommandStarted:
			begun[ev.Command]++
		case sandbox.RunCommandFinished:
			over[ev.Command]++
		case sandbox.RunFinished, sandbox.RunFailedEvent:
			ends++
		}
	}
	if ends != 1 || evs[len(evs)-1].Type != sandbox.RunFinished && evs[len(evs)-1].Type != sandbox.RunFailedEvent {
		h.t.Errorf("the run has %d ends: %v", ends, runTypes(evs))
	}
	for i, c := range run.Commands {
		ran := c.Status != sandbox.CommandQueued
		if c.Status == sandbox.CommandRunning || ran && (begun[i] != 1 || over[i] != 1) || !ran && begun[i]+over[i] != 0 {
			h.t.Errorf("command %d is %s, with %d begins and %d ends", i, c.Status, begun[i], over[i])
		}
	}
	if run.EndedAt.IsZero() {
		h.t.Error("the run has no end")
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())

	t.Run("IsQueuedWhenItIsAskedForAndEndsByItself", func(t *testing.T) {
		h := h.within(t)
		asked := h.startRun(runs.Request{Commands: shells("echo one; echo two >&2", "pwd")})
		if asked.State != sandbox.RunQueued || asked.Identifier != "box" {
			t.Errorf("asked: got %+v, want it queued", asked)
		}
		run := h.ended(asked.ID)
		if run.State != sandbox.RunCompleted || run.Error != "" || run.Sandbox == "" {
			t.Errorf("got %+v, want it completed", run)
		}
		if out, errs := h.output(run, 0); out != "one\n" || errs != "two\n" {
			t.Errorf("output: got %q and %q", out, errs)
		}
		if c := run.Commands[0]; c.ExitCode != 0 || c.Status != sandbox.CommandCompleted || c.StdoutBytes != 4 || c.StartedAt.IsZero() || c.EndedAt.IsZero() {
			t.Errorf("the command: %+v", c)
		}
		h.wantWhole(run)
		types := runTypes(h.runEvents(run.ID))
		if types[0] != sandbox.RunStarted || types[1] != sandbox.RunCommandStarted || types[len(types)-1] != sandbox.RunFinished {
			t.Errorf("events: %v", types)
		}
	})

	t.Run("EndsAtTheFirstFailure", func(t *testing.T) {
		h := h.within(t)
		run := h.run(runs.Request{Commands: shells("exit 3", "echo no")})
		if want := []sandbox.CommandStatus{sandbox.CommandFailed, sandbox.CommandQueued}; run.State != sandbox.RunFailed || !slices.Equal(statuses(run), want) {
			t.Errorf("got %s, %v, want failed, %v", run.State, statuses(run), want)
		}
		if run.Error != "command 0: exit 3" {
			t.Errorf("error: %q", run.Error)
		}
		h.wantWhole(run)
	})

	t.Run("GoesOnAfterAFailureWhereItIsToAndFailsAllTheSame", func(t *testing.T) {
		h := h.within(t)
		run := h.run(runs.Request{Commands: shells("exit 3", "exit 4", "true"), GoOn: true})
		if run.State != sandbox.RunFailed || run.Commands[2].Status != sandbox.CommandCompleted || run.Error != "command 0: exit 3" {
			t.Errorf("got %s (%s), %v", run.State, run.Error, statuses(run))
		}
		h.wantWhole(run)
	})

	t.Run("LetsACommandFailThatMay", func(t *testing.T) {
		h := h.within(t)
		cmds := append(shells("exit 3"), shells("true")...)
		cmds[0].AllowFailure = true
		run := h.run(runs.Request{Commands: cmds})
		if run.State != sandbox.RunCompleted || run.Commands[0].Status != sandbox.CommandFailed || run.Commands[1].Status != sandbox.CommandCompleted {
			t.Errorf("got %s, %v", run.State, statuses(run))
		}
	})

	t.Run("TellsATimeoutFromAKill", func(t *testing.T) {
		h := h.within(t)
		cmds := shells("sleep 60", "kill -9 $$", "exit 124")
		cmds[0].Timeout = 200 * time.Millisecond
		run := h.run(runs.Request{Commands: cmds, GoOn: true})
		want := []sandbox.CommandStatus{sandbox.CommandTimedOut, sandbox.CommandFailed, sandbox.CommandFailed}
		if !slices.Equal(statuses(run), want) {
			t.Errorf("got %v, want %v", statuses(run), want)
		}
		if run.Error != "command 0: its timeout of 0.2 s passed" {
			t.Errorf("error: %q", run.Error)
		}
	})

	t.Run("FailsACommandThatCannotBegin", func(t *testing.T) {
		h := h.within(t)
		cmds := shells("true", "true")
		cmds[0].Cwd = "/not/there"
		run := h.run(runs.Request{Commands: cmds, GoOn: true})
		if run.Commands[0].Status != sandbox.CommandFailed || !strings.Contains(run.Commands[0].Error, "/not/there") || run.Commands[1].Status != sandbox.CommandCompleted {
			t.Errorf("got %+v", run.Commands)
		}
		h.wantWhole(run)
	})

	t.Run("KeepsABoundedPartOfTheOutputAndSaysSo", func(t *testing.T) {
		h := h.within(t)
		run := h.run(runs.Request{Commands: shells("head -c 1500000 /dev/zero")})
		out, _ := h.output(run, 0)
		if c := run.Commands[0]; len(out) != runs.MaxStream || !c.StdoutTruncated || c.StdoutBytes != 1_500_000 || c.StderrTruncated {
			t.Errorf("got %d bytes of %+v", len(out), run.Commands[0])
		}
		cut := 0
		for _, ev := range h.runEvents(run.ID) {
			if ev.Truncated && ev.Type == sandbox.RunCommandStdout {
				cut++
			}
		}
		if cut != 1 {
			t.Errorf("%d events say that the output was cut", cut)
		}
	})

	t.Run("ForgetsTheValuesOfVariablesAtItsEnd", func(t *testing.T) {
		h := h.within(t)
		cmds := shells("echo $SECRET", "exit 0")
		cmds[0].Env, cmds[1].Env = map[string]string{"SECRET": "hush-4711"}, map[string]string{"SECRET": "hush-4711"}
		run := h.run(runs.Request{Commands: cmds})
		if out, _ := h.output(run, 0); out != "hush-4711\n" {
			t.Errorf("the command had %q", out)
		}
		for _, c := range run.Commands {
			if v, ok := c.Env["SECRET"]; !ok || v != "" {
				t.Errorf("after the run the record has %q", c.Env)
			}
		}
	})

	t.Run("IsRefusedWhereItIsWrong", func(t *testing.T) {
		h := h.within(t)
		relative := shells("true")
		relative[0].Cwd = "tmp"
		long := shells("true")
		long[0].Timeout = 25 * time.Hour
		for name, r := range map[string]runs.Request{
			"none":     {Sandbox: "box"},
			"too many": {Sandbox: "box", Commands: shells(make([]string, runs.MaxCommands+1)...)},
			"empty":    {Sandbox: "box", Commands: shells("")},
			"relative": {Sandbox: "box", Commands: relative},
			"too long": {Sandbox: "box", Commands: long},
			"a user":   {Sandbox: "box", Commands: shells("true"), User: "w w"},
			"a ttl":    {Sandbox: "box", Commands: shells("true"), TTL: 8 * 24 * time.Hour},
			"a name":   {Sandbox: "a/b", Commands: shells("true")},
		} {
			if _, err := h.runner.Start(t.Context(), alice, r); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: got %v, want invalid", name, err)
			}
		}
		_, err := h.runner.Start(t.Context(), alice, runs.Request{Sandbox: string(sandbox.NewID()), Commands: shells("true")})
		wantCode(t, err, fault.NotFound)
	})

	t.Run("IsOfItsProjectAlone", func(t *testing.T) {
		h := h.within(t)
		run := h.run(runs.Request{Commands: shells("true")})
		ctx := t.Context()
		_, err := h.runner.Get(ctx, mary, run.ID)
		wantCode(t, err, fault.NotFound)
		_, err = h.runner.Await(ctx, mary, run.ID, time.Second)
		wantCode(t, err, fault.NotFound)
		_, err = h.runner.Cancel(ctx, mary, run.ID)
		wantCode(t, err, fault.NotFound)
		_, _, err = h.runner.Events(ctx, mary, run.ID, 0, 0)
		wantCode(t, err, fault.NotFound)
		_, err = h.runner.Streams(ctx, mary, run.ID)
		wantCode(t, err, fault.NotFound)
		_, err = h.runner.ArtifactRun(ctx, mary, "box", run.ID)
		wantCode(t, err, fault.NotFound)
		_, err = h.runner.List(ctx, mary, runs.ListRequest{Sandbox: "box"})
		wantCode(t, err, fault.NotFound)
		for _, id := range []string{"", "x", "../../etc/passwd", strings.Repeat("0", 36), sandbox.NewRunID()} {
			_, err := h.runner.Get(ctx, alice, id)
			wantCode(t, err, fault.NotFound)
		}
	})
}

func TestRunsWithALockComeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	const n = 5
	var ids []string
	for i := range n {
		ref := "box"
		if i%2 == 1 { // by another name of the same sandbox
			s, err := h.engine.Get(t.Context(), alice, "box")
			if err != nil {
				t.Fatal(err)
			}
			ref = string(s.ID)
		}
		ids = append(ids, h.startRun(runs.Request{
			Sandbox: ref, Lock: true, Commands: shells(fmt.Sprintf("echo begin %d >> log; sleep 0.05; echo end %d >> log", i, i)),
		}).ID)
	}
	for _, id := range ids {
		h.ended(id)
	}
	var want strings.Builder
	for i := range n {
		fmt.Fprintf(&want, "begin %d\nend %d\n", i, i)
	}
	if got := string(h.exec("box", "cat log").Stdout); got != want.String() {
		t.Errorf("got\n%swant\n%s", got, want.String())
	}
}

func TestARunThatWaitsForItsTurnCanBeCanceled(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	first := h.startRun(runs.Request{Lock: true, Commands: shells("sleep 60", "echo never")})
	second := h.startRun(runs.Request{Lock: true, Commands: shells("true")})
	third := h.startRun(runs.Request{Lock: true, Commands: shells("true")})
	run, err := h.runner.Cancel(t.Context(), alice, second.ID)
	if err != nil || run.State != sandbox.RunCanceled {
		t.Fatalf("the one that waits: got %+v, %v", run, err)
	}
	h.wantWhole(run)
	h.await("the first to begin its command", func() bool {
		r, err := h.runner.Get(t.Context(), alice, first.ID)
		return err == nil && r.Commands[0].Status == sandbox.CommandRunning
	})
	run, err = h.runner.Cancel(t.Context(), alice, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, "the one that runs, State", run.State, sandbox.RunCanceled)
	checktest.Equal(t, "the one that runs, Commands[0].Cause", run.Commands[0].Cause, sandbox.CauseKilled)
	checktest.Equal(t, "the one that runs, Commands[1].Status", run.Commands[1].Status, sandbox.CommandQueued)
	h.wantWhole(run)
	if procs, err := h.engine.Processes(t.Context(), alice, "box"); err != nil || slices.ContainsFunc(procs, func(p sandbox.Process) bool { return p.Result == nil && p.Shell != "true" }) { // which is the third's
		t.Errorf("a process is left: %+v, %v", procs, err)
	}
	if run := h.ended(third.ID); run.State != sandbox.RunCompleted {
		t.Errorf("the next in line: %+v", run)
	}
	if run, err = h.runner.Cancel(t.Context(), alice, first.ID); err != nil || run.State != sandbox.RunCanceled {
		t.Errorf("a second cancel: %+v, %v", run, err)
	}
}

func TestRunsGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, dir, withArtifacts(dir))
	slow := "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.1; done"
	run := h.startRun(runs.Request{Lock: true, Commands: shells(slow, "echo second; echo file > ../artifacts/late.txt")})
	next := h.startRun(runs.Request{Lock: true, Commands: shells("cat ../artifacts/late.txt")})
	h.await("some output", func() bool {
		_, evs, err := h.runner.Events(t.Context(), alice, run.ID, 2, 0)
		return err == nil && len(evs) > 0
	})
	for range 2 {
		h.restart()
	}
	got := h.ended(run.ID)
	h.wantWhole(got)
	if got.State != sandbox.RunCompleted {
		t.Fatalf("got %+v", got)
	}
	var want strings.Builder
	for i := range 8 {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	if out, _ := h.output(got, 0); out != want.String() || got.Commands[0].StdoutTruncated {
		t.Errorf("output over three servers: got %q", out)
	}
	if out, _ := h.output(got, 1); out != "second\n" {
		t.Errorf("the command that the last server began: %q", out)
	}
	after := h.ended(next.ID)
	if out, _ := h.output(after, 0); out != "file\n" || after.StartedAt.Before(got.EndedAt) {
		t.Errorf("the one that waited: %q, begun at %s, the other ended at %s", out, after.StartedAt, got.EndedAt)
	}
}

func crashRun() runs.Request {
	return runs.Request{Sandbox: "box", Commands: shells("echo once >> log; echo a > ../artifacts/a", "cat log")}
}

// TestARunOutlivesAServerThatIsKilled kills a server at every step of a run. The host
// goes with it here, so that a command that ran is cut off; the run says so, and one
// that had not begun is begun.
func TestARunOutlivesAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]sandbox.RunState{
		"run.intent": sandbox.RunCompleted, "run.started": sandbox.RunCompleted, "run.command": sandbox.RunCompleted,
		"run.began": sandbox.RunFailed, "run.ended": sandbox.RunCompleted, "run.copied": sandbox.RunCompleted, "run.outcome": sandbox.RunCompleted,
	} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			killAt(t, dir, point)
			h := open(t, dir, withArtifacts(dir))
			page, err := h.runner.List(t.Context(), alice, runs.ListRequest{})
			if err != nil || len(page.Items) != 1 {
				t.Fatalf("runs: %v, %v", page.Items, err)
			}
			run := h.ended(page.Items[0].ID)
			h.wantWhole(run)
			if run.State != want && point != "run.began" { // there it may have ended before the kill
				t.Errorf("got %s (%s), want %s", run.State, run.Error, want)
			}
			if run.State == sandbox.RunFailed {
				if c := run.Commands[0]; c.Cause != sandbox.CauseHost {
					t.Errorf("the command that was cut off: %+v", c)
				}
				return
			}
			if got := string(h.exec("box", "cat log").Stdout); got != "once\n" {
				t.Errorf("the command ran as often as this: %q", got)
			}
			f, _, err := h.runner.OpenArtifact(run, "a")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			entries, err := os.ReadDir(filepath.Join(dir, "artifacts"))
			if err != nil || len(entries) != 1 || entries[0].Name() != run.ID {
				t.Errorf("the directory of artifacts: %v, %v", entries, err)
			}
		})
	}
}

func TestFollowersOfARunMissNothing(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	run := h.startRun(runs.Request{Commands: shells("for i in $(seq 1 2000); do echo $i; done", "echo done")})
	read := func(after int64, slow bool) (out string, last int64) {
		for {
			r, evs, err := h.runner.Events(context.Background(), alice, run.ID, after, time.Minute)
			if err != nil {
				t.Error(err)
				return out, after
			}
			if len(evs) == 0 && r.State.Ended() {
				return out, after
			}
			for _, ev := range evs {
				if ev.Seq != after+1 {
					t.Errorf("after %d came %d", after, ev.Seq)
				}
				after = ev.Seq
				if ev.Type == sandbox.RunCommandStdout && ev.Command == 0 {
					out += string(ev.Data)
				}
			}
			if slow {
				h.ended(run.ID)
			}
		}
	}
	var want strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&want, i+1)
	}
	got, last := read(0, true)
	if got != want.String() {
		t.Errorf("a slow follower got %d bytes, want %d", len(got), want.Len())
	}
	if again, _ := read(0, false); again != got {
		t.Error("a second follower got something else")
	}
	if _, evs, err := h.runner.Events(t.Context(), alice, run.ID, last, time.Minute); err != nil || len(evs) != 0 {
		t.Errorf("after the last: %v, %v", evs, err)
	}
	_, _, err := h.runner.Events(t.Context(), alice, run.ID, last+1, time.Minute)
	wantCode(t, err, fault.Invalid)
}

func TestRunsThatAreOverAreCollected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	clock := func() time.Time { return now }
	set := func(o *runs.Options) {
		withArtifacts(dir)(o)
		o.Now = clock
		o.Most = 2
	}
	gone := func(h *house, id string) {
		h.t.Helper()
		h.await("the run to be collected", func() bool {
			_, err := h.runner.Get(context.Background(), alice, id)
			return fault.Is(err, fault.NotFound)
		})
		for {
			if _, err := os.Stat(filepath.Join(dir, "artifacts", id)); os.IsNotExist(err) {
				return
			}
			<-time.After(time.Millisecond)
		}
	}
	h := open(t, dir, set)
	write := func(h *house) *sandbox.Run {
		return h.run(runs.Request{Commands: shells("date +%N > ../artifacts/x; echo out")})
	}
	first, second, third := write(h), write(h), write(h)
	gone(h, first.ID)
	for _, r := range []*sandbox.Run{second, third} {
		if _, err := h.runner.Get(t.Context(), alice, r.ID); err != nil {
			t.Errorf("one that is not too many: %v", err)
		}
	}
	// A clock's delete of the sandbox takes nothing, a caller's all at once.
	if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.runner.ArtifactRun(t.Context(), alice, "box", third.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("artifacts of a deleted sandbox: %v", err)
	}
	under := h.startRun(runs.Request{Commands: shells("echo up; sleep 600")})
	h.await("a command to run", func() bool {
		r, err := h.runner.Get(context.Background(), alice, under.ID)
		return err == nil && r.OutputBytes > 0
	})
	if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	cut := h.ended(under.ID)
	h.wantWhole(cut)
	if cut.State != sandbox.RunFailed || cut.Commands[0].Cause != sandbox.CauseStopped || cut.DroppedAt.IsZero() {
		t.Errorf("a run whose sandbox was deleted under it: %+v", cut)
	}
	h.server.Stop()
	now = now.Add(time.Minute)
	h.restart()
	gone(h, second.ID)
	gone(h, third.ID)
	gone(h, under.ID)
	old := write(h)
	h.server.Stop()
	now = now.Add(8 * 24 * time.Hour)
	stray := filepath.Join(dir, "artifacts", sandbox.NewRunID()+".part")
	if err := os.MkdirAll(stray, 0o700); err != nil {
		t.Fatal(err)
	}
	h.restart()
	gone(h, old.ID)
	for {
		if _, err := os.Stat(stray); os.IsNotExist(err) {
			break
		}
		<-time.After(time.Millisecond)
	}
	var left int
	err := h.store.View(t.Context(), func(tx store.Tx) (err error) {
		left, err = tx.Runs().Count(store.RunQuery{})
		return err
	})
	if err != nil || left != 0 {
		t.Errorf("%d runs are left, %v", left, err)
	}
}
