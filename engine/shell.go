// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// A shell is a named bash of a sandbox: what a command in it leaves behind (its directory,
// variables, functions, background jobs) the next one finds. It is a context of code in
// bash, so that it outlives the server, and its commands are cells, with the events of
// commands. A command that ends the shell (exit, set -e) is told so, and the next one
// begins another under the same name and is told that, too.

// Bounds of shells.
const (
	MaxShells     = 8  // of a sandbox
	MaxShellName  = 64 // bytes
	MaxShellStdin = kernel.MaxStdin

	shellLog       = 8 << 20  // bytes of each stream that wait for a slow follower at least
	maxRecent      = 32       // commands that a shell remembers
	maxRecentBytes = 16 << 20 // of their output, beside the last command's
)

// ShellRequest is a shell that is to be made.
type ShellRequest struct {
	Name string // of letters, digits, ".", "_" and "-", not the first; empty: one is made up
	Cwd  string // relative to the workspace; empty: the workspace, or root's home
	User string // "sandbox" or "root"; empty: sandbox
	Env  map[string]string
}

// ShellState is what a command's result tells of its shell.
type ShellState struct {
	Name string
	ID   string // of its context, in events
	// Restarted is why what the commands before had left behind is gone: their shell had
	// ended, and this command began another. Empty: it is not.
	Restarted string
	Ended     bool // the command took the shell with it
}

// ShellResult is what became of a command in a shell.
type ShellResult struct {
	ExecResult
	Shell ShellState
}

// CreateShell makes a shell. A name that is taken is fault.Exists, more than MaxShells
// are fault.Exhausted, an image without bash is fault.Unsupported.
func (e *Engine) CreateShell(ctx context.Context, c access.Caller, ref string, r ShellRequest) (Context, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Context{}, err
	}
	var k check
	if r.Name == "" {
		r.Name = sandbox.NewProcessID()
	}
	want, err := e.wantShell(&k, r)
	if err != nil {
		return Context{}, err
	}
	if err := k.err(); err != nil {
		return Context{}, err
	}
	return e.makeContext(ctx, c, ref, want, actShell)
}

// wantShell checks what a shell is to be.
func (e *Engine) wantShell(k *check, r ShellRequest) (sandbox.Context, error) {
	k.shellName(r.Name)
	want, err := e.wantContext(k, ContextRequest{Language: string(kernel.Bash), Cwd: r.Cwd, User: r.User, Env: r.Env})
	want.Name = r.Name
	return want, err
}

func (k *check) shellName(name string) {
	if !validShellName(name) {
		k.bad("name", "%q is not a valid shell name: 1 to %d letters, digits, dots, dashes and underscores, of which the first is a letter or a digit",
			sandbox.Clip(name, 80), MaxShellName)
	}
}

func validShellName(name string) bool {
	if name == "" || len(name) > MaxShellName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		alone := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alone && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}

// contextsLocked counts the shells of a box, or its other contexts.
func (b *box) contextsLocked(shells bool) int {
	n := 0
	for _, cc := range b.contexts.all {
		if (cc.record().Name != "") == shells {
			n++
		}
	}
	return n
}

// addShell adds a shell without a process. The caller has contexts.mu.
func (b *box) addShell(want sandbox.Context) (*codeContext, error) {
	if b.contextsLocked(true) >= MaxShells {
		return nil, fault.New(fault.Exhausted, "the sandbox has %d shells already", MaxShells).
			WithRemedy("delete one, or run the command in one of them")
	}
	want.ID, want.Sandbox, want.CreatedAt = sandbox.NewProcessID(), b.id, b.now()
	cc := &codeContext{b: b, turn: newTurn(), rec: want}
	b.contexts.all = append(b.contexts.all, cc)
	return cc, nil
}

// shellLocked finds a shell by its name; nil if there is none.
func (b *box) shellLocked(name string) *codeContext {
	for _, cc := range b.contexts.all {
		if cc.record().Name == name {
			return cc
		}
	}
	return nil
}

// Shells gives a sandbox's shells, oldest first; of one that is down, too.
func (e *Engine) Shells(ctx context.Context, c access.Caller, ref string) ([]Context, error) {
	var out []Context
	err := e.withContexts(ctx, c, access.SandboxesRead, ref, func(b *box) error {
		for _, cc := range b.contexts.all {
			if one := cc.info(); one.Name != "" {
				out = append(out, shellInfo(one))
			}
		}
		return nil
	})
	return out, err
}

// Shell gives one.
func (e *Engine) Shell(ctx context.Context, c access.Caller, ref, name string) (Context, error) {
	cc, err := e.findShell(ctx, c, access.SandboxesRead, ref, name)
	if err != nil {
		return Context{}, err
	}
	return shellInfo(cc.info()), nil
}

// DeleteShell ends a shell and all that was started in it, the command that runs
// included.
func (e *Engine) DeleteShell(ctx context.Context, c access.Caller, ref, name string) error {
	cc, err := e.findShell(ctx, c, access.SandboxesWrite, ref, name)
	if err != nil {
		return err
	}
	return e.DeleteContext(ctx, c, ref, cc.record().ID)
}

// InterruptShell interrupts the command that runs in a shell, as Ctrl-C does; what it
// has left behind stays. Without one it is fault.State.
func (e *Engine) InterruptShell(ctx context.Context, c access.Caller, ref, name string) error {
	cc, err := e.findShell(ctx, c, access.SandboxesWrite, ref, name)
	if err != nil {
		return err
	}
	err = e.InterruptContext(ctx, c, ref, cc.record().ID)
	if fault.Is(err, fault.State) {
		return fault.New(fault.State, "no command is running in the shell %s", name)
	}
	return err
}

// withContexts has fn look at the contexts of a sandbox, with contexts.mu.
func (e *Engine) withContexts(ctx context.Context, c access.Caller, scope access.Scope, ref string, fn func(*box) error) error {
	b, err := e.visit(ctx, c, scope, ref)
	if err != nil {
		return err
	}
	defer e.leave(b)
	if err := e.heard(ctx, b); err != nil {
		return err
	}
	if err := e.loadContexts(ctx, b); err != nil {
		return err
	}
	b.contexts.mu.Lock()
	defer b.contexts.mu.Unlock()
	return fn(b)
}

func (e *Engine) findShell(ctx context.Context, c access.Caller, scope access.Scope, ref, name string) (cc *codeContext, err error) {
	err = e.withContexts(ctx, c, scope, ref, func(b *box) error {
		if cc = b.shellLocked(name); name == "" || cc == nil {
			return noShell(name)
		}
		return nil
	})
	return cc, err
}

func noShell(name string) *fault.Error {
	return fault.New(fault.NotFound, "there is no shell %q in this sandbox", sandbox.Clip(name, 40)).
		WithRemedy("list its shells, or run a command in this one, which makes it")
}

// shellInfo says what is said of a kernel in the words of shells.
func shellInfo(c Context) Context {
	c.Ended = ofShell(c.Ended)
	return c
}

func ofShell(why string) string {
	return strings.NewReplacer("its sandbox, or its kernel,", "its sandbox, or its bash,", "its kernel", "its bash").Replace(why)
}

// shellText is a command as a shell reads it.
func shellText(r *ExecRequest) string {
	if r.Shell != "" {
		return r.Shell
	}
	words := make([]string, len(r.Argv))
	for i, a := range r.Argv {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// ShellExec runs a command in a shell, after those that came before, and makes the
// shell if there is none of that name. It is as Exec in all else, but: a timeout, and
// KillOnDisconnect, interrupt the command and kill what does not heed that, and end the
// shell only if it does not come to itself; and a Wait that passes before the
// command's turn is fault.State, and it does not run.
func (e *Engine) ShellExec(ctx context.Context, c access.Caller, ref, name string, r ExecRequest, sink func(agent.Frame) error) (ShellResult, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return ShellResult{}, err
	}
	want, err := e.shellCommand(name, &r, sink != nil)
	if err != nil {
		return ShellResult{}, err
	}
	u, err := e.use(ctx, c, access.SandboxesWrite, ref, actShell)
	if err != nil {
		return ShellResult{}, err
	}
	began := time.Now()
	cc, err := e.queueShell(ctx, u, want, r)
	if err != nil {
		u.end()
		return ShellResult{}, err
	}
	code := CodeRequest{
		Code: shellText(&r), Env: r.Env, Timeout: r.Timeout, MaxStdout: r.MaxStdout, MaxStderr: r.MaxStderr,
		InterruptOnDisconnect: r.KillOnDisconnect, Room: e.memory.Open(c.Project),
	}
	out := shellSink{give: sink, left: [2]int64{r.MaxStdout, r.MaxStderr}}
	if sink != nil { // what is kept is for who asks again
		code.MaxStdout, code.MaxStderr = min(r.MaxStdout, DefaultOutput), min(r.MaxStderr, DefaultOutput)
	}
	x := newCell(u, cc, code, out.sink())
	x.collect, x.stdin = true, r.Stdin
	// What a shell remembers counts as long as it does. The shell may go in many ways.
	runtime.AddCleanup(x, (*budget.Room).Close, code.Room)
	cc.remember(x)
	if r.Started != nil {
		r.Started(x.ids.CellID)
	}
	e.group.spawn(func(own context.Context) { x.do(keyed.Carry(own, ctx)) })
	if r.Wait > 0 {
		r.Wait = max(r.Wait-time.Since(began), 1)
	}
	res, err := x.attend(ctx, r.Wait)
	if sink != nil {
		res.Stdout, res.Stderr = nil, nil
		res.StdoutTruncated, res.StderrTruncated = !res.Running && (out.cut[0] || x.gap), !res.Running && (out.cut[1] || x.gap)
	}
	e.metrics.execSeconds.Observe(time.Since(began).Seconds())
	return res, err
}

// shellCommand checks a request, and gives the shell that it may have to make.
func (e *Engine) shellCommand(name string, r *ExecRequest, streamed bool) (sandbox.Context, error) {
	cmd, err := e.command(*r, streamed)
	var k check
	if err != nil && !fault.Is(err, fault.Invalid) {
		return sandbox.Context{}, err
	}
	k.add(err)
	if r.Cwd != "" {
		k.bad("cwd", "is the shell's own; change it by cd, or make the shell with it")
	}
	if len(r.Stdin) > MaxShellStdin {
		k.bad("stdin", "has %d bytes, more than %d in a shell; put it into a file", len(r.Stdin), MaxShellStdin)
	}
	want, err := e.wantShell(&k, ShellRequest{Name: name, User: r.User})
	if err != nil {
		return want, err
	}
	r.Timeout, r.MaxStdout, r.MaxStderr = cmd.Timeout, cmd.MaxStdout, cmd.MaxStderr
	return want, k.err()
}

// queueShell finds the shell of a command, or makes it, and takes its turn.
func (e *Engine) queueShell(ctx context.Context, u *use, want sandbox.Context, r ExecRequest) (*codeContext, error) {
	if err := e.loadContexts(ctx, u.b); err != nil {
		return nil, err
	}
	if err := e.refuseInContext(ctx, u.b, &want); err != nil {
		return nil, err
	}
	here := ctx
	if r.Wait > 0 {
		var cancel context.CancelFunc
		here, cancel = context.WithTimeout(ctx, r.Wait)
		defer cancel()
	}
	for {
		cc, err := u.b.shell(want)
		if err != nil {
			return nil, err
		}
		if rec := cc.record(); r.User != "" && rec.User != want.User {
			return nil, fault.InvalidField("user", "is %s, and the shell %s is of %s", want.User, rec.Name, rec.User)
		}
		ok, err := cc.take(here, e.group)
		switch {
		case err != nil && here.Err() != nil && ctx.Err() == nil:
			return nil, fault.New(fault.State, "the shell %s was busy with other commands for %v; this one was not run", want.Name, r.Wait).
				WithRemedy("wait longer, interrupt what runs in it, or use another shell")
		case err != nil:
			return nil, err
		case ok:
			return cc, nil
		}
	}
}

// shell gives the shell of a name, new or not.
func (b *box) shell(want sandbox.Context) (*codeContext, error) {
	b.contexts.mu.Lock()
	defer b.contexts.mu.Unlock()
	if cc := b.shellLocked(want.Name); cc != nil {
		return cc, nil
	}
	return b.addContext(want, false)
}

// shellSink makes frames of a command's output, up to a bound of each stream.
type shellSink struct {
	give func(agent.Frame) error // nil: nobody follows
	seq  int64
	left [2]int64
	cut  [2]bool
}

func (s *shellSink) sink() *CodeSink {
	if s.give == nil {
		return nil
	}
	return &CodeSink{
		Stdout: func(b []byte) error { return s.frame(agent.Stdout, 0, b) },
		Stderr: func(b []byte) error { return s.frame(agent.Stderr, 1, b) },
	}
}

func (s *shellSink) frame(stream agent.Stream, i int, b []byte) error {
	if int64(len(b)) > s.left[i] {
		b, s.cut[i] = b[:s.left[i]], true
	}
	if len(b) == 0 {
		return nil
	}
	s.left[i] -= int64(len(b))
	s.seq++
	return s.give(agent.Frame{Seq: s.seq, Stream: stream, At: time.Now().UTC(), Data: slices.Clone(b)})
}
