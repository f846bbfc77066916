// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// number is an argument with the bounds that Daytona's schema has, of which one may be
// missing.
func number(name, about, bounds string, least, most float64, field string) toolset.Param {
	return toolset.Param{
		Name: name, Kind: toolset.Nested, Min: least, Max: most, Field: field,
		Schema: `{"type":"number","description":` + toolset.Quote(about) + bounds + `}`,
	}
}

const volumes = `{"type":"array","description":"Volumes to attach, by id or name.","items":{"type":"object","properties":{` +
	`"volumeId":{"type":"string"},"mountPath":{"type":"string"}}}}`

const build = `{"type":"object","description":"Build information: a Dockerfile without files to copy. More than a FROM line is built first, by administrators alone.","properties":{` +
	`"dockerfileContent":{"type":"string"},"contextHashes":{"type":"array","items":{"type":"string"}}}}`

func create() toolset.Tool {
	const noLess = `,"minimum":0`
	return toolset.Tool{
		Name: "create_sandbox", Title: "Create a sandbox",
		About: "Create a new sandbox, or check that one can be used. Answers with its id.",
		Params: []toolset.Param{
			{Name: "id", Kind: toolset.Text, About: "Id of a sandbox that is there, to use it again. Leave it out to make a new one: ids cannot be chosen.", Aliases: []string{"sandbox_id", "sandboxId"}},
			{Name: "name", Kind: toolset.Text, Field: "key", About: "Name of the sandbox. Left out: its id."},
			{Name: "target", Kind: toolset.Text, About: "Region, default us; there is only one here."},
			{Name: "snapshot", Kind: toolset.Text, Field: "image", About: "Template or snapshot that it begins with. Leave it out unless the user named one."},
			{Name: "user", Kind: toolset.Text, About: "User of its commands; there is only sandbox."},
			{Name: "env", Kind: toolset.Texts, About: "Environment variables of every command."},
			{Name: "labels", Kind: toolset.Texts, Field: "metadata", About: "Labels of your own."},
			{Name: "public", Kind: toolset.Boolean, About: "Whether previews need no token; there are none such here."},
			number("cpu", "CPU cores.", `,"maximum":4`, 0, 4, "cpu_cores"),
			{Name: "size", Kind: toolset.Text, About: "CPU and memory by name: small, medium or large. Not of Daytona; cpu and memory go before it."},
			number("gpu", "GPUs; there are none here.", `,"maximum":1`, 0, 1, ""),
			number("memory", "Memory in GB.", `,"maximum":8`, 0, 8, "memory_mb"),
			number("disk", "Disk in GB.", `,"maximum":10`, 0, 10, "disk_mb"),
			number("autoStopInterval", "Stop it after so many idle minutes, default 15; 0: never.", noLess, 0, toolset.MaxMinutes, "idle_timeout_seconds"),
			number("ttlMinutes", "Destroy it so many minutes after now, whatever it does; 0: never.", noLess, 0, toolset.MaxMinutes, "ttl_seconds"),
			number("autoPauseInterval", "Pause it after so many idle minutes; 0: never. Not with autoStopInterval.", noLess, 0, toolset.MaxMinutes, "idle_timeout_seconds"),
			number("autoArchiveInterval", "Archive it so many minutes after it stopped; default and 0: never. A call brings it back.", noLess, 0, toolset.MaxMinutes, "archive_after_seconds"),
			number("autoDeleteInterval", "Destroy it so many minutes after it stopped; 0: at once; default -1: never.", "", -toolset.MaxMinutes, toolset.MaxMinutes, "retention_seconds"),
			{Name: "volumes", Kind: toolset.Nested, Schema: volumes, Field: "mounts"},
			{Name: "buildInfo", Kind: toolset.Nested, Schema: build},
			{Name: "networkBlockAll", Kind: toolset.Boolean, About: "Block all network access."},
			{Name: "networkAllowList", Kind: toolset.Text, About: "Domains, or ranges of addresses, that alone are allowed, separated by commas.", Field: "network"},
		},
		Example: `{"name": "my-project"}`,
		Run:     makeSandbox,
	}
}

func makeSandbox(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	if id := a.Text("id"); id != "" && len(a.Bad) == 0 {
		return reuse(ctx, c, id)
	}
	r := engine.CreateRequest{
		Key: a.Text("name"), Env: a.Env("env"), Metadata: a.Env("labels"),
		Limits: daytonaterms.Limits(a.Number("cpu", 0), a.Number("memory", 0), a.Number("disk", 0)),
	}
	c.Size(&r.Limits)
	clocks(a, &r)
	recipe := origin(a, &r)
	r.Mounts = mounts(a)
	r.Network = policy(a)
	unsupported := cannot(a)
	if err := a.Err(); err != nil {
		return nil, err
	}
	if unsupported != nil {
		return nil, unsupported
	}
	note := ""
	if r.Network == nil {
		var err error
		if r.Network, note, err = open(ctx, c); err != nil {
			return nil, err
		}
	}
	if recipe != "" {
		var err error
		if r.Image, err = built(ctx, c, recipe); err != nil {
			return nil, err
		}
	}
	s, created, err := c.Sandboxes.Create(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	c.Ref = string(s.ID)
	out := toolset.TextAnswer("Created new sandbox " + c.Ref)
	if !created {
		out = toolset.TextAnswer("Reusing existing sandbox " + c.Ref)
		note = "the sandbox " + toolset.Quote(s.Key) + " existed already and was left as it is"
	}
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	if s.AskedImage != "" && s.AskedImage != s.Image {
		versions := c.Versions.Of(ctx, c.Caller, s.ImageDigest)
		out.Notes = append(out.Notes, fmt.Sprintf("the image %s is %s here: %s", toolset.Quote(toolset.Clip(s.AskedImage)), s.Image, toolset.VersionsText(versions)))
		if note := image.Note(s.AskedImage, s.Image, versions); note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	return out, nil
}

// reuse looks whether a sandbox can be used: one that runs, or that starts by
// itself when it is.
func reuse(ctx context.Context, c *toolset.Call, id string) (*toolset.Answer, error) {
	c.Ref = id
	s, err := c.Sandboxes.Get(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	if s.State != sandbox.Running && (!s.State.Down() || !s.AutoStart) {
		return nil, fault.New(fault.State, "the sandbox %s is %s", c.Ref, s.State).
			WithRemedy("leave id out to make a new one")
	}
	return toolset.TextAnswer("Reusing existing sandbox " + id), nil
}

// clocks reads when a sandbox is stopped, paused, archived and destroyed.
func clocks(a *toolset.Args, r *engine.CreateRequest) {
	minutes := func(name string) *float64 {
		if !a.Has(name) {
			return nil
		}
		return new(a.Number(name, 0))
	}
	c := daytonaterms.Clocks{
		AutoStop: minutes("autoStopInterval"), AutoPause: minutes("autoPauseInterval"), AutoArchive: minutes("autoArchiveInterval"),
		AutoDelete: minutes("autoDeleteInterval"), TTL: minutes("ttlMinutes"),
	}
	wrong(a, c.Apply(r))
}

// wrong notes what is wrong with arguments.
func wrong(a *toolset.Args, bad []fault.Field) {
	for _, f := range bad {
		a.Add(f.Name, "%s", f.Message)
	}
}

// origin reads what the sandbox begins with: an image of the catalogue, or a
// snapshot. It returns the Dockerfile of an image that is to be built first, "" for none.
func origin(a *toolset.Args, r *engine.CreateRequest) (recipe string) {
	r.From, r.Image = daytonaterms.Origin(a.Text("snapshot"))
	if !a.Has("buildInfo") {
		return ""
	}
	if a.Has("snapshot") {
		a.Add("snapshot", "cannot be combined with buildInfo; give one of them")
	}
	o := toolset.Object{Args: a, At: "buildInfo", Values: a.Values["buildInfo"]}.Fields()
	text := o.Text("dockerfileContent")
	if len(o.Texts("contextHashes")) > 0 {
		a.Add("buildInfo", "has contextHashes, and files for COPY cannot be sent here; make the image by sandpit image build, or write the files by here-documents")
	}
	if strings.TrimSpace(text) == "" {
		a.Add("buildInfo", "has no dockerfileContent; give a Dockerfile, or leave buildInfo out")
	}
	image, ok := daytonaterms.OnlyFrom(text)
	if r.Image = image; !ok {
		return text
	}
	return ""
}

// mounts reads the volumes.
func mounts(a *toolset.Args) []volume.Mount {
	if !a.Has("volumes") {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(a.Values["volumes"], &list) != nil {
		a.Add("volumes", "is %s and not a list", toolset.Shown(a.Values["volumes"]))
		return nil
	}
	var out []volume.Mount
	for i, raw := range list {
		o := toolset.Object{Args: a, At: fmt.Sprintf("volumes[%d]", i), Values: raw}.Fields()
		out = append(out, volume.Mount{Volume: o.Text("volumeId"), Path: o.Text("mountPath"), Sub: o.Text("subpath")})
		o.Rest()
	}
	return out
}

// policy reads what the sandbox may reach; nil: nothing was said.
func policy(a *toolset.Args) *sandbox.NetworkPolicy {
	p, bad := daytonaterms.Network(a.Bool("networkBlockAll", false), a.Text("networkAllowList"))
	wrong(a, bad)
	return p
}

// open is the network of a sandbox of which nothing was said: at Daytona the
// whole of the internet, and here what the operator allows of that.
func open(ctx context.Context, c *toolset.Call) (p *sandbox.NetworkPolicy, note string, err error) {
	if !slices.Contains(c.Networks.Networks(), sandbox.NetworkOpen) {
		return nil, "the network is off, since this server allows no sandbox all of the internet; networkAllowList asks for a part", nil
	}
	i, err := c.Server.Info(ctx, c.Caller)
	if err != nil {
		return nil, "", err
	}
	for _, r := range i.Runtimes {
		if r.Name == i.Default && r.Features[engine.FeatureNetwork].Supported {
			return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, "", nil
		}
	}
	return nil, "the network is off: this server can give no sandbox one", nil
}

// cannot is nil, or says which of the arguments asks for what there is not.
func cannot(a *toolset.Args) error {
	if t := a.Text("target"); t != "" && t != "us" && t != toolset.OnlyRegion {
		return fault.New(fault.Unsupported, "target: there is no region %s; this server is in one place", toolset.Quote(toolset.Clip(t))).
			WithRemedy("leave target out, if it does not matter where the sandbox is")
	}
	if u := a.Text("user"); u != "" && u != "sandbox" && u != daytonaterms.DefaultUser {
		return fault.New(fault.Unsupported, "user: commands run as the user sandbox, and not as %s", toolset.Quote(toolset.Clip(u))).
			WithRemedy("leave user out")
	}
	if a.Number("gpu", 0) > 0 {
		return fault.New(fault.Unsupported, "gpu: this server gives no sandbox a GPU").WithRemedy("leave gpu out")
	}
	if a.Bool("public", false) {
		return fault.New(fault.Unsupported, "public: every link to a port of a sandbox has a token in it").
			WithRemedy("leave public out; preview_link gives a link that works for whoever has it")
	}
	return nil
}

func destroy() toolset.Tool {
	return toolset.Tool{
		Name: "destroy_sandbox", Title: "Destroy a sandbox", Destructive: true, Idempotent: true,
		About:   "Destroy a sandbox with all its files.",
		Params:  []toolset.Param{words().Which()},
		Example: `{"id": "an-id"}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			words().In(c)
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			id, err := c.Delete(ctx)
			if err != nil {
				return nil, err
			}
			return toolset.TextAnswer("Destroyed sandbox with ID " + id), nil
		},
	}
}
