// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/login"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/internal/servers"
)

// serverInfo is what a server says of itself and of the caller.
type serverInfo struct {
	Server string `json:"server"`
	*v1.Info
	Whoami *v1.Whoami `json:"whoami"`
}

func newInfo(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "info [flags]",
		Short: "Say what the server is and can do, and who you are to it",
		Long: `Say what the server is and can do, and who you are to it: its version and address, how it isolates sandboxes and what
each runtime cannot do here and why, what a sandbox gets and may have at most, and what your token may do.`,
		Example: `  sandpit info
  sandpit info --format '{{.version}} {{.max.memory_mb}}'`,
		Args: app.Takes(0, 0),
	}
	out := output.FormatFlag(c)
	var by output.Template
	c.Flags().VarP(&by, "format", "f", "print it with this template, such as '{{.version}}'; its fields are those of -o json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		p, err := a.Locate()
		if err != nil {
			return err
		}
		who, err := login.AskWho(c.Context(), a, p)
		if err != nil {
			return err
		}
		info, err := a.ClientOf(p).Info(c.Context())
		if err != nil {
			return err
		}
		all := serverInfo{p.URL, info, who}
		switch {
		case by.Given():
			return by.Write(a.Stdout, all)
		case out.IsData():
			return output.Data(a.Stdout, *out, all)
		}
		return writeInfo(a.Stdout, p, all, time.Now())
	}
	return c
}

// writeInfo prints it for people.
func writeInfo(w io.Writer, p place.Server, all serverInfo, now time.Time) error {
	server := p.URL
	switch {
	case p.Kept != "":
		server += " (" + p.Kept + ")"
	case p.By == place.ByNobody:
		server += " (" + servers.Local + ")"
	}
	expires := "never"
	if all.Whoami.ExpiresAt != nil {
		expires = output.Ago(now, all.Whoami.ExpiresAt)
	}
	var counts []string
	for _, state := range slices.Sorted(maps.Keys(all.Sandboxes)) {
		if n := all.Sandboxes[state]; n > 0 {
			counts = append(counts, strconv.Itoa(n)+" "+state)
		}
	}
	if counts == nil {
		counts = []string{"none"}
	}
	d, m := all.Defaults, all.Max
	root := "commands may be root's"
	if !d.RootAllowed {
		root = "no command may be root's"
	}
	rows := [][2]string{
		{"server", server},
		{"version", all.Version + ", since " + all.StartedAt.Local().Format(time.DateTime)},
		{"you", fmt.Sprintf("%s of the project %s, with %s, which expires %s", all.Whoami.Name, all.Whoami.Project, strings.Join(all.Whoami.Scopes, ", "), expires)},
		{"sandboxes", strings.Join(counts, ", ")},
		{"default", limitsOf(d.CPUCores, d.MemoryMB, d.DiskMB, d.Pids)},
		{"at most", limitsOf(m.CPUCores, m.MemoryMB, m.DiskMB, m.Pids)},
		{"clocks", "idle for " + clockOf(d.IdleTimeoutSeconds) + ", then kept for " + clockOf(d.RetentionSeconds)},
		{"commands", "end after " + clockOf(d.CommandTimeoutSeconds) + ", at most " + clockOf(d.MaxCommandTimeoutSeconds) + "; " + root},
	}
	for _, r := range all.Runtimes {
		rows = append(rows, runtimeRows(r, r.Name == all.Runtime)...)
	}
	for _, pool := range all.Pools {
		rows = append(rows, [2]string{"pool", fmt.Sprintf("%s of the image %s: %d of %d ready", pool.Name, pool.Image, pool.Ready, pool.Target)})
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(w, "%-9s  %s\n", row[0], output.Printable(row[1])); err != nil {
			return err
		}
	}
	return nil
}

// runtimeRows tell what a runtime can do, and what it cannot do here and why.
func runtimeRows(r v1.Runtime, usual bool) [][2]string {
	name := r.Name
	if usual {
		name += " (default)"
	}
	if r.Error != "" {
		return [][2]string{{"runtime", name + ": " + r.Error}}
	}
	var can []string
	var rows [][2]string
	for _, what := range slices.Sorted(maps.Keys(r.Capabilities)) {
		one := r.Capabilities[what]
		if one.Supported {
			can = append(can, what)
			continue
		}
		rows = append(rows, [2]string{"", "no " + what + ": " + one.Reason})
		if one.Remedy != "" {
			rows = append(rows, [2]string{"", "→ " + one.Remedy})
		}
	}
	return append([][2]string{{"runtime", name + ": " + strings.Join(can, ", ")}}, rows...)
}

func limitsOf(cpu float64, memoryMB, diskMB, pids int) string {
	cores := strconv.FormatFloat(cpu, 'g', 4, 64) + " cores"
	if cpu == 1 {
		cores = "1 core"
	}
	return fmt.Sprintf("%s, %dM of memory, %dM of disk, %d processes and threads", cores, memoryMB, diskMB, pids)
}

// clockOf is a length of time in seconds, of which 0 is for ever.
func clockOf(seconds int64) string {
	if seconds == 0 {
		return "ever"
	}
	return output.Span(time.Duration(seconds) * time.Second)
}
