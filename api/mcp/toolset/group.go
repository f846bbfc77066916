// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"slices"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Groups of tools, which a server switches on and off, and a token's scopes narrow:
// every tool that is listed costs a model attention. Those up to GroupState are on
// unless they are switched off, the others off until they are switched on.
const (
	GroupCore    = "core"    // sandboxes, commands, reading, writing and editing files
	GroupCode    = "code"    // run_code
	GroupProcess = "process" // commands that go on
	GroupFiles   = "files"   // listing, searching, links
	GroupPorts   = "ports"   // links to what is served
	// GroupState is what changes a sandbox as a whole: pause, restart, snapshots,
	// forks, and what its limits are.
	GroupState = "state"
	GroupRuns  = "runs" // run_sandbox, which the profile mcp-sandboxd has in any case
	// GroupManage is the rest of what a sandbox can be told: its limits, network and
	// clocks, stops, shells, terminals, contexts of code, images.
	GroupManage  = "manage"
	GroupInspect = "inspect" // looking only: all there is to know of a sandbox and its project
	GroupVolumes = "volumes"
	GroupGit     = "git" // what becomes of a repository that was cloned
)

// Groups lists every group.
func Groups() []string {
	return []string{GroupCore, GroupCode, GroupProcess, GroupFiles, GroupPorts, GroupState, GroupRuns, GroupManage, GroupInspect, GroupVolumes, GroupGit}
}

// onByDefault tells of a group whether it is on where nobody has switched it.
func onByDefault(group string) bool {
	switch group {
	case GroupRuns, GroupManage, GroupInspect, GroupVolumes, GroupGit:
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

// SwitchedOn returns the groups that are on, where these words change what is by
// default. The last word about a group holds.
func SwitchedOn(words []string) []string {
	on := make(map[string]bool)
	for _, g := range Groups() {
		on[g] = onByDefault(g)
	}
	for _, w := range words {
		on[strings.TrimPrefix(w, off)] = !strings.HasPrefix(w, off)
	}
	return slices.DeleteFunc(Groups(), func(g string) bool { return !on[g] })
}

// Has reports whether the caller has the tools of a group.
func (c *Call) Has(group string) bool {
	return slices.Contains(c.Groups, group) && c.Caller.SeesTools(group)
}
