// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
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
  sandpit stats work --follow
  sandpit stats work --processes 10`,
		Args: a.Takes(0, 1),
	}
	follow := c.Flags().Bool("follow", false, "show it again every two seconds, until it is interrupted")
	all := c.Flags().Bool("all-projects", false, "those of all projects; for the server's own administrator's token")
	most := c.Flags().Int("processes", 0, "1 to 500, of one sandbox: also what runs in it, who uses most first")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		if c.Flags().Changed("processes") && len(args) == 0 {
			return exit.Misuse(c, "--processes is for one sandbox; name it")
		}
		q := client.StatsQuery{AllProjects: *all}
		one := func(s *v1.SandboxStats) error {
			if err := a.printStats(*out, []v1.SandboxStats{*s}); err != nil || s.Processes == nil || out.IsData() {
				return err
			}
			return a.printProcesses(s.Processes)
		}
		each := func(l *v1.StatsList) error { return a.printStats(*out, l.Items) }
		switch {
		case c.Flags().Changed("processes") && *follow:
			return cl.FollowStatsProcesses(c.Context(), args[0], *most, one)
		case c.Flags().Changed("processes"):
			s, err := cl.StatsProcesses(c.Context(), args[0], *most)
			if err != nil {
				return err
			}
			return one(s)
		case len(args) == 1 && *follow:
			return cl.FollowStats(c.Context(), args[0], one)
		case len(args) == 1:
			s, err := cl.Stats(c.Context(), args[0])
			if err != nil {
				return err
			}
			return one(s)
		case *follow:
			return cl.FollowAllStats(c.Context(), q, each)
		}
		l, err := cl.AllStats(c.Context(), q)
		if err != nil {
			return err
		}
		return each(l)
	}
	return c
}

func (a App) printStats(as output.Format, found []v1.SandboxStats) error {
	if as.IsData() {
		return output.Data(a.Out, as, found)
	}
	rows := make([][]string, 0, len(found))
	for _, s := range found {
		rows = append(rows, append([]string{nameOf(&s), s.Status}, Cells(&s)...))
	}
	return output.Table(a.Out, append([]string{"NAME", "STATUS"}, Heads()...), rows)
}

// printProcesses prints what runs in a sandbox.
func (a App) printProcesses(p *v1.StatsProcesses) error {
	rows := make([][]string, 0, len(p.Items))
	for _, one := range p.Items {
		rows = append(rows, []string{strconv.Itoa(one.PID), one.State, fmt.Sprintf("%.2f", one.CPUs), fmt.Sprintf("%.1f s", one.CPUSeconds), output.Bytes(one.MemoryBytes), strconv.Itoa(one.Threads), one.Name})
	}
	if err := output.Table(a.Out, []string{"PID", "STATE", "CPUS", "CPU TIME", "MEMORY", "THREADS", "NAME"}, rows); err != nil {
		return err
	}
	if more := p.Total - len(p.Items); more > 0 {
		_, err := fmt.Fprintf(a.Out, "and %d more\n", more)
		return err
	}
	return nil
}

func nameOf(s *v1.SandboxStats) string {
	if s.Key != nil {
		return *s.Key
	}
	return s.ID
}

// Heads are the heads of [Cells].
func Heads() []string { return []string{"CPUS", "MEMORY", "DISK", "PROCESSES", "IN", "OUT"} }

// Cells are what a sandbox uses, of what it may, for a table; nil: it is not known.
func Cells(s *v1.SandboxStats) []string {
	row := []string{"-", "-", "-", "-", "-", "-"}
	if s == nil || s.Now == nil {
		return row
	}
	n := s.Now
	if n.CPUs != nil {
		row[0] = fmt.Sprintf("%.2f of %s", *n.CPUs, strconv.FormatFloat(s.CPULimit, 'g', 4, 64))
	}
	row[1], row[2] = ofLimit(n.MemoryBytes, s.MemoryLimit), ofLimit(n.DiskBytes, s.DiskLimit)
	if n.Tasks != nil {
		row[3] = fmt.Sprintf("%d of %d", *n.Tasks, s.TaskLimit)
	}
	row[4], row[5] = perSecond(n.NetworkInRate), perSecond(n.NetworkOutRate)
	return row
}

// perSecond writes how much goes over a network.
func perSecond(n *float64) string {
	if n == nil {
		return "-"
	}
	return output.Bytes(int64(*n)) + "/s"
}

func ofLimit(n *int64, limit int64) string {
	if n == nil {
		return "-"
	}
	return output.Bytes(*n) + " of " + output.Bytes(limit)
}
