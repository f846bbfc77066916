// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// A throwaway sandbox that its maker could not delete goes by itself.
const (
	throwawayIdle      = 60 // seconds
	throwawayRetention = 1  // seconds
	deleteBound        = 30 * time.Second
)

func newRun(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "run [flags] [--] CMD [ARG]... | run [flags] -c TEXT",
		Short: "Run a command in a new sandbox, and delete that afterwards",
		Long: `Run a command in a new sandbox, with its output as it comes and its exit status as ours, and delete
the sandbox afterwards. With --name the sandbox has that key, is used again if it exists, and is kept;
with --keep it is kept, and its id is said on standard error. With --repo a repository is cloned into
/workspace/repo first; unless the flags of the network say otherwise, the sandbox may reach its host and nothing else.

CMD, -c and standard input are as with sandpit exec.`,
		Example: `  sandpit run python -c 'print(2 ** 100)'
  sandpit run --name lab -c 'pip list | head'
  sandpit run --memory 2G -- python - < train.py
  sandpit run --repo https://github.com/psf/requests -c 'cd repo && ls'`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		Args:                  cobra.ArbitraryArgs,
	}
	made := makingFlags(a, c)
	m := commandFlags(a, c, false)
	keep := c.Flags().Bool("keep", false, "keep the sandbox")
	repo := c.Flags().String("repo", "", "clone this repository into /workspace/repo before the command begins")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := m.check(args); err != nil {
			return err
		}
		ctx := c.Context()
		cl, err := a.Client()
		if err != nil {
			return exit.Own(err)
		}
		r, err := m.request(a)
		if err != nil {
			return exit.Own(err)
		}
		spec := made.request()
		var from *repository
		if c.Flags().Changed("repo") {
			got, err := readRepository(*repo)
			if err != nil {
				return exit.Own(err)
			}
			got.reach(&spec)
			from = &got
		}
		throwaway := spec.Key == nil && !*keep
		if throwaway && spec.IdleTimeoutSeconds == nil && spec.RetentionSeconds == nil {
			spec.IdleTimeoutSeconds, spec.RetentionSeconds = new(int64(throwawayIdle)), new(int64(throwawayRetention))
		}
		s, _, err := create(ctx, a, cl, spec)
		if err != nil {
			return exit.Own(err)
		}
		tellDiffers(a, s)
		switch {
		case throwaway:
			defer throwAway(ctx, a, cl, s.ID)
		case spec.Key == nil:
			a.Warn("the sandbox is %s", s.ID)
		}
		if from != nil {
			if err := clone(ctx, a, cl, s.ID, *from); err != nil {
				return exit.Own(err)
			}
		}
		switch {
		case m.tty:
			if throwaway {
				m.leave = []byte{} // whoever left it would find nothing again
			}
			return atTerminal(ctx, a, cl, s.ID, m)
		case out.IsData():
			return m.collect(ctx, a, cl, s.ID, r, *out)
		}
		return m.stream(ctx, a, cl, s.ID, r)
	}
	return c
}

// throwAway deletes a sandbox, also after an interrupt.
func throwAway(ctx context.Context, a *app.App, cl *client.Client, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteBound)
	defer cancel()
	err := cl.Delete(ctx, id)
	if err == nil || fault.Is(err, fault.NotFound) {
		return
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Remedy == "" {
		_ = e.WithRemedy("delete it with: sandpit rm %s", id)
	}
	a.Say(err)
}
