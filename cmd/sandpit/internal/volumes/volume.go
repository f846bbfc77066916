// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// New returns the group of commands.
func New(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "volume",
		Short: "Make, list, change and delete directories that sandboxes share",
		Long: `Make, list, change and delete directories that sandboxes share, and that outlive them. A sandbox mounts
them from its creation on: sandpit create --volume NAME:PATH.`,
		Args: cobra.ArbitraryArgs,
		RunE: app.Group,
	}
	c.AddCommand(newVolumeCreate(a), NewLs(a), newVolumeUpdate(a), newVolumeRm(a))
	return c
}

func newVolumeCreate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Make an empty volume and print its name",
		Example: `  sandpit volume create data --size 10G
  sandpit run --volume data:/mnt/data -- ls /mnt/data
  sandpit volume create scratch --lifetime 6h`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var size flags.Megabytes
	c.Flags().Var(&size, "size", "the most that it holds (10G); else it has no limit of its own")
	var lifetime flags.Period
	c.Flags().Var(&lifetime, "lifetime", "delete it so long after its creation (6h, 7d), or as soon after that as no sandbox mounts it; else it stays")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		v, err := cl.CreateVolume(c.Context(), v1.CreateVolume{Name: args[0], SizeMB: size.Value(), LifetimeSeconds: lifetime.Seconds()})
		if err != nil {
			return err
		}
		return output.One(a.Stdout, *out, v, v.Name, v.Name)
	}
	return c
}

// NewLs returns the command that lists volumes.
func NewLs(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List volumes, what they hold and who mounts them", Args: app.Takes(0, 0)}
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		found, err := cl.Volumes(c.Context())
		if err != nil {
			return err
		}
		return output.List(a.Stdout, how, found, func(v v1.Volume) string { return v.Name }, output.Columns[v1.Volume]{
			Head: []string{"NAME", "ID", "USED", "SIZE", "SANDBOXES", "CREATED"},
			Row: func(v v1.Volume, now time.Time) []string {
				used, most := "", ""
				if v.UsedBytes != nil {
					used = output.Bytes(*v.UsedBytes)
				}
				if v.SizeMB > 0 {
					most = strconv.Itoa(v.SizeMB) + "M"
				}
				return []string{v.Name, v.ID, used, most, strconv.Itoa(len(v.Users)), output.Ago(now, &v.CreatedAt)}
			},
			WideHead: []string{"EXPIRES"},
			WideRow: func(v v1.Volume, _ time.Time) []string {
				if v.ExpiresAt == nil {
					return []string{""}
				}
				return []string{v.ExpiresAt.Format(time.RFC3339)}
			},
		})
	}
	return c
}

func newVolumeUpdate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "update [flags] NAME",
		Short:             "Change a volume's lifetime",
		Example:           "  sandpit volume update scratch --lifetime 0",
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteVolumes,
	}
	var lifetime flags.Period
	c.Flags().Var(&lifetime, "lifetime", "delete it so long after its creation, or as soon after that as no sandbox mounts it; 0: it stays until it is deleted")
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if !lifetime.Given {
			return exit.Misuse(c, "nothing is to be changed; give --lifetime")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		v, err := cl.UpdateVolume(c.Context(), args[0], v1.UpdateVolume{LifetimeSeconds: lifetime.Seconds()})
		if err != nil {
			return err
		}
		return output.One(a.Stdout, *out, v, v.Name, v.Name)
	}
	return c
}

func newVolumeRm(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "rm NAME...",
		Short:             "Delete volumes with all that is in them; not while a sandbox mounts them",
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteVolumes,
	}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.EachName(names, func(name string) error { return cl.DeleteVolume(c.Context(), name) })
	}
	return c
}
