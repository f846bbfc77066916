// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newImageInspect(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect [flags] NAME",
		Short: "Show all that is known of an image: its builds on disk, and who uses each",
		Example: `  sandpit image inspect python
  sandpit image inspect python -f '{{range .builds}}{{.digest}} {{.users.sandbox_count}}{{"\n"}}{{end}}'`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteImages,
	}
	out := output.FormatsFlag(c, output.AsJSON, output.AsJSON, output.AsYAML)
	var by output.Template
	c.Flags().VarP(&by, "format", "f", "print it with this template, such as '{{.disk_bytes}}'")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		img, err := cl.Image(c.Context(), args[0])
		if err != nil {
			return err
		}
		if by.Given() {
			return by.Write(a.Stdout, img)
		}
		return output.Data(a.Stdout, *out, img)
	}
	return c
}

func newImageRm(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "rm [flags] NAME",
		Short: "Delete what is on disk of an image; not while it is used",
		Long: `Delete what is on disk of an image, or with --digest one build of it. While sandboxes, snapshots or pools use it,
it is refused with who does. With --force they are deleted with it, and a build that goes on ends;
--force --dry-run says what that is, and deletes nothing. An image that was pulled or imported goes with all its
names, and the layers that no other image has with it.`,
		Example: `  sandpit image rm python --force --dry-run
  sandpit image rm python --digest 0123456789ab`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteImages,
	}
	var d client.DeleteImage
	f := c.Flags()
	f.BoolVarP(&d.Force, "force", "f", false, "delete the sandboxes and snapshots that use it, too")
	f.BoolVar(&d.DryRun, "dry-run", false, "delete nothing, and say what would be")
	f.StringVar(&d.Digest, "digest", "", "only this build: its digest, or the first 12 digits of that")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		got, err := cl.DeleteImage(c.Context(), args[0], d)
		if err != nil {
			return err
		}
		return output.One(a.Stdout, *out, got, got.Name, deletionText(got))
	}
	return c
}

// deletionText says what was deleted, or would be.
func deletionText(d *v1.ImageDeletion) string {
	verb, with := "deleted", "deleted with it"
	if d.DryRun {
		verb, with = "would delete", "in use by, and deleted by --force"
	}
	lines := []string{fmt.Sprintf("%s %s: %s of %s", verb, d.Name, output.Bytes(d.FreedBytes), counted(len(d.Digests), "build", "builds"))}
	var users []string
	for _, s := range d.Users.Sandboxes {
		name := s.ID
		if s.Key != "" {
			name = s.Key
		}
		users = append(users, "sandbox "+name)
	}
	if n := d.Users.SandboxCount - len(d.Users.Sandboxes); n > 0 {
		users = append(users, counted(n, "more sandbox", "more sandboxes"))
	}
	for _, s := range d.Users.Snapshots {
		users = append(users, "snapshot "+s.ID)
	}
	if n := d.Users.SnapshotCount - len(d.Users.Snapshots); n > 0 {
		users = append(users, counted(n, "more snapshot", "more snapshots"))
	}
	for _, p := range slices.Sorted(maps.Keys(d.Users.Pools)) {
		users = append(users, fmt.Sprintf("%s of the pool %s", counted(d.Users.Pools[p], "ready sandbox", "ready sandboxes"), p))
	}
	if len(users) > 0 {
		lines = append(lines, with+": "+output.Printable(strings.Join(users, ", ")))
	}
	return strings.Join(lines, "; ")
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func newImagePrune(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove the builds of images that nobody uses and new sandboxes do not get",
		Long: `Remove the builds of images that nobody uses and new sandboxes do not get, and say how many bytes that frees.
With --dry-run nothing is removed: it says what would be, and how much the builds that stay take. Of images that were
pulled or imported it is those whose names mean others by now; with --all also those that have a name.`,
		Args: app.Takes(0, 0),
	}
	var p v1.PruneImages
	c.Flags().BoolVarP(&p.All, "all", "a", false, "also images that were pulled or imported, have a name, and that nobody uses")
	c.Flags().BoolVar(&p.Cache, "cache", false, "also what builds downloaded, which the next one downloads again")
	c.Flags().BoolVar(&p.DryRun, "dry-run", false, "remove nothing, and say what would be")
	out := output.FormatsFlag(c, output.AsText, output.AsText, output.AsJSON, output.AsYAML)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		got, err := cl.PruneImages(c.Context(), p)
		if err != nil {
			return err
		}
		if *out != output.AsText {
			return output.Data(a.Stdout, *out, got)
		}
		for _, b := range got.Builds {
			fmt.Fprintf(a.Stdout, "%s %s %s\n", output.Printable(b.Name), output.Printable(b.Digest), output.Bytes(b.SizeBytes))
		}
		verb := "freed"
		if got.DryRun {
			verb = "would free"
		}
		text := fmt.Sprintf("%s %s", verb, output.Bytes(got.FreedBytes))
		if p.Cache {
			text += fmt.Sprintf(", %s of it downloads", output.Bytes(got.CacheBytes))
		}
		fmt.Fprintf(a.Stdout, "%s; the builds that stay take %s\n", text, output.Bytes(got.KeptBytes))
		return nil
	}
	return c
}
