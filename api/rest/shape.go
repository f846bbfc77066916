// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// sandboxOf is a record as its owner sees it. What only the server needs
// (handle, revision, values of variables) is left out.
func sandboxOf(s *sandbox.Sandbox) v1.Sandbox {
	out := v1.Sandbox{
		ID: string(s.ID), Key: textOrNull(s.Key), SessionKey: textOrNull(s.Key), Project: s.Project,
		Status: string(s.State), StopCause: string(s.StopCause), StopDetail: s.StopDetail,
		Image: s.Image, AskedImage: s.AskedImage, Digest: s.ImageDigest, Runtime: s.Runtime, Workspace: sandbox.Workspace,
		CPUCores: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB, DiskMB: s.Limits.DiskMB, Pids: s.Limits.Pids,
		Network: string(s.Network.Mode), NetworkEnabled: s.Network.Mode != sandbox.NetworkOff,
		EnvNames: append([]string{}, slices.Sorted(maps.Keys(s.Env))...), Metadata: mapOrEmpty(s.Metadata),
		Volumes: mountsOf(s.Mounts), Skills: installedOf(s.Skills), Template: madeOf(s), ParentSnapshot: textOrNull(string(s.Parent)), ForkedFrom: textOrNull(string(s.ForkedFrom)),
		IdleTimeoutSeconds: int64(s.IdleTimeout / time.Second), IdleAction: string(s.OnIdle),
		RetentionSeconds: int64(s.Retention / time.Second), ArchiveAfterSeconds: int64(s.ArchiveAfter / time.Second), AutoDelete: s.AutoDelete, ExpiresAt: timeOrNull(s.ExpiresAt),
		AutoStart: s.AutoStart, AutoResume: s.AutoResume, Checkpoints: string(s.Checkpoints),
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(), StartedAt: timeOrNull(s.StartedAt),
		LastActivityAt: timeOrNull(s.LastActivity), UnresponsiveSince: timeOrNull(s.UnresponsiveSince), StoppedAt: timeOrNull(s.StoppedAt), RunSeconds: runSeconds(s, time.Now()),
		ExecCount: s.ExecCount, ExecTotalMS: s.ExecTime.Milliseconds(),
		BytesUploaded: s.BytesUploaded, BytesDownloaded: s.BytesDownloaded,
	}
	if out.NetworkEnabled {
		out.NetworkPolicy = new(policyOf(s.Network))
	}
	if s.Archive.Whole() {
		out.Archive = archiveOf(s.Archive)
	}
	switch {
	case s.TTL > 0:
		out.TTLSeconds, out.TTLMode = new(int64(s.TTL/time.Second)), new("sliding")
	case !s.ExpiresAt.IsZero():
		out.TTLMode = new("absolute")
	}
	return out
}

// runSeconds is how long a sandbox ran so far, as of now, to the millisecond.
func runSeconds(s *sandbox.Sandbox, now time.Time) float64 {
	d := s.RunTime
	if !s.RunningSince.IsZero() {
		d += max(now.Sub(s.RunningSince), 0) // a clock may have been set back
	}
	return float64(d.Milliseconds()) / 1000
}

// oneSandbox is sandboxOf with what is inside the image.
func (a *API) oneSandbox(ctx context.Context, c *call, s *sandbox.Sandbox) v1.Sandbox {
	out := sandboxOf(s)
	out.Versions = a.Versions.Of(ctx, c.Caller, s.ImageDigest)
	out.ImageNote = image.Note(s.AskedImage, s.Image, out.Versions)
	return out
}

func text0(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func mapOrEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func changesOf(changes []sandbox.FileChange) []v1.FileChange {
	out := make([]v1.FileChange, 0, len(changes))
	for _, ch := range changes {
		out = append(out, v1.FileChange{Path: ch.Path, Escaped: ch.Escaped, Action: ch.Action, SizeBytes: ch.Size})
	}
	return out
}
