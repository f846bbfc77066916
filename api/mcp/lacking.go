// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"net/http"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
)

// lacking returns why a caller's token may not call a tool of its list at all, with the header by which a client of OAuth
// gets another token (MCP asks for it); nil if it may. A caller with a token of this server's is told by the tool's
// answer, which the model reads: there is nobody whom its client could ask.
func (h *Handler) lacking(r *http.Request, c access.Caller, tool string) (challenge string, err error) {
	if c.Issuer == "" {
		return "", nil
	}
	profile, err := h.profileOf(r, c)
	if err != nil {
		return "", nil // that is said elsewhere
	}
	t := h.tools[profile][tool]
	if t == nil {
		return "", nil
	}
	need := access.SandboxesWrite
	if t.ReadOnly {
		need = access.SandboxesRead
	}
	err = c.Require(need)
	if err == nil && t.Group != "" && !c.SeesTools(t.Group) {
		err = narrowed(c, t)
	}
	return guard.Challenge(r, err), err
}

// narrowed is the error of a token whose scopes leave the group of a tool out.
func narrowed(c access.Caller, t *toolset.Tool) error {
	err := fault.New(fault.Denied, "the tool %s needs the scope %s, and the scopes of the token %q narrow it to other tools", t.Name, access.ToolScope(t.Group), c.Actor).
		WithRemedy("work with the tools that are listed, or use a token that has the scope")
	err.Scope = string(access.ToolScope(t.Group))
	return err
}
