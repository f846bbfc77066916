// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// daytonaIdle is when an idle sandbox stops, where nothing is said of it.
const daytonaIdle = 15 * time.Minute

// daytonaDefaultUser is the user that Daytona's own images have, and models know.
const daytonaDefaultUser = "daytona"

// daytonaNumber is an argument with the bounds that Daytona's schema has, of which one may be
// missing.
func daytonaNumber(name, about, bounds string, least, most float64, field string) param {
	return param{
		name: name, kind: nested, min: least, max: most, field: field,
		schema: `{"type":"number","description":` + quote(about) + bounds + `}`,
	}
}

const daytonaVolumes = `{"type":"array","description":"Volumes to attach, by id or name.","items":{"type":"object","properties":{` +
	`"volumeId":{"type":"string"},"mountPath":{"type":"string"}}}}`

const daytonaBuild = `{"type":"object","description":"Build information: a Dockerfile that is one FROM line of a template; others are not built here.","properties":{` +
	`"dockerfileContent":{"type":"string"},"contextHashes":{"type":"array","items":{"type":"string"}}}}`

func daytonaCreate() tool {
	const noLess = `,"minimum":0`
	return tool{
		name: "create_sandbox", title: "Create a sandbox",
		about: "Create a new sandbox, or check that one can be used. Answers with its id.",
		params: []param{
			{name: "id", kind: text, about: "Id of a sandbox that is there, to use it again. Leave it out to make a new one: ids cannot be chosen.", aliases: []string{"sandbox_id", "sandboxId"}},
			{name: "name", kind: text, field: "key", about: "Name of the sandbox. Left out: its id."},
			{name: "target", kind: text, about: "Region, default us; there is only one here."},
			{name: "snapshot", kind: text, field: "image", about: "Template or snapshot that it begins with. Leave it out unless the user named one."},
			{name: "user", kind: text, about: "User of its commands; there is only sandbox."},
			{name: "env", kind: texts, about: "Environment variables of every command."},
			{name: "labels", kind: texts, field: "metadata", about: "Labels of your own."},
			{name: "public", kind: boolean, about: "Whether previews need no token; there are none such here."},
			daytonaNumber("cpu", "CPU cores.", `,"maximum":4`, 0, 4, "cpu_cores"),
			daytonaNumber("gpu", "GPUs; there are none here.", `,"maximum":1`, 0, 1, ""),
			daytonaNumber("memory", "Memory in GB.", `,"maximum":8`, 0, 8, "memory_mb"),
			daytonaNumber("disk", "Disk in GB.", `,"maximum":10`, 0, 10, "disk_mb"),
			daytonaNumber("autoStopInterval", "Stop it after so many idle minutes, default 15; 0: never.", noLess, 0, maxMinutes, "idle_timeout_seconds"),
			daytonaNumber("ttlMinutes", "Destroy it so many minutes after now, whatever it does; 0: never.", noLess, 0, maxMinutes, "ttl_seconds"),
			daytonaNumber("autoPauseInterval", "Pause it after so many idle minutes; 0: never. Not with autoStopInterval.", noLess, 0, maxMinutes, "idle_timeout_seconds"),
			daytonaNumber("autoArchiveInterval", "Archive it after so many minutes, default 10080. Here a stopped sandbox keeps its files as it is.", noLess, 0, maxMinutes, ""),
			daytonaNumber("autoDeleteInterval", "Destroy it so many minutes after it stopped; 0: at once; default -1: never.", "", -maxMinutes, maxMinutes, "retention_seconds"),
			{name: "volumes", kind: nested, schema: daytonaVolumes, field: "mounts"},
			{name: "buildInfo", kind: nested, schema: daytonaBuild},
			{name: "networkBlockAll", kind: boolean, about: "Block all network access."},
			{name: "networkAllowList", kind: text, about: "Domains, or ranges of addresses, that alone are allowed, separated by commas.", field: "network"},
		},
		example: `{"name": "my-project"}`,
		run:     daytonaMake,
	}
}

func daytonaMake(ctx context.Context, c *call) (*answer, error) {
	a := c.args
	if id := a.text("id"); id != "" && len(a.bad) == 0 {
		return daytonaReuse(ctx, c, id)
	}
	r := engine.CreateRequest{
		Key: a.text("name"), Env: a.env("env"), Metadata: a.env("labels"),
		Limits: sandbox.Limits{
			CPU: a.number("cpu", 0), MemoryMB: int(1024 * a.number("memory", 0)), DiskMB: int(1024 * a.number("disk", 0)),
		},
		TTL: minutes(a.number("ttlMinutes", 0)),
	}
	daytonaClocks(a, &r)
	daytonaOrigin(a, &r)
	r.Mounts = daytonaMounts(a)
	r.Network = daytonaPolicy(a)
	unsupported := daytonaCannot(a)
	if err := a.err(); err != nil {
		return nil, err
	}
	if unsupported != nil {
		return nil, unsupported
	}
	note := ""
	if r.Network == nil {
		var err error
		if r.Network, note, err = daytonaOpen(ctx, c); err != nil {
			return nil, err
		}
	}
	s, created, err := c.engine.Create(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	c.ref = string(s.ID)
	out := inText("Created new sandbox " + c.ref)
	if !created {
		out = inText("Reusing existing sandbox " + c.ref)
		note = "the sandbox " + quote(s.Key) + " existed already and was left as it is"
	}
	if note != "" {
		out.notes = append(out.notes, note)
	}
	if a.has("autoArchiveInterval") {
		out.notes = append(out.notes, "autoArchiveInterval has no effect: a stopped sandbox keeps its files and starts from where it is")
	}
	return out, nil
}

// daytonaReuse looks whether a sandbox can be used: one that runs, or that starts by
// itself when it is.
func daytonaReuse(ctx context.Context, c *call, id string) (*answer, error) {
	c.ref = id
	s, err := c.engine.Get(ctx, c.Caller, id)
	if err != nil {
		return nil, err
	}
	if s.State != sandbox.Running && (s.State != sandbox.Stopped || !s.AutoStart) {
		return nil, fault.New(fault.State, "the sandbox %s is %s", c.ref, s.State).
			WithRemedy("leave id out to make a new one")
	}
	return inText("Reusing existing sandbox " + id), nil
}

// daytonaClocks reads when a sandbox is stopped, paused and destroyed.
func daytonaClocks(a *args, r *engine.CreateRequest) {
	stop, pause := a.number("autoStopInterval", 0), a.number("autoPauseInterval", 0)
	r.IdleTimeout = new(daytonaIdle)
	switch {
	case stop > 0 && pause > 0:
		a.add("autoPauseInterval", "goes not with autoStopInterval: set one of them to 0")
	case pause > 0:
		r.IdleTimeout, r.OnIdle, r.AutoResume = new(minutes(pause)), new(sandbox.IdlePause), new(true)
	case a.has("autoStopInterval"):
		r.IdleTimeout = new(minutes(stop))
	}
	switch after := a.number("autoDeleteInterval", -1); {
	case after < 0:
		r.Retention = new(time.Duration(0))
	case after > 0:
		r.Retention = new(minutes(after))
	case pause > 0:
		a.add("autoDeleteInterval", "0 destroys it when it stops, and goes not with autoPauseInterval")
	default:
		r.AutoDelete = new(true)
	}
}

// daytonaOrigin reads what the sandbox begins with: an image of the catalogue, or a
// snapshot.
func daytonaOrigin(a *args, r *engine.CreateRequest) {
	switch from := a.text("snapshot"); {
	case sandbox.ValidID(from) || strings.Contains(from, "/"):
		r.From = from
	default:
		r.Image = from
	}
	if !a.has("buildInfo") {
		return
	}
	if a.has("snapshot") {
		a.add("snapshot", "goes not with buildInfo; give one of them")
	}
	o := object{a: a, at: "buildInfo", values: a.values["buildInfo"]}.fields()
	image, ok := onlyFrom(o.text("dockerfileContent"))
	if hashes := o.texts("contextHashes"); !ok || len(hashes) > 0 {
		a.add("buildInfo", "is more than one FROM line, and this server builds no images for a sandbox; begin with a template and run the steps by execute_command")
	}
	r.Image = image
}

// onlyFrom gives the image of a Dockerfile that does nothing else than name it.
func onlyFrom(dockerfile string) (image string, ok bool) {
	for line := range strings.Lines(dockerfile) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case image == "" && len(words) == 2 && strings.EqualFold(words[0], "FROM"):
			image = words[1]
		default:
			return "", false
		}
	}
	return image, image != ""
}

// daytonaMounts reads the volumes.
func daytonaMounts(a *args) []engine.MountRequest {
	if !a.has("volumes") {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(a.values["volumes"], &list) != nil {
		a.add("volumes", "is %s and not a list", shown(a.values["volumes"]))
		return nil
	}
	var out []engine.MountRequest
	for i, raw := range list {
		o := object{a: a, at: fmt.Sprintf("volumes[%d]", i), values: raw}.fields()
		out = append(out, engine.MountRequest{Volume: o.text("volumeId"), Path: o.text("mountPath"), Sub: o.text("subpath")})
		o.rest()
	}
	return out
}

// daytonaPolicy reads what the sandbox may reach; nil: nothing was said.
func daytonaPolicy(a *args) *sandbox.NetworkPolicy {
	block, list := a.bool("networkBlockAll", false), a.text("networkAllowList")
	p := &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted}
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if one == "" {
			continue
		}
		if cidr, err := sandbox.ParseCIDR("networkAllowList", one); err == nil {
			p.AllowCIDRs = append(p.AllowCIDRs, cidr)
		} else {
			p.AllowDomains = append(p.AllowDomains, one)
		}
	}
	switch listed := len(p.AllowCIDRs)+len(p.AllowDomains) > 0; {
	case block && listed:
		a.add("networkAllowList", "is given, and networkBlockAll blocks all of it; give one of them")
	case block:
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}
	case listed:
		return p
	}
	return nil
}

// daytonaOpen is the network of a sandbox of which nothing was said: at Daytona the
// whole of the internet, and here what the operator allows of that.
func daytonaOpen(ctx context.Context, c *call) (p *sandbox.NetworkPolicy, note string, err error) {
	if !slices.Contains(c.engine.Networks(), sandbox.NetworkOpen) {
		return nil, "the network is off, since this server allows no sandbox all of the internet; networkAllowList asks for a part", nil
	}
	i, err := c.engine.Info(ctx, c.Caller)
	if err != nil {
		return nil, "", err
	}
	for _, r := range i.Runtimes {
		if why, known := r.Capabilities[runtime.Network]; r.Name == i.Default && known && why == nil {
			return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, "", nil
		}
	}
	return nil, "the network is off: this server can give no sandbox one", nil
}

// daytonaCannot is nil, or says which of the arguments asks for what there is not.
func daytonaCannot(a *args) error {
	if t := a.text("target"); t != "" && t != "us" && t != onlyRegion {
		return fault.New(fault.Unsupported, "target: there is no region %s; this server is in one place", quote(clip(t))).
			WithRemedy("leave target out, if it does not matter where the sandbox is")
	}
	if u := a.text("user"); u != "" && u != "sandbox" && u != daytonaDefaultUser {
		return fault.New(fault.Unsupported, "user: commands run as the user sandbox, and not as %s", quote(clip(u))).
			WithRemedy("leave user out")
	}
	if a.number("gpu", 0) > 0 {
		return fault.New(fault.Unsupported, "gpu: this server gives no sandbox a GPU").WithRemedy("leave gpu out")
	}
	if a.bool("public", false) {
		return fault.New(fault.Unsupported, "public: every link to a port of a sandbox has a token in it").
			WithRemedy("leave public out; preview_link gives a link that works for whoever has it")
	}
	return nil
}

func daytonaDestroy() tool {
	return tool{
		name: "destroy_sandbox", title: "Destroy a sandbox", destructive: true, idempotent: true,
		about:   "Destroy a sandbox with all its files.",
		params:  []param{daytonaWords().which()},
		example: `{"id": "an-id"}`,
		run: func(ctx context.Context, c *call) (*answer, error) {
			daytonaWords().in(c)
			if err := c.args.err(); err != nil {
				return nil, err
			}
			id, err := c.ended(ctx)
			if err != nil {
				return nil, err
			}
			return inText("Destroyed sandbox with ID " + id), nil
		},
	}
}
