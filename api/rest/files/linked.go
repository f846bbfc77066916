// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"net/http"
	"path"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Who reads by a link, in the events of the sandbox.
const (
	linkActor = "link"
	linkVia   = "file-link"
)

// Linked answers with the file that the request's path is a link to, with the rights of a caller that may read the
// link's project, and as the user sandbox.
func (a *API) Linked(c *httpapi.Call, links *filelink.Links) error {
	c.W.Header().Set("Referrer-Policy", "no-referrer") // the address is a secret
	if c.R.Method != http.MethodGet && c.R.Method != http.MethodHead {
		c.W.Header().Set("Allow", "GET, HEAD")
		return guard.WithStatus(http.StatusMethodNotAllowed, fault.New(fault.Unsupported, "linked files can be read and nothing else"))
	}
	token, name, err := filelink.Parse(c.R.URL.EscapedPath())
	if err != nil {
		return err
	}
	g, err := links.Read(token, time.Now())
	if err != nil {
		return err
	}
	if name != path.Base(g.Path) { // else a link could be given a name that its file has not
		return fault.New(fault.NotFound, "there is no linked file %q", sandbox.Clip(name, 80))
	}
	c.Caller = access.Caller{Project: g.Project, Actor: linkActor, Via: linkVia, Scopes: []access.Scope{access.SandboxesRead}}
	ctx := c.R.Context()
	guard.Proven(ctx)
	if c.R.Method == http.MethodHead {
		return a.headFile(ctx, c, g.Sandbox, g.Path, "")
	}
	return a.sendFile(ctx, c, g.Sandbox, g.Path, "")
}
