// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/access/seen"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/internal/mcpsetup"
	"sandpit.dev/sandbox"
)

// API serves the operations on clients. It is safe for concurrent use.
type API struct {
	Seen     *seen.Log // nil: nobody remembers who calls
	Profiles []string  // sets of tools that clients may be told of
}

// Operations returns the rows of the coat's table that the API serves.
func (a *API) Operations() []httpapi.Operation {
	return []httpapi.Operation{
		idempotency.Op("listClients", "GET /clients", "List the programs that speak MCP and are known, and how each is told of this server: what its file is to have, the line or the link that adds it, and where its token goes. No token is in the answer.", http.StatusOK, a.list),
		idempotency.Op("listSeenClients", "GET /clients/seen", "List the programs that called by MCP since the server began, who called last first: what they call themselves, by which token, and what they asked for last. Those of the caller's token; with the scope admin those of the project, with server:admin all.", http.StatusOK, a.seen),
	}
}

// placeholder stands where a token is to be written.
const placeholder = "YOUR_TOKEN"

type list struct {
	Profile *string `query:"profile" doc:"the set of tools; the default is the server's, or the token's"`
	Written *bool   `query:"written" doc:"have each client's file say the token itself, also of those that could read a variable"`
}

func (a *API) list(_ context.Context, c *idempotency.Call, in *list) (v1.ClientSetupList, error) {
	if err := c.Caller.Require(access.SandboxesRead); err != nil {
		return v1.ClientSetupList{}, err
	}
	profile := httpapi.Given(in.Profile)
	if profile != "" && !slices.Contains(a.Profiles, profile) {
		return v1.ClientSetupList{}, fault.InvalidField("profile", "%q is none; there are %s", sandbox.Clip(profile, 40), strings.Join(a.Profiles, ", "))
	}
	s := mcpsetup.Server{Name: mcpsetup.DefaultName, URL: guard.BaseURL(c.R) + "/mcp", Program: "sandpit", Remote: !mcpsetup.AtHome(c.R.Host)}
	if profile != "" {
		s.URL += "/" + url.PathEscape(profile)
		s.Profile = profile
	}
	out := v1.ClientSetupList{URL: s.URL, TokenVariable: mcpsetup.TokenVar, Placeholder: placeholder, Profiles: append([]string{}, a.Profiles...), Items: []v1.ClientSetup{}}
	for _, one := range mcpsetup.Setups(s, placeholder, in.Written != nil && *in.Written) {
		out.Items = append(out.Items, v1.ClientSetup{
			ID: one.ID, Title: one.Title, Note: one.Note, Language: one.Language(), File: one.File, Snippet: one.Snippet, Command: one.Command, Link: one.Link, Token: one.Token,
		})
	}
	return out, nil
}

func (a *API) seen(_ context.Context, c *idempotency.Call, _ *httpapi.NoInput) (v1.SeenClientList, error) {
	out := v1.SeenClientList{Items: []v1.SeenClient{}}
	if a.Seen == nil {
		return out, fault.New(fault.Unsupported, "this server does not remember who calls by MCP")
	}
	for _, one := range a.Seen.List(c.Caller) {
		o := v1.SeenClient{
			Project: one.Project, Actor: one.Actor, Name: one.Name, Version: one.Version, Title: one.Title, Protocol: one.Protocol, Profile: one.Profile,
			FirstSeenAt: one.First.UTC(), LastSeenAt: one.Last.UTC(), LastMethod: one.LastMethod, LastTool: one.LastTool, Messages: one.Messages, Calls: one.Calls,
			Listed: one.Listed, ListedAt: shape.TimeOrNull(one.ListedAt),
		}
		if one.TokenID != "" {
			o.TokenID = new(one.TokenID)
		}
		if one.Sandbox != "" {
			o.SandboxID = new(string(one.Sandbox))
		}
		out.Items = append(out.Items, o)
	}
	return out, nil
}
