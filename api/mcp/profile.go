// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/profile/daytona"
	"sandpit.dev/api/mcp/profile/orkestr"
	"sandpit.dev/api/mcp/profile/sandboxd"
	"sandpit.dev/api/mcp/profile/sandpit"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// others lists the profiles beside the default one: a new one is a line here.
func others(d runs.Defaults, sizes sandbox.Sizes) []toolset.Profile {
	return []toolset.Profile{
		sandboxd.Profile(d),
		orkestr.Profile(sizes),
		daytona.Profile(),
	}
}

// Profiles lists their names.
func Profiles() []string {
	names := []string{sandpit.Name}
	for _, p := range others(runs.Defaults{}, nil) {
		names = append(names, p.Name)
	}
	return names
}

// CheckProfile refuses what is no profile; "" is the default one. The error is
// about field.
func CheckProfile(field, name string) error {
	if name == "" || slices.Contains(Profiles(), name) {
		return nil
	}
	return fault.InvalidField(field, "%q is not a valid profile of tools", sandbox.Clip(name, 40)).
		WithRemedy("there are %s", strings.Join(Profiles(), ", "))
}

// faces are the SDK's servers of one profile.
type faces struct {
	all      *mcp.Server // for callers that may write
	readOnly *mcp.Server // for all others
}

// openProfiles makes the servers of all profiles.
func (h *Handler) openProfiles(version string) {
	h.faces, h.tools = make(map[string]faces), make(map[string]map[string]*toolset.Tool)
	for _, p := range h.profiles {
		h.tools[p.Name] = make(map[string]*toolset.Tool)
		for _, t := range p.Tools(h.groups) {
			h.tools[p.Name][t.Name] = &t
		}
		h.faces[p.Name] = faces{h.server(p, version, true), h.server(p, version, false)}
	}
}

// serverOf is the server with the tools that a caller sees. A profile that the request's path
// names and that is not there is fault.NotFound.
func (h *Handler) serverOf(r *http.Request, c access.Caller) (*mcp.Server, error) {
	name, err := h.profileOf(r, c)
	if err != nil {
		return nil, err
	}
	f := h.faces[name]
	if c.Inside().May(access.SandboxesWrite) {
		return f.all, nil
	}
	return f.readOnly, nil
}

// profileOf is the profile that a request is for: the path's, else the token's, else
// the server's. One that the path names and that is not there is fault.NotFound.
func (h *Handler) profileOf(r *http.Request, c access.Caller) (string, error) {
	_, name, ok := strings.Cut(r.URL.Path, "/mcp/")
	if r.URL.Path == orkestr.Alias {
		return orkestr.Name, nil
	}
	if !ok || name == "" {
		if _, there := h.faces[c.Profile]; there {
			return c.Profile, nil
		}
		// The token's profile may have gone with an older server; its holder is told
		// by the list of tools, and not locked out.
		return h.profile, nil
	}
	if _, there := h.faces[name]; !there {
		return "", fault.New(fault.NotFound, "there is no profile of tools %q", sandbox.Clip(name, 40)).
			WithRemedy("there are %s: connect to /mcp/NAME, or to /mcp for the default", strings.Join(Profiles(), ", "))
	}
	return name, nil
}
