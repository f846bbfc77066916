// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"math"
	"net/url"
	"time"

	"sandpit.dev/access/project"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/orkestrterms"
	"sandpit.dev/engine/meter"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

type limitsShape struct {
	Plan          string        `json:"plan"`
	Allowed       []string      `json:"allowed_sizes"`
	Sizes         []sizeShape   `json:"sizes"`
	Regions       []regionShape `json:"regions"`
	MaxConcurrent int           `json:"max_concurrent"`
	MaxSnapshots  int           `json:"max_snapshots"` // of one sandbox
	CustomEgress  bool          `json:"custom_egress_allowlist"`
	Domains       []string      `json:"default_egress_domains"`
	Trial         float64       `json:"trial_credit_eur"` // always 0: nothing is paid here
	TrialUsed     float64       `json:"trial_credit_used_eur"`
	MaxLifetime   *int64        `json:"max_running_lifetime_seconds"` // always null: none
}

type sizeShape struct {
	Size     string  `json:"size"`
	CPU      float64 `json:"cpu"`
	MemoryMB int     `json:"memory_mb"`
	Allowed  bool    `json:"allowed"`
}

type regionShape struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// plan is what the SDK is told of what is paid for.
const plan = "self-hosted"

func (a *API) limits(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (limitsShape, error) {
	out := limitsShape{
		Plan: plan, Allowed: []string{}, Sizes: []sizeShape{}, Regions: []regionShape{{a.region, "this server"}}, MaxConcurrent: math.MaxInt32, MaxSnapshots: sandbox.MaxSnapshots,
		Domains: names(a.Networks.DefaultNetwork().AllowDomains),
	}
	if a.Projects != nil {
		p, err := a.Projects.Limits(ctx, c.Caller)
		if err != nil {
			return limitsShape{}, err
		}
		if q := p.Quotas[project.Running]; q > 0 {
			out.MaxConcurrent = int(q)
		}
	}
	most := a.Server.Most()
	for _, s := range a.SizeTable() {
		one := sizeShape{s.Name, s.CPU, s.MemoryMB, orkestrterms.Fits(s, most)}
		if out.Sizes = append(out.Sizes, one); one.Allowed {
			out.Allowed = append(out.Allowed, s.Name)
		}
	}
	for _, m := range a.Networks.Networks() {
		out.CustomEgress = out.CustomEgress || m == sandbox.NetworkRestricted
	}
	return out, nil
}

type metricsShape struct {
	ID       string        `json:"sandbox_id"`
	Status   string        `json:"sandbox_status"`
	AsOf     time.Time     `json:"as_of"`
	Interval int           `json:"sample_interval_seconds"`
	Window   int           `json:"window_seconds"`
	CPU      cpuShape      `json:"cpu"`
	Memory   memoryShape   `json:"memory"`
	Lifetime lifetimeShape `json:"lifetime"`
	Samples  []sampleShape `json:"samples"`
}

type cpuShape struct {
	Cores   float64  `json:"cores"`
	Used    *float64 `json:"usage_cores"` // null: it does not run, or is not known
	Percent *float64 `json:"usage_percent"`
}

type memoryShape struct {
	Limit   int64    `json:"limit_bytes"`
	Used    *int64   `json:"usage_bytes"`
	Percent *float64 `json:"usage_percent"`
}

type lifetimeShape struct {
	CPUSeconds float64 `json:"cpu_seconds"` // since it came up last
	GBSeconds  float64 `json:"gb_seconds"`  // of its limit, while it ran
}

type sampleShape struct {
	At      time.Time `json:"t"`
	Percent float64   `json:"cpu_percent"`
	Bytes   int64     `json:"mem_bytes"`
}

// The samples are those of the last hour by the minute.
const (
	sampleSeconds = 60
	windowSeconds = 3600
)

type metricsSince struct {
	ID    string `path:"id"`
	Since *int64 `query:"since"` // seconds of Unix time
}

func (a *API) metrics(ctx context.Context, c *httpapi.Call, in *metricsSince) (metricsShape, error) {
	if a.Stats == nil {
		return metricsShape{}, fault.New(fault.Unsupported, "this server does not read what sandboxes use")
	}
	got, err := a.Stats.Stats(ctx, c.Caller, in.ID)
	if err != nil {
		return metricsShape{}, err
	}
	s := got.Sandbox
	out := metricsShape{
		ID: string(s.ID), Status: orkestrterms.Status(s.State), AsOf: time.Now().UTC(), Interval: sampleSeconds, Window: windowSeconds,
		CPU: cpuShape{Cores: s.Limits.CPU}, Memory: memoryShape{Limit: int64(s.Limits.MemoryMB) << 20}, Samples: []sampleShape{},
	}
	ran := s.RunTime
	if !s.RunningSince.IsZero() {
		ran += time.Since(s.RunningSince)
	}
	out.Lifetime.GBSeconds = ran.Seconds() * float64(s.Limits.MemoryMB) / 1024
	if now := got.Now; now != nil {
		out.AsOf, out.Lifetime.CPUSeconds = now.At.UTC(), now.CPU.Seconds()
		if now.CPUs >= 0 {
			out.CPU.Used, out.CPU.Percent = &now.CPUs, new(percent(now.CPUs, s.Limits.CPU))
		}
		if now.MemoryBytes >= 0 {
			out.Memory.Used, out.Memory.Percent = &now.MemoryBytes, new(percent(float64(now.MemoryBytes), float64(out.Memory.Limit)))
		}
	}
	for _, one := range got.History {
		if in.Since == nil || one.At.Unix() > *in.Since {
			out.Samples = append(out.Samples, sampleOf(one, s.Limits.CPU))
		}
	}
	return out, nil
}

func sampleOf(s meter.Sample, cores float64) sampleShape {
	return sampleShape{s.At.UTC(), percent(max(s.CPUs, 0), cores), max(s.MemoryBytes, 0)}
}

func percent(of, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return 100 * of / all
}

type portOf struct {
	ID   string `path:"id"`
	Port *int   `query:"port"`
}

type hostShape struct {
	Host string `json:"host"`
}

// host returns the name at which what a port serves is seen: by who knows it, or, where the sandbox has a token for its previews,
// by who shows that. It is the same as long as the sandbox is there.
func (a *API) host(ctx context.Context, c *httpapi.Call, in *portOf) (hostShape, error) {
	port := given(in.Port)
	if port < 1 || port > math.MaxUint16 {
		return hostShape{}, fault.InvalidField("port", "%d is outside 1 to 65535", port)
	}
	id := ""
	all, err := a.Ports.Links(ctx, c.Caller, in.ID) // who may not make one may not have it
	if err != nil {
		return hostShape{}, err
	}
	p, err := a.Ports.PreviewsOf(ctx, c.Caller, in.ID)
	if err != nil {
		return hostShape{}, err
	}
	if p.Key != "" {
		address, path := a.previews.Addresses(c.R, string(p.Sandbox), port)
		if address == path {
			address = ""
		}
		return hostOf(address)
	}
	for _, l := range all {
		if l.Port == port && l.ExpiresAt.IsZero() {
			id = l.ID
		}
	}
	if id == "" {
		l, err := a.Ports.CreateLink(ctx, c.Caller, in.ID, port, 0)
		if err != nil {
			return hostShape{}, err
		}
		id = l.ID
	}
	return hostOf(a.previews.LinkAddress(c.R, a.previews.HostToken(id), port))
}

// hostOf returns the host of a preview's address; "": it has none.
func hostOf(address string) (hostShape, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return hostShape{}, fault.New(fault.Unsupported, "previews have no names of hosts here").WithRemedy("have the operator set preview.domain; the SDK expects https there")
	}
	return hostShape{u.Host}, nil
}

func given[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}
