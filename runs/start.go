// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Bounds and defaults of runs.
const (
	MaxCommands = 100
	MaxTTL      = 7 * 24 * time.Hour
	MaxStream   = 1 << 20  // bytes that are kept of each stream of a command
	MaxOutput   = 64 << 20 // bytes that are kept of all commands of a run together
	MaxLive     = 1000     // runs of a project that have not ended
)

// Defaults are what a request gets that leaves a field out, and what it gets at most. Zero fields take the value named
// behind them.
type Defaults struct {
	TTL     time.Duration // of a sandbox that a run makes, without a use: 1 h
	MaxTTL  time.Duration // 7 days, which is also the most
	Timeout time.Duration // of a command: 120 s
	Stdout  int64         // bytes that are kept of a command's standard output: MaxStream, which is also the most
	Stderr  int64         // likewise of its standard error
	Await   bool          // a call of MCP's profile mcp-sandboxd waits for its run: no
	Wait    time.Duration // of who waits: 30 s
}

// Filled returns d with the values that its zero fields take.
func (d Defaults) Filled() Defaults {
	if d.MaxTTL <= 0 || d.MaxTTL > MaxTTL {
		d.MaxTTL = MaxTTL
	}
	if d.TTL <= 0 {
		d.TTL = time.Hour
	}
	d.TTL = min(d.TTL, d.MaxTTL)
	if d.Timeout <= 0 {
		d.Timeout = 120 * time.Second
	}
	for _, n := range []*int64{&d.Stdout, &d.Stderr} {
		if *n <= 0 || *n > MaxStream {
			*n = MaxStream
		}
	}
	if d.Wait <= 0 {
		d.Wait = 30 * time.Second
	}
	return d
}

// Request is a batch of commands.
type Request struct {
	Sandbox  string // an id, or a key: then it is made if it is missing
	Commands []Command
	User     string        // of all commands: "sandbox" or "root"; empty: sandbox
	TTL      time.Duration // the sandbox is deleted when unused for so long; zero: as it is, of a new one Defaults.TTL
	GoOn     bool          // with the next command after a failure; the run fails all the same
	Lock     bool          // wait until earlier runs with Lock of the same sandbox have ended
}

// Command is one command of a request.
type Command struct {
	Shell        string   // run by a shell; or
	Argv         []string // a program and its arguments. Exactly one of the two
	Cwd          string   // absolute; empty: the workspace, or root's home
	Env          map[string]string
	Timeout      time.Duration // it is killed then; zero: Defaults.Timeout
	AllowFailure bool          // its failure does not fail the run
}

// Start begins a run and returns it as it is then: queued. It is on record before
// Start returns, and goes on if its caller goes away: after a restart of the server with
// the command that it was at, which is followed, or with the next one. No command is
// begun twice.
func (r *Runner) Start(ctx context.Context, c access.Caller, q Request) (*sandbox.Run, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, err
	}
	run, err := r.check(c, &q)
	if err != nil {
		return nil, err
	}
	_, leave, err := r.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := r.store.Room(); err != nil {
		return nil, err
	}
	if sandbox.ValidID(q.Sandbox) {
		s, err := r.engine.Get(ctx, c, q.Sandbox)
		if err != nil {
			return nil, err
		}
		run.Sandbox, run.Identifier = s.ID, s.Ref()
		place(run, &q, s.Account)
	} else if s, err := r.engine.Get(ctx, c, q.Sandbox); err == nil {
		place(run, &q, s.Account)
	} else {
		place(run, &q, sandbox.Account{}) // it is made, or the run says why not
	}
	if err := r.engine.CheckRecord(ctx, c.Project, run.Sandbox, q.recorded()); err != nil {
		return nil, err
	}
	w := newWorker(r, c, run)
	if run.Locked {
		w.ticket = r.queues.join(name{c.Project, run.Identifier})
	}
	r.add(w) // before anybody can ask for it
	err = r.store.Update(context.WithoutCancel(ctx), func(tx store.Tx) error {
		n, err := tx.Runs().Count(store.RunQuery{Project: c.Project, Live: true})
		if err == nil && n >= MaxLive {
			err = fault.New(fault.Exhausted, "%d runs of this project have not ended, which is the most", n).
				WithRemedy("wait until some have, or cancel them")
		}
		if err != nil {
			return err
		}
		return tx.Runs().Insert(run)
	})
	if err != nil {
		r.remove(w)
		w.ticket.leave()
		return nil, err
	}
	r.o.Checkpoint("run.intent")
	asked := clone(run)
	r.engine.Go(w.work)
	return asked, nil
}

// check returns the record of a request, or every field of it that is wrong.
func (r *Runner) check(c access.Caller, q *Request) (*sandbox.Run, error) {
	var bad []fault.Field
	wrong := func(err error) { bad = append(bad, fault.As(err).Fields...) }
	if !sandbox.ValidID(q.Sandbox) {
		if err := sandbox.CheckKey("sandbox", q.Sandbox); err != nil {
			wrong(err)
		}
	}
	if q.TTL < 0 || q.TTL > 0 && (q.TTL < sandbox.MinClock || q.TTL > r.o.Defaults.MaxTTL) {
		wrong(fault.InvalidField("ttl_seconds", "%s is outside %s to %s seconds", seconds(q.TTL), seconds(sandbox.MinClock), seconds(r.o.Defaults.MaxTTL)))
	}
	if n := len(q.Commands); n == 0 || n > MaxCommands {
		wrong(fault.InvalidField("commands", "has %d entries; there are 1 to %d in a run", n, MaxCommands))
	}
	user, err := r.engine.CheckUser(q.User)
	if err != nil {
		if !fault.Is(err, fault.Invalid) {
			return nil, err
		}
		wrong(err)
	}
	run := &sandbox.Run{
		ID: sandbox.NewRunID(), Project: c.Project, Identifier: q.Sandbox, State: sandbox.RunQueued, Actor: cmp.Or(c.Actor, "unknown"), Via: c.Via,
		User: user, TTL: q.TTL, GoOn: q.GoOn, Locked: q.Lock, CreatedAt: r.now(),
	}
	for i := range q.Commands[:min(len(q.Commands), MaxCommands)] {
		cmd, fields := r.checkCommand(user, &q.Commands[i])
		for _, f := range fields {
			bad = append(bad, fault.Field{Name: fmt.Sprintf("commands[%d].%s", i, f.Name), Message: f.Message})
		}
		run.Commands = append(run.Commands, cmd)
	}
	if len(bad) > 0 {
		return nil, fault.InvalidFields(bad...)
	}
	return run, nil
}

// place fills in what a sandbox decides whose user has this account: where commands start, and who runs
// those that do not say.
func place(run *sandbox.Run, q *Request, a sandbox.Account) {
	if q.User == "" {
		run.User = a.User("")
	}
	for i := range run.Commands {
		if cmd := &run.Commands[i]; q.User == "" || cmd.Cwd == "." {
			cmd.Cwd = a.Absolute(cmd.Cwd)
		}
	}
}

func (r *Runner) checkCommand(user string, q *Command) (sandbox.RunCommand, []fault.Field) {
	c := sandbox.RunCommand{
		Shell: q.Shell, Argv: q.Argv, Env: q.Env, Timeout: q.Timeout, AllowFailure: q.AllowFailure, Status: sandbox.CommandQueued,
	}
	if c.Timeout == 0 {
		c.Timeout = min(r.o.Defaults.Timeout, r.engine.MostCommandTime())
	}
	cmd, err := r.engine.CheckCommand(engine.ExecRequest{Shell: q.Shell, Argv: q.Argv, Cwd: q.Cwd, Env: q.Env, User: user, Timeout: c.Timeout})
	c.Cwd = cmd.Cwd
	var bad []fault.Field
	if err != nil {
		bad = slices.Clone(fault.As(err).Fields)
	}
	for i := range bad {
		if bad[i].Name == "timeout_seconds" {
			bad[i].Name = "timeout_ms" // as runs have it
		}
	}
	if q.Cwd != "" && !path.IsAbs(q.Cwd) {
		bad = append(bad, fault.InvalidField("cwd", "%q is not absolute", sandbox.Clip(q.Cwd, 80)).Fields...)
	}
	return c, bad
}

// recorded returns what a run keeps until its commands were begun, and longer, by field.
func (q *Request) recorded() map[string][]string {
	all := map[string][]string{"sandbox": {q.Sandbox}}
	for i, c := range q.Commands {
		texts := append([]string{c.Shell, c.Cwd}, c.Argv...)
		for _, n := range slices.Sorted(maps.Keys(c.Env)) {
			texts = append(texts, n, c.Env[n])
		}
		all[fmt.Sprintf("commands[%d]", i)] = texts
	}
	return all
}
