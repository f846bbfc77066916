// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/sandbox"
)

// stateOf returns the clients' name of a sandbox's state.
func stateOf(s *sandbox.Sandbox) string {
	switch s.State {
	case sandbox.Creating:
		switch {
		case s.ImageDigest != "":
			return wire.StateCreating
		case s.Image != "":
			return wire.StatePulling
		}
		return wire.StateBuilding
	case sandbox.Running:
		return wire.StateStarted
	case sandbox.Pausing:
		return wire.StatePausing
	case sandbox.Paused:
		return wire.StatePaused
	case sandbox.Resuming:
		return wire.StateResuming
	case sandbox.Stopping:
		return wire.StateStopping
	case sandbox.Stopped:
		return wire.StateStopped
	case sandbox.Archiving:
		return wire.StateArchiving
	case sandbox.Archived:
		return wire.StateArchived
	case sandbox.Unarchiving, sandbox.Restoring:
		return wire.StateRestoring
	case sandbox.Starting:
		return wire.StateStarting
	case sandbox.Failed:
		if s.ImageDigest == "" && s.Image == "" {
			return wire.StateBuildFailed
		}
		return wire.StateError
	case sandbox.Deleting:
		return wire.StateDestroying
	case sandbox.Deleted:
		return wire.StateDestroyed
	}
	return wire.StateError
}

// statesOf returns the states of sandboxes whose state clients may call by a name. Others may have those states, too.
func statesOf(name string) (all []sandbox.State) {
	for _, state := range sandbox.States() {
		for _, s := range []sandbox.Sandbox{{Image: "x", ImageDigest: "x"}, {Image: "x"}, {}} {
			if s.State = state; stateOf(&s) == name && !slices.Contains(all, state) {
				all = append(all, state)
			}
		}
	}
	return all
}

// desired returns the state that a sandbox is in, or on its way to.
func desired(s *sandbox.Sandbox) string {
	switch s.State {
	case sandbox.Creating, sandbox.Running, sandbox.Resuming, sandbox.Starting, sandbox.Unarchiving, sandbox.Restoring:
		return wire.StateStarted
	case sandbox.Pausing, sandbox.Paused:
		return wire.StatePaused
	case sandbox.Archiving, sandbox.Archived:
		return wire.StateArchived
	case sandbox.Deleting, sandbox.Deleted:
		return wire.StateDestroyed
	default:
		return wire.StateStopped
	}
}

// item returns a sandbox as lists have it.
func (a *API) item(r *http.Request, s *sandbox.Sandbox) wire.ListItem {
	account := s.Account.Full()
	out := wire.ListItem{
		ID: string(s.ID), OrganizationID: s.Project, Name: s.Ref(), Snapshot: snapshotOf(s), User: account.Name,
		Labels: maps.Clone(s.Metadata), Public: s.Previews.Public, Target: a.target,
		CPU: ceil(s.Limits.CPU), Memory: ceil(float64(s.Limits.MemoryMB) / 1024), Disk: ceil(float64(s.Limits.DiskMB) / 1024),
		State: stateOf(s), DesiredState: desired(s), Recoverable: false,
		AutoArchive: minutes(s.ArchiveAfter), AutoDelete: -1,
		Volumes: []wire.Mount{}, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, LastActivityAt: s.LastActivity,
		Class: wire.ClassContainer, ToolboxProxyURL: toolboxURL(r),
	}
	if account.As == sandbox.UserRoot {
		out.User = sandbox.UserRoot
	}
	if out.Labels == nil {
		out.Labels = make(map[string]string)
	}
	if _, ok := out.Labels[wire.LanguageLabel]; !ok {
		out.Labels[wire.LanguageLabel] = defaultLanguage
	}
	if s.State == sandbox.Failed {
		out.ErrorReason, out.Recoverable = s.StopDetail, s.ImageDigest != ""
	}
	if s.OnIdle == sandbox.IdlePause {
		out.AutoPause = minutes(s.IdleTimeout)
	} else {
		out.AutoStop = minutes(s.IdleTimeout)
	}
	switch {
	case s.AutoDelete:
		out.AutoDelete = 0
	case s.Retention > 0:
		out.AutoDelete = minutes(s.Retention)
	}
	if !s.ExpiresAt.IsZero() {
		out.AutoDestroyAt = &s.ExpiresAt
	}
	for _, m := range s.Mounts {
		out.Volumes = append(out.Volumes, wire.Mount{VolumeID: string(m.Volume), MountPath: m.Path, Subpath: m.Sub})
	}
	n := a.Networks.InForce(s.Network)
	switch n.Mode {
	case sandbox.NetworkOff:
		out.NetworkBlockAll = true
	case sandbox.NetworkRestricted:
		ranges := make([]string, len(n.AllowCIDRs))
		for i, p := range n.AllowCIDRs {
			ranges[i] = p.String()
		}
		out.NetworkAllowList, out.DomainAllowList = strings.Join(ranges, ","), strings.Join(n.AllowDomains, ",")
	case sandbox.NetworkOpen:
	}
	return out
}

// full returns a sandbox as an answer about it has it. Only callers that may write get the values of its variables.
func (a *API) full(c *httpapi.Call, s *sandbox.Sandbox) wire.Sandbox {
	out := wire.Sandbox{ListItem: a.item(c.R, s), Env: map[string]string{}}
	if c.Caller.Require(access.SandboxesWrite) == nil && len(s.Env) > 0 {
		out.Env = maps.Clone(s.Env)
	}
	return out
}

// snapshotOf returns what a sandbox was made of.
func snapshotOf(s *sandbox.Sandbox) string {
	if t := s.Template; t != nil && t.Name != "" {
		return t.Name
	}
	if s.Parent != "" && s.ForkedFrom == "" {
		return string(s.Parent)
	}
	return s.Image
}

// toolboxURL returns the address to which clients add a sandbox's id, under the host name by which this client reached the server.
func toolboxURL(r *http.Request) string { return guard.BaseURL(r) + Base + toolboxPath }

func minutes(d time.Duration) float64 { return d.Minutes() }

// ceil returns a size as an integer, as the clients' types require: half a processor is 1.
func ceil(v float64) int { return int(math.Ceil(v)) }
