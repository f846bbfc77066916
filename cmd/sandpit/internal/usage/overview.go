// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// NewOverview returns the command that shows what a project, or the server, is at.
func NewOverview(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "overview [flags]",
		Short: "Show what there is, what is in use, and what happened in the last hour",
		Long: `Show the project's sandboxes by state, what they use together, and what happened in the last hour, or since the
server began: creates and commands with how long callers waited for them, failures by cause, refused connections.
With the server's own administrator's token the host and the stores are shown, too, against their limits.`,
		Example: `  sandpit overview
  sandpit overview --all-projects -o json`,
		Args: a.Takes(0, 0),
	}
	all := c.Flags().Bool("all-projects", false, "of all projects; for the server's own administrator's token")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		o, err := cl.Overview(c.Context(), *all)
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Out, *out, o)
		}
		return writeOverview(a.Out, o, time.Now())
	}
	return c
}

// writeOverview writes an overview as lines of names and figures.
func writeOverview(w io.Writer, o *v1.Overview, now time.Time) error {
	var rows [][]string
	row := func(name, format string, args ...any) {
		rows = append(rows, []string{name, fmt.Sprintf(format, args...)})
	}
	of := "all projects"
	if o.Project != nil {
		of = "project " + *o.Project
	}
	row("of", "%s; the server runs since %s", of, o.StartedAt.Local().Format(time.DateTime))
	var states []string
	for _, s := range slices.SortedFunc(maps.Keys(o.Sandboxes), func(a, b string) int {
		return cmp.Or(cmp.Compare(o.Sandboxes[b], o.Sandboxes[a]), cmp.Compare(a, b))
	}) {
		states = append(states, fmt.Sprintf("%d %s", o.Sandboxes[s], s))
	}
	row("sandboxes", "%s", cmp.Or(strings.Join(states, ", "), "none"))
	if u := o.Use; u != nil {
		row("in use", "%s processors, %s memory, %s disk, %s processes, by %d that are up", figure(u.CPUs, "%.2f"), size(u.MemoryBytes), size(u.DiskBytes), figure(u.Tasks, "%d"), u.Sandboxes)
	}
	if h := o.Host; h != nil {
		row("host", "%s of %d processors, %s memory, %s disk, %s of %d processes", figure(h.Now.CPUs, "%.2f"), h.CPULimit, ofLimit(h.Now.MemoryBytes, h.MemoryLimit), ofLimit(h.Now.DiskBytes, h.DiskLimit), figure(h.Now.Tasks, "%d"), h.TaskLimit)
	}
	if f := o.OpenFiles; f != nil {
		row("open files", "%d of %d by the server, %d of %d on the host", f.Server, f.ServerLimit, f.Host, f.HostLimit)
	}
	for _, s := range o.Stores {
		row("store/"+s.Runtime, "%s of %s; sandboxes may take %s more", output.Bytes(s.SizeBytes-s.FreeBytes), output.Bytes(s.SizeBytes), output.Bytes(s.RoomBytes))
		for _, why := range []*string{s.Failed, s.Full} {
			if why != nil {
				row("", "%s", *why)
			}
		}
	}
	if o.RecordsFull != nil {
		row("records", "%s", *o.RecordsFull)
	}
	h := o.Hour
	row("since", "%s, %s", h.Since.Local().Format(time.DateTime), output.Ago(now, &h.Since))
	if !h.Counted {
		row("", "too many other projects are busy to count this one by itself")
		return writeRows(w, rows)
	}
	row("creates", "%d%s", h.Creates, waited(h.CreateMS))
	row("commands", "%d%s", h.Commands, waited(h.ExecMS))
	var failures []string
	for _, f := range h.Failures {
		failures = append(failures, fmt.Sprintf("%d %s %s", f.Count, f.Of, f.Cause))
	}
	row("failures", "%s", cmp.Or(strings.Join(failures, ", "), "none"))
	row("refused", "%d connections", h.Refused)
	return writeRows(w, rows)
}

// writeRows writes names and what is said of each.
func writeRows(w io.Writer, rows [][]string) error {
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%-14s %s\n", output.Printable(r[0]), output.Printable(r[1])); err != nil {
			return err
		}
	}
	return nil
}

func figure[N int64 | float64](n *N, format string) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf(format, *n)
}

func size(n *int64) string {
	if n == nil {
		return "-"
	}
	return output.Bytes(*n)
}

// waited says how long callers waited.
func waited(p v1.Percentiles) string {
	if p.P50 == nil || p.P95 == nil {
		return ""
	}
	span := func(ms float64) time.Duration {
		return time.Duration(ms * float64(time.Millisecond)).Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("; half within %v, 95 %% within %v", span(*p.P50), span(*p.P95))
}
