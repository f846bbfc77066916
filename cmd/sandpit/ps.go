// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

func newPs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "ps [flags] SANDBOX",
		Short: "List a sandbox's processes",
		Long: `List a sandbox's processes, the newest first: those that run, or with -a also those that ended and are
remembered. A process here is a command that was started from outside, with all that it started.`,
		Example: `  sandpit ps web
  sandpit ps --label kind=server web
  sandpit ps -a -o json web`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Misuse(c, "no sandbox is named, whose processes to list: sandpit ps SANDBOX; sandpit ls lists the sandboxes")
			}
			return app.Takes(1, 1)(c, args)
		},
		ValidArgsFunction: a.CompleteFirst,
	}
	all := c.Flags().BoolP("all", "a", false, "also those that have ended")
	labels := flags.Pairs{}
	c.Flags().Var(labels, "label", "only those with this label; may be given again")
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		found, err := output.Collect(cl.ListProcesses(c.Context(), args[0], client.ProcessQuery{Running: !*all, Newest: true, Labels: labels.Value()}))
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, found, func(p *v1.Process) string { return p.ProcessID }, output.Columns[*v1.Process]{
			Head: []string{"PROCESS", "PID", "STATUS", "USER", "STARTED", "NAME", "COMMAND"},
			Row: func(p *v1.Process, now time.Time) []string {
				return []string{p.ProcessID, strconv.Itoa(p.PID), statusOf(p), p.User, output.Ago(now, &p.StartedAt), p.Name, shortCommand(p)}
			},
		})
	}
	return c
}

// statusOf is how a process is, in a few words.
func statusOf(p *v1.Process) string {
	if p.ExitCode == nil {
		return p.Status
	}
	why := p.Cause
	if by := signaledBy(p.SignaledBy, p.SignaledWith); by != "" {
		why = strings.TrimPrefix(why+", "+by, ", ")
	}
	if why != "" {
		why = " (" + why + ")"
	}
	return fmt.Sprintf("exited %d%s", *p.ExitCode, why)
}

// signaledBy is who sent a process which signal, where that was not the server.
func signaledBy(by, with string) string {
	if by == "" || by == bySystem {
		return ""
	}
	return with + " by " + output.Printable(by)
}

// bySystem is the actor of what the server does by itself.
const bySystem = "system"

// shortCommand is what a line of a table has room for.
func shortCommand(p *v1.Process) string {
	const most = 60
	text := p.Command
	if len(p.Argv) > 0 {
		text = strings.Join(p.Argv, " ")
	}
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// completeProcess completes the name of a sandbox, then ids of its processes.
func completeProcess(a *app.App, c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.CompleteFirst(c, args, typed)
	}
	cl, err := a.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), app.CompleteTimeout)
	defer cancel()
	ids := []string{lastProcess}
	for p, err := range cl.ListProcesses(ctx, args[0], client.ProcessQuery{Newest: true}) {
		if err != nil || len(ids) > 100 {
			break
		}
		ids = append(ids, p.ProcessID)
		if p.Name != "" && p.Status == "running" {
			ids = append(ids, byName+p.Name)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// lastProcess is the word for the process of a sandbox that was started last.
const lastProcess = "last"

// What stands before a process's name, and before its number inside.
const (
	byName   = "name:"
	byNumber = "pid:"
)

// processIDLength is that of a whole id.
const processIDLength = 16

// openProcess finds the process that is named by its id, by the beginning of it if no other has that,
// by its name, by its number inside, or by lastProcess.
func openProcess(ctx context.Context, cl *client.Client, ref, name string) (*client.Process, error) {
	if len(name) >= processIDLength && !strings.Contains(name, ":") {
		return cl.OpenProcess(ref, name), nil
	}
	if strings.HasPrefix(name, byName) || strings.HasPrefix(name, byNumber) {
		rec, err := cl.Process(ctx, ref, name) // its name may be another's by the next request
		if err != nil {
			return nil, err
		}
		return cl.OpenProcess(ref, rec.ProcessID), nil
	}
	var begin []string
	for p, err := range cl.ListProcesses(ctx, ref, client.ProcessQuery{Newest: true}) {
		switch {
		case err != nil:
			return nil, err
		case name == lastProcess:
			return cl.OpenProcess(ref, p.ProcessID), nil
		case strings.HasPrefix(p.ProcessID, name):
			begin = append(begin, p.ProcessID)
		}
	}
	switch {
	case name == lastProcess:
		return nil, fault.New(fault.NotFound, "the sandbox %s has no process yet", ref).WithRemedy("start one: sandpit exec --detach %s -- CMD", ref)
	case len(begin) > 1:
		return nil, fault.New(fault.Invalid, "%q is not a valid process: %s and %s begin with it", name, begin[0], begin[1]).
			WithRemedy("write more of its id; sandpit ps -a %s lists all", ref)
	case len(begin) == 1:
		return cl.OpenProcess(ref, begin[0]), nil
	}
	return nil, fault.New(fault.NotFound, "no process of the sandbox %s has an id that begins with %q", ref, name).
		WithRemedy("sandpit ps -a %s lists all; last is the one that was started last", ref)
}

func newWait(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "wait [flags] SANDBOX PROCESS...",
		Short: "Wait until processes of a sandbox have ended, and print their statuses",
		Long: `Wait until processes of a sandbox have ended, and print the status of each on a line, in the order of the
arguments. A PROCESS is an id, the beginning of one, name:NAME, pid:N (its number inside), or last. Our own status is 0 whatever theirs are.`,
		Example: `  sandpit exec --detach web -- make test
  sandpit wait web last`,
		Args: app.Takes(2, -1),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeProcess(a, c, args, typed)
		},
	}
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		var waited []*client.Process // all are found before one is waited for: last may be another then
		for _, name := range args[1:] {
			p, err := openProcess(ctx, cl, args[0], name)
			if err != nil {
				return interrupt.Ended(ctx, err)
			}
			waited = append(waited, p)
		}
		ended := []*v1.Process{}
		for _, p := range waited {
			rec, err := p.Wait(ctx)
			if err != nil {
				return interrupt.Ended(ctx, err)
			}
			if ended = append(ended, rec); !out.IsData() {
				status := "-" // it is not known
				if rec.ExitCode != nil {
					status = strconv.Itoa(*rec.ExitCode)
				}
				if _, err := fmt.Fprintln(a.Stdout, status); err != nil {
					return err
				}
			}
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, ended)
		}
		return nil
	}
	return c
}

func newKill(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "kill [flags] SANDBOX {PROCESS... | --all}",
		Short: "Kill processes of a sandbox, or send them a signal",
		Long: `Kill processes of a sandbox with all that they started, and wait until nothing of them is left; or with -s
send them a signal. Killing what has ended is no failure; a signal to it is one.
A PROCESS is an id, the beginning of one, name:NAME, pid:N (its number inside), or last.

With --all everything that runs in the sandbox is killed, also what commands that have ended left running.
Its files stay. It works where no more process can be started, as after a fork bomb.`,
		Example: `  sandpit kill web p1q2r3s4t5u6v7w8
  sandpit kill --all web
  sandpit kill -s INT web $(sandpit ps -q web)`,
		Args: app.Takes(1, -1),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeProcess(a, c, args, typed)
		},
	}
	all := c.Flags().Bool("all", false, "kill all that runs in the sandbox")
	signal := c.Flags().StringP("signal", "s", "", "send this signal instead, by name or number")
	tree := c.Flags().Bool("tree", false, "with -s: to all that they started as well")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case *all && (len(args) > 1 || *signal != ""):
			return exit.Misuse(c, "--all kills all that runs in the sandbox; give no process and no signal with it")
		case !*all && len(args) < 2:
			return exit.Misuse(c, "no process is named; sandpit ps %[1]s lists them, --all kills all that runs there, and sandpit stop %[1]s stops the sandbox itself", args[0])
		}
		if *tree && *signal == "" {
			return exit.Misuse(c, "--tree is for --signal; a kill always reaches all that a process started")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		if *all {
			return cl.KillAll(c.Context(), args[0])
		}
		var last error
		for _, id := range args[1:] {
			p, err := openProcess(c.Context(), cl, args[0], id)
			switch {
			case err != nil:
			case *signal != "":
				err = p.Signal(c.Context(), *signal, *tree)
			default:
				err = p.Kill(c.Context())
			}
			if err != nil && last != nil {
				a.Say(last)
			}
			if err != nil {
				last = err
			}
		}
		return last
	}
	return c
}
