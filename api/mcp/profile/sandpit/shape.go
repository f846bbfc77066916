// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/sandbox"
)

// shape is a sandbox as the tools show it.
type shape struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	State     string `json:"state"`
	StopCause string `json:"stop_cause,omitempty"`
	Image     string `json:"image"`
	// AskedImage is the image as it was asked for, where that is another name.
	AskedImage string `json:"requested_image,omitempty"`
	// Versions are what is inside the image, where the answer is about one sandbox.
	Versions map[string]string `json:"image_versions,omitempty"`
	// ImageNote says where the name that was asked for says something else.
	ImageNote string `json:"image_note,omitempty"`
	*madeShape
	Workdir string `json:"workdir"`
	Network string `json:"network"`
	*networkShape
	CPUs        float64 `json:"cpus"`
	MemoryMB    int     `json:"memory_mb"`
	DiskMB      int     `json:"disk_mb"`
	IdleMinutes float64 `json:"idle_minutes,omitempty"`
	IdleAction  string  `json:"idle_action,omitempty"` // where it is not to stop
	ExpiresAt   string  `json:"expires_at,omitempty"`
	OnExpiry    string  `json:"on_expiry,omitempty"` // where it is not to delete
	CreatedAt   string  `json:"created_at"`
	LastUsedAt  string  `json:"last_used_at,omitempty"`

	// UnresponsiveSince is since when its process 1 does not answer.
	UnresponsiveSince string `json:"unresponsive_since,omitempty"`

	// Secrets are the names of its own and of its project's; nothing tells a value.
	Secrets []string `json:"secrets,omitempty"`
	Volumes []string `json:"volumes,omitempty"` // as create_sandbox takes them
}

// networkShape is more of a sandbox's network than its mode, where there is more.
type networkShape struct {
	AllowDomains []string `json:"allow_domains,omitempty"`
	AllowCIDRs   []string `json:"allow_cidrs,omitempty"`
	AllowPorts   []string `json:"allow_ports,omitempty"`
	Deny         []string `json:"deny,omitempty"`
	Learn        bool     `json:"learn,omitempty"`
	AllowPresets []string `json:"allow_presets,omitempty"`
	// Headers are those that requests to hosts get, as update_sandbox takes them.
	Headers map[string]string `json:"headers,omitempty"`
	// ImageDomains are those of AllowDomains that only the settings of its image name.
	ImageDomains []string `json:"domains_named_by_image,omitempty"`
	// InForce is the mode that holds, where the server by now allows less than what
	// the sandbox was made with.
	InForce string `json:"network_in_force,omitempty"`
}

// describe shows a sandbox with the names of its secrets, and the network that it has.
func describe(ctx context.Context, c *toolset.Call, s *sandbox.Sandbox) shape {
	out := shapeOf(s)
	if n := networkShapeOf(s.Network); n != nil {
		if held := c.Networks.InForce(s.Network); !held.Equal(s.Network) {
			n.InForce = string(held.Mode)
		}
		out.networkShape = n
	}
	// That they cannot be told, for it is being deleted, is no news.
	secrets, _ := c.Secrets.Secrets(ctx, c.Caller, string(s.ID))
	for _, one := range secrets {
		out.Secrets = append(out.Secrets, one.Name)
	}
	return out
}

// networkShapeOf returns nil where the network is off.
func networkShapeOf(p sandbox.NetworkPolicy) *networkShape {
	if p.Mode == sandbox.NetworkOff || p.Mode == "" {
		return nil
	}
	n := &networkShape{AllowDomains: p.AllowDomains, AllowPresets: p.AllowPresets, Learn: p.Learn}
	for _, d := range p.PresetDomains {
		if d.Source == sandbox.PresetFromImage {
			n.ImageDomains = append(n.ImageDomains, d.Domain)
		}
	}
	for _, r := range p.AllowCIDRs {
		n.AllowCIDRs = append(n.AllowCIDRs, r.String())
	}
	n.Deny = slices.Clone(p.DenyDomains)
	for _, r := range p.DenyCIDRs {
		n.Deny = append(n.Deny, r.String())
	}
	for _, r := range p.AllowPorts {
		n.AllowPorts = append(n.AllowPorts, portsText(r))
	}
	for host, set := range p.Headers {
		for name, value := range set {
			if n.Headers == nil {
				n.Headers = make(map[string]string)
			}
			n.Headers[host+"/"+name] = value
		}
	}
	return n
}

// portsText is a range of ports as one writes it.
func portsText(r sandbox.PortRange) string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// mostNamed is how many names a line has of a list.
const mostNamed = 8

// named lists some names.
func named(list []string) string {
	if n := len(list) - mostNamed; n > 0 {
		return strings.Join(list[:mostNamed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(list, ", ")
}

// networkText says in a few words what it may reach.
func (s *shape) networkText() string {
	out := "network " + orElse(s.Network, string(sandbox.NetworkOff))
	n := s.networkShape
	if n == nil {
		return out
	}
	for _, l := range []struct {
		what string
		list []string
	}{{"presets ", n.AllowPresets}, {"names ", n.AllowDomains}, {"of which its image alone says ", n.ImageDomains}, {"addresses ", n.AllowCIDRs}, {"ports ", n.AllowPorts}, {"not ", n.Deny}, {"headers ", slices.Sorted(maps.Keys(n.Headers))}} {
		if len(l.list) > 0 {
			out += ", " + l.what + named(l.list)
		}
	}
	if n.Learn {
		out += ", learning: it lets all through and notes it"
	}
	if n.InForce != "" {
		out += " (in force: " + n.InForce + " and no more, which is what the server allows now)"
	}
	return out
}

// extras says what else a sandbox has, where it has more than any other.
func (s *shape) extras() (out []string) {
	if len(s.Volumes) > 0 {
		out = append(out, "volumes "+named(s.Volumes))
	}
	if len(s.Secrets) > 0 {
		out = append(out, "secrets "+named(s.Secrets)+" (commands have them; nothing shows their values)")
	}
	return out
}

func shapeOf(s *sandbox.Sandbox) shape {
	out := shape{
		ID: string(s.ID), Name: s.Key, State: string(s.State), StopCause: string(s.StopCause), Image: s.Image,
		madeShape: madeOf(s), Workdir: s.Account.Full().Workdir, Network: string(s.Network.Mode),
		CPUs: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB, DiskMB: s.Limits.DiskMB, IdleMinutes: s.IdleTimeout.Minutes(),
		ExpiresAt: toolset.TimeText(s.ExpiresAt), CreatedAt: toolset.TimeText(s.CreatedAt), LastUsedAt: toolset.TimeText(s.LastActivity),
		UnresponsiveSince: toolset.TimeText(s.UnresponsiveSince),
	}
	if s.OnIdle == sandbox.IdlePause && s.IdleTimeout > 0 {
		out.IdleAction = string(s.OnIdle)
	}
	if s.OnExpiry.Spends() && !s.ExpiresAt.IsZero() {
		out.OnExpiry = string(s.OnExpiry)
	}
	if s.AskedImage != s.Image {
		out.AskedImage = s.AskedImage
	}
	for _, m := range s.Mounts {
		out.Volumes = append(out.Volumes, mountText(m))
	}
	return out
}

// ends says what becomes of it at the time at which it expires.
func (s *shape) ends() string {
	switch s.OnExpiry {
	case string(sandbox.ExpiryStop):
		return "stopped at " + s.ExpiresAt
	case string(sandbox.ExpiryPause):
		return "paused at " + s.ExpiresAt
	}
	return "deleted at " + s.ExpiresAt
}

func (s *shape) lines() []string {
	life := "until it is deleted"
	if s.ExpiresAt != "" {
		life = s.ends()
	}
	if s.IdleMinutes > 0 {
		becomes := "stops after %s idle minutes and starts again when used"
		if s.IdleAction != "" {
			becomes = "is paused after %s idle minutes and goes on when used"
		}
		life += "; " + fmt.Sprintf(becomes, toolset.Decimal(s.IdleMinutes))
	}
	if s.UnresponsiveSince != "" {
		life += "; its process 1 has not answered since " + s.UnresponsiveSince + ": wait, or stop it and start it again"
	}
	image := s.Image
	if s.AskedImage != "" {
		image += ", asked for as " + toolset.PrintablePath(s.AskedImage)
	}
	if s.Versions != nil {
		image += " (inside: " + toolset.VersionsText(s.Versions) + ")"
	}
	return append([]string{
		fmt.Sprintf("id %s · image %s · %s CPU, %d MiB memory, %d MiB disk · %s", s.ID, image, toolset.Decimal(s.CPUs), s.MemoryMB, s.DiskMB, s.networkText()),
		"workdir " + s.Workdir + " · " + life,
	}, s.extras()...)
}
