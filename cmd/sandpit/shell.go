// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/terminal"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func newShell(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "shell [flags] SANDBOX",
		Short: "Open a terminal in a sandbox",
		Long: `Open a terminal in a sandbox, with a login shell or what -c says. The exit status is the shell's.

Every key is the shell's, but for Ctrl-P Ctrl-Q: they leave the terminal as it is, to be joined again by
--attach, also by several at once; sandpit ps shows it. A connection that breaks, and a server that is
restarted, are got over: it is joined again by itself. If we are ended by a signal, the terminal is hung up on.

Where standard input and output are no terminal, the shell has none either: it reads its commands from
standard input, as ssh does it.`,
		Example: `  sandpit shell web
  sandpit shell -u root web
  sandpit shell --attach p1q2r3s4t5u6v7w8 web
  echo 'pip list | wc -l' | sandpit shell web`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	m := &command{c: c, tty: true, env: new(flags.Variables)}
	f := c.Flags()
	f.StringVarP(&m.shell, "command", "c", "", "run this shell text instead of a login shell")
	f.StringVarP(&m.cwd, "cwd", "w", "", "working directory (default /workspace, as root /root)")
	f.StringVarP(&m.user, "user", "u", "", "an account of the sandbox, a name or a number (default its own user)")
	_ = c.RegisterFlagCompletionFunc("cwd", a.CompleteDirectory)
	join := f.String("attach", "", "join the terminal of this process")
	keys := f.String("detach-keys", "ctrl-p,ctrl-q", "keys that leave the terminal as it is; empty: none")
	_ = c.RegisterFlagCompletionFunc("user", cobra.FixedCompletions([]string{"sandbox", "root"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		leave, err := terminal.ParseDetachKeys(*keys)
		if err != nil {
			return exit.Misuse(c, "%s", fault.As(err).Message)
		}
		if *join != "" && (m.shell != "" || m.cwd != "" || m.user != "") {
			return exit.Misuse(c, "--attach joins what runs already, and has no use for -c, --cwd or --user")
		}
		cl, err := a.Client()
		if err != nil {
			return exit.Own(err)
		}
		if *join != "" {
			p, err := openProcess(c.Context(), cl, args[0], *join)
			if err != nil {
				return exit.Own(err)
			}
			return joinTerminal(c.Context(), a, p, leave)
		}
		if _, _, ok := bothTerminals(a); !ok {
			return atPipes(c.Context(), a, cl, args[0], m)
		}
		m.leave = leave
		return atTerminal(c.Context(), a, cl, args[0], m)
	}
	return c
}

// bothTerminals returns our terminal as it is seen and as it is typed on.
func bothTerminals(a *app.App) (screen, keys *os.File, ok bool) {
	screen, seen := terminal.Of(a.Stdout)
	keys, typed := terminal.Of(a.Stdin)
	return screen, keys, seen && typed
}

// atTerminal runs a command at a terminal in the sandbox and joins it with ours.
func atTerminal(ctx context.Context, a *app.App, cl *client.Client, ref string, m *command) error {
	screen, keys, ok := bothTerminals(a)
	if !ok {
		return exit.Own(fault.New(fault.Unsupported, "there is no terminal here: standard input and output have to be one").
			WithRemedy("for a program's output without a terminal use: sandpit exec %s CMD", ref))
	}
	cols, rows := terminal.Size(screen)
	r := m.started()
	r.Tty, r.Cols, r.Rows = new(true), &cols, &rows
	if kind := a.Getenv("TERM"); kind != "" {
		r.Term = &kind
	}
	p, err := startOurs(ctx, a, cl, ref, r)
	if err != nil {
		return exit.Own(err)
	}
	at := &attached{App: a, process: p, tty: true, keys: keys, leave: m.leave, hangUp: true}
	return at.run(ctx)
}

// atPipes runs a command without a terminal, with our standard streams for its own.
func atPipes(ctx context.Context, a *app.App, cl *client.Client, ref string, m *command) error {
	r := m.started()
	r.StreamStdin, r.MaxOutputBytes = new(true), new(int64(maxOutput))
	p, err := startOurs(ctx, a, cl, ref, r)
	if err != nil {
		return exit.Own(err)
	}
	at := &attached{App: a, process: p, keys: a.Stdin, hangUp: true}
	return at.run(ctx)
}

// startOurs starts a process that ends with us. An interrupt waits until the server has told which
// process it is, and kills that.
func startOurs(ctx context.Context, a *app.App, cl *client.Client, ref string, r v1.StartProcess) (*client.Process, error) {
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	steady, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		a.Warn("interrupted: it is ended as soon as the server says which process it is")
		time.AfterFunc(killBound, cancel)
	})()
	p, err := cl.StartProcess(steady, ref, r)
	if ctx.Err() == nil {
		return p, err
	}
	if err == nil {
		kill(ctx, a, p)
	}
	return nil, interrupt.Ended(ctx, ctx.Err())
}

// recentScreen is how many bytes of what a terminal has shown are shown again.
const recentScreen = 64 << 10

// joinTerminal joins a terminal that others have left.
func joinTerminal(ctx context.Context, a *app.App, p *client.Process, leave []byte) error {
	rec, err := p.Get(ctx)
	if err != nil {
		return exit.Own(err)
	}
	if !rec.Tty {
		return exit.Own(fault.New(fault.State, "the process %s has no terminal", rec.ProcessID).
			WithRemedy("use sandpit attach"))
	}
	at := &attached{App: a, process: p, tty: true, recent: recentScreen, keys: a.Stdin, leave: leave}
	return at.run(ctx)
}

// started is the command as a process of its own; without words, a login shell.
func (m *command) started() v1.StartProcess {
	f := m.c.Flags()
	r := v1.StartProcess{
		Argv: m.argv, Env: m.env.Value(), Cwd: flags.Given(f, "cwd", m.cwd), User: flags.Given(f, "user", m.user),
		TimeoutSeconds: m.timeout.ExactSeconds(),
	}
	switch {
	case m.shell != "":
		r.Command = &m.shell
	case m.image:
		r.ImageCommand = &m.image
	case len(m.argv) == 0:
		r.Command = new(sandbox.LoginShell)
	}
	return r
}
