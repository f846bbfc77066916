// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

// Bounds of a command that is run from here.
const (
	smallStdin = 64 << 10 // of a file: what goes with a command, to spare requests
	shellStdin = 1 << 20  // what the server takes with a command in a shell
	maxOutput  = 64 << 20 // what it hands on of each stream
)

// command holds the flags and the words of one command.
type command struct {
	c       *cobra.Command
	shell   string
	cwd     string
	env     *variables // with run: the sandbox's, so none: the sandbox's
	user    string
	timeout period
	stdin   bool
	noStdin bool
	input   io.Reader // of the command, while it runs; nil: none
	tty     bool
	leave   []byte // the detach keys; nil: the default
	in      string // the name of the shell that it runs in; empty: none
	state   *v1.ShellState
	argv    []string
}

func (a *app) commandFlags(c *cobra.Command, withEnv bool) *command {
	m := &command{c: c, env: new(variables)}
	f := c.Flags()
	f.StringVarP(&m.shell, "command", "c", "", "run this shell text instead of CMD")
	f.StringVarP(&m.cwd, "cwd", "w", "", "working directory (default /workspace, as root /root)")
	f.StringVarP(&m.user, "user", "u", "", "sandbox (the default) or root")
	f.Var(&m.timeout, "timeout", "kill it after this long")
	f.BoolVarP(&m.stdin, "interactive", "i", false, "give it standard input, whatever it is")
	f.BoolVarP(&m.noStdin, "no-stdin", "n", false, "leave standard input alone, also if it is a pipe or a file")
	f.BoolVarP(&m.tty, "tty", "t", false, "run it at a terminal, as sandpit shell does")
	if withEnv {
		m.env = a.envFlags(f, "environment variable of this command")
	}
	f.SetInterspersed(false) // what follows CMD is CMD's
	_ = c.RegisterFlagCompletionFunc("user", cobra.FixedCompletions([]string{"sandbox", "root"}, cobra.ShellCompDirectiveNoFileComp))
	return m
}

// check takes the words of the command, and refuses what makes no sense.
func (m *command) check(words []string) error {
	m.argv = words
	switch {
	case m.shell != "" && len(words) > 0:
		return misuse(m.c, "both -c and a command are given: %s", strings.Join(words, " "))
	case m.shell == "" && len(words) == 0:
		return misuse(m.c, "there is no command to run; the usage is: %s", m.c.UseLine())
	case m.stdin && m.noStdin:
		return misuse(m.c, "--interactive and --no-stdin contradict each other")
	case m.tty && m.timeout.given:
		return misuse(m.c, "a command at a terminal has no --timeout")
	}
	return nil
}

// request makes the request. Standard input goes with it where it is a small file; else it is
// the command's while it runs, see fed.
func (m *command) request(a *app) (v1.Exec, error) {
	r := v1.Exec{Env: m.env.value(), TimeoutSeconds: m.timeout.exactSeconds(), MaxOutputBytes: new(int64(maxOutput))}
	if m.shell != "" {
		r.Command = &m.shell
	} else {
		r.Argv = m.argv
	}
	f := m.c.Flags()
	r.Cwd, r.User = given(f, "cwd", m.cwd), given(f, "user", m.user)
	if m.tty || !m.stdin && (m.noStdin || !piped(a.stdin)) { // of a terminal the keys are handed on
		return r, nil
	}
	most := smallStdin
	if m.in != "" {
		most = shellStdin
	} else if !regular(a.stdin) {
		m.input, r.StreamStdin = a.stdin, new(true)
		return r, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.stdin, int64(most)+1))
	switch {
	case err != nil:
		return r, unreadable(err)
	case len(data) > most && m.in != "":
		return r, fault.New(fault.TooLarge, "standard input has more than the %d bytes that a command in a shell takes", most).
			WithRemedy("copy it into the sandbox (sandpit cp - SANDBOX:PATH) and have the command read it there, or leave out --shell")
	case len(data) > most:
		m.input, r.StreamStdin = io.MultiReader(bytes.NewReader(data), a.stdin), new(true)
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

func unreadable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "standard input cannot be read")
}

// stream runs a command and hands on its output and its status.
func (m *command) stream(ctx context.Context, a *app, cl *client.Client, ref string, r v1.Exec) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	out, err := a.attended(ctx, m.runner(a, cl, ref), r, func(f client.Frame) error {
		w := a.stdout
		if f.Stderr {
			w = a.stderr
		}
		_, err := w.Write(f.Data)
		return err
	})
	switch {
	case pipeBroken(err): // nobody reads us, and the signal is on its way
		return &exit{status: interruption{syscall.SIGPIPE}.status()}
	case err != nil:
		return own(err)
	}
	return a.ended(m, out)
}

// collect runs a command and prints its result as JSON.
func (m *command) collect(ctx context.Context, a *app, cl *client.Client, ref string, r v1.Exec) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	r.MaxOutputBytes = nil // it is held in memory here
	var stdout, stderr []byte
	outcome, err := a.attended(ctx, m.runner(a, cl, ref), r, func(f client.Frame) error {
		if f.Stderr {
			stderr = append(stderr, f.Data...)
		} else {
			stdout = append(stdout, f.Data...)
		}
		return nil
	})
	if err != nil {
		return own(err)
	}
	out := v1.ExecResult{ExecOutcome: *outcome}
	out.Stdout, out.StdoutBase64 = readable(stdout)
	out.Stderr, out.StderrBase64 = readable(stderr)
	var all any = out
	if m.state != nil {
		all = v1.ShellExecResult{ExecResult: out, Shell: *m.state}
	}
	if err := writeJSON(a.stdout, all); err != nil {
		return own(err)
	}
	if out.ExitCode == nil {
		return nil
	}
	return passing(*out.ExitCode)
}

// runner runs a command by its events, and tells which process it is.
type runner func(ctx context.Context, r v1.Exec, started func(*client.Process), fn func(client.Frame) error) (*v1.ExecOutcome, error)

// runner is how the command is run: by itself, or in a shell.
func (m *command) runner(a *app, cl *client.Client, ref string) runner {
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
			a.warn("what earlier commands had left in the shell %s was gone: %s", m.in, out.Shell.Restarted)
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
func (a *app) ended(m *command, out *v1.ExecOutcome) error {
	if out.Cause != "" {
		a.warn("the command was ended: %s", because(out.Cause, out.CauseDetail))
	}
	if out.ExitCode == nil {
		return own(fault.New(fault.Unavailable, "the command goes on as process %s", out.ProcessID))
	}
	if *out.ExitCode == 127 && len(m.argv) == 1 && strings.ContainsAny(m.argv[0], " \t|&;<>") {
		fmt.Fprintln(a.stderr, "→ a command is a program and its arguments; for shell text use -c")
	}
	if cut := cutOff(out); cut != "" {
		return own(fault.New(fault.TooLarge, "not all output is here: %s; the command itself ended with %d", cut, *out.ExitCode).
			WithRemedy("write it to a file in the sandbox, and copy that out with sandpit cp"))
	}
	return passing(*out.ExitCode)
}

// cutOff says which output of a command was not handed on whole; empty: all was.
func cutOff(out *v1.ExecOutcome) string {
	var cut []string
	if out.StdoutTruncated {
		cut = append(cut, fmt.Sprintf("standard output had %d bytes", out.StdoutBytes))
	}
	if out.StderrTruncated {
		cut = append(cut, fmt.Sprintf("standard error had %d bytes", out.StderrBytes))
	}
	if cut == nil {
		return ""
	}
	return strings.Join(cut, ", ") + fmt.Sprintf(", of which %d MiB are kept at most", maxOutput>>20)
}

func because(cause, detail string) string {
	if detail == "" {
		return cause
	}
	return cause + " (" + detail + ")"
}
