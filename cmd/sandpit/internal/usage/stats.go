// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// NewStats returns the command that shows what sandboxes use now.
func NewStats(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "stats [flags] [SANDBOX]",
		Short: "Show what sandboxes use now: processors, memory, disk, processes",
		Long: `Show what a sandbox uses now, or each of the project that is up. Looking at a sandbox is no use of it:
it does not keep it from idling, and starts none.`,
		Example: `  sandpit stats
  sandpit stats work --follow`,
		Args: a.Takes(0, 1),
	}
	follow := c.Flags().Bool("follow", false, "show it again every two seconds, until it is interrupted")
	all := c.Flags().Bool("all-projects", false, "those of all projects; for the server's own administrator's token")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			var found []v1.SandboxStats
			if len(args) == 1 {
				one, err := cl.Stats(c.Context(), args[0])
				if err != nil {
					return err
				}
				found = append(found, *one)
			} else if found, err = cl.AllStats(c.Context(), *all); err != nil {
				return err
			}
			if err := a.printStats(*out, found); err != nil || !*follow {
				return err
			}
			select {
			case <-c.Context().Done():
				return c.Context().Err()
			case <-tick.C:
			}
		}
	}
	return c
}

func (a App) printStats(as output.Format, found []v1.SandboxStats) error {
	if as.IsData() {
		return output.Data(a.Out, as, found)
	}
	rows := make([][]string, 0, len(found))
	for _, s := range found {
		name := s.ID
		if s.Key != nil {
			name = *s.Key
		}
		row := []string{name, s.Status, "-", "-", "-", "-"}
		if n := s.Now; n != nil {
			if n.CPUs != nil {
				row[2] = fmt.Sprintf("%.2f of %s", *n.CPUs, strconv.FormatFloat(s.CPULimit, 'g', 4, 64))
			}
			row[3], row[4] = ofLimit(n.MemoryBytes, s.MemoryLimit), ofLimit(n.DiskBytes, s.DiskLimit)
			if n.Tasks != nil {
				row[5] = fmt.Sprintf("%d of %d", *n.Tasks, s.TaskLimit)
			}
		}
		rows = append(rows, row)
	}
	return output.Table(a.Out, []string{"NAME", "STATUS", "CPUS", "MEMORY", "DISK", "PROCESSES"}, rows)
}

func ofLimit(n *int64, limit int64) string {
	if n == nil {
		return "-"
	}
	return output.Bytes(*n) + " of " + output.Bytes(limit)
}
