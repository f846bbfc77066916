// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/terminal"
)

// activate returns the command that makes templates active, or inactive.
func (a App) activate(name, short string, inactive bool) *cobra.Command {
	c := &cobra.Command{Use: name + " TEMPLATE...", Short: short, Args: a.Takes(1, -1), ValidArgsFunction: a.complete}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.Each(names, func(name string) error {
			_, err := cl.UpdateTemplate(c.Context(), name, v1.UpdateTemplate{Inactive: &inactive})
			return err
		})
	}
	return c
}

func (a App) logs() *cobra.Command {
	c := &cobra.Command{
		Use:   "logs [flags] TEMPLATE",
		Short: "Print what the build of a template's disk or image has written",
		Long:  "Print what the build of a template's disk or image has written: with -f until it ends. It needs the scope admin.",
		Args:  a.Takes(1, 1), ValidArgsFunction: a.complete,
	}
	follow := c.Flags().BoolP("follow", "f", false, "wait for more while a build goes on")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		r, err := cl.TemplateLog(ctx, args[0], *follow)
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		defer r.Close()
		return interrupt.Ended(ctx, terminal.Show(a.Out, r))
	}
	return c
}
