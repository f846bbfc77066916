// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package events has the commands about what changes of a project's records.
package events

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// App is what the commands need of the program.
type App struct {
	Client   func() (*client.Client, error)
	Out, Err io.Writer
	Takes    func(least, most int) cobra.PositionalArgs
	Group    func(*cobra.Command, []string) error
	Each     func(names []string, do func(string) error) error
}

// New returns the command that shows events.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "events [flags]",
		Short: "Show what changed of sandboxes, snapshots, volumes and templates",
		Long: `Show what changed of the project's sandboxes, snapshots, volumes and templates: the events that the server
keeps, the newest last, and with --follow those that happen from now on. What is done in a sandbox is in
sandpit activity.`,
		Example: `  sandpit events --follow
  sandpit events --follow --type sandbox.stopped,snapshot --json | jq .object`,
		Args: a.Takes(0, 0),
	}
	f := c.Flags()
	follow := f.BoolP("follow", "f", false, "go on with what happens from now on, until it is interrupted")
	types := f.StringSlice("type", nil, "only of this type (sandbox.started, or snapshot for all of snapshots); may be given again")
	after := f.String("after", "", "only events behind the one with this id; 0: all that are kept")
	project := f.String("project", "", "of another project, or '*' for all; for the server's own administrator's token")
	out := output.FormatsFlag(c, output.AsText, output.AsText, output.AsJSON)
	asJSON := f.Bool("json", false, "the same as -o json: one object a line, with the id and the record")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("after") && *after == "" {
			return exit.Misuse(c, "--after is empty; leave it out")
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		q := client.EventsQuery{Types: *types, Project: *project, After: *after, Once: !*follow}
		if q.Once && q.After == "" {
			q.After = client.AllEvents
		}
		q.Reset = func(p v1.EventsPosition) error {
			_, err := fmt.Fprintf(a.Err, "sandpit: events are missing here: %s\n", p.Detail)
			return err
		}
		enc := json.NewEncoder(a.Out)
		enc.SetEscapeHTML(false)
		return cl.FollowEvents(c.Context(), q, func(e *v1.ProjectEvent) error {
			if *asJSON || out.IsData() {
				return enc.Encode(e)
			}
			_, err := fmt.Fprintf(a.Out, "%s  %-20s  %s\n", e.At.Local().Format(time.DateTime), e.Type, output.Printable(about(e)))
			return err
		})
	}
	return c
}

// about says of what an event is.
func about(e *v1.ProjectEvent) string {
	var name, status, actor string
	switch {
	case e.Sandbox() != nil:
		s := e.Sandbox()
		status = s.Status
		if s.Key != nil {
			name = *s.Key
		}
	case e.Snapshot() != nil:
		s := e.Snapshot()
		status = s.Status
		if s.Name != nil {
			name = *s.Name
		}
	case e.Volume() != nil:
		name, status = e.Volume().Name, e.Volume().Status
	case e.Template() != nil:
		t := e.Template()
		name, status = fmt.Sprintf("%s@%d", t.Name, t.Version), t.Status
	case e.Image() != nil:
		status = e.Image().Status
	}
	if e.Actor != "" {
		actor = ", by " + e.Actor
	}
	if name != "" {
		name = " " + name
	}
	return fmt.Sprintf("%s%s: %s%s", e.Subject, name, status, actor)
}
