// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// DiffTexts prints what differs in the texts of files between two points, as diff -u does: of the files that are named, or of all that
// differ.
func DiffTexts(ctx context.Context, a *app.App, cl *client.Client, ref string, o client.DiffOptions, files []string) error {
	named := len(files) > 0
	if !named {
		d, err := cl.Diff(ctx, ref, o)
		if err != nil {
			return err
		}
		for _, ch := range d.Items {
			if ch.Escaped {
				a.Warn("left out: %s (its name is not UTF-8)", output.Printable(ch.Path))
				continue
			}
			files = append(files, ch.Path)
		}
		if d.Truncated {
			a.Warn("these are %d of at least %s; see --lines", len(d.Items), output.Plural(d.Total, "change"))
		}
	}
	w := bufio.NewWriter(a.Stdout)
	defer w.Flush()
	for _, name := range files {
		d, err := cl.DiffText(ctx, ref, name, o)
		if fault.Is(err, fault.NotFound) && !named {
			continue // it went away meanwhile
		}
		if err != nil {
			return err
		}
		writeText(w, d)
	}
	return w.Flush()
}

// writeText writes what differs in one file. Lines steer no terminal: what does is written as an escape.
func writeText(w *bufio.Writer, d *v1.TextDiff) {
	name := output.Printable(d.Path)
	switch d.Kind {
	case "text":
	case "same":
		return
	case "no_file":
		if d.FromFile != nil && d.FromFile.Type == "dir" || d.ToFile != nil && d.ToFile.Type == "dir" {
			return // what is in it is told for itself
		}
		fmt.Fprintf(w, "%s is no regular file\n", name)
		return
	case "too_large":
		fmt.Fprintf(w, "%s is too large to be compared\n", name)
		return
	default:
		fmt.Fprintf(w, "Binary files %s differ\n", name)
		return
	}
	side := func(prefix string, f *v1.FileInfo) string {
		if f == nil {
			return "/dev/null"
		}
		return prefix + "/" + strings.TrimPrefix(name, "/")
	}
	fmt.Fprintf(w, "--- %s\n+++ %s\n", side("a", d.FromFile), side("b", d.ToFile))
	for _, h := range d.Hunks {
		fmt.Fprintf(w, "@@ -%d,%d +%d,%d @@\n", h.FromLine, h.FromLines, h.ToLine, h.ToLines)
		for _, line := range h.Lines {
			fields := strings.Split(line, "\t")
			for i := range fields {
				fields[i] = output.Printable(fields[i])
			}
			fmt.Fprintln(w, strings.Join(fields, "\t"))
		}
	}
	if d.Truncated {
		fmt.Fprintf(w, "%s differs in more than is shown\n", name)
	}
}
