// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/output"
)

func newImagePull(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "pull REFERENCE",
		Short: "Bring an image from its registry to the server",
		Long: `Bring an image from its registry to the server, and show how far it is. It is the server that connects: over https
and at addresses of the public internet, unless its operator lists the registry in images.registries. A pull
that was broken off begins with the layers that were finished; and it goes on when this command does not.`,
		Example: `  sandpit image pull debian:12-slim
  sandpit create --image debian:12-slim`,
		Args: takes(1, 1),
	}
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		img, err := cl.PullImage(c.Context(), args[0], 0)
		if err != nil {
			return err
		}
		if img.Status != "ready" {
			if _, err := a.watchImage(c.Context(), cl, img.Name); err != nil {
				return err
			}
			// What it was while it was watched may have been its name alone.
			if img, err = cl.PullImage(c.Context(), args[0], 0); err != nil {
				return err
			}
		}
		for _, line := range importNotes(img) {
			fmt.Fprintln(a.stderr, line)
		}
		return output.One(a.stdout, *out, img, img.Name, fmt.Sprintf("%s is ready (%s)", img.Name, output.Bytes(img.SizeBytes)))
	}
	return c
}
