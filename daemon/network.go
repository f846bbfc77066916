// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net"
	"net/netip"
	"slices"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// options are what the engine is told of sandboxes' networks.
func (c NetworkConfig) options() (engine.NetworkOptions, error) {
	o := engine.NetworkOptions{Most: sandbox.NetworkMode(c.MaxMode)}
	if !slices.Contains([]sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkRestricted, sandbox.NetworkOpen}, o.Most) {
		return o, fault.InvalidField("network.max_mode", "%q is no mode; there are off, restricted and open", sandbox.Clip(c.MaxMode, 40))
	}
	for _, name := range c.Curated {
		n, err := sandbox.CheckDomain("network.curated", name)
		if err != nil {
			return o, err
		}
		o.Curated = append(o.Curated, n)
	}
	var err error
	if o.Operator.Allow, err = ranges("network.allow_private", c.AllowPrivate); err != nil {
		return o, err
	}
	if o.Operator.Block, err = ranges("network.block", c.Block); err != nil {
		return o, err
	}
	o.Operator.Block = append(o.Operator.Block, hostAddresses(o.Operator)...)
	return o, nil
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

// hostAddresses are the host's own, some of which may be of the public internet. One that
// the operator allows by itself, and not as one of many, is meant.
func hostAddresses(o policy.Operator) (out []netip.Prefix) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil // private ones are refused all the same
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		addr, ok := netip.AddrFromSlice(n.IP)
		if !ok {
			continue
		}
		addr = addr.Unmap()
		p := netip.PrefixFrom(addr, addr.BitLen())
		if !slices.Contains(o.Allow, p) {
			out = append(out, p)
		}
	}
	return out
}
