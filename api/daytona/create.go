// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

// defaultLanguage is the language of code for a sandbox whose labels name none.
const defaultLanguage = "python"

// defaults returns the limits of a sandbox whose request names none.
func defaults() sandbox.Limits { return sandbox.Limits{CPU: 1, MemoryMB: 1024, DiskMB: 3072} }

type createSandbox struct {
	Body wire.CreateSandbox
}

func (a *API) createSandbox(ctx context.Context, c *httpapi.Call, in *createSandbox) (wire.Sandbox, error) {
	s, err := a.create(ctx, c, &in.Body)
	if err != nil {
		return wire.Sandbox{}, inTheirNames(err)
	}
	out := a.full(c, s)
	if out.State == wire.StateBuilding {
		out.State = wire.StatePending // of an answer to a create, by which clients read the log of the build
	}
	return out, nil
}

func (a *API) create(ctx context.Context, c *httpapi.Call, b *wire.CreateSandbox) (*sandbox.Sandbox, error) {
	if err := a.lacking(b); err != nil {
		return nil, err
	}
	of, err := a.named(ctx, c, given(b.Snapshot))
	if err != nil {
		return nil, err
	}
	r, err := a.request(b, of)
	if err != nil {
		return nil, err
	}
	abandon := func() {}
	switch {
	case b.BuildInfo != nil:
		if abandon, err = a.provide(ctx, c, b.BuildInfo, &r); err != nil {
			return nil, err
		}
	case r.From+r.Image == "" && r.Template == nil:
		r.Image = a.usualImage(ctx, c.Caller)
	}
	s, _, err := a.Sandboxes.Create(ctx, c.Caller, r)
	if err != nil {
		abandon()
	}
	return s, err
}

// inTheirNames renames the engine's fields in an error to the client's.
func inTheirNames(err error) error {
	var sp httpapi.Spellings
	for own, theirs := range map[string]string{
		"key": "name", "metadata": "labels", "cpu_cores": "cpu", "limits.cpu": "cpu", "memory_mb": "memory", "limits.memory_mb": "memory", "disk_mb": "disk", "limits.disk_mb": "disk",
		"image": "snapshot", "idle_timeout_seconds": "autoStopInterval", "retention_seconds": "autoDeleteInterval", "archive_after_seconds": "autoArchiveInterval",
		"ttl_seconds": "ttlMinutes", "network.allow_domains": "domainAllowList", "network.allow_cidrs": "networkAllowList", "network": "networkAllowList", "mounts": "volumes",
		"dockerfile": dockerfileField, "contexts": hashesField,
	} {
		sp.Wrote(own, theirs)
	}
	return sp.Rename(err)
}

// lacking returns an error about the fields that ask for what this server does not have.
func (a *API) lacking(b *wire.CreateSandbox) error {
	var bad []fault.Field
	no := func(lacks bool, field, message string) {
		if lacks {
			bad = append(bad, fault.Field{Name: field, Message: message})
		}
	}
	a.lacks(target{GPU: b.GPU, Class: b.Class, Region: b.Target}, "target", no)
	no(given(b.Spot), "spot", "there are no spot sandboxes here")
	no(given(b.KVM), "kvm", "sandboxes have no KVM here")
	no(given(b.LinkedSandbox) != "", "linkedSandbox", "sandboxes are not linked here")
	no(given(b.OutboundProxyURL) != "", "outboundProxyUrl", "a sandbox has no proxy of its own here; domainAllowList says what it may reach")
	no(given(b.OTELEndpoint) != "", "otelEndpointOverride", "the server's operator says where telemetry goes")
	return unsupported(bad)
}

// target is where something is to run.
type target struct {
	GPU           *float64
	Class, Region *string
}

// lacks calls no for each field of a target, with whether this server lacks what it asks for.
func (a *API) lacks(t target, region string, no func(lacks bool, field, message string)) {
	where := given(t.Region)
	no(given(t.GPU) > 0, "gpu", "there are no GPUs here")
	no(cmp.Or(given(t.Class), wire.ClassContainer) != wire.ClassContainer, "sandboxClass", "there are only containers here")
	no(where != "" && where != a.target, region, "the only region here is "+a.target)
}

// unsupported returns the error about fields that ask for what this server does not have; nil if bad is empty.
func unsupported(bad []fault.Field) error {
	if len(bad) == 0 {
		return nil
	}
	e := fault.InvalidFields(bad...)
	e.Code = fault.Unsupported
	return e.WithRemedy("leave it out")
}

// named returns the template with a snapshot's name or id; nil if there is none.
func (a *API) named(ctx context.Context, c *httpapi.Call, name string) (*template.Template, error) {
	if name == "" || a.Templates == nil {
		return nil, nil
	}
	t, err := a.Templates.Get(ctx, c.Caller, name)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Denied) { // then it names an image or a disk; callers that may only create are denied, too
		return nil, nil
	}
	return t, err
}

// request returns the engine's request. What a template says takes precedence over this wire's defaults.
func (a *API) request(b *wire.CreateSandbox, of *template.Template) (engine.CreateRequest, error) {
	var own template.Spec
	if of != nil {
		own = of.Spec
	}
	r := engine.CreateRequest{
		Key: given(b.Name), Refuse: true, Env: b.Env, Metadata: maps.Clone(b.Labels),
		Limits: daytonaterms.Limits(given(b.CPU), given(b.Memory), given(b.Disk)).Or(own.Limits).Or(bounded(defaults(), a.Server.Most())),
	}
	if r.Metadata == nil {
		r.Metadata = make(map[string]string)
	}
	if _, ok := r.Metadata[wire.LanguageLabel]; !ok {
		r.Metadata[wire.LanguageLabel] = defaultLanguage
	}
	clocks := daytonaterms.Clocks{AutoStop: b.AutoStop, AutoPause: b.AutoPause, AutoArchive: b.AutoArchive, AutoDelete: b.AutoDelete, TTL: b.TTL}
	bad := clocks.Apply(&r)
	if of != nil {
		r.Template = &sandbox.Template{Asked: of.ID}
	} else {
		r.From, r.Image = daytonaterms.Origin(given(b.Snapshot))
	}
	if r.From == "" && (own.Account == nil || given(b.User) != "") && (of == nil || of.Snapshot == "") {
		r.Account = account(given(b.User))
	}
	if b.BuildInfo != nil && given(b.Snapshot) != "" {
		bad = append(bad, fault.Field{Name: "snapshot", Message: "cannot be combined with buildInfo; give one of them"})
	}
	for _, m := range b.Volumes {
		r.Mounts = append(r.Mounts, volume.Mount{Volume: m.VolumeID, Path: m.MountPath, Sub: m.Subpath})
	}
	attached, err := attachments(b.Secrets)
	if err != nil {
		bad = append(bad, fault.As(err).Fields...)
	}
	for name, secret := range attached {
		if r.Secrets == nil {
			r.Secrets = make(map[string]secrets.Request)
		}
		r.Secrets[name] = secrets.Request{Vault: secret}
	}
	var wrong []fault.Field
	if r.Network, wrong = a.network(b.NetworkBlockAll, b.NetworkAllowList, b.DomainAllowList); r.Network == nil && wrong == nil && own.Network == nil {
		r.Network = a.open()
	}
	bad = append(bad, wrong...)
	if given(b.Public) {
		r.Previews.Public = true
	}
	if len(bad) > 0 {
		return engine.CreateRequest{}, fault.InvalidFields(bad...)
	}
	return r, nil
}

func given[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}

// bounded returns limits, each reduced to the operator's bound.
func bounded(l, most sandbox.Limits) sandbox.Limits {
	return sandbox.Limits{CPU: min(l.CPU, most.CPU), MemoryMB: min(l.MemoryMB, most.MemoryMB), DiskMB: min(l.DiskMB, most.DiskMB), Pids: l.Pids}
}

// account returns the account of a sandbox: clients expect its home below /home, and relative paths to start there.
func account(user string) *sandbox.Account {
	out := &sandbox.Account{Name: daytonaterms.DefaultUser}
	switch user {
	case "":
	case sandbox.UserRoot:
		out.As = sandbox.UserRoot
	default:
		out.Name = user
	}
	out.Home = "/home/" + out.Name
	out.Workdir = out.Home
	return out
}

// network returns the policy of a request; nil if it has none. Blocking all takes precedence over the lists.
func (a *API) network(block *bool, ranges, domains *string) (*sandbox.NetworkPolicy, []fault.Field) {
	if given(block) {
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, nil
	}
	var bad []fault.Field
	p := &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted}
	for one := range listed(ranges) {
		cidr, err := sandbox.ParseCIDR("networkAllowList", one)
		if err != nil {
			bad = append(bad, fault.As(err).Fields...)
			continue
		}
		p.AllowCIDRs = append(p.AllowCIDRs, cidr)
	}
	p.AllowDomains = slices.Collect(listed(domains))
	switch {
	case len(bad) > 0:
		return nil, bad
	case len(p.AllowCIDRs)+len(p.AllowDomains) > 0:
		return p, nil
	case block != nil && (ranges != nil || domains != nil):
		return a.open(), nil
	}
	return nil, nil
}

// listed returns the entries of a comma-separated list.
func listed(text *string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for one := range strings.SplitSeq(given(text), ",") {
			if one = strings.TrimSpace(one); one != "" && !yield(one) {
				return
			}
		}
	}
}

// open returns the policy of a sandbox whose request has none: the internet, as clients expect, where the operator allows it,
// and else nil, the server's default.
func (a *API) open() *sandbox.NetworkPolicy {
	if slices.Contains(a.Networks.Networks(), sandbox.NetworkOpen) {
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}
	}
	return nil
}
