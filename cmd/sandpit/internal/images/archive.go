// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/archive"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/cmd/sandpit/internal/terminal"
)

func newImageImport(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "import [flags] FILE|NAME",
		Short: "Make images of an archive that docker save or another tool wrote; or build an entry of the catalogue",
		Long: `Make images of an archive: what docker save or podman save wrote, or a tar of an OCI layout, compressed or
not; "-" is standard input. An image that is made for several machines is taken for the server's. Sandboxes
name it by its own name, by --name, or by its digest. It needs no preparation: what a sandbox needs is added.

Where there is no such file, and the catalogue has an entry of that name, it is built, unless it is there, as by
sandpit image build.`,
		Example: `  docker save app:1.4 | sandpit image import -
  skopeo copy docker://debian:12-slim oci-archive:debian.tar:debian:12-slim && sandpit image import debian.tar
  sandpit create --image debian:12-slim
  sandpit image import data-science`,
		Args: app.Takes(1, 1),
	}
	name := c.Flags().String("name", "", "a name for the image, as debian:12-slim (default: the one in the archive)")
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, args []string) error {
		if done, err := importEntry(a, c, args[0], *name, how); done || err != nil {
			return err
		}
		bar := progress.New(a.Stderr)
		defer bar.Clear()
		from, size, done, err := archive.Open(a, args[0], bar)
		if err != nil {
			return err
		}
		defer done()
		cl, err := a.Client()
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
				fmt.Fprintln(a.Stderr, line)
			}
		}
		return output.List(a.Stdout, how, made, func(img v1.Image) string { return img.Name }, imageColumns())
	}
	return c
}

func newImageSave(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "save [flags] NAME",
		Short: "Write an image to an OCI archive, for another server or another tool",
		Long: `Write an image to an OCI archive: a tar of an image layout, with the image's files in one layer. Of one image it is the
same bytes on every machine, so that it has one digest, which is said on standard error. Without -o it goes to standard output.`,
		Example: `  sandpit image save python -o python.tar
  skopeo copy oci-archive:python.tar docker://registry.example/python:1`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteImages,
	}
	file := c.Flags().StringP("output", "o", "-", "write it to this file, whole or not at all")
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, tty := terminal.Of(a.Stdout); tty && *file == "-" {
			return exit.Misuse(c, "an archive is nothing for a terminal; name a file with -o, or pipe it into something")
		}
		cl, err := a.Client()
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
		if err := archive.Receive(ctx, a, r, "save "+args[0], *file); err != nil {
			return interrupt.Ended(ctx, err)
		}
		fmt.Fprintln(a.Stderr, output.Printable(digest))
		return nil
	}
	return c
}

// importEntry builds the entry of the catalogue that has a name which is no file's, and reports whether there is one.
func importEntry(a *app.App, c *cobra.Command, word, name string, how output.Listing) (bool, error) {
	if _, err := os.Lstat(word); !errors.Is(err, fs.ErrNotExist) || strings.ContainsRune(word, os.PathSeparator) && !strings.Contains(word, ":") {
		return false, nil
	}
	cl, err := a.Client()
	if err != nil {
		return false, err
	}
	ctx, stop := interrupt.Context(c.Context())
	defer stop()
	all, err := cl.Images(ctx)
	if err != nil {
		return false, interrupt.Ended(ctx, err)
	}
	at := slices.IndexFunc(all, func(i v1.Image) bool { return i.Config == nil && (i.Name == word || slices.Contains(i.Aliases, word)) })
	if at < 0 {
		return false, nil // what is wrong with it is said as of a file
	}
	if name != "" {
		return false, exit.Misuse(c, "--name is for an archive, and %q is an entry of the catalogue", word)
	}
	img := &all[at]
	if img.Status != "ready" {
		if img, err = buildAndWatch(ctx, a, cl, img.Name); err != nil {
			return false, err
		}
	}
	return true, output.List(a.Stdout, how, []v1.Image{*img}, func(img v1.Image) string { return img.Name }, imageColumns())
}

func newImageLogs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "logs [flags] NAME",
		Short: "Print the output of an image's last build, or of the one that goes on",
		Long: `Print the output of the last build of an image of the catalogue, or of the one that goes on: with -f until that
ends. It needs the scope admin.`,
		Args: app.Takes(1, 1), ValidArgsFunction: a.CompleteImages,
	}
	follow := c.Flags().BoolP("follow", "f", false, "wait for more while a build goes on")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		r, err := cl.ImageLog(ctx, args[0], *follow)
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		defer r.Close()
		return interrupt.Ended(ctx, terminal.Show(a.Stdout, r))
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
