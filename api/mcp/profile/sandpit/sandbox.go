// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

func createSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "create_sandbox", Title: "Create a sandbox", Idempotent: true,
		About: "Create an isolated Linux sandbox" + toolset.InsideMark + ", or get the one that has this name, started if it was stopped. " +
			"Files under /workspace stay until it is deleted. It stops when idle and starts again by itself when used. " +
			"Lifetime: until delete_sandbox, or ttl_minutes if given. run_command makes a default sandbox by itself: use this for another name, image or size.",
		Params: []toolset.Param{
			{Name: "name", Kind: toolset.Text, Field: "key", About: "Your own name for it, without /. The same name is the same sandbox. Default: a new one.", Aliases: []string{"key", "session_key", "identifier", "sandbox"}},
			{Name: "image", Kind: toolset.Text, About: "Default: python."},
			{Name: "template", Kind: toolset.Text, About: "A template, NAME or NAME@VERSION: an image with a command that starts."},
			{Name: "size", Kind: toolset.Text, About: "small, medium or large: cpus and memory_mb."},
			{Name: "memory_mb", Kind: toolset.Integer, Min: sandbox.MinMemoryMB, Max: sandbox.MaxMemoryMB, About: "Memory in MiB, default 512.", Aliases: []string{"memory"}},
			{Name: "cpus", Kind: toolset.Number, Min: sandbox.MinCPU, Max: sandbox.MaxCPU, Field: "cpu_cores", About: "CPU cores, default 1.", Aliases: []string{"cpu", "cpu_cores"}},
			{Name: "disk_mb", Kind: toolset.Integer, Min: sandbox.MinDiskMB, Max: sandbox.MaxDiskMB, About: "Disk in MiB, default 1024.", Aliases: []string{"disk"}},
			{Name: "network", Kind: toolset.Text, About: "off (default, unless the operator set another), restricted (only allow_domains) or open (all but deny).", Aliases: []string{"network_enabled"}},
			{Name: "allow_domains", Kind: toolset.Text, About: "Names that it may reach, with commas; *.example.org is all below it. Presets name hosts: python, node, debian, github, huggingface.", Aliases: []string{"domains"}},
			{Name: "deny", Kind: toolset.Text, About: "Names and addresses, with commas.", Aliases: []string{"deny_domains"}},
			paramHeaders("no secrets."),
			paramVolumes("Volumes to mount, like data:/workspace/data, with commas; :ro for reading only."),
			{Name: "from_snapshot", Kind: toolset.Text, Field: "from", About: "Begin with these files: a snapshot's id, or SANDBOX/NAME.", Aliases: []string{"snapshot"}},
			paramSkills(false, "Skills to install, with commas."),
			{Name: "env", Kind: toolset.Texts, About: "Variables of its commands.", Aliases: []string{"env_vars", "environment"}},
			{Name: "account", Kind: toolset.Texts, About: aboutAccount},
			{Name: "ttl_minutes", Kind: toolset.Number, Min: 1, Max: toolset.MaxMinutes, Field: "timeout_seconds", About: "Delete it after this, files included. Default: never.", Aliases: []string{"ttl"}},
			{Name: "idle_minutes", Kind: toolset.Number, Min: 0, Max: toolset.MaxMinutes, Field: "idle_timeout_seconds", About: "Stop it when unused for so long. Default 30; 0: never."},
		},
		Example: `{"name": "my-project"}`,
		Run:     create,
	}
}

// aboutAccount is said of the argument that [account] reads.
const aboutAccount = "Its user's name, home and workdir; user: who commands run as."

// account reads how the user of a sandbox is to be called, where it works, and who commands run as that do not say.
func account(a *toolset.Args) *sandbox.Account {
	if !a.Has("account") {
		return nil
	}
	out := new(sandbox.Account)
	for name, v := range a.Env("account") {
		switch name {
		case "name":
			out.Name = v
		case "home":
			out.Home = v
		case "workdir":
			out.Workdir = v
		case "user":
			out.As = v
		default:
			a.Add("account", "has %s; it may have name, home, workdir and user", toolset.Quote(toolset.Clip(name)))
		}
	}
	return out
}

func create(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := engine.CreateRequest{
		Key: a.Text("name"), Image: a.Text("image"), Env: a.Env("env"),
		Limits: sandbox.Limits{
			CPU: a.Number("cpus", 0), MemoryMB: int(a.Number("memory_mb", 0)), DiskMB: int(a.Number("disk_mb", 0)),
		},
		TTL: toolset.Minutes(a.Number("ttl_minutes", 0)), From: a.Text("from_snapshot"), Mounts: mounts(a), Account: account(a),
	}
	c.Size(&r.Limits)
	r.Network = network(a)
	if h := headers(a); h != nil {
		if r.Network == nil {
			a.Add("headers", "go with network restricted or open, or with allow_domains or deny")
		} else {
			r.Network.Headers = *h
		}
	}
	if a.Has("idle_minutes") {
		r.IdleTimeout = new(toolset.Minutes(a.Number("idle_minutes", 0)))
	}
	if a.Has("name") && r.Key == "" {
		a.Add("name", "is empty; leave it out for a sandbox without a name")
	}
	if a.Has("from_snapshot") && r.From == "" {
		a.Add("from_snapshot", "is empty; leave it out for an empty disk")
	}
	refs := a.List("skills")
	asked := a.Text("template")
	switch {
	case c.Templates != nil && (asked != "" || len(refs) > 0):
		r.Template = &sandbox.Template{Asked: asked, Skills: refs}
	case r.Image == "":
		r.Image = asked
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if a.Has("skills") {
		if err := c.Skills.CheckSkills(ctx, c.Caller, refs); err != nil {
			return nil, err
		}
	}
	s, created, err := c.Sandboxes.Create(ctx, c.Caller, r)
	if err == nil && a.Has("skills") {
		s, err = c.Skills.EquipSandbox(ctx, c.Caller, s, created, refs)
	}
	if err != nil {
		return nil, err
	}
	c.Ref = s.Ref()
	shown := describe(ctx, c, s)
	shown.Versions = c.Versions.Of(ctx, c.Caller, s.ImageDigest)
	shown.ImageNote = image.Note(s.AskedImage, s.Image, shown.Versions)
	verdict := "created sandbox " + s.Ref()
	if !created {
		verdict = "sandbox " + s.Ref() + " exists and is " + string(s.State)
	}
	out := &toolset.Answer{Verdict: verdict, Lines: shown.lines(), Structured: createdShape{created, shown}}
	if note := shown.madeShape.note(); note != "" && created {
		out.Notes = append(out.Notes, note)
	}
	if shown.ImageNote != "" {
		out.Notes = append(out.Notes, shown.ImageNote)
	}
	if differs := service.Differs(&r, s); !created && len(differs) > 0 {
		note := "it existed already and was left as it is; it differs from this call in " + strings.Join(differs, ", ")
		if c.Has(toolset.GroupManage) {
			note += "; update_sandbox changes them, but for the snapshot"
		}
		out.Notes = append(out.Notes, note)
	}
	return out, nil
}

// createdShape is the handle that create_sandbox gives.
type createdShape struct {
	Created bool `json:"created"`
	shape
}

// network reads what the sandbox may reach; nil: nothing was said. Not every tool has
// all of these arguments.
func network(a *toolset.Args) *sandbox.NetworkPolicy {
	p := &sandbox.NetworkPolicy{}
	each := func(name string, add func(string) error) {
		for _, one := range a.List(name) {
			if err := add(one); err != nil {
				a.Add(name, "%s", fault.As(err).Fields[0].Message)
			}
		}
	}
	each("allow_domains", func(s string) error {
		// A host's name of one label ends with a dot here.
		if strings.Contains(s, ".") {
			p.AllowDomains = append(p.AllowDomains, s)
		} else {
			p.AllowPresets = append(p.AllowPresets, s)
		}
		return nil
	})
	each("allow_addresses", func(s string) error {
		c, err := sandbox.ParseCIDR("allow_addresses", s)
		p.AllowCIDRs = append(p.AllowCIDRs, c)
		return err
	})
	each("deny", func(s string) error {
		if c, err := sandbox.ParseCIDR("deny", s); err == nil {
			p.DenyCIDRs = append(p.DenyCIDRs, c)
		} else {
			p.DenyDomains = append(p.DenyDomains, s)
		}
		return nil
	})
	each("allow_ports", func(s string) error {
		r, err := sandbox.ParsePorts("allow_ports", s)
		p.AllowPorts = append(p.AllowPorts, r)
		return err
	})
	switch mode := a.Text("network"); mode {
	case "":
		switch {
		case p.Denies():
			p.Mode = sandbox.NetworkOpen
		case len(p.AllowDomains)+len(p.AllowCIDRs)+len(p.AllowPorts)+len(p.AllowPresets) == 0:
			return nil
		default:
			p.Mode = sandbox.NetworkRestricted
		}
	case "false":
		p.Mode = sandbox.NetworkOff
	case "true":
		p.Mode = sandbox.NetworkOpen
	default:
		p.Mode = sandbox.NetworkMode(mode)
	}
	return p
}

func getSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "get_sandbox", Title: "All about a sandbox", ReadOnly: true, Idempotent: true,
		About:   "All there is to know of one sandbox: state and why, limits, network, clocks, volumes, names of variables and secrets, where its disk comes from, what it has done.",
		Params:  []toolset.Param{paramSandbox()},
		Example: `{"sandbox": "my-project"}`,
		Run: at(func(ctx context.Context, c *toolset.Call, ref string) (*toolset.Answer, error) {
			s, err := c.Sandboxes.Get(ctx, c.Caller, ref)
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
	StopDetail          string            `json:"stop_detail,omitempty"`
	Runtime             string            `json:"runtime"`
	Digest              string            `json:"image_digest"`
	Pids                int               `json:"pids"`
	EnvNames            []string          `json:"env_names,omitempty"` // values are not shown
	Labels              map[string]string `json:"labels,omitempty"`
	Skills              []string          `json:"skills,omitempty"` // names of those that are installed
	UnusedTTLMinutes    float64           `json:"unused_ttl_minutes,omitempty"`
	RetentionMinutes    float64           `json:"retention_minutes,omitempty"`
	ArchiveAfterMinutes float64           `json:"archive_after_minutes,omitempty"`
	ArchivedBytes       int64             `json:"archived_bytes,omitempty"`
	AutoDelete          bool              `json:"auto_delete,omitempty"`
	AutoStart           bool              `json:"auto_start"`
	AutoResume          bool              `json:"auto_resume,omitempty"`
	Checkpoints         string            `json:"checkpoints,omitempty"`
	Sudo                bool              `json:"sudo,omitempty"`
	Account             string            `json:"account"`
	Home                string            `json:"home"`
	User                string            `json:"user"` // who commands run as that do not say
	ParentSnapshot      string            `json:"parent_snapshot,omitempty"`
	ForkedFrom          string            `json:"forked_from,omitempty"`
	StartedAt           string            `json:"started_at,omitempty"`
	StoppedAt           string            `json:"stopped_at,omitempty"`
	RunSeconds          float64           `json:"run_seconds"`
	Commands            int64             `json:"commands"`
	CommandSeconds      float64           `json:"command_seconds"`
	BytesUploaded       int64             `json:"bytes_uploaded"`
	BytesDownloaded     int64             `json:"bytes_downloaded"`
}

func wholeShapeFor(ctx context.Context, c *toolset.Call, s *sandbox.Sandbox) wholeShape {
	out := wholeShape{
		shape: describe(ctx, c, s), StopDetail: s.StopDetail, Runtime: s.Runtime, Digest: s.ImageDigest, Pids: s.Limits.Pids,
		EnvNames: slices.Sorted(maps.Keys(s.Env)), Labels: s.Metadata,
		UnusedTTLMinutes: s.TTL.Minutes(), RetentionMinutes: s.Retention.Minutes(), ArchiveAfterMinutes: s.ArchiveAfter.Minutes(), ArchivedBytes: s.Archive.PackedBytes, AutoDelete: s.AutoDelete, AutoStart: s.AutoStart, AutoResume: s.AutoResume, Sudo: s.Sudo,
		ParentSnapshot: string(s.Parent), ForkedFrom: string(s.ForkedFrom), StartedAt: toolset.TimeText(s.StartedAt), StoppedAt: toolset.TimeText(s.StoppedAt),
		Commands: s.ExecCount, CommandSeconds: s.ExecTime.Seconds(), BytesUploaded: s.BytesUploaded, BytesDownloaded: s.BytesDownloaded,
	}
	for _, k := range s.Skills {
		out.Skills = append(out.Skills, k.Name)
	}
	full := s.Account.Full()
	out.Account, out.Home, out.User = full.Name, full.Home, full.Shown(full.User(""))
	out.Versions = c.Versions.Of(ctx, c.Caller, s.ImageDigest)
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
	add(s.ArchiveAfterMinutes > 0, "archived when stopped for %s minutes", toolset.Decimal(s.ArchiveAfterMinutes))
	add(s.ArchivedBytes > 0, "its disk is archived, and takes %s there", toolset.BytesText(s.ArchivedBytes))
	add(s.AutoDelete, "deleted as soon as it is stopped")
	add(!s.AutoStart, "a call does not start it")
	add(s.AutoResume, "a call resumes it, whoever paused it")
	add(s.Account != sandbox.UserSandbox || s.User != s.Account, "its user is %s, at home in %s; commands run as %s", s.Account, s.Home, s.User)
	add(s.Sudo, "sudo works in it: its user is root")
	add(s.Checkpoints != "", "checkpoints: a snapshot after each command that changed files")
	add(len(s.EnvNames) > 0, "variables: %s (values are not shown)", named(s.EnvNames))
	add(len(s.Labels) > 0, "labels: %s", named(slices.Sorted(maps.Keys(s.Labels))))
	add(len(s.Skills) > 0, "skills, under %s: %s", sandbox.Skills, named(s.Skills))
	add(s.ParentSnapshot != "", "its disk descends from the snapshot %s", s.ParentSnapshot)
	add(s.ForkedFrom != "", "forked from the sandbox %s", s.ForkedFrom)
	add(true, "%d commands of %s together; it ran for %s in all; %d processes at most; runtime %s", s.Commands,
		toolset.Took(time.Duration(s.CommandSeconds*float64(time.Second))), toolset.Took(time.Duration(s.RunSeconds*float64(time.Second))), s.Pids, s.Runtime)
	return out
}

func listSandboxes() toolset.Tool {
	states := make([]string, 0, len(sandbox.States()))
	for _, s := range sandbox.States() {
		if s != sandbox.Deleted {
			states = append(states, string(s))
		}
	}
	return toolset.Tool{
		Name: "list_sandboxes", Title: "List sandboxes", ReadOnly: true, Idempotent: true,
		About: "List your sandboxes, the newest first, with state, image and size.",
		Params: []toolset.Param{
			{Name: "state", Kind: toolset.Text, Enum: states, About: "Only those in this state.", Aliases: []string{"status"}},
			{Name: "search", Kind: toolset.Text, About: "Only those with this in name, id or image.", Aliases: []string{"query", "name"}},
			{Name: "labels", Kind: toolset.Texts, About: "Only those with these, as NAME=VALUE.", Aliases: []string{"metadata"}},
			paramBounds(), paramSort(),
			{Name: "ascending", Kind: toolset.Boolean, About: "The least first."},
			{Name: "limit", Kind: toolset.Integer, Min: 1, Max: 100, About: "How many, default 20.", Aliases: []string{"max_results"}},
			paramCursor(),
		},
		Example: `{"state": "running"}`,
		Run:     list,
	}
}

// sandboxList is the structured answer.
type sandboxList struct {
	Sandboxes  []shape `json:"sandboxes"`
	Total      int     `json:"total"`
	NextCursor string  `json:"next_cursor,omitempty"`
}

func list(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	q := engine.SandboxesRequest{
		Search: a.Text("search"), Limit: int(a.Number("limit", 20)), Cursor: a.Text("cursor"), SandboxSpans: bounds(a),
		Sort: engine.SandboxSort(a.Text("sort_by")), Oldest: a.Bool("ascending", false), Metadata: labels(a),
	}
	for _, s := range a.List("state") {
		q.States = append(q.States, sandbox.State(s))
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	page, err := c.Sandboxes.List(ctx, c.Caller, q)
	if err != nil {
		return nil, err
	}
	out := sandboxList{Sandboxes: make([]shape, 0, len(page.Items)), Total: page.Total, NextCursor: page.Next}
	ans := &toolset.Answer{Verdict: fmt.Sprintf("%d of %d sandboxes", len(page.Items), page.Total)}
	for _, s := range page.Items {
		sh := describe(ctx, c, s)
		out.Sandboxes = append(out.Sandboxes, sh)
		line := fmt.Sprintf("%s · %s", s.Ref(), s.State)
		if s.State != sandbox.Running && s.StopCause != "" {
			line += " (" + string(s.StopCause) + ")"
		}
		if sh.UnresponsiveSince != "" {
			line += " (unresponsive since " + sh.UnresponsiveSince + ")"
		}
		if s.Key != "" {
			line += " · id " + string(s.ID)
		}
		line += fmt.Sprintf(" · %s · %s CPU, %d MiB · last used %s", s.Image, toolset.Decimal(s.Limits.CPU), s.Limits.MemoryMB, sh.LastUsedAt)
		if sh.ExpiresAt != "" {
			line += " · " + sh.ends()
		}
		if sh.networkShape != nil {
			line += " · " + sh.networkText()
		}
		for _, x := range sh.extras() {
			line += " · " + x
		}
		ans.Lines = append(ans.Lines, line)
	}
	if page.Next != "" {
		ans.Notes = append(ans.Notes, "there are more; call again with cursor "+toolset.Quote(page.Next))
	}
	ans.Structured = out
	return ans, nil
}

// paramCursor is the argument that asks for the next page.
func paramCursor() toolset.Param {
	return toolset.Param{Name: "cursor", Kind: toolset.Text, About: "next_cursor of the answer before."}
}

func deleteSandbox() toolset.Tool {
	return toolset.Tool{
		Name: "delete_sandbox", Title: "Delete a sandbox", Destructive: true, Idempotent: true,
		About: "Delete a sandbox for ever: its processes end, its files are lost.",
		Params: []toolset.Param{
			{Name: "sandbox", Kind: toolset.Text, Required: true, Field: "key", About: "Name or id of the sandbox.", Aliases: sandboxAliases()},
		},
		Example: `{"sandbox": "my-project"}`,
		Run:     remove,
	}
}

func remove(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	c.Ref = c.Args.Text("sandbox")
	if c.Ref == "" {
		c.Args.Add("sandbox", "is empty")
	}
	if err := c.Args.Err(); err != nil {
		return nil, err
	}
	err := c.Sandboxes.Delete(ctx, c.Caller, c.Ref)
	if fault.Is(err, fault.NotFound) {
		// What should be gone is gone; but a name that was mistyped must show.
		return &toolset.Answer{
			Verdict: "nothing to delete: there is no sandbox " + toolset.Quote(sandbox.Clip(c.Ref, toolset.MaxShown)),
			Lines:   []string{"there are: " + c.Living(ctx)},
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return &toolset.Answer{Verdict: "deleted sandbox " + c.Ref + " with all its files"}, nil
}
