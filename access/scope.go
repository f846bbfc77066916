// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Scope is one right of a token, within its project.
type Scope string

const (
	SandboxesRead  Scope = "sandboxes:read"  // see sandboxes, their files, their activity
	SandboxesWrite Scope = "sandboxes:write" // create, run, change and delete them
	SandboxesPorts Scope = "sandboxes:ports" // see what programs in them serve; sandboxes:write has it. Of tokens of one sandbox alone
	Admin          Scope = "admin"           // all of the above, tokens and images

	// ServerAdmin is the right to what concerns the server, or projects other than the caller's. It
	// implies Admin and no token of a project can have it: only the server's own admin tokens do.
	ServerAdmin Scope = "server:admin"
)

// Scopes that name groups of MCP's tools. A token that has any of them sees only those groups;
// they add no other right.
const (
	ToolsCore    Scope = toolsPrefix + "core"
	ToolsCode    Scope = toolsPrefix + "code"
	ToolsProcess Scope = toolsPrefix + "process"
	ToolsFiles   Scope = toolsPrefix + "files"
	ToolsPorts   Scope = toolsPrefix + "ports"
	ToolsRuns    Scope = toolsPrefix + "runs"
	ToolsState   Scope = toolsPrefix + "state"
	ToolsManage  Scope = toolsPrefix + "manage"
	ToolsInspect Scope = toolsPrefix + "inspect"
	ToolsVolumes Scope = toolsPrefix + "volumes"
	ToolsGit     Scope = toolsPrefix + "git"

	toolsPrefix = "tools:"
)

// Scopes lists every scope that a token can have, the weakest first.
func Scopes() []Scope {
	return append(toolScopes(), SandboxesRead, SandboxesWrite, Admin)
}

func toolScopes() []Scope {
	return []Scope{ToolsCore, ToolsCode, ToolsProcess, ToolsFiles, ToolsPorts, ToolsRuns, ToolsState, ToolsManage, ToolsInspect, ToolsVolumes, ToolsGit}
}

// ToolScope is the scope of a group of tools.
func ToolScope(group string) Scope { return Scope(toolsPrefix + group) }

// SeesTools reports whether c sees a group of tools: a token without a scope of them sees all.
func (c Caller) SeesTools(group string) bool {
	narrowed := false
	for _, s := range c.Scopes {
		if s == ToolScope(group) {
			return true
		}
		narrowed = narrowed || strings.HasPrefix(string(s), toolsPrefix)
	}
	return !narrowed
}

// DefaultScopes are those of a token that was made without naming any.
func DefaultScopes() []Scope { return []Scope{SandboxesRead, SandboxesWrite} }

// Valid reports whether s is a scope at all.
func (s Scope) Valid() bool { return slices.Contains(Scopes(), s) }

// CheckScopes returns scopes in the order of [Scopes] without doubles, or
// [DefaultScopes] for none. An unknown one is Invalid, about field, and the
// error lists the valid ones.
func CheckScopes(field string, scopes []Scope) ([]Scope, error) {
	if len(scopes) == 0 {
		return DefaultScopes(), nil
	}
	for _, s := range scopes {
		if !s.Valid() {
			return nil, fault.InvalidField(field, "%q is not a valid scope; the scopes are %s",
				sandbox.Clip(string(s), 40), joinScopes(Scopes()))
		}
	}
	var out []Scope
	for _, s := range Scopes() {
		if slices.Contains(scopes, s) {
			out = append(out, s)
		}
	}
	return out, nil
}

func joinScopes(scopes []Scope) string {
	if len(scopes) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, s := range scopes {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}
