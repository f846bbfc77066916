// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
)

func newImagePull(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "pull REFERENCE",
		Short: "Bring an image from its registry to the server",
		Long: `Bring an image from its registry to the server, and show how far it is. It is the server that connects: over https
and at addresses of the public internet, unless its operator lists the registry in images.registries. A pull
that was broken off begins with the layers that were finished; and it goes on when this command does not.`,
		Example: `  sandpit image pull debian:12-slim
  sandpit create --image debian:12-slim`,
		Args: app.Takes(1, 1),
	}
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		img, err := cl.PullImage(c.Context(), args[0], 0)
		if err != nil {
			return err
		}
		if img.Status != "ready" {
			if _, err := Watch(c.Context(), a, cl, img.Name); err != nil {
				return err
			}
			// What it was while it was watched may have been its name alone.
			if img, err = cl.PullImage(c.Context(), args[0], 0); err != nil {
				return err
			}
		}
		for _, line := range importNotes(img) {
			fmt.Fprintln(a.Stderr, line)
		}
		return output.One(a.Stdout, *out, img, img.Name, fmt.Sprintf("%s is ready (%s)", img.Name, output.Bytes(img.SizeBytes)))
	}
	return c
}

func newImagePush(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "push NAME REFERENCE",
		Short: "Put an image into a registry",
		Long: `Put an image into a registry, and show how far it is: the image that "sandpit image save" writes, with the same digest on every
machine. It is the server that connects, with the credentials that its operator gives the registry in
images.registries; an image that others made, too, goes there as one layer. What the registry has is not sent.`,
		Example:           `  sandpit image push python registry.example/team/python:1`,
		Args:              app.Takes(2, 2),
		ValidArgsFunction: a.CompleteImages,
	}
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		bar := progress.New(a.Stderr)
		pushed, err := cl.PushImage(ctx, args[0], args[1], func(s v1.PushStep) {
			if s.TotalBytes == 0 {
				bar.Show(args[0], "reading it", 0)
				return
			}
			bar.Bytes("push "+args[0], s.SentBytes, s.TotalBytes)
		})
		bar.Clear()
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		return output.One(a.Stdout, *out, pushed, pushed.Reference, fmt.Sprintf("%s is %s (%s, %s sent)", pushed.Reference, pushed.Digest, output.Bytes(pushed.SizeBytes), output.Bytes(pushed.SentBytes)))
	}
	return c
}
