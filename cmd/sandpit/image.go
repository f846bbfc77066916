// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
)

func newImage(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "List and build what sandboxes run on",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	c.AddCommand(newImageLs(a), newImageBuild(a))
	return c
}

func newImageLs(a *app) *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List images, and how far each is", Args: takes(0, 0)}
	how := listFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		found, err := cl.Images(c.Context())
		if err != nil {
			return err
		}
		return list(a.stdout, how, found, func(img v1.Image) string { return img.Name }, columns[v1.Image]{
			head: []string{"NAME", "STATUS", "SIZE", "BUILT", "INSIDE"},
			row: func(img v1.Image, now time.Time) []string {
				name, status, size := img.Name, img.Status, ""
				if status == "building" {
					status = fmt.Sprintf("building %.0f%%", 100*part(&img))
				}
				if img.SizeBytes > 0 {
					size = bytesOf(img.SizeBytes)
				}
				if img.Default {
					name += " (default)"
				}
				var versions []string
				for _, n := range slices.Sorted(maps.Keys(img.Versions)) {
					versions = append(versions, n+" "+img.Versions[n])
				}
				return []string{name, status, size, ago(now, img.BuiltAt), strings.Join(versions, ", ")}
			},
		})
	}
	return c
}

func newImageBuild(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "build [NAME]",
		Short: "Build an image and wait for it",
		Long: `Build an image, the default one if none is named, and show how far it is. An image that is built
already costs nothing; a build that was broken off goes on where it was; and it goes on when
this command is.`,
		Args:              takes(0, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		var name string
		if len(args) == 1 {
			name = args[0]
		}
		img, err := imageNamed(c.Context(), cl, name)
		if err != nil {
			return err
		}
		if img.Status != "ready" {
			if _, err := cl.BuildImage(c.Context(), img.Name, 0); err != nil {
				return err
			}
			if img, err = a.watchImage(c.Context(), cl, img.Name); err != nil {
				return err
			}
		}
		if *out == asJSON {
			return writeJSON(a.stdout, img)
		}
		_, err = fmt.Fprintf(a.stdout, "%s is ready (%s)\n", img.Name, bytesOf(img.SizeBytes))
		return err
	}
	return c
}
