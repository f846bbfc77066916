// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newContext(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "context",
		Aliases: []string{"contexts"},
		Short:   "Make, list, interrupt, restart and end contexts of code",
		Long: `Make, list, interrupt, restart and end contexts of code: what sandpit code runs in, and what keeps its
variables. Each language has one that is made when it is first used; more of them keep work apart.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(
		newContextCreate(a), newContextLs(a),
		newContextVerb(a, "interrupt", "Interrupt the code that runs in contexts; their variables stay", (*client.Client).InterruptContext),
		newContextVerb(a, "restart", "Begin contexts anew: their variables are gone, and all that they had started",
			func(cl *client.Client, ctx context.Context, ref, id string) error {
				_, err := cl.RestartContext(ctx, ref, id)
				return err
			}),
		newContextVerb(a, "rm", "End contexts with all that they had started", (*client.Client).DeleteContext),
	)
	return c
}

func newContextCreate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "create [flags] SANDBOX",
		Short: "Make a context of code and print its id",
		Example: `  sandpit context create web -l python
  sandpit code web --context "$(sandpit context create web)" -c 'x = 1'`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	var language, cwd, user string
	f := c.Flags()
	f.StringVarP(&language, "language", "l", "python", "python, javascript, typescript or bash")
	f.StringVarP(&cwd, "cwd", "w", "", "where it starts (default /workspace, as root /root)")
	f.StringVarP(&user, "user", "u", "", "an account of the sandbox, a name or a number (default its own user)")
	_ = c.RegisterFlagCompletionFunc("cwd", a.CompleteDirectory)
	env := flags.EnvFlags(f, a.Getenv, "environment variable of its code")
	_ = c.RegisterFlagCompletionFunc("language", cobra.FixedCompletions([]string{"python", "javascript", "typescript", "bash"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("user", cobra.FixedCompletions([]string{"sandbox", "root"}, cobra.ShellCompDirectiveNoFileComp))
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		made, err := cl.CreateContext(c.Context(), args[0], v1.CreateContext{
			Language: language, Cwd: flags.Given(f, "cwd", cwd), User: flags.Given(f, "user", user), Env: env.Value(),
		})
		if err != nil {
			return err
		}
		return output.One(a.Stdout, *out, made, made.ID, made.ID)
	}
	return c
}

func newContextLs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "ls [flags] SANDBOX",
		Aliases:           []string{"list"},
		Short:             "List a sandbox's contexts of code, and what they do",
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		found, err := cl.Contexts(c.Context(), args[0])
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, found, func(x v1.Context) string { return x.ID }, output.Columns[v1.Context]{
			Head: []string{"CONTEXT", "LANGUAGE", "USER", "RAN", "LAST USED", "STATUS"},
			Row: func(x v1.Context, now time.Time) []string {
				language, used := x.Language, ""
				if x.Default {
					language += " (default)"
				}
				if !x.LastUsedAt.IsZero() {
					used = output.Ago(now, &x.LastUsedAt)
				}
				return []string{x.ID, language, x.User, strconv.FormatInt(x.Executions, 10), used, contextStatus(x)}
			},
		})
	}
	return c
}

// contextStatus is how a context is, and why, in a few words.
func contextStatus(x v1.Context) string {
	status := x.Status
	if x.Ended != "" {
		status += ": " + x.Ended
	}
	if x.Queued > 0 {
		status += fmt.Sprintf(", %d wait", x.Queued)
	}
	return status
}

// newContextVerb is a command that does something to contexts, one after another.
func newContextVerb(a *app.App, name, short string, do func(cl *client.Client, ctx context.Context, ref, id string) error) *cobra.Command {
	c := &cobra.Command{
		Use:   name + " SANDBOX CONTEXT...",
		Short: short,
		Args:  app.Takes(2, -1),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeContext(a, c, args, typed)
		},
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.EachName(args[1:], func(id string) error { return do(cl, c.Context(), args[0], id) })
	}
	return c
}

// completeContext completes the name of a sandbox, then ids of its contexts, of each one once.
func completeContext(a *app.App, c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.CompleteFirst(c, args, typed)
	}
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (ids []string, err error) {
		found, err := cl.Contexts(ctx, args[0])
		for _, x := range found {
			if !slices.Contains(args[1:], x.ID) {
				ids = append(ids, x.ID)
			}
		}
		return ids, err
	}), cobra.ShellCompDirectiveNoFileComp
}
