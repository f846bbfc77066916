// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/input"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// Bounds of a command that is run from here.
const (
	smallStdin = 64 << 10 // of a file: what goes with a command, to spare requests
	shellStdin = 1 << 20  // what the server takes with a command in a shell
	maxOutput  = 64 << 20 // of each stream, what it keeps, and what an older server hands on
)

// command holds the flags and the words of one command.
type command struct {
	c       *cobra.Command
	shell   string
	image   bool // run what the image says, with argv in place of its own words
	cwd     string
	env     *flags.Variables // with run: the sandbox's, so none: the sandbox's
	user    string
	timeout flags.Period
	stdin   bool
	noStdin bool
	input   io.Reader // of the command, while it runs; nil: none
	tty     bool
	leave   []byte // the detach keys; nil: the default
	in      string // the name of the shell that it runs in; empty: none
	state   *v1.ShellState
	argv    []string
	name    string // of the process; empty: none
	labels  flags.Pairs
	merge   bool
}

func commandFlags(a *app.App, c *cobra.Command, withEnv bool) *command {
	m := &command{c: c, env: new(flags.Variables)}
	f := c.Flags()
	f.StringVarP(&m.shell, "command", "c", "", "run this shell text instead of CMD")
	f.BoolVar(&m.image, "image-command", false, "run what the image says: its entry point, with CMD in place of its own command, in its working directory")
	f.StringVarP(&m.cwd, "cwd", "w", "", "working directory (default /workspace, as root /root)")
	f.StringVarP(&m.user, "user", "u", "", "an account of the sandbox, a name or a number (default its own user)")
	f.Var(&m.timeout, "timeout", "kill it after this long")
	f.BoolVarP(&m.stdin, "interactive", "i", false, "give it standard input, whatever it is")
	noStdinFlag(f, &m.noStdin, "leave standard input alone, also if it is a pipe or a file")
	f.BoolVarP(&m.tty, "tty", "t", false, "run it at a terminal, as sandpit shell does")
	if withEnv {
		m.env = flags.EnvFlags(f, a.Getenv, "environment variable of this command")
	}
	f.SetInterspersed(false) // what follows CMD is CMD's
	_ = c.RegisterFlagCompletionFunc("user", cobra.FixedCompletions([]string{"sandbox", "root"}, cobra.ShellCompDirectiveNoFileComp))
	return m
}

// mark adds the flags for what the command is called by.
func (m *command) mark(f *pflag.FlagSet) {
	m.labels = flags.Pairs{}
	f.StringVar(&m.name, "name", "", "call it by this `NAME`")
	f.Var(m.labels, "label", "label to find it by; may be given again")
	f.BoolVar(&m.merge, "merge-output", false, "its standard error goes the way of its standard output")
}

// noStdinFlag adds --no-stdin. Its letter -n, which is "how many" elsewhere, stays for who has it in scripts,
// and is in no help: pflag says of what is deprecated on standard output, where the command's own output is.
func noStdinFlag(f *pflag.FlagSet, to *bool, usage string) {
	f.BoolVar(to, "no-stdin", false, usage)
	f.BoolVarP(to, "null-stdin", "n", false, usage)
	_ = f.MarkHidden("null-stdin")
}

// check takes the words of the command, and refuses what makes no sense.
func (m *command) check(words []string) error {
	m.argv = words
	switch {
	case m.shell != "" && len(words) > 0:
		return exit.Misuse(m.c, "both -c and a command are given: %s", strings.Join(words, " "))
	case m.image && m.shell != "":
		return exit.Misuse(m.c, "-c and --image-command contradict each other")
	case m.shell == "" && len(words) == 0 && !m.image:
		return exit.Misuse(m.c, "there is no command to run; the usage is: %s", m.c.UseLine())
	case m.stdin && m.noStdin:
		return exit.Misuse(m.c, "--interactive and --no-stdin contradict each other")
	case m.tty && m.timeout.Given:
		return exit.Misuse(m.c, "a command at a terminal has no --timeout")
	}
	return nil
}

// request makes the request. Standard input goes with it where it is a small file; else it is
// the command's while it runs, see fed.
func (m *command) request(a *app.App) (v1.Exec, error) {
	r := v1.Exec{Env: m.env.Value(), TimeoutSeconds: m.timeout.ExactSeconds(), MaxOutputBytes: new(int64(maxOutput))}
	if m.shell != "" {
		r.Command = &m.shell
	} else {
		r.Argv = m.argv
	}
	if m.image {
		r.ImageCommand = &m.image
	}
	f := m.c.Flags()
	r.Cwd, r.User = flags.Given(f, "cwd", m.cwd), flags.Given(f, "user", m.user)
	if m.labels != nil { // else --name, where there is one, is a sandbox's
		r.Name, r.Labels = flags.Given(f, "name", m.name), m.labels.Value()
	}
	if m.merge {
		r.MergeOutput = &m.merge
	}
	if m.tty || !m.stdin && (m.noStdin || !piped(a.Stdin)) { // of a terminal the keys are handed on
		return r, nil
	}
	most := smallStdin
	if m.in != "" {
		most = shellStdin
	} else if !regular(a.Stdin) {
		m.input, r.StreamStdin = a.Stdin, new(true)
		return r, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.Stdin, int64(most)+1))
	switch {
	case err != nil:
		return r, input.Unreadable(err)
	case len(data) > most && m.in != "":
		return r, fault.New(fault.TooLarge, "standard input has more than the %d bytes that a command in a shell takes", most).
			WithRemedy("copy it into the sandbox (sandpit cp - SANDBOX:PATH) and have the command read it there, or leave out --shell")
	case len(data) > most:
		m.input, r.StreamStdin = io.MultiReader(bytes.NewReader(data), a.Stdin), new(true)
	case utf8.Valid(data):
		r.Stdin = new(string(data))
	default:
		r.StdinBase64 = new(base64.StdEncoding.EncodeToString(data))
	}
	return r, nil
}

// piped reports whether somebody put something into standard input.
func piped(f *os.File) bool {
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// stream runs a command and hands on its output and its status.
func (m *command) stream(ctx context.Context, a *app.App, cl *client.Client, ref string, r v1.Exec) error {
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	var came [2]int64 // of standard output and standard error
	out, err := attended(ctx, a, m.runner(a, cl, ref), r, func(f client.Frame) error {
		w, i := a.Stdout, 0
		if f.Stderr {
			w, i = a.Stderr, 1
		}
		came[i] += int64(len(f.Data))
		_, err := w.Write(f.Data)
		return err
	})
	switch {
	case interrupt.PipeBroken(err): // nobody reads us, and the signal is on its way
		return &exit.Error{Status: interrupt.Error{Signal: syscall.SIGPIPE}.Status()}
	case err != nil:
		return exit.Own(err)
	}
	return ended(a, m, out, came)
}

// collect runs a command and prints its result as data.
func (m *command) collect(ctx context.Context, a *app.App, cl *client.Client, ref string, r v1.Exec, as output.Format) error {
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	r.MaxOutputBytes = nil // it is held in memory here
	var stdout, stderr []byte
	outcome, err := attended(ctx, a, m.runner(a, cl, ref), r, func(f client.Frame) error {
		if f.Stderr {
			stderr = append(stderr, f.Data...)
		} else {
			stdout = append(stdout, f.Data...)
		}
		return nil
	})
	if err != nil {
		return exit.Own(err)
	}
	out := v1.ExecResult{ExecOutcome: *outcome}
	out.Stdout, out.StdoutBase64 = readable(stdout)
	out.Stderr, out.StderrBase64 = readable(stderr)
	var all any = out
	if m.state != nil {
		all = v1.ShellExecResult{ExecResult: out, Shell: *m.state}
	}
	if err := output.Data(a.Stdout, as, all); err != nil {
		return exit.Own(err)
	}
	if out.ExitCode == nil {
		return nil
	}
	return exit.Passing(*out.ExitCode)
}

// runner runs a command by its events, and tells which process it is.
type runner func(ctx context.Context, r v1.Exec, started func(*client.Process), fn func(client.Frame) error) (*v1.ExecOutcome, error)

// runner is how the command is run: by itself, or in a shell.
func (m *command) runner(a *app.App, cl *client.Client, ref string) runner {
	if m.in == "" {
		return func(ctx context.Context, r v1.Exec, started func(*client.Process), fn func(client.Frame) error) (*v1.ExecOutcome, error) {
			return m.fed(ctx, a, started, func(ctx context.Context, started func(*client.Process)) (*v1.ExecOutcome, error) {
				return cl.ExecStarted(ctx, ref, r, started, fn)
			})
		}
	}
	s := cl.OpenShell(ref, m.in)
	return func(ctx context.Context, r v1.Exec, started func(*client.Process), fn func(client.Frame) error) (*v1.ExecOutcome, error) {
		out, err := s.ExecStarted(ctx, r, func(id string) { started(cl.OpenProcess(ref, id)) }, fn)
		if err != nil {
			return nil, err
		}
		if out.Shell.Restarted != "" {
			a.Warn("what earlier commands had left in the shell %s was gone: %s", m.in, out.Shell.Restarted)
		}
		m.state = &out.Shell
		return &out.ExecOutcome, nil
	}
}

// readable returns bytes as text, and in base64 as well where they are no text.
func readable(data []byte) (text, exact string) {
	if utf8.Valid(data) {
		return string(data), ""
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), base64.StdEncoding.EncodeToString(data)
}

// ended says what the status alone does not tell, and passes the status on. Output that is
// not all there must not look like a success, nor like what the command itself says by its
// status ("no such line", of grep).
func ended(a *app.App, m *command, out *v1.ExecOutcome, came [2]int64) error {
	if out.Cause != "" {
		a.Warn("the command was ended: %s", because(out.Cause, out.CauseDetail, signaledBy(out.SignaledBy, out.SignaledWith)))
	}
	if out.ExitCode == nil {
		return exit.Own(fault.New(fault.Unavailable, "the command goes on as process %s", out.ProcessID))
	}
	if *out.ExitCode == 127 && len(m.argv) == 1 && strings.ContainsAny(m.argv[0], " \t|&;<>") {
		fmt.Fprintln(a.Stderr, "→ a command is a program and its arguments; for shell text use -c")
	}
	if cut := cutOff(out, came); cut != "" {
		return exit.Own(fault.New(fault.TooLarge, "not all output is here: %s; the command itself ended with %d", cut, *out.ExitCode).
			WithRemedy("write it to a file in the sandbox, and copy that out with sandpit cp"))
	}
	return exit.Passing(*out.ExitCode)
}

// cutOff says which output of a command was not handed on whole; empty: all was.
func cutOff(out *v1.ExecOutcome, came [2]int64) string {
	var cut []string
	if out.StdoutTruncated {
		cut = append(cut, fmt.Sprintf("standard output had %d bytes, of which %d came", max(out.StdoutBytes, came[0]), came[0]))
	}
	if out.StderrTruncated {
		cut = append(cut, fmt.Sprintf("standard error had %d bytes, of which %d came", max(out.StderrBytes, came[1]), came[1]))
	}
	return strings.Join(cut, ", ")
}

func because(cause, detail, signaled string) string {
	if signaled != "" {
		cause += ", " + signaled
	}
	if detail == "" {
		return cause
	}
	return cause + " (" + detail + ")"
}

// fed runs a command with m.input for its standard input. An input that cannot be read, or
// not be handed on, ends the command: it would wait for the rest, or take a part for all.
func (m *command) fed(ctx context.Context, a *app.App, started func(*client.Process), run func(context.Context, func(*client.Process)) (*v1.ExecOutcome, error)) (*v1.ExecOutcome, error) {
	if m.input == nil {
		return run(ctx, started)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun *client.Process
	out, err := run(ctx, func(p *client.Process) {
		begun = p
		started(p)
		// It stays in its last read when the command has ended, which is right before our
		// own end: a read of a terminal or a pipe cannot be called back.
		go func() {
			if err := input.Feed(ctx, p, m.input); err != nil {
				cancel(inputFailed{err})
			}
		}()
	})
	if failed, ok := errors.AsType[inputFailed](context.Cause(ctx)); ok && err != nil {
		kill(ctx, a, begun)
		return nil, failed.error
	}
	return out, err
}

// inputFailed is the cause of a context that ends for want of input.
type inputFailed struct{ error }

// killBound is how long the kill after an interrupt may take.
const killBound = 10 * time.Second

// attended runs a command, which an interrupt kills: its error is that of the
// interruption then. Until the server has told which process it is, an interrupt
// waits, so that nothing is left behind.
func attended(ctx context.Context, a *app.App, run runner, r v1.Exec, fn func(client.Frame) error) (*v1.ExecOutcome, error) {
	steady, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var p *client.Process
	known, over := make(chan struct{}), make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		defer cancel()
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		t := time.NewTimer(killBound)
		defer t.Stop()
		select {
		case <-over:
		case <-known:
			kill(ctx, a, p)
		case <-t.C:
			a.Warn("the command may go on: the server does not say which process it is")
		}
	})
	out, err := run(steady, r, func(q *client.Process) {
		if p == nil {
			p = q
			close(known)
		}
	}, fn)
	close(over)
	watch.Wait()
	if p != nil && interrupt.PipeBroken(err) {
		kill(ctx, a, p)
	}
	if ctx.Err() != nil {
		return nil, interrupt.Ended(ctx, ctx.Err())
	}
	return out, err
}

// kill ends a command, whether or not ctx is over.
func kill(ctx context.Context, a *app.App, p *client.Process) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killBound)
	defer cancel()
	if err := p.Kill(ctx); err != nil {
		a.Warn("the command may go on as process %s: %s", p.ID(), output.Whole(err))
	}
}
