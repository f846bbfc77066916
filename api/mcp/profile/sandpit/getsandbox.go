// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/sandbox"
)

func getSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "get_sandbox", Title: "All about a sandbox", ReadOnly: true, Idempotent: true,
		About:   "All there is to know of one sandbox: state and why, limits, network, clocks, volumes, names of variables and secrets, where its disk comes from, what it has done.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: at(func(ctx context.Context, c *toolset.Call, ref string) (*toolset.Answer, error) {
			s, err := c.Engine.Get(ctx, c.Caller, ref)
			if err != nil {
				return nil, err
			}
			sh := wholeShapeFor(ctx, c, s)
			verdict := fmt.Sprintf("sandbox %s is %s", s.Ref(), s.State)
			if s.StopCause != "" && s.State != sandbox.Running {
				verdict += " (" + string(s.StopCause) + ")"
			}
			return &toolset.Answer{Verdict: verdict, Lines: sh.wholeLines(), Structured: sh}, nil
		}),
	}
}

// wholeShape is a sandbox with all that there is to know of it.
type wholeShape struct {
	shape
	StopDetail       string            `json:"stop_detail,omitempty"`
	Runtime          string            `json:"runtime"`
	AskedImage       string            `json:"requested_image,omitempty"`
	Digest           string            `json:"image_digest"`
	Pids             int               `json:"pids"`
	EnvNames         []string          `json:"env_names,omitempty"` // values are not shown
	Labels           map[string]string `json:"labels,omitempty"`
	UnusedTTLMinutes float64           `json:"unused_ttl_minutes,omitempty"`
	RetentionMinutes float64           `json:"retention_minutes,omitempty"`
	AutoDelete       bool              `json:"auto_delete,omitempty"`
	AutoStart        bool              `json:"auto_start"`
	AutoResume       bool              `json:"auto_resume,omitempty"`
	Checkpoints      string            `json:"checkpoints,omitempty"`
	ParentSnapshot   string            `json:"parent_snapshot,omitempty"`
	ForkedFrom       string            `json:"forked_from,omitempty"`
	StartedAt        string            `json:"started_at,omitempty"`
	StoppedAt        string            `json:"stopped_at,omitempty"`
	RunSeconds       float64           `json:"run_seconds"`
	Commands         int64             `json:"commands"`
	CommandSeconds   float64           `json:"command_seconds"`
	BytesUploaded    int64             `json:"bytes_uploaded"`
	BytesDownloaded  int64             `json:"bytes_downloaded"`
}

func wholeShapeFor(ctx context.Context, c *toolset.Call, s *sandbox.Sandbox) wholeShape {
	out := wholeShape{
		shape: describe(ctx, c, s), StopDetail: s.StopDetail, Runtime: s.Runtime, Digest: s.ImageDigest, Pids: s.Limits.Pids,
		EnvNames: slices.Sorted(maps.Keys(s.Env)), Labels: s.Metadata,
		UnusedTTLMinutes: s.TTL.Minutes(), RetentionMinutes: s.Retention.Minutes(), AutoDelete: s.AutoDelete, AutoStart: s.AutoStart, AutoResume: s.AutoResume,
		ParentSnapshot: string(s.Parent), ForkedFrom: string(s.ForkedFrom), StartedAt: toolset.TimeText(s.StartedAt), StoppedAt: toolset.TimeText(s.StoppedAt),
		Commands: s.ExecCount, CommandSeconds: s.ExecTime.Seconds(), BytesUploaded: s.BytesUploaded, BytesDownloaded: s.BytesDownloaded,
	}
	if s.AskedImage != s.Image {
		out.AskedImage = s.AskedImage
	}
	if s.Checkpoints != sandbox.CheckpointsOff {
		out.Checkpoints = string(s.Checkpoints)
	}
	ran := s.RunTime
	if !s.RunningSince.IsZero() {
		ran += max(time.Since(s.RunningSince), 0) // a clock may have been set back
	}
	out.RunSeconds = ran.Round(time.Millisecond).Seconds()
	return out
}

func (s *wholeShape) wholeLines() []string {
	out := s.lines()
	add := func(when bool, format string, v ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, v...))
		}
	}
	add(s.StopDetail != "", "why: %s", toolset.Clip(toolset.PrintablePath(s.StopDetail)))
	add(s.UnusedTTLMinutes > 0, "deleted when unused for %s minutes", toolset.Decimal(s.UnusedTTLMinutes))
	add(s.RetentionMinutes > 0, "deleted when stopped for %s minutes", toolset.Decimal(s.RetentionMinutes))
	add(s.AutoDelete, "deleted as soon as it is stopped")
	add(!s.AutoStart, "a call does not start it")
	add(s.AutoResume, "a call resumes it, whoever paused it")
	add(s.Checkpoints != "", "checkpoints: a snapshot after each command that changed files")
	add(len(s.EnvNames) > 0, "variables: %s (values are not shown)", named(s.EnvNames))
	add(len(s.Labels) > 0, "labels: %s", named(slices.Sorted(maps.Keys(s.Labels))))
	add(s.ParentSnapshot != "", "its disk descends from the snapshot %s", s.ParentSnapshot)
	add(s.ForkedFrom != "", "forked from the sandbox %s", s.ForkedFrom)
	add(true, "%d commands of %s together; it ran for %s in all; %d processes at most; runtime %s", s.Commands,
		toolset.Took(time.Duration(s.CommandSeconds*float64(time.Second))), toolset.Took(time.Duration(s.RunSeconds*float64(time.Second))), s.Pids, s.Runtime)
	return out
}
