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
)

// defaultLanguage runs code where a client says nothing of it.
const defaultLanguage = "python"

// defaults is what a sandbox may use of which nothing is said.
func defaults() sandbox.Limits { return sandbox.Limits{CPU: 1, MemoryMB: 1024, DiskMB: 3072} }

type createSandbox struct {
	Body wire.CreateSandbox
}

func (a *API) createSandbox(ctx context.Context, c *httpapi.Call, in *createSandbox) (*sandbox.Sandbox, error) {
	b := &in.Body
	if err := a.lacking(b); err != nil {
		return nil, err
	}
	r, err := a.request(b)
	if err != nil {
		return nil, err
	}
	if b.BuildInfo != nil {
		if r.Image, err = a.imageOf(ctx, c, b.BuildInfo); err != nil {
			return nil, err
		}
	}
	s, _, err := a.Sandboxes.Create(ctx, c.Caller, r)
	return s, err
}

// inWords has an error about fields of the engine's speak of the client's.
func inWords(err error) error {
	var sp httpapi.Spellings
	for own, theirs := range map[string]string{
		"key": "name", "metadata": "labels", "cpu_cores": "cpu", "limits.cpu": "cpu", "memory_mb": "memory", "limits.memory_mb": "memory", "disk_mb": "disk", "limits.disk_mb": "disk",
		"image": "snapshot", "idle_timeout_seconds": "autoStopInterval", "retention_seconds": "autoDeleteInterval", "archive_after_seconds": "autoArchiveInterval",
		"ttl_seconds": "ttlMinutes", "network.allow_domains": "domainAllowList", "network.allow_cidrs": "networkAllowList", "network": "networkAllowList", "mounts": "volumes",
	} {
		sp.Wrote(own, theirs)
	}
	return sp.Rename(err)
}

// lacking returns an error about what is asked for and is not here.
func (a *API) lacking(b *wire.CreateSandbox) error {
	var bad []fault.Field
	no := func(lacks bool, field, message string) {
		if lacks {
			bad = append(bad, fault.Field{Name: field, Message: message})
		}
	}
	target := given(b.Target)
	no(given(b.GPU) > 0, "gpu", "there are no GPUs here")
	no(given(b.Spot), "spot", "there are no spot sandboxes here")
	no(given(b.KVM), "kvm", "sandboxes have no KVM here")
	no(cmp.Or(given(b.Class), wire.ClassContainer) != wire.ClassContainer, "sandboxClass", "there are only containers here")
	no(target != "" && target != a.target, "target", "the only region here is "+a.target)
	no(given(b.LinkedSandbox) != "", "linkedSandbox", "sandboxes are not linked here")
	no(given(b.OutboundProxyURL) != "", "outboundProxyUrl", "there are no proxies of sandboxes' own here; domainAllowList says what is reached")
	no(given(b.OTELEndpoint) != "", "otelEndpointOverride", "the server's operator says where telemetry goes")
	if len(bad) == 0 {
		return nil
	}
	e := fault.InvalidFields(bad...)
	e.Code = fault.Unsupported
	return e.WithRemedy("leave it out")
}

// request is what the engine is asked for.
func (a *API) request(b *wire.CreateSandbox) (engine.CreateRequest, error) {
	most := a.Server.Most()
	r := engine.CreateRequest{
		Key: given(b.Name), Refuse: true, Env: b.Env, Metadata: maps.Clone(b.Labels),
		Limits: daytonaterms.Limits(given(b.CPU), given(b.Memory), given(b.Disk)).Or(bounded(defaults(), most)),
	}
	if r.Metadata == nil {
		r.Metadata = make(map[string]string)
	}
	if _, ok := r.Metadata[wire.LanguageLabel]; !ok {
		r.Metadata[wire.LanguageLabel] = defaultLanguage
	}
	clocks := daytonaterms.Clocks{AutoStop: b.AutoStop, AutoPause: b.AutoPause, AutoArchive: b.AutoArchive, AutoDelete: b.AutoDelete, TTL: b.TTL}
	bad := clocks.Apply(&r)
	r.From, r.Image = daytonaterms.Origin(given(b.Snapshot))
	if r.From == "" {
		r.Account = account(given(b.User))
	}
	if b.BuildInfo != nil && r.From+r.Image != "" {
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
	if r.Network, wrong = a.network(b.NetworkBlockAll, b.NetworkAllowList, b.DomainAllowList); r.Network == nil && wrong == nil {
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

// bounded is what limits come to within the operator's.
func bounded(l, most sandbox.Limits) sandbox.Limits {
	return sandbox.Limits{CPU: min(l.CPU, most.CPU), MemoryMB: min(l.MemoryMB, most.MemoryMB), DiskMB: min(l.DiskMB, most.DiskMB), Pids: l.Pids}
}

// account is the user of a sandbox: clients expect its home below /home, and their relative paths to begin there.
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

// network is what a sandbox may reach; nil: nothing was said of it. Blocking all goes before the lists.
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

// listed are the entries of a list that commas separate.
func listed(text *string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for one := range strings.SplitSeq(given(text), ",") {
			if one = strings.TrimSpace(one); one != "" && !yield(one) {
				return
			}
		}
	}
}

// open is the network of a sandbox of which nothing is said: all of the internet, as clients expect, where the operator
// allows that, and else what any sandbox has.
func (a *API) open() *sandbox.NetworkPolicy {
	if slices.Contains(a.Networks.Networks(), sandbox.NetworkOpen) {
		return &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}
	}
	return nil
}
