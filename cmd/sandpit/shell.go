// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func newShell(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "shell [flags] SANDBOX",
		Short: "Open a terminal in a sandbox",
		Long: `Open a terminal in a sandbox, with a login shell or what -c says. The exit status is the shell's.
Its end is the end of what runs in it in the foreground; files stay, of course.`,
		Example: `  sandpit shell web
  sandpit shell -u root web`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeFirst,
	}
	m := &command{c: c, tty: true}
	f := c.Flags()
	f.StringVarP(&m.shell, "shell", "c", "", "run this shell text instead of a login shell")
	f.StringVarP(&m.cwd, "cwd", "w", "", "working directory (default /workspace)")
	f.StringVarP(&m.user, "user", "u", "", "sandbox (the default) or root")
	_ = c.RegisterFlagCompletionFunc("user", cobra.FixedCompletions([]string{"sandbox", "root"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return own(err)
		}
		return a.atTerminal(c.Context(), cl, args[0], m)
	}
	return c
}

// atTerminal runs a command at a terminal in the sandbox and joins it with ours.
func (a *app) atTerminal(ctx context.Context, cl *client.Client, ref string, m *command) error {
	screen, seen := terminal(a.stdout)
	keys, typed := terminal(a.stdin)
	if !seen || !typed {
		return own(fault.New(fault.Unsupported, "there is no terminal here: standard input and output have to be one").
			WithRemedy("for a program's output without a terminal use: sandpit exec %s CMD", ref))
	}
	cols, rows := size(screen)
	t, err := cl.Terminal(ctx, ref, client.TerminalOptions{
		Command: m.text(), Cols: cols, Rows: rows, Term: a.getenv("TERM"), User: m.user, Cwd: m.cwd,
	})
	if err != nil {
		return own(err)
	}
	defer t.Close()

	was, err := term.MakeRaw(int(keys.Fd()))
	if err != nil {
		return own(fault.Wrap(fault.Unavailable, err, "the terminal cannot be made raw"))
	}
	restore := func() { _ = term.Restore(int(keys.Fd()), was) } // of a terminal that went away: nothing to do
	defer restore()

	// Keys come as bytes, Ctrl-C too. What comes as a signal is somebody else's
	// wish that we end.
	got := make(chan os.Signal, 4)
	signal.Notify(got, syscall.SIGWINCH, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(got)
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(screen, t)
		done <- err
	}()
	// This goroutine stays in its last read until the process ends, which is
	// right after: a read of a terminal cannot be called back.
	go func() { _, _ = io.Copy(t, keys) }() // an error shows at the other end too

	for {
		select {
		case err := <-done:
			restore()
			if err != nil {
				return own(err)
			}
			out, err := t.Wait()
			if err != nil {
				return own(err)
			}
			if out.Cause != "" {
				a.warn("the terminal was ended: %s", because(out.Cause, out.CauseDetail))
			}
			return passing(out.ExitCode)
		case s := <-got:
			if s == syscall.SIGWINCH {
				if c, r := size(screen); t.Resize(c, r) != nil {
					continue // the connection broke, and done will say so
				}
				continue
			}
			restore()
			return &exit{status: interruption{s}.status()}
		}
	}
}

// size is a terminal's, within what the server takes.
func size(f *os.File) (cols, rows int) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || cols == 0 || rows == 0 {
		return 80, 24
	}
	return min(cols, 1000), min(rows, 1000)
}

// loginShell is bash where there is one. A shell whose exec fails ends, so it is
// looked for first; and its standard error is the terminal, or it would not be
// interactive.
const loginShell = "if command -v bash >/dev/null; then exec bash -l; fi; exec sh -l"

// text is a command as shell text, the only form in which a terminal takes it.
func (m *command) text() string {
	var words []string
	for _, name := range sortedNames(m.env) {
		words = append(words, quote(name+"="+m.env[name]))
	}
	switch {
	case m.shell != "" && len(words) > 0:
		return "export " + strings.Join(words, " ") + "\n" + m.shell
	case m.shell != "":
		return m.shell
	case len(m.argv) == 0:
		return loginShell
	}
	begin := []string{"exec"}
	if len(words) > 0 {
		begin = append(begin, "env")
	}
	for _, w := range m.argv {
		words = append(words, quote(w))
	}
	return strings.Join(append(begin, words...), " ")
}

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// quote makes one word of shell text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
