// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// listPage is how many sandboxes are asked for at once.
const listPage = 200

func newLs(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "ls [flags]",
		Aliases: []string{"list"},
		Short:   "List sandboxes",
		Long:    "List sandboxes, the newest first: those that run or are paused, or with -a all.",
		Args:    takes(0, 0),
	}
	all := c.Flags().BoolP("all", "a", false, "also those that are stopped or failed")
	quiet := c.Flags().BoolP("quiet", "q", false, "ids only")
	labels := pairs{}
	c.Flags().Var(labels, "label", "only those with this label; may be given again")
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		q := client.ListQuery{Metadata: labels.value(), Limit: listPage}
		if !*all {
			q.Status = []string{"creating", "starting", "running", "pausing", "paused", "resuming", "restoring", "stopping"}
		}
		found := []*v1.Sandbox{}
		for s, err := range cl.List(c.Context(), q) {
			if err != nil {
				return err
			}
			found = append(found, s)
		}
		switch {
		case *quiet:
			for _, s := range found {
				if _, err := fmt.Fprintln(a.stdout, s.ID); err != nil {
					return err
				}
			}
			return nil
		case *out == asJSON:
			return writeJSON(a.stdout, found)
		}
		now := time.Now()
		rows := make([][]string, 0, len(found))
		for _, s := range found {
			status := s.Status
			if s.StopCause != "" && s.Status != "running" {
				status += " (" + s.StopCause + ")"
			}
			rows = append(rows, []string{
				text(s.Key), s.ID, status, s.Image, strconv.FormatFloat(s.CPUCores, 'g', 4, 64), strconv.Itoa(s.MemoryMB) + "M",
				ago(now, &s.CreatedAt), ago(now, s.LastActivityAt),
			})
		}
		return table(a.stdout, []string{"NAME", "ID", "STATUS", "IMAGE", "CPU", "MEMORY", "CREATED", "ACTIVE"}, rows)
	}
	return c
}
