// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Groups of tools, which a server switches on and off, and a token's scopes narrow:
// every tool that is listed costs a model attention. Those up to GroupRuns are on
// unless they are switched off, the others off until they are switched on.
const (
	GroupCore    = "core"    // sandboxes, commands, reading, writing and editing files
	GroupCode    = "code"    // run_code
	GroupProcess = "process" // commands that go on
	GroupFiles   = "files"   // listing, searching, links
	GroupPorts   = "ports"   // links to what is served
	GroupRuns    = "runs"    // run_sandbox
	// GroupState is what changes a sandbox as a whole: pause, restart, snapshots,
	// forks, and what its limits are.
	GroupState = "state"
	// GroupManage is the rest of what a sandbox can be told: its limits, network and
	// clocks, stops, shells, terminals, contexts of code, images.
	GroupManage  = "manage"
	GroupInspect = "inspect" // looking only: all there is to know of a sandbox and its project
	GroupVolumes = "volumes"
)

// Groups lists every group.
func Groups() []string {
	return []string{GroupCore, GroupCode, GroupProcess, GroupFiles, GroupPorts, GroupRuns, GroupState, GroupManage, GroupInspect, GroupVolumes}
}

// onByDefault tells of a group whether it is on where nobody has switched it.
func onByDefault(group string) bool {
	switch group {
	case GroupState, GroupManage, GroupInspect, GroupVolumes:
		return false
	}
	return true
}

// off begins a word that switches a group off.
const off = "-"

// CheckGroups refuses what is no group; one with a - before it is switched off. The
// error is about field.
func CheckGroups(field string, groups []string) error {
	for _, g := range groups {
		if !slices.Contains(Groups(), strings.TrimPrefix(g, off)) {
			return fault.InvalidField(field, "%q is not a valid group of tools", sandbox.Clip(g, 40)).
				WithRemedy("there is %s; with a - before it a group is switched off", strings.Join(Groups(), ", "))
		}
	}
	return nil
}

// switchedOn gives the groups that are on, where these words change what is by
// default. The last word about a group holds.
func switchedOn(words []string) []string {
	on := make(map[string]bool)
	for _, g := range Groups() {
		on[g] = onByDefault(g)
	}
	for _, w := range words {
		on[strings.TrimPrefix(w, off)] = !strings.HasPrefix(w, off)
	}
	return slices.DeleteFunc(Groups(), func(g string) bool { return !on[g] })
}

// toolsOf are those of a group.
func toolsOf(group string) []tool {
	switch group {
	case GroupCore:
		return []tool{createSandbox(), listSandboxes(), deleteSandbox(), runCommand(), readFile(), writeFile(), editFile()}
	case GroupCode:
		return []tool{runCode()}
	case GroupProcess:
		return []tool{readProcess(), writeProcess(), stopProcess()}
	case GroupFiles:
		return []tool{listFiles(), searchFiles(), getFileURL()}
	case GroupPorts:
		return []tool{exposePort()}
	case GroupRuns:
		return []tool{runSandbox()}
	case GroupState:
		return []tool{
			pauseSandbox(), resumeSandbox(), restartSandbox(),
			snapshotSandbox(), listSnapshots(), deleteSnapshot(),
			rollbackSandbox(), forkSandbox(), diffSandbox(), getSandboxLimits(),
		}
	case GroupManage:
		return []tool{
			updateSandbox(), startSandbox(), stopSandbox(), runInShell(), createContext(), endContext(),
			openTerminal(), resizeTerminal(), buildImage(),
		}
	case GroupInspect:
		return []tool{
			getSandbox(), listActivity(), listProcesses(), listRuns(), listContexts(), listPorts(),
			getNetworkLog(), listSecrets(), listImages(), watchFiles(),
		}
	case GroupVolumes:
		return []tool{createVolume(), listVolumes(), deleteVolume()}
	}
	return nil
}

// has tells whether the caller has the tools of a group.
func (c *call) has(group string) bool {
	return slices.Contains(c.groups, group) && c.Caller.SeesTools(group)
}

// narrowTools hides from a caller the groups that its token's scopes leave out.
// The list depends on the token alone, so that it is the same each time.
func narrowTools(h *Handler, groups map[string]*tool) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			caller := transport.CallOf(req).Caller
			if r, ok := req.(*mcp.CallToolRequest); ok && r.Params != nil {
				if t := groups[r.Params.Name]; t != nil && !caller.SeesTools(t.group) {
					c := h.call(transport.CallOf(r), t)
					return c.failure(ctx, fault.New(fault.Denied, "the tool %s needs the scope %s, and the scopes of the token %q narrow it to other tools", t.name, access.ToolScope(t.group), caller.Actor).
						WithRemedy("work with the tools that are listed, or use a token that has the scope")), nil
				}
			}
			res, err := next(ctx, method, req)
			if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
				list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool {
					g := groups[t.Name]
					return g != nil && !caller.SeesTools(g.group)
				})
			}
			return res, err
		}
	}
}
