// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newActivity(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:               "activity [flags] SANDBOX",
		Short:             "Show what happened to a sandbox, the newest last",
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	most := c.Flags().IntP("lines", "n", 50, "how many events, counted from the newest; 0: all")
	types := c.Flags().StringSlice("type", nil, "only these types (exec, file.upload, …), separated by commas")
	how := output.ListFlags(c, "the ids of processes only")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *most < 0 {
			return exit.Misuse(c, "--lines %d is less than 0", *most)
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		q := client.ActivityQuery{Types: *types, Limit: 200}
		if *most > 0 {
			q.Limit = min(q.Limit, *most)
		}
		events := []*v1.Event{}
		for e, err := range cl.Activity(c.Context(), args[0], q) {
			if err != nil {
				return err
			}
			if events = append(events, e); len(events) == *most {
				break
			}
		}
		slices.Reverse(events)
		if how.Names() { // of those that are about a process
			events = slices.DeleteFunc(events, func(e *v1.Event) bool { return e.ProcessID == "" })
		}
		return output.List(a.Stdout, how, events, func(e *v1.Event) string { return e.ProcessID }, output.Columns[*v1.Event]{
			Head: []string{"WHEN", "WHO", "WHAT", "RESULT", "ABOUT"},
			Row: func(e *v1.Event, now time.Time) []string {
				return []string{output.Ago(now, &e.At), e.Actor + "/" + e.Via, e.Type, became(e), about(e)}
			},
			WideHead: []string{"PROCESS"},
			WideRow:  func(e *v1.Event, _ time.Time) []string { return []string{e.ProcessID} },
		})
	}
	return c
}

// became is how an event ended.
func became(e *v1.Event) string {
	var parts []string
	switch {
	case e.ExitCode != nil:
		parts = append(parts, fmt.Sprintf("exit %d", *e.ExitCode))
	case e.Status != "":
		parts = append(parts, e.Status)
	case e.OK != nil && !*e.OK:
		parts = append(parts, "failed")
	}
	if e.Cause != "" {
		parts = append(parts, e.Cause)
	}
	if by := signaledBy(e.SignaledBy, e.SignaledWith); by != "" {
		parts = append(parts, by)
	}
	if e.DurationMS != nil {
		parts = append(parts, (time.Duration(*e.DurationMS) * time.Millisecond).String())
	}
	if e.Size != nil {
		parts = append(parts, output.Bytes(*e.Size))
	}
	return strings.Join(parts, ", ")
}

// about is what an event was about, in a line.
func about(e *v1.Event) string {
	var parts []string
	if e.User != "" && e.User != "sandbox" {
		parts = append(parts, "as "+e.User+":")
	}
	for _, s := range []string{e.Command, e.Path} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if e.To != "" {
		parts = append(parts, "to "+e.To)
	}
	if e.FilesChangedTotal > 0 {
		parts = append(parts, fmt.Sprintf("(%s changed)", output.Plural(e.FilesChangedTotal, "file")))
	}
	what := strings.Join(parts, " ")
	if what != "" && e.Detail != "" {
		what += " — "
	}
	return what + e.Detail
}
