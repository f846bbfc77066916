// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
)

func newVolume(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "volume",
		Short: "Make, list and delete directories that sandboxes share",
		Long: `Make, list and delete directories that sandboxes share, and that outlive them. A sandbox mounts them from
its creation on: sandpit create --volume NAME:PATH.`,
		Args: cobra.ArbitraryArgs,
		RunE: group,
	}
	c.AddCommand(newVolumeCreate(a), newVolumeLs(a), newVolumeRm(a))
	return c
}

func newVolumeCreate(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Make an empty volume and print its name",
		Example: `  sandpit volume create data --size 10G
  sandpit run --volume data:/mnt/data -- ls /mnt/data`,
		Args:              takes(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var size megabytes
	c.Flags().Var(&size, "size", "the most that it holds (10G); else it has no limit of its own")
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		v, err := cl.CreateVolume(c.Context(), v1.CreateVolume{Name: args[0], SizeMB: size.value()})
		if err != nil {
			return err
		}
		if *out == asJSON {
			return writeJSON(a.stdout, v)
		}
		_, err = fmt.Fprintln(a.stdout, printable(v.Name))
		return err
	}
	return c
}

func newVolumeLs(a *app) *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List volumes, what they hold and who mounts them", Args: takes(0, 0)}
	how := listFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		found, err := cl.Volumes(c.Context())
		if err != nil {
			return err
		}
		return list(a.stdout, how, found, func(v v1.Volume) string { return v.Name }, columns[v1.Volume]{
			head: []string{"NAME", "ID", "USED", "SIZE", "SANDBOXES", "CREATED"},
			row: func(v v1.Volume, now time.Time) []string {
				used, most := "", ""
				if v.UsedBytes != nil {
					used = bytesOf(*v.UsedBytes)
				}
				if v.SizeMB > 0 {
					most = strconv.Itoa(v.SizeMB) + "M"
				}
				return []string{v.Name, v.ID, used, most, strconv.Itoa(len(v.Users)), ago(now, &v.CreatedAt)}
			},
		})
	}
	return c
}

func newVolumeRm(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:               "rm NAME...",
		Short:             "Delete volumes with all that is in them; not while a sandbox mounts them",
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeVolumes,
	}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.eachName(names, func(name string) error { return cl.DeleteVolume(c.Context(), name) })
	}
	return c
}

// mounts is a flag NAME[/SUB]:PATH[:ro] that may be given again and again.
type mounts []v1.MountVolume

func (m *mounts) Type() string { return "NAME:PATH" }

func (m *mounts) String() string { return "" }

func (m *mounts) Set(s string) error {
	v, err := parseMount(s)
	if err != nil {
		return err
	}
	*m = append(*m, v)
	return nil
}

// parseMount reads one. A volume's name may have colons, and has no slash: the
// path begins at the first colon that a slash follows.
func parseMount(s string) (v1.MountVolume, error) {
	bad := fmt.Errorf("%q is not a valid mount; write it as NAME:/PATH, NAME/SUB:/PATH or NAME:/PATH:ro", s)
	volume, path, ok := strings.Cut(s, ":/")
	if !ok || volume == "" {
		return v1.MountVolume{}, bad
	}
	m := v1.MountVolume{Path: "/" + path}
	for suffix, only := range map[string]bool{":ro": true, ":rw": false} {
		if head, ok := strings.CutSuffix(m.Path, suffix); ok {
			m.Path, m.ReadOnly = head, only
			break
		}
	}
	name, sub, below := strings.Cut(volume, "/")
	if name == "" || below && sub == "" || m.Path == "/" {
		return v1.MountVolume{}, bad
	}
	if m.Volume = name; below {
		m.SubPath = &sub
	}
	return m, nil
}
