// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package usage has the command that tells what projects used.
package usage

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// App is what the command needs of the program.
type App struct {
	Client func() (*client.Client, error)
	Out    io.Writer
	Takes  func(least, most int) cobra.PositionalArgs
}

// New returns the command.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "usage [flags]",
		Short: "Show what was used: commands, time, processors, memory, disk, bytes",
		Long: `Show what the project used, deleted sandboxes included. Processors and memory are those that were
promised, for as long as sandboxes ran; paused and stopped ones cost none. A disk counts for as long as it is on the host.`,
		Example: `  sandpit usage --since 30d --by day
  sandpit usage --project '*' --by project`,
		Args: a.Takes(0, 0),
	}
	var q client.UsageQuery
	f := c.Flags()
	since := f.String("since", "", "only from then on, by the hour: 30d, 12h, or a time such as 2026-01-31T12:00:00Z")
	until := f.String("until", "", "only before then; in the same way")
	f.StringSliceVar(&q.By, "by", nil, "rows by project, token, day or hour; may be given again")
	f.StringVar(&q.Project, "project", "", "of another project, or '*' for all; for the server's own administrator's token")
	f.StringVar(&q.Token, "token-name", "", "only what the token of this name began")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		now := time.Now()
		for _, t := range []struct {
			name, value string
			to          *time.Time
		}{{"since", *since, &q.Since}, {"until", *until, &q.Until}} {
			at, ok := flags.Instant(now, t.value)
			if !ok {
				return exit.Misuse(c, "--%s is %q: it is a span such as 30d or 12h, or a time such as 2026-01-31T12:00:00Z", t.name, t.value)
			}
			*t.to = at
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r, err := cl.Usage(c.Context(), q)
		if err != nil {
			return err
		}
		if out.IsData() {
			return output.Data(a.Out, *out, r)
		}
		return a.print(r)
	}
	return c
}

func (a App) print(r *v1.UsageReport) error {
	form := time.DateOnly
	if slices.Contains(r.By, "hour") {
		form = "2006-01-02 15:04"
	}
	var head []string
	for _, by := range r.By {
		head = append(head, strings.ToUpper(by))
	}
	head = append(head, "COMMANDS", "RUNNING", "CPU-HOURS", "MEMORY GiB-HOURS", "DISK GiB-HOURS", "UP", "DOWN")
	rows := make([][]string, 0, len(r.Items))
	for _, u := range r.Items {
		var row []string
		for _, by := range r.By {
			switch {
			case by == "project":
				row = append(row, output.Text(u.Project))
			case by == "token":
				row = append(row, output.Text(u.Token))
			case u.Time != nil:
				row = append(row, u.Time.UTC().Format(form))
			}
		}
		rows = append(rows, append(row, strconv.FormatInt(u.Commands, 10), output.Span(time.Duration(u.RunSeconds*float64(time.Second))),
			hours(u.CPUSeconds), hours(u.MemoryGiBSeconds), hours(u.DiskGiBSeconds), output.Bytes(u.BytesUploaded), output.Bytes(u.BytesDownloaded)))
	}
	return output.Table(a.Out, head, rows)
}

func hours(seconds float64) string { return strconv.FormatFloat(seconds/3600, 'f', 3, 64) }
