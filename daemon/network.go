// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sandpit.dev/build"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/network/egress"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/policy"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
)

// options are the engine's options for sandboxes' networks.
func (c NetworkConfig) options() (engine.NetworkOptions, error) {
	var o engine.NetworkOptions
	var err error
	if o.Most, err = maxMode("network.max_mode", c.MaxMode); err != nil {
		return o, err
	}
	for _, name := range c.Curated {
		n, err := sandbox.CheckDomain("network.curated", name)
		if err != nil {
			return o, err
		}
		o.Curated = append(o.Curated, n)
	}
	if o.Presets, err = preset.New(preset.Options{Host: thisMachine(), Lists: c.Presets}); err != nil {
		return o, err
	}
	if o.Default, err = o.Parse("network.default", c.Default); err != nil {
		return o, err
	}
	if o.Ask, err = permit.CheckAsk("network.ask", c.Ask); err != nil {
		return o, err
	}
	o.Elicit = c.Elicit
	if o.Operator.Allow, err = ranges("network.allow_private", c.AllowPrivate); err != nil {
		return o, err
	}
	if o.Operator.Block, err = ranges("network.block", c.Block); err != nil {
		return o, err
	}
	if o.Quota, err = c.Names.quota(); err != nil {
		return o, err
	}
	hosts, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return o, fault.Wrap(fault.Internal, err, "cannot read the host's /etc/resolv.conf, which says the domains that are its own network's")
	}
	name, _ := os.Hostname()
	o.Operator.Search = searchDomains(string(hosts), name)
	o.Dial = outside(o.Operator)
	if o.Authorities, o.Roots, err = authorities(c.CAFiles); err != nil {
		return o, err
	}
	return o, nil
}

func maxMode(field, mode string) (sandbox.NetworkMode, error) {
	m := sandbox.NetworkMode(mode)
	if !slices.Contains([]sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkRestricted, sandbox.NetworkOpen}, m) {
		return "", fault.InvalidField(field, "%q is not a valid mode; use off, restricted or open", sandbox.Clip(mode, 40))
	}
	return m, nil
}

// checkElicit is the doctor's check of the switch, where it is on.
func (c NetworkConfig) checkElicit() Check {
	const name = "elicitation"
	for field, value := range map[string]string{"network.ask": c.Ask, "network.max_mode": c.MaxMode} {
		if value == string(permit.AskNothing) || value == string(sandbox.NetworkOff) {
			return warning(name, "remove network.elicit, or change "+field, "network.elicit has no effect, since %s is %s", field, value)
		}
	}
	return ok(name, "network.elicit is on: what an MCP client says that its person answered grants networks, also if a program answered")
}

// thisMachine is the server's host, as its package tools see it.
func thisMachine() preset.Machine {
	m := preset.Machine{Files: os.DirFS("/"), Env: os.Getenv}
	if home, err := os.UserHomeDir(); err == nil {
		if below := strings.Trim(filepath.Clean(home), "/"); below != "" {
			m.Homes = []string{below}
		}
	}
	return m
}

// hostOfBuilds returns what builds of images take over of this host.
func hostOfBuilds(more []byte) (build.Host, error) {
	trusted, err := image.HostAuthorities(more)
	return build.Host{Variables: thisMachine().Variables(), Authorities: trusted}, err
}

// searchDomains returns the domains that a host completes names with, by its resolv.conf and its own name.
func searchDomains(resolv, hostname string) []string {
	var all []string
	for line := range strings.Lines(resolv) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "search" || f[0] == "domain") {
			all = append(all, f[1:]...)
		}
	}
	if _, domain, ok := strings.Cut(hostname, "."); ok {
		all = append(all, domain)
	}
	var out []string
	for _, d := range all {
		if name, ok := sandbox.NormalName(d); ok && name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// quota fills in the default, and checks the bounds.
func (c NamesConfig) quota() (egress.Quota, error) {
	q := egress.DefaultQuota()
	for _, f := range []struct {
		name string
		says int
		into *int
	}{
		{"different", c.Different, &q.Names}, {"different_per_minute", c.DifferentPerMinute, &q.NamesPerMinute},
		{"questions", c.Questions, &q.Questions}, {"questions_per_minute", c.QuestionsPerMinute, &q.QuestionsPerMinute},
	} {
		if f.says < 0 || f.says > egress.MaxQuota {
			return q, fault.InvalidField("network.names."+f.name, "%d is outside 1 to %d; 0 is the default", f.says, egress.MaxQuota)
		}
		if f.says > 0 {
			*f.into = f.says
		}
	}
	return q, nil
}

func ranges(field string, texts []string) (out []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := sandbox.ParseCIDR(field, text)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// outside connects to the world, and never to the host itself, whose addresses come and
// go, and some of which may be of the public internet. One that the operator allows by
// itself, and not as one of many, is meant.
func outside(o policy.Operator) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		a := to.Addr().Unmap()
		if !slices.Contains(o.Allow, netip.PrefixFrom(a, a.BitLen())) && ours(to) {
			return nil, fault.New(fault.Denied, "%s is an address of this host", a)
		}
		return d.DialContext(ctx, network, address)
	}
}

// ours reports whether an address is this host's now: the kernel then chooses it as the
// source, too. Nothing is sent for that.
func ours(to netip.AddrPort) bool {
	if to.Addr().Unmap().IsLoopback() {
		return true
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return false // nor can it be connected to
	}
	defer c.Close()
	from, ok := c.LocalAddr().(*net.UDPAddr)
	return ok && from.AddrPort().Addr().Unmap().WithZone("") == to.Addr().Unmap().WithZone("")
}
