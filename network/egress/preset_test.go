// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// Who makes an image may name a host whose address is in a range that the operator allows for others.
func TestANameThatAnImageChoseReachesNoRangeOfTheOperators(t *testing.T) {
	own := restricted("inside.example")
	chosen := restricted("inside.example")
	chosen.PresetDomains = []sandbox.PresetDomain{{Preset: "python", Domain: "inside.example", Source: sandbox.PresetFromImage}}
	operator := policy.Operator{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}

	p := network(t, chosen)
	p.gate.SetPolicy(policy.New(chosen, operator))
	p.world.mu.Lock()
	p.world.names["inside.example"] = []string{"10.0.0.5", "93.184.216.1"}
	p.world.mu.Unlock()
	serve := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	p.world.serve(t, "10.0.0.5:7", serve)
	addresses := func() []string {
		t.Helper()
		all, err := p.gate.lookup(t.Context(), p.gate.Policy(), "inside.example", false)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range all {
			out = append(out, a.String())
		}
		return out
	}
	if got := addresses(); !slices.Equal(got, []string{"93.184.216.1"}) {
		t.Errorf("an image's name is answered with %v", got)
	}
	p.gate.SetPolicy(policy.New(own, operator))
	if got := addresses(); len(got) != 2 {
		t.Fatalf("the caller's own name is answered with %v", got)
	}
	p.ask("8.8.8.8:53", "inside.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "10.0.0.5:7")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the dial", func() bool { return len(p.world.reached()) == 1 })
	// What was answered under the wider policy opens nothing under the other, and is cut.
	p.gate.SetPolicy(policy.New(chosen, operator))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection goes on: %v", err)
	}
	if c, err := p.dial("tcp", "10.0.0.5:7"); err == nil {
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: inside.example\r\n\r\n"))
		_, _ = io.Copy(io.Discard, c)
	}
	if n := len(p.world.reached()); n != 1 {
		t.Errorf("it was reached %d times, want once", n)
	}
	entries, _ := p.journal.Entries()
	for _, why := range []policy.Reason{policy.Private, policy.Disagreement} {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Reason == why }) {
			t.Errorf("%q is not noted: %+v", why, entries)
		}
	}
}
