// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/cmd/sandpit/internal/terminal"
)

func newImageImport(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Make images of an archive that docker save or another tool wrote",
		Long: `Make images of an archive: what docker save or podman save wrote, or a tar of an OCI layout, compressed or
not; "-" is standard input. An image that is made for several machines is taken for the server's. Sandboxes
name it by its own name, by --name, or by its digest. It needs no preparation: what a sandbox needs is added.`,
		Example: `  docker save app:1.4 | sandpit image import -
  skopeo copy docker://debian:12-slim oci-archive:debian.tar:debian:12-slim && sandpit image import debian.tar
  sandpit create --image debian:12-slim`,
		Args: takes(1, 1),
	}
	name := c.Flags().String("name", "", "a name for the image, as debian:12-slim (default: the one in the archive)")
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, args []string) error {
		bar := progress.New(a.stderr)
		defer bar.Clear()
		from, size, done, err := a.openImport(args[0], bar)
		if err != nil {
			return err
		}
		defer done()
		cl, err := a.client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		made, err := cl.ImportImages(ctx, from, client.ImportImageOptions{Name: *name, Size: size})
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		bar.Clear()
		for i := range made {
			for _, line := range importNotes(&made[i]) {
				fmt.Fprintln(a.stderr, line)
			}
		}
		return output.List(a.stdout, how, made, func(img v1.Image) string { return img.Name }, imageColumns())
	}
	return c
}

func newImageSave(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "save [flags] NAME",
		Short: "Write an image to an OCI archive, for another server or another tool",
		Long: `Write an image to an OCI archive: a tar of an image layout, with the image's files in one layer. Of one image it is the
same bytes on every machine, so that it has one digest, which is said on standard error. Without -o it goes to standard output.`,
		Example: `  sandpit image save python -o python.tar
  skopeo copy oci-archive:python.tar docker://registry.example/python:1`,
		Args:              takes(1, 1),
		ValidArgsFunction: a.completeImages,
	}
	file := c.Flags().StringP("output", "o", "-", "write it to this file, whole or not at all")
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, tty := terminal.Of(a.stdout); tty && *file == "-" {
			return exit.Misuse(c, "an archive is nothing for a terminal; name a file with -o, or pipe it into something")
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		r, digest, err := cl.SaveImage(ctx, args[0])
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		defer r.Close()
		if err := a.receive(ctx, r, "save "+args[0], *file); err != nil {
			return interrupt.Ended(ctx, err)
		}
		fmt.Fprintln(a.stderr, output.Printable(digest))
		return nil
	}
	return c
}

// importNotes say what of an image is otherwise in a sandbox.
func importNotes(img *v1.Image) []string {
	c := img.Config
	if c == nil {
		return nil
	}
	var notes []string
	note := func(format string, args ...any) {
		notes = append(notes, output.Printable("note: "+img.Name+": "+fmt.Sprintf(format, args...)))
	}
	if name, _, _ := strings.Cut(c.User, ":"); name != "" && name != "root" && name != "0" && name != "1000" {
		note("its user is %s; commands run with the number 1000, which that account gets here if the image has it", c.User)
	}
	if c.LeftOut > 0 {
		note("%d device nodes are left out: a sandbox has its own", c.LeftOut)
	}
	if c.Foreign > 0 {
		note("%d files are of users above 65535, which a sandbox does not have, and belong to nobody", c.Foreign)
	}
	return notes
}
