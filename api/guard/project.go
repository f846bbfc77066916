// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// ProjectHeader names the project that a request of the server's own administrator is for. Of any other token
// it may only be the token's own.
const ProjectHeader = "X-Sandpit-Project"

// inProject has a caller act in the project that its request names.
func (g *Guard) inProject(c *access.Caller, r *http.Request) error {
	named := r.Header.Values(ProjectHeader)
	switch {
	case len(named) == 0:
		return nil
	case len(named) > 1:
		return fault.InvalidField(ProjectHeader, "is given %d times; a request is for one project", len(named))
	}
	name := named[0]
	if err := access.CheckProject(ProjectHeader, name); err != nil {
		return err
	}
	if name == c.Project {
		return nil
	}
	if !c.May(access.ServerAdmin) {
		return fault.New(fault.Denied, "the token %q belongs to the project %s, and the request is for %s", c.Actor, c.Project, name).
			WithRemedy("leave the header %s out, or use the server's own admin token", ProjectHeader)
	}
	if g.project != nil {
		if err := g.project(r.Context(), name); err != nil {
			return err
		}
	}
	c.Project = name
	return nil
}
