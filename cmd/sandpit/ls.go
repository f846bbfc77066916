// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	labels := pairs{}
	c.Flags().Var(labels, "label", "only those with this label; may be given again")
	how := listFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		q := client.ListQuery{Metadata: labels.value(), Limit: listPage}
		if !*all {
			q.Status = []string{"creating", "starting", "running", "pausing", "paused", "resuming", "restoring", "stopping"}
		}
		found, err := collect(cl.List(c.Context(), q))
		if err != nil {
			return err
		}
		return list(a.stdout, how, found, func(s *v1.Sandbox) string { return s.ID }, columns[*v1.Sandbox]{
			head: []string{"NAME", "ID", "STATUS", "IMAGE", "CPU", "MEMORY", "CREATED", "ACTIVE"},
			row: func(s *v1.Sandbox, now time.Time) []string {
				status := s.Status
				if s.StopCause != "" && s.Status != "running" {
					status += " (" + s.StopCause + ")"
				}
				if s.UnresponsiveSince != nil {
					status += " (unresponsive)"
				}
				return []string{
					text(s.Key), s.ID, status, s.Image, strconv.FormatFloat(s.CPUCores, 'g', 4, 64), strconv.Itoa(s.MemoryMB) + "M",
					ago(now, &s.CreatedAt), ago(now, s.LastActivityAt),
				}
			},
		})
	}
	return c
}
