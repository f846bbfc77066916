// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"maps"
	"slices"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
)

// Sandbox is a record as its owner sees it. What only the server needs
// (handle, revision, values of variables) is left out.
func Sandbox(s *sandbox.Sandbox) v1.Sandbox {
	out := v1.Sandbox{
		ID: string(s.ID), Key: TextOrNull(s.Key), SessionKey: TextOrNull(s.Key), Project: s.Project,
		Status: string(s.State), StopCause: string(s.StopCause), StopDetail: s.StopDetail,
		Image: s.Image, AskedImage: s.AskedImage, Digest: s.ImageDigest, Runtime: s.Runtime, Workspace: s.Account.Full().Workdir, Account: Account(s.Account), User: s.Account.Shown(s.Account.User("")),
		CPUCores: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB, DiskMB: s.Limits.DiskMB, Pids: s.Limits.Pids,
		Network: string(s.Network.Mode), NetworkEnabled: s.Network.Mode != sandbox.NetworkOff,
		EnvNames: append([]string{}, slices.Sorted(maps.Keys(s.Env))...), Metadata: MapOrEmpty(s.Metadata),
		Volumes: mountsOf(s.Mounts), Skills: Installed(s.Skills), Template: madeOf(s), ParentSnapshot: TextOrNull(string(s.Parent)), ForkedFrom: TextOrNull(string(s.ForkedFrom)),
		IdleTimeoutSeconds: int64(s.IdleTimeout / time.Second), IdleAction: string(s.OnIdle),
		RetentionSeconds: int64(s.Retention / time.Second), ArchiveAfterSeconds: int64(s.ArchiveAfter / time.Second), AutoDelete: s.AutoDelete, ExpiresAt: TimeOrNull(s.ExpiresAt), OnExpiry: string(s.OnExpiry),
		AutoStart: s.AutoStart, AutoResume: s.AutoResume, Checkpoints: string(s.Checkpoints), Sudo: s.Sudo,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(), StartedAt: TimeOrNull(s.StartedAt),
		LastActivityAt: TimeOrNull(s.LastActivity), UnresponsiveSince: TimeOrNull(s.UnresponsiveSince), StoppedAt: TimeOrNull(s.StoppedAt), RunSeconds: runSeconds(s, time.Now()),
		ExecCount: s.ExecCount, ExecTotalMS: s.ExecTime.Milliseconds(),
		BytesUploaded: s.BytesUploaded, BytesDownloaded: s.BytesDownloaded,
	}
	if out.NetworkEnabled {
		out.NetworkPolicy = new(Policy(s.Network))
	}
	if s.Archive.Whole() {
		out.Archive = Archive(s.Archive)
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

// Installed returns the skills that are installed in a sandbox.
func Installed(skills []sandbox.Skill) []v1.InstalledSkill {
	out := make([]v1.InstalledSkill, 0, len(skills))
	for _, k := range skills {
		out = append(out, v1.InstalledSkill{ID: k.ID, Name: k.Name, Digest: k.Digest, InstalledAt: k.InstalledAt.UTC()})
	}
	return out
}

// Archive says where a packed disk is kept.
func Archive(a sandbox.Archive) *v1.Archive {
	return &v1.Archive{Place: a.Place, ID: string(a.ID), Digest: a.Digest, SizeBytes: a.PackedBytes, DiskBytes: a.Bytes, ArchivedAt: a.At.UTC()}
}

// madeOf says what a sandbox was made of; nil: it is not known.
func madeOf(s *sandbox.Sandbox) *v1.SandboxTemplate {
	t := s.Template
	if t == nil {
		return nil
	}
	out := &v1.SandboxTemplate{ID: TextOrNull(t.ID), Name: TextOrNull(t.Name), Version: NumberOrNull(t.Version), ChosenBy: string(t.ChosenBy)}
	if t.Start.Command != "" {
		out.Start = &v1.SandboxStart{Command: t.Start.Command, ProcessID: TextOrNull(s.StartProcess())}
		if r := s.Readiness(); r != nil {
			out.Start.Ready, out.Start.Reason, out.Start.Output = &r.OK, r.Reason, r.Output
		}
	}
	return out
}

func mountsOf(mounts []sandbox.Mount) []v1.Mount {
	out := make([]v1.Mount, 0, len(mounts))
	for _, m := range mounts {
		out = append(out, v1.Mount{Volume: m.Name, VolumeID: string(m.Volume), Path: m.Path, SubPath: m.Sub, ReadOnly: m.ReadOnly})
	}
	return out
}
