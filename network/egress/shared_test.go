// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/network/policy"
)

func TestNamesThatShareAnAddressAreKeptApart(t *testing.T) {
	p := network(t, restricted("allowed.example", "shared.example"))
	p.world.mu.Lock()
	p.world.names["shared.example"] = []string{"93.184.216.1"}
	p.world.mu.Unlock()
	p.world.serve(t, "93.184.216.1:80", func(c net.Conn) { _, _ = io.Copy(c, c) })
	for _, name := range []string{"allowed.example", "shared.example"} {
		p.ask("127.0.0.1:53", name, dnsmessage.TypeA)
	}
	begin := func(name string) net.Conn {
		t.Helper()
		c, err := p.dial("tcp", "93.184.216.1:80")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		request := "GET / HTTP/1.1\r\nHost: " + name + "\r\n\r\n"
		_, _ = io.WriteString(c, request)
		if _, err := io.ReadFull(c, make([]byte, len(request))); err != nil {
			t.Fatal(err)
		}
		return c
	}
	cut, kept := begin("allowed.example"), begin("shared.example")
	p.noted("tcp", "allowed.example", policy.Allowed)
	p.noted("tcp", "shared.example", policy.Allowed)
	p.gate.SetPolicy(rules("shared.example"))
	if _, err := cut.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection for a name that is forbidden now: %v", err)
	}
	_, _ = io.WriteString(kept, "x")
	if _, err := io.ReadFull(kept, make([]byte, 1)); err != nil {
		t.Errorf("the connection for the name that is allowed yet: %v", err)
	}
}

func TestAConnectionThatNeverSpokeIsNoted(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "93.184.216.1:7")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	until(t, "its entry", func() bool {
		entries, _ := p.journal.Entries()
		return slices.ContainsFunc(entries, func(e Entry) bool { return e.Protocol == "tcp" && e.Name == "allowed.example" })
	})
}

func TestWhatIsRefusedOnceItSpeaksIsNotNotedAsAllowed(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	p.world.serve(t, "93.184.216.1:80", httpSays("hello"))
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	if status, _, err := p.get("93.184.216.1:80", "other.example"); err != nil || status != 403 {
		t.Fatalf("got %d, %v", status, err)
	}
	p.noted("tcp", "other.example", policy.Disagreement)
	entries, _ := p.journal.Entries()
	if slices.ContainsFunc(entries, func(e Entry) bool { return e.Protocol == "tcp" && e.Reason == policy.Allowed }) {
		t.Errorf("it is noted as let through: %+v", entries)
	}
}
