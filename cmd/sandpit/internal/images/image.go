// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/dockerbuild"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/progress"
	"sandpit.dev/fault"
)

// New returns the group of commands. Pool is the one of templates about the pools of images.
func New(a *app.App, pool *cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "List, build, pull, import, save, inspect and delete what sandboxes run on",
		Args:  cobra.ArbitraryArgs,
		RunE:  app.Group,
	}
	c.AddCommand(NewLs(a), newImageBuild(a), newImagePull(a), newImagePush(a), newImageImport(a), newImageSave(a), newImageLogs(a), newImageInspect(a), newImageRm(a), newImagePrune(a), pool)
	return c
}

// NewLs returns the command that lists images.
func NewLs(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List images, and how far each is", Args: app.Takes(0, 0)}
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		found, err := cl.Images(c.Context())
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, found, func(img v1.Image) string { return img.Name }, imageColumns())
	}
	return c
}

// buildAndWatch has an image built, and shows how far it is until that ends.
func buildAndWatch(ctx context.Context, a *app.App, cl *client.Client, name string) (*v1.Image, error) {
	img, err := cl.BuildImage(ctx, name, 0)
	if err == nil {
		img, err = Watch(ctx, a, cl, name)
	}
	if err != nil && ctx.Err() != nil {
		a.Warn("the build goes on; see how far it is with: sandpit image build %s", name)
	}
	return img, interrupt.Ended(ctx, err)
}

// imageColumns are those of a list of images.
func imageColumns() output.Columns[v1.Image] {
	return output.Columns[v1.Image]{
		Head: []string{"NAME", "STATUS", "SIZE", "BUILT", "SANDBOXES", "INSIDE"},
		Row: func(img v1.Image, now time.Time) []string {
			name, status, size := img.Name, img.Status, ""
			if status == "building" {
				status = fmt.Sprintf("building %.0f%%", 100*part(&img))
			}
			if img.SizeBytes > 0 {
				size = output.Bytes(img.SizeBytes)
			}
			if img.Default {
				name += " (default)"
			}
			used := ""
			if img.Sandboxes != nil {
				used = strconv.Itoa(*img.Sandboxes)
			}
			return []string{name, status, size, output.Ago(now, img.BuiltAt), used, VersionsText(img.Versions)}
		},
	}
}

// VersionsText lists what is inside an image.
func VersionsText(versions map[string]string) string {
	var list []string
	for _, n := range slices.Sorted(maps.Keys(versions)) {
		list = append(list, n+" "+versions[n])
	}
	return strings.Join(list, ", ")
}

func newImageBuild(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "build [flags] [NAME | DIR]",
		Short: "Build an image of the catalogue, or of a Dockerfile, and wait for it",
		Long: `Build an image of the catalogue, the default one if none is named, and show how far it is. An image that is built
already costs nothing; a build that was broken off goes on where it was; and it goes on when
this command is.

With a directory, which has a slash in it or is . or -, or comes with -f or -t, build the directory's Dockerfile: its steps run
in a sandbox of the server, and what they write is shown. Steps that were done before are not done again. The build
ends with this command. "-" as the directory is a tar archive of one on standard input; "-f -" is the Dockerfile.`,
		Example: `  sandpit image build data-science
  sandpit image build -t app:1 .
  sandpit image build -f deploy/Dockerfile --build-arg VERSION=1.4 --target test -t app:test .`,
		Args:              app.Takes(0, 1),
		ValidArgsFunction: a.CompleteImages,
	}
	out := output.NamedFlag(c)
	rebuild := c.Flags().Bool("rebuild", false, "of the catalogue: also where there is a current build; that one stays in use meanwhile")
	var of dockerbuild.Flags
	c.Flags().StringVarP(&of.File, "file", "f", "", "the Dockerfile (default: DIR/Dockerfile)")
	c.Flags().StringVarP(&of.Tag, "tag", "t", "", "a name for the image, as app:1.4 (default: its digest alone)")
	c.Flags().StringVar(&of.Target, "target", "", "the stage that the image is of (default: the last)")
	c.Flags().StringArrayVar(&of.Args, "build-arg", nil, "NAME=VALUE of an ARG, or NAME with the value it has here")
	c.Flags().BoolVar(&of.NoCache, "no-cache", false, "do all steps, also those that were done before")
	c.MarkFlagsMutuallyExclusive("rebuild", "file")
	c.MarkFlagsMutuallyExclusive("rebuild", "tag")
	c.RunE = func(c *cobra.Command, args []string) error {
		if dir, ok := dockerDirectory(c, args); ok {
			return buildDirectory(a, c, dir, of, *out)
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		var name string
		if len(args) == 1 {
			name = args[0]
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		img, err := Named(ctx, cl, name)
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		if *rebuild {
			if img, err = rebuildImage(c.Context(), a, cl, img.Name); err != nil {
				return err
			}
		}
		if img.Status != "ready" {
			if img, err = buildAndWatch(ctx, a, cl, img.Name); err != nil {
				return err
			}
		}
		return output.One(a.Stdout, *out, img, img.Name, fmt.Sprintf("%s is ready (%s)", img.Name, output.Bytes(img.SizeBytes)))
	}
	return c
}

// dockerDirectory returns the directory whose Dockerfile is meant, if one is.
func dockerDirectory(c *cobra.Command, args []string) (string, bool) {
	said := false
	for _, name := range []string{"file", "tag", "target", "build-arg", "no-cache"} {
		said = said || c.Flags().Changed(name)
	}
	switch {
	case len(args) == 0:
		return ".", said
	case said, args[0] == ".", args[0] == "..", args[0] == "-", strings.ContainsRune(args[0], filepath.Separator):
		return args[0], true
	}
	return "", false
}

// buildDirectory builds the Dockerfile of a directory.
func buildDirectory(a *app.App, c *cobra.Command, dir string, of dockerbuild.Flags, how output.Format) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context())
	defer stop()
	b := dockerbuild.Builder{Client: cl, Stdin: a.Stdin, Log: a.Stderr, Getenv: os.LookupEnv}
	img, err := b.Build(ctx, dir, of)
	if err != nil {
		return interrupt.Ended(ctx, err)
	}
	return output.One(a.Stdout, how, img, img.Name, fmt.Sprintf("%s is ready (%s)", img.Name, output.Bytes(img.SizeBytes)))
}

// rebuildImage has an image built anew, shows how far that is, and returns it.
func rebuildImage(ctx context.Context, a *app.App, cl *client.Client, name string) (*v1.Image, error) {
	done := ShowBuilds(ctx, a, cl)
	defer done()
	return cl.RebuildImage(ctx, name, rebuildWait)
}

// rebuildWait is longer than a build may take.
const rebuildWait = time.Hour

// Times of watching a build.
const (
	buildPoll  = 500 * time.Millisecond
	buildQuiet = time.Second // a build shorter than this is not worth a word
)

// Watch shows the build of an image until it is over.
func Watch(ctx context.Context, a *app.App, cl *client.Client, name string) (*v1.Image, error) {
	bar := progress.New(a.Stderr)
	defer bar.Clear()
	tick := time.NewTicker(buildPoll)
	defer tick.Stop()
	for {
		img, err := Named(ctx, cl, name)
		if err != nil {
			return nil, err
		}
		switch img.Status {
		case "ready":
			return img, nil
		case "failed":
			bar.Clear()
			for _, line := range img.Output {
				fmt.Fprintln(a.Stderr, "  "+output.Printable(line))
			}
			if img.Phase == "pull" {
				return nil, fault.New(fault.Unavailable, "the image %s cannot be pulled: %s", img.Name, img.Error).
					WithRemedy("mend that, then go on with what is missing: sandpit image pull %s", img.Name)
			}
			return nil, fault.New(fault.Unavailable, "the image %s cannot be built: %s", img.Name, img.Error).
				WithRemedy("mend that, then go on where it stopped with: sandpit image build %s", img.Name)
		case "building":
			bar.Show("image "+img.Name, img.Text, part(img))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func part(img *v1.Image) float64 {
	if img.Progress == nil {
		return 0
	}
	return *img.Progress
}

// Named finds an image by a name of its; empty: the default.
func Named(ctx context.Context, cl *client.Client, name string) (*v1.Image, error) {
	all, err := cl.Images(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(all))
	for i := range all {
		img := &all[i]
		if img.Name == name || name == "" && img.Default {
			return img, nil
		}
		for _, alias := range img.Aliases {
			if alias == name {
				return img, nil
			}
		}
		names = append(names, img.Name)
	}
	return nil, fault.New(fault.NotFound, "there is no image %q", name).WithRemedy("use one of: %s", strings.Join(names, ", "))
}

// ShowBuilds shows, until the call that it returns, the images that are being
// built, if that takes long enough to wonder.
func ShowBuilds(ctx context.Context, a *app.App, cl *client.Client) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		bar := progress.New(a.Stderr)
		defer bar.Clear()
		wait := time.NewTimer(buildQuiet)
		defer wait.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-wait.C:
			}
			all, err := cl.Images(ctx)
			if err != nil {
				return // the call that waits will say what is wrong
			}
			for i := range all {
				if all[i].Status == "building" {
					bar.Show("image "+all[i].Name, all[i].Text, part(&all[i]))
					break
				}
			}
			wait.Reset(buildPoll)
		}
	}()
	return func() {
		cancel()
		<-over
	}
}
