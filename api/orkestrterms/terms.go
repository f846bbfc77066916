// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package orkestrterms turns what Orkestr's clients ask for into requests to the engine, and sandboxes into what these
// clients read. Its REST wire and its MCP tools share it, so that the fields of a create, their bounds and their meaning
// are defined once.
package orkestrterms

import (
	"maps"
	"strings"
	"time"

	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of timeout_seconds.
const (
	LeastLife = 10
	MostLife  = int64(sandbox.MaxClock / time.Second)
)

// Persist is the path at which a sandbox has its volume.
const Persist = "/persist"

// What becomes of a sandbox at its end.
const (
	kill  = "kill"
	pause = "pause"
)

// Ends returns the values of on_timeout, the default first.
func Ends() []string { return []string{kill, pause} }

// Networks returns the values of network.
func Networks() []string {
	return []string{string(sandbox.NetworkOff), string(sandbox.NetworkRestricted), string(sandbox.NetworkOpen)}
}

// Create is a request for a sandbox, by the names that clients use.
type Create struct {
	Template   string            `json:"template"`
	Size       string            `json:"size"`            // "": the server's default amounts
	Network    string            `json:"network"`         // "": the server's default policy
	Domains    []string          `json:"allow_domains"`   // of network restricted
	Timeout    *int64            `json:"timeout_seconds"` // nil: it has no end
	OnTimeout  string            `json:"on_timeout"`
	AutoResume *bool             `json:"auto_resume"`
	Env        map[string]string `json:"env"`
	Metadata   map[string]string `json:"metadata"`
	Region     *string           `json:"region"`
	Volume     *string           `json:"volume"` // made where there is none of that name
}

// Life returns the lifetime of so many seconds. The error is about timeout_seconds.
func Life(seconds int64) (time.Duration, error) {
	if seconds < LeastLife || seconds > MostLife {
		return 0, fault.InvalidField("timeout_seconds", "%d is outside %d to %d", seconds, LeastLife, MostLife)
	}
	return time.Duration(seconds) * time.Second, nil
}

// Request returns the engine's request, without the volume. With from, the id or name of a snapshot, the fields that the
// snapshot decides are left out; "" is no snapshot.
func (c *Create) Request(s *service.Services, from string) (engine.CreateRequest, error) {
	r := engine.CreateRequest{From: from, Env: c.Env, Metadata: c.Metadata, AutoResume: c.AutoResume}
	if c.Timeout != nil {
		life, err := Life(*c.Timeout)
		if err != nil {
			return r, err
		}
		r.TTL, r.OnExpiry, r.IdleTimeout = life, new(sandbox.ExpiryDelete), new(time.Duration(0)) // only its end ends it
	}
	switch c.OnTimeout {
	case "", kill:
	case pause:
		r.OnExpiry = new(sandbox.ExpiryPause)
	default:
		return r, fault.InvalidField("on_timeout", "%q is neither kill nor pause", sandbox.Clip(c.OnTimeout, 40))
	}
	if from != "" {
		return r, nil
	}
	if r.Image = c.Template; s.Templates != nil {
		r.Image, r.Template = "", &sandbox.Template{Asked: c.Template}
	}
	if c.Size != "" {
		size, err := s.SizeTable().Named(c.Size)
		if err != nil {
			return r, err
		}
		if most := s.Server.Most(); !Fits(size, most) {
			return r, TooLarge{fault.As(fault.InvalidField("size", "%s is %v CPU and %d MiB, more than the %v CPU and %d MiB of this server", size.Name, size.CPU, size.MemoryMB, most.CPU, most.MemoryMB)).
				WithRemedy("use a smaller one, or ask the server's operator")}
		}
		r.Limits = sandbox.Limits{CPU: size.CPU, MemoryMB: size.MemoryMB}
	}
	var err error
	r.Network, err = network(c.Network, c.Domains)
	return r, err
}

// Fits reports whether most, the server's upper bound of one sandbox, allows a size.
func Fits(s sandbox.Size, most sandbox.Limits) bool {
	return s.CPU <= most.CPU && s.MemoryMB <= most.MemoryMB
}

// TooLarge is the error about a size that does not fit.
type TooLarge struct{ error }

// Unwrap returns the error about the field.
func (e TooLarge) Unwrap() error { return e.error }

// network returns what a sandbox may reach; nil: the request does not say.
func network(mode string, domains []string) (*sandbox.NetworkPolicy, error) {
	m := sandbox.NetworkMode(mode)
	switch m {
	case "":
		return nil, nil
	case sandbox.NetworkOff, sandbox.NetworkOpen: // the list is for the third
		return &sandbox.NetworkPolicy{Mode: m}, nil
	case sandbox.NetworkRestricted:
	default:
		return nil, fault.InvalidField("network", "%q is not valid; use off, restricted or open", sandbox.Clip(mode, 40))
	}
	p := &sandbox.NetworkPolicy{Mode: m}
	for _, d := range domains { // HTTPS alone, and the names below each
		p.AllowDomains = append(p.AllowDomains, d)
		if !strings.HasPrefix(d, "*.") {
			p.AllowDomains = append(p.AllowDomains, "*."+d)
		}
	}
	if len(domains) > 0 {
		p.AllowPorts = []sandbox.PortRange{{First: 443, Last: 443}}
	}
	return p, nil
}

// Here returns an error for a region that is not the server's own: where data is kept is a promise.
func Here(region *string, own string) error {
	if region == nil || *region == own {
		return nil
	}
	e := fault.As(fault.InvalidField("region", "%q is not here: this server is in one place, which is called %s", sandbox.Clip(*region, 40), own))
	e.Code = fault.Unsupported
	return e.WithRemedy("leave region out, if it does not matter where it is")
}

// Sandbox is a sandbox as clients read it, without its times.
type Sandbox struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"`
	Template   string            `json:"template"` // as it was asked for
	Network    string            `json:"network"`
	CPU        float64           `json:"cpu"`
	MemoryMB   int               `json:"memory_mb"`
	Region     string            `json:"region"`
	OnTimeout  string            `json:"on_timeout"`
	AutoResume bool              `json:"auto_resume"`
	Metadata   map[string]string `json:"metadata"`
	Volume     *string           `json:"volume"`
}

// Of returns a sandbox as clients read it. The region is the server's.
func Of(s *sandbox.Sandbox, n service.Networks, region string) Sandbox {
	out := Sandbox{
		ID: string(s.ID), Status: Status(s.State), Template: s.AskedImage, Network: string(n.InForce(s.Network).Mode), CPU: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB,
		Region: region, OnTimeout: kill, AutoResume: s.AutoResume, Metadata: maps.Clone(s.Metadata),
	}
	if t := s.Template; t != nil && t.Name != "" {
		out.Template = t.Name
	}
	if out.Template == "" {
		out.Template = s.Image
	}
	if s.OnExpiry == sandbox.ExpiryPause {
		out.OnTimeout = pause
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	for _, m := range s.Mounts {
		if m.Path == Persist {
			out.Volume = &m.Name
		}
	}
	return out
}

// Terminated is the status of what is gone.
const Terminated = "terminated"

// Status returns the status of a state. What is stopped is paused, too: a resume starts it again, with its files.
func Status(s sandbox.State) string {
	switch s {
	case sandbox.Creating, sandbox.Starting:
		return "starting"
	case sandbox.Running:
		return "running"
	case sandbox.Pausing, sandbox.Stopping, sandbox.Archiving:
		return "pausing"
	case sandbox.Paused, sandbox.Stopped, sandbox.Archived:
		return "paused"
	case sandbox.Resuming, sandbox.Restoring, sandbox.Unarchiving:
		return "resuming"
	case sandbox.Deleting, sandbox.Deleted:
		return Terminated
	case sandbox.Failed:
	}
	return "failed"
}
