// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newPromote(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "promote [flags] SANDBOX",
		Short: "Have a fork take its parent's place, and print its id",
		Long: `Have a fork take the place of the sandbox that it was forked from. The parent's key, labels, clocks, volumes and
snapshots are the fork's from then on; what the parent was is kept as one snapshot more, and the parent is deleted with
what runs in it. What runs in the fork goes on.`,
		Example: `  sandpit fork web --name web-experiment
  sandpit exec web-experiment make test
  sandpit promote web-experiment --snapshot before`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	name := c.Flags().String("snapshot", "", "name of the snapshot of what the parent was")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		s, err := cl.Promote(c.Context(), args[0], *name)
		if err != nil {
			return err
		}
		return output.One(a.Stdout, *out, s, s.Ref(), s.ID)
	}
	return c
}

func newFork(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "fork [flags] SANDBOX",
		Short: "Make running copies of a sandbox, and print their ids",
		Long: `Make running copies of a sandbox, as it is now or as it was, and print their ids. Each has a disk of its
own that begins as the sandbox's, and an id of its own; none has its key or any of its processes. All are
made, or none.`,
		Example: `  sandpit fork web
  sandpit fork web --count 10 --from before
  sandpit fork web --name web-experiment`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	f := c.Flags()
	count := f.IntP("count", "n", 1, "how many, at most 100")
	from := f.String("from", "", "a snapshot: its name, its id, or SANDBOX/NAME; instead of the sandbox as it is now")
	key := f.String("name", "", "the fork's own key, where it is one")
	flags.KeyIsName(f)
	labels := flags.Pairs{}
	f.Var(labels, "label", "label, instead of those of the sandbox; may be given again")
	_ = c.RegisterFlagCompletionFunc("from", a.CompletePoint())
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if *count < 1 {
			return exit.Misuse(c, "--count %d is less than 1", *count)
		}
		if *key != "" && *count > 1 {
			return exit.Misuse(c, "--name %s cannot be that of %d forks", *key, *count)
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r := v1.ForkSandbox{Count: count, From: flags.Given(f, "from", *from), Key: flags.Given(f, "name", *key), Metadata: labels.Value()}
		forks, err := cl.Fork(c.Context(), args[0], r)
		switch {
		case err != nil:
			return err
		case out.IsData() && *count == 1 && len(forks) == 1:
			return output.Data(a.Stdout, *out, &forks[0])
		case out.IsData():
			return output.Data(a.Stdout, *out, forks)
		}
		for i := range forks {
			if err := output.One(a.Stdout, *out, nil, forks[i].Ref(), forks[i].ID); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}
