// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// point splits SANDBOX/NAME, where the name may be base or now. What has no slash is a snapshot by its id.
func point(arg string) (ref, at string) {
	if ref, at, ok := strings.Cut(arg, "/"); ok {
		return ref, at
	}
	return "", arg
}

func newSnapshotFiles(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "files [flags] SNAPSHOT [PATH]",
		Aliases: []string{"dir"},
		Short:   "List a directory of a snapshot, without rolling back",
		Long: `List a directory of a snapshot, without rolling back. PATH is absolute, or relative to /workspace. SANDBOX/base is the
sandbox's image, and SANDBOX/now the sandbox as it is; none is started for that.`,
		Example: `  sandpit snapshot files web/before src
  sandpit snapshot files web/base /etc`,
		Args:              app.Takes(1, 2),
		ValidArgsFunction: a.CompleteSnapshots,
	}
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		ref, at := point(args[0])
		dir := "."
		if len(args) > 1 {
			dir = args[1]
		}
		all := []v1.FileInfo{}
		for cursor := ""; ; {
			page, next, err := cl.ListFilesAt(ctx, ref, at, dir, cursor, 0)
			if err != nil {
				return interrupt.Ended(ctx, err)
			}
			if all = append(all, page...); next == "" {
				break
			}
			cursor = next
		}
		if out.IsData() {
			return output.Data(a.Stdout, *out, all)
		}
		rows := make([][]string, 0, len(all))
		for i := range all {
			f := &all[i]
			name := f.Name
			if f.Target != "" {
				name += " -> " + f.Target
			}
			rows = append(rows, []string{f.Type, f.Mode, strconv.Itoa(f.UID) + ":" + strconv.Itoa(f.GID), strconv.FormatInt(f.Size, 10), f.ModifiedAt.Format(time.DateTime), name})
		}
		return output.Table(a.Stdout, []string{"TYPE", "MODE", "OWNER", "SIZE", "MODIFIED", "NAME"}, rows)
	}
	return c
}

func newSnapshotCat(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "cat SNAPSHOT PATH",
		Short: "Print a file of a snapshot, without rolling back",
		Long: `Print a file of a snapshot, without rolling back: its bytes as they are. PATH is absolute, or relative to /workspace. SANDBOX/base
is the sandbox's image, and SANDBOX/now the sandbox as it is; none is started for that.`,
		Example: `  sandpit snapshot cat web/before app.py > app.py
  sandpit snapshot cat web/base /etc/passwd`,
		Args:              app.Takes(2, 2),
		ValidArgsFunction: a.CompleteSnapshots,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		ref, at := point(args[0])
		f, err := cl.ReadFileAt(ctx, ref, at, args[1])
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		defer f.Close()
		_, err = io.Copy(a.Stdout, f)
		return interrupt.Ended(ctx, err)
	}
	return c
}
