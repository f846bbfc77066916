// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newInspect(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect [flags] SANDBOX...",
		Short: "Show all that is known of sandboxes, as JSON, YAML or by a template",
		Long: `Show all that is known of sandboxes: of one as an object, of several as a list. A template of Go's text/template has
the fields of the JSON, and prints each sandbox on a line of its own.`,
		Example: `  sandpit inspect web
  sandpit inspect web -o yaml
  sandpit inspect web -f '{{.status}}\t{{.memory_mb}}\t{{json .metadata}}'`,
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteAll,
	}
	out := output.FormatsFlag(c, output.AsJSON, output.AsJSON, output.AsYAML)
	var by output.Template
	c.Flags().VarP(&by, "format", "f", "print each with this template, such as '{{.id}} {{.status}}'")
	c.RunE = func(c *cobra.Command, refs []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		var last error
		found := []*v1.Sandbox{}
		for _, ref := range refs {
			s, err := cl.Get(c.Context(), ref)
			if err != nil {
				if last != nil {
					a.Say(last)
				}
				last = err
				continue
			}
			found = append(found, s)
			if by.Given() {
				if err := by.Write(a.Stdout, s); err != nil {
					return err
				}
			}
		}
		switch {
		case by.Given() || len(found) == 0:
		case len(refs) == 1:
			err = output.Data(a.Stdout, *out, found[0])
		default:
			err = output.Data(a.Stdout, *out, found)
		}
		if err != nil {
			return err
		}
		return last
	}
	return c
}
