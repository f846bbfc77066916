// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Bounds and defaults of runs.
const (
	MaxRunCommands    = 100
	DefaultRunTimeout = 120 * time.Second // of a command
	DefaultRunTTL     = time.Hour         // of a sandbox that a run makes, without a use
	MaxRunTTL         = 7 * 24 * time.Hour
	RunOutput         = 1 << 20  // bytes that are kept of each stream of a command
	MaxRunOutput      = 64 << 20 // bytes that are kept of all commands of a run together
	MaxLiveRuns       = 1000     // of a project, that have not ended
)

// RunOptions says what becomes of runs that have ended.
type RunOptions struct {
	Keep      time.Duration // they are deleted after that; zero: 7 days
	Most      int           // of a project, the oldest go first; zero: 10,000
	MaxOutput int64         // bytes of output of all, the oldest that have ended go first; zero: 2 GiB
	Artifacts ArtifactOptions
}

const (
	defaultRunKeep = 7 * 24 * time.Hour
	defaultRunMost = 10_000
	defaultRunHeld = 2 << 30
)

func (o RunOptions) filled() RunOptions {
	if o.Keep <= 0 {
		o.Keep = defaultRunKeep
	}
	if o.Most <= 0 {
		o.Most = defaultRunMost
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = defaultRunHeld
	}
	o.Artifacts = o.Artifacts.filled()
	return o
}

// RunRequest is a batch of commands.
type RunRequest struct {
	Sandbox  string // an id, or a key: then it is made if it is missing
	Commands []RunCommandRequest
	User     string        // of all commands: "sandbox" or "root"; empty: sandbox
	TTL      time.Duration // the sandbox is deleted when unused for so long; zero: as it is, of a new one DefaultRunTTL
	GoOn     bool          // with the next command after a failure; the run fails all the same
	Lock     bool          // wait until earlier runs with Lock of the same sandbox have ended
}

// RunCommandRequest is one command of a run.
type RunCommandRequest struct {
	Shell        string   // run by a shell; or
	Argv         []string // a program and its arguments. Exactly one of the two
	Cwd          string   // absolute; empty: the workspace, or root's home
	Env          map[string]string
	Timeout      time.Duration // it is killed then; zero: DefaultRunTimeout
	AllowFailure bool          // its failure does not fail the run
}

// StartRun begins a run and gives it as it is then: queued. It is on record before
// StartRun returns, and goes on whoever goes away: after a restart of the server with
// the command that it was at, which is followed, or with the next one. No command is
// begun twice.
func (e *Engine) StartRun(ctx context.Context, c access.Caller, r RunRequest) (*sandbox.Run, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	run, err := e.newRun(c, &r)
	if err != nil {
		return nil, err
	}
	if err := e.enterWork(c, access.SandboxesWrite); err != nil {
		return nil, err
	}
	defer e.group.leave()
	if sandbox.ValidID(r.Sandbox) {
		s, err := e.Get(ctx, c, r.Sandbox)
		if err != nil {
			return nil, err
		}
		run.Sandbox, run.Identifier = s.ID, s.Ref()
	}
	if err := e.refuseValues(ctx, c.Project, run.Sandbox, r.onRecord()); err != nil {
		return nil, err
	}
	l := newLiveRun(e, c, run)
	if run.Locked {
		l.place = e.runs.lines.join(name{c.Project, run.Identifier})
	}
	e.runs.add(l) // before anybody can ask for it
	err = e.store.Update(context.WithoutCancel(ctx), func(tx store.Tx) error {
		n, err := tx.Runs().Count(store.RunQuery{Project: c.Project, Live: true})
		if err == nil && n >= MaxLiveRuns {
			err = fault.New(fault.Exhausted, "%d runs of this project have not ended, which is the most", n).
				WithRemedy("wait until some have, or cancel them")
		}
		if err != nil {
			return err
		}
		return tx.Runs().Insert(run)
	})
	if err != nil {
		e.runs.remove(l)
		l.place.leave()
		return nil, err
	}
	e.checkpoint("run.intent")
	asked := cloneRun(run)
	e.group.spawn(l.work)
	return asked, nil
}

// newRun checks a request and makes the record.
func (e *Engine) newRun(c access.Caller, r *RunRequest) (*sandbox.Run, error) {
	var k check
	if !sandbox.ValidID(r.Sandbox) {
		k.add(sandbox.CheckKey("sandbox", r.Sandbox))
	}
	if r.TTL < 0 || r.TTL > 0 && (r.TTL < MinClock || r.TTL > MaxRunTTL) {
		k.bad("ttl_seconds", "%s is outside %s to %s seconds", seconds(r.TTL), seconds(MinClock), seconds(MaxRunTTL))
	}
	if n := len(r.Commands); n == 0 || n > MaxRunCommands {
		k.bad("commands", "has %d entries; there are 1 to %d in a run", n, MaxRunCommands)
	}
	who := askerOf(c)
	run := &sandbox.Run{
		ID: sandbox.NewRunID(), Project: c.Project, Identifier: r.Sandbox, State: sandbox.RunQueued, Actor: who.actor, Via: who.via,
		TTL: r.TTL, GoOn: r.GoOn, Locked: r.Lock, CreatedAt: e.now().UTC().Truncate(time.Microsecond),
	}
	var err error
	if run.User, err = e.user(&k, r.User); err != nil {
		return nil, err
	}
	for i := range r.Commands[:min(len(r.Commands), MaxRunCommands)] {
		run.Commands = append(run.Commands, e.runCommand(&k, fmt.Sprintf("commands[%d].", i), r.User, &r.Commands[i]))
	}
	return run, k.err()
}

func (e *Engine) runCommand(k *check, at, user string, r *RunCommandRequest) sandbox.RunCommand {
	var one check
	one.command(r.Shell, r.Argv)
	one.env(r.Env)
	if r.Cwd != "" && !path.IsAbs(r.Cwd) {
		one.bad("cwd", "%q is not absolute", sandbox.Clip(r.Cwd, 80))
	}
	cwd := one.cwd(r.Cwd, user)
	one.timeout("timeout_ms", r.Timeout, e.defaults.MaxCommandTimeout)
	for _, f := range one.fields {
		k.bad(at+f.Name, "%s", f.Message)
	}
	c := sandbox.RunCommand{
		Shell: r.Shell, Argv: r.Argv, Cwd: cwd, Env: r.Env, Timeout: r.Timeout, AllowFailure: r.AllowFailure, Status: sandbox.CommandQueued,
	}
	if c.Timeout == 0 {
		c.Timeout = min(DefaultRunTimeout, e.defaults.MaxCommandTimeout)
	}
	return c
}

// RunOf gives a run. What is another project's is as missing as what never was.
func (e *Engine) RunOf(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.leave()
	return e.ownRun(ctx, c, id)
}

func (e *Engine) ownRun(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error) {
	if !sandbox.ValidRunID(id) {
		return nil, noRun(id)
	}
	var run *sandbox.Run
	err := e.store.View(ctx, func(tx store.Tx) (err error) {
		run, err = tx.Runs().Get(id)
		return err
	})
	if fault.Is(err, fault.NotFound) || err == nil && run.Project != c.Project {
		return nil, noRun(id)
	}
	return run, err
}

func noRun(id string) *fault.Error {
	return fault.New(fault.NotFound, "there is no run %q", sandbox.Clip(id, 80)).
		WithRemedy("list the runs of its sandbox; a run is kept for some days after its end")
}

// AwaitRun waits until a run has ended, or wait has passed, and gives it as it is
// then.
func (e *Engine) AwaitRun(ctx context.Context, c access.Caller, id string, wait time.Duration) (*sandbox.Run, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, err
	}
	defer e.group.leave()
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	run, err := e.ownRun(bound, c, id)
	if err != nil || run.State.Ended() {
		return run, err
	}
	if l := e.runs.get(id); l != nil {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-l.done:
		case <-timer.C:
		case <-bound.Done():
			if ctx.Err() == nil {
				return nil, shuttingDown()
			}
			return nil, ctx.Err()
		}
	}
	return e.ownRun(bound, c, id)
}

// RunPage is one page of runs, without their commands.
type RunPage struct {
	Items []*sandbox.Run
	Next  string // the cursor of the next page; empty at the end
}

// RunsRequest says which runs are wanted, newest first.
type RunsRequest struct {
	Sandbox string // an id or a key, also of one that is gone; empty: the project's
	Kept    bool   // only those whose artifacts are kept
	Limit   int    // as of a page of sandboxes
	Cursor  string
}

// Runs lists the caller's runs. A sandbox that is not there and left none is fault.NotFound.
func (e *Engine) Runs(ctx context.Context, c access.Caller, r RunsRequest) (RunPage, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return RunPage{}, err
	}
	defer e.group.leave()
	if err := checkPage(r.Limit, 0); err != nil {
		return RunPage{}, err
	}
	q := store.RunQuery{Project: c.Project, Kept: r.Kept, Limit: r.Limit, Cursor: r.Cursor}
	if sandbox.ValidID(r.Sandbox) {
		q.Sandbox = sandbox.ID(r.Sandbox)
	} else {
		q.Identifier = r.Sandbox
	}
	var page RunPage
	err := e.store.View(ctx, func(tx store.Tx) (err error) {
		page.Items, page.Next, err = tx.Runs().List(q)
		return err
	})
	if err == nil && r.Sandbox != "" && r.Cursor == "" && len(page.Items) == 0 {
		_, err = e.Get(ctx, c, r.Sandbox) // none of it, or no such sandbox
	}
	return page, err
}

// CancelRun ends a run: the command that it is at is killed, and no other begun. It
// waits until that is so. One that has ended already is fine.
func (e *Engine) CancelRun(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error) {
	if err := e.enter(c, access.SandboxesWrite); err != nil {
		return nil, err
	}
	defer e.group.leave()
	run, err := e.ownRun(ctx, c, id)
	if err != nil || run.State.Ended() {
		return run, err
	}
	if l := e.runs.get(id); l != nil {
		if err := l.cancel(ctx); err != nil {
			return nil, err
		}
	}
	return e.AwaitRun(ctx, c, id, killBound)
}

// RunEvents gives the events of a run that come after one, at most so many as fit in
// an answer, and the run as it was when they were read. Where there are none yet it
// waits for them, at most as long as wait: then it gives none. A run that has ended
// and none means that there will be no more. after is 0, or the Seq of an event that
// the run has had.
func (e *Engine) RunEvents(ctx context.Context, c access.Caller, id string, after int64, wait time.Duration) (*sandbox.Run, []*sandbox.RunEvent, error) {
	if err := e.enter(c, access.SandboxesRead); err != nil {
		return nil, nil, err
	}
	defer e.group.leave()
	bound, cancel := e.group.bind(ctx)
	defer cancel()
	if !sandbox.ValidRunID(id) {
		return nil, nil, noRun(id)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		var changed <-chan struct{}
		if l := e.runs.get(id); l != nil {
			changed = l.changes() // before the look, so that nothing is missed
		}
		run, events, err := e.readRunEvents(bound, c, id, after)
		if err != nil && bound.Err() != nil && ctx.Err() == nil {
			err = shuttingDown()
		}
		if err != nil || len(events) > 0 || run.State.Ended() || wait <= 0 {
			return run, events, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return run, nil, nil
		case <-bound.Done():
			if ctx.Err() == nil {
				return nil, nil, shuttingDown()
			}
			return nil, nil, ctx.Err()
		}
	}
}

// runEventPage is how many events are read at a time: of output each has
// runChunk bytes at most.
const runEventPage = 64

func (e *Engine) readRunEvents(ctx context.Context, c access.Caller, id string, after int64) (run *sandbox.Run, events []*sandbox.RunEvent, err error) {
	err = e.store.View(ctx, func(tx store.Tx) (err error) {
		if run, err = tx.Runs().Get(id); err != nil {
			return err
		}
		if run.Project != c.Project {
			return noRun(id)
		}
		if events, err = tx.Runs().Events(id, after, runEventPage); err != nil || len(events) > 0 || after == 0 {
			return err
		}
		last, err := tx.Runs().LastSeq(id)
		if err == nil && (after > last || after < 0) {
			err = fault.InvalidField("after", "%d is not an event of this run; its last one is %d", after, last).
				WithRemedy("pass the id of an event that you have seen, or none for all of them")
		}
		return err
	})
	if fault.Is(err, fault.NotFound) {
		err = noRun(id)
	}
	return run, events, err
}

// RunStreams gives what is kept of the output of a run's commands, by command.
func (e *Engine) RunStreams(ctx context.Context, c access.Caller, id string) ([]RunStreams, error) {
	run, err := e.RunOf(ctx, c, id)
	if err != nil {
		return nil, err
	}
	out := make([]RunStreams, len(run.Commands))
	for after := int64(0); ; {
		var events []*sandbox.RunEvent
		err := e.store.View(ctx, func(tx store.Tx) (err error) {
			events, err = tx.Runs().Events(id, after, runEventPage)
			return err
		})
		if err != nil || len(events) == 0 {
			return out, err
		}
		for _, ev := range events {
			after = ev.Seq
			switch {
			case ev.Command < 0 || ev.Command >= len(out):
			case ev.Type == sandbox.RunCommandStdout:
				out[ev.Command].Stdout = append(out[ev.Command].Stdout, ev.Data...)
			case ev.Type == sandbox.RunCommandStderr:
				out[ev.Command].Stderr = append(out[ev.Command].Stderr, ev.Data...)
			}
		}
	}
}

// RunStreams is what a command of a run gave out, as far as it is kept.
type RunStreams struct{ Stdout, Stderr []byte }

func cloneRun(r *sandbox.Run) *sandbox.Run {
	c := *r
	c.Commands, c.Artifacts = slices.Clone(r.Commands), slices.Clone(r.Artifacts)
	return &c
}
