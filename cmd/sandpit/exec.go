// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newExec(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "exec [flags] SANDBOX [--] CMD [ARG]... | exec [flags] SANDBOX -c TEXT",
		Short: "Run a command in a sandbox",
		Long: `Run a command in a sandbox, with its output as it comes and its exit status as ours.

CMD and its arguments are run as they are, without a shell; -c takes shell text, as sh -c does.
Flags may stand before SANDBOX or between it and CMD; all after CMD is CMD's own.

Standard input is given to the command, as it comes, if it is a pipe or a file, and with -i whatever it
is; --no-stdin leaves it alone, in a loop that reads a file, say. A stopped sandbox is started, unless somebody stopped it on purpose.

With --detach it is not waited for: its process id is printed, for sandpit ps, logs, attach and kill. It
goes on whatever becomes of us, of the connection and of the server, without a time limit unless --timeout
gives one. Its standard input is empty, or with -i left open for sandpit attach.

With --name it has a name, which no other process of the sandbox has that runs, and sandpit logs, attach, wait
and kill take name:NAME for it, as they take pid:N for its number inside; with --label sandpit ps finds it. With --merge-output its standard
error goes the way of its standard output, so that their order is its own.

With --shell it runs in a named shell, which is made if it is not there: what it leaves behind (directory,
variables, functions, background jobs) the next command in that shell finds. A CMD without ARG is shell text then, and standard input is read to
its end first, 1 MiB at most.

Ctrl-C kills the command, with all that it started, and exits with 130. If the connection breaks, or the
server is started again, the command goes on, and so do we; see sandpit activity if no server comes back. A failure of sandpit's own exits with 125, and so does a
command of whose output not all came: it waits while its output is not read, but for a connection that is lost only about
a minute. What is kept of it for sandpit logs is the end, from 128 MiB on. With -o json 1 MiB of each stream is handed on; the result says so, and the status is the command's.`,
		Example: `  sandpit exec web python main.py --verbose
  sandpit exec web -c 'ls *.csv | wc -l'
  sandpit exec web -u root -- apt-get --version
  tail -f app.log | sandpit exec web grep ERROR
  sandpit exec -it web python
  sandpit exec --detach web -- npm run dev
  sandpit exec -d --name dev --label kind=server web -- npm run dev
  sandpit exec --shell main web 'cd app && export DEBUG=1'`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.CompleteFirst,
		Args:                  cobra.ArbitraryArgs,
	}
	m := commandFlags(a, c, true)
	_ = c.RegisterFlagCompletionFunc("cwd", a.CompleteDirectory)
	m.mark(c.Flags())
	detach := c.Flags().BoolP("detach", "d", false, "print the process id and do not wait for the command")
	c.Flags().StringVar(&m.in, "shell", "", "run it in the shell of this `NAME`, which keeps what it leaves behind")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ref, words, err := refThenWords(c, args)
		if err != nil {
			return err
		}
		if err := m.check(words); err != nil {
			return err
		}
		cl, err := a.Client()
		if err != nil {
			return exit.Own(err)
		}
		if m.in != "" && (*detach || m.tty || m.image || m.cwd != "") {
			return exit.Misuse(c, "--shell runs a command in a shell, which has a directory of its own, and no terminal; it goes with none of --detach, --tty, --image-command and --cwd")
		}
		if m.in != "" && len(m.argv) == 1 {
			m.shell, m.argv = m.argv[0], nil
		}
		if *detach {
			return m.detach(c.Context(), a, cl, ref, *out)
		}
		if m.tty && (m.merge || m.name != "" || len(m.labels) > 0) {
			return exit.Misuse(c, "--name, --label and --merge-output are not for a command at our own terminal; with --detach it may have a name and labels")
		}
		if m.tty {
			return atTerminal(c.Context(), a, cl, ref, m)
		}
		r, err := m.request(a)
		if err != nil {
			return exit.Own(err)
		}
		if out.IsData() {
			return m.collect(c.Context(), a, cl, ref, r, *out)
		}
		return m.stream(c.Context(), a, cl, ref, r)
	}
	return c
}

// detach starts a command, and says by which id it is found again.
func (m *command) detach(ctx context.Context, a *app.App, cl *client.Client, ref string, out output.Format) error {
	r := v1.StartProcess{Env: m.env.Value(), TimeoutSeconds: m.timeout.ExactSeconds(), Argv: m.argv, Labels: m.labels.Value()}
	if m.merge {
		r.MergeOutput = &m.merge
	}
	if m.shell != "" {
		r.Command = &m.shell
	}
	if m.image {
		r.ImageCommand = &m.image
	}
	f := m.c.Flags()
	r.Cwd, r.User, r.Name = flags.Given(f, "cwd", m.cwd), flags.Given(f, "user", m.user), flags.Given(f, "name", m.name)
	if m.stdin {
		r.StreamStdin = new(true)
	}
	if m.tty {
		r.Tty = new(true)
	}
	p, err := cl.StartProcess(ctx, ref, r)
	if err != nil {
		return exit.Own(err)
	}
	if !out.IsData() {
		_, err := fmt.Fprintln(a.Stdout, output.Printable(p.ID()))
		return exit.Own(err)
	}
	rec, err := p.Get(ctx)
	if err != nil {
		return exit.Own(err)
	}
	return exit.Own(output.Data(a.Stdout, out, rec))
}

// refThenWords splits off SANDBOX, and reads flags that stand after it.
func refThenWords(c *cobra.Command, args []string) (ref string, words []string, err error) {
	if len(args) == 0 {
		return "", nil, exit.Misuse(c, "there is no sandbox named; the usage is: %s", c.UseLine())
	}
	ref, words = args[0], args[1:]
	if len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		if err := c.Flags().Parse(words); err != nil {
			return "", nil, app.FlagMistake(c, err)
		}
		if asked, err := c.Flags().GetBool("help"); err == nil && asked {
			return "", nil, exit.Misuse(c, "flags that ask for help stand before SANDBOX")
		}
		words = c.Flags().Args()
	}
	return ref, words, nil
}
