// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
)

func newStart(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:               "start SANDBOX...",
		Short:             "Start stopped sandboxes",
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeAll,
	}
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.each(c.Context(), refs, *out, cl.Start)
	}
	return c
}

// each does something to each sandbox, and prints them. One that fails does not
// spare the others; the last failure is the caller's to report.
func (a *app) each(ctx context.Context, refs []string, f format, do func(context.Context, string) (*v1.Sandbox, error)) error {
	var last error
	done := []*v1.Sandbox{}
	for _, ref := range refs {
		s, err := do(ctx, ref)
		if err != nil {
			if last != nil {
				a.say(last)
			}
			last = err
			continue
		}
		done = append(done, s)
		if f == asText {
			fmt.Fprintln(a.stdout, printable(s.Ref()))
		}
	}
	if f == asJSON {
		if err := writeJSON(a.stdout, done); err != nil {
			return err
		}
	}
	return last
}

// one does something to a sandbox, and prints it.
func (a *app) one(ctx context.Context, ref string, f format, do func(context.Context, string) (*v1.Sandbox, error)) error {
	s, err := do(ctx, ref)
	if err != nil {
		return err
	}
	if f == asJSON {
		return writeJSON(a.stdout, s)
	}
	_, err = fmt.Fprintln(a.stdout, printable(s.Ref()))
	return err
}

// eachName does something to each thing that is named, and prints the names. One
// that fails does not spare the others; the last failure is the caller's to report.
func (a *app) eachName(names []string, do func(string) error) error {
	var last error
	for _, name := range names {
		if err := do(name); err != nil {
			if last != nil {
				a.say(last)
			}
			last = err
			continue
		}
		fmt.Fprintln(a.stdout, printable(name))
	}
	return last
}
