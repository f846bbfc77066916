// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/fault"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// counts is a resolver that knows every name, and counts how many it was asked for.
type counts struct {
	world
	different map[string]bool
}

func (c *counts) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.different[host] = true
	return []netip.Addr{netip.MustParseAddr("93.184.216.5")}, nil
}

func question(t *testing.T, name string) []byte {
	t.Helper()
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// asked gives the code of a gate's answer.
func asked(t *testing.T, g *Gate, name string) dnsmessage.RCode {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(g.answer(t.Context(), question(t, name), true)); err != nil {
		t.Fatal(err)
	}
	return m.RCode
}

func TestNamesThatAreMadeUpAreBounded(t *testing.T) {
	w := &counts{different: map[string]bool{}}
	j := NewJournal(nil)
	g := NewGate(Options{
		Policy: rules("exact.example", "*.wild.example", "*.far.wild.example", "*.other.example"), Journal: j, Resolver: w,
		Quota: Quota{Names: 10, NamesPerMinute: 1, Questions: 1000, QuestionsPerMinute: 1},
	})
	for n := range 10 {
		if got := asked(t, g, fmt.Sprintf("n%d.wild.example", n)); got != dnsmessage.RCodeSuccess {
			t.Fatalf("the name %d: %v", n, got)
		}
	}
	for n := range 100 {
		if got := asked(t, g, fmt.Sprintf("more%d.wild.example", n)); got != dnsmessage.RCodeRefused {
			t.Fatalf("a name too many: %v", got)
		}
	}
	for name, want := range map[string]dnsmessage.RCode{
		"n3.wild.example": dnsmessage.RCodeSuccess, "N3.WILD.example": dnsmessage.RCodeSuccess, // it was asked for before
		"exact.example": dnsmessage.RCodeSuccess, "x.other.example": dnsmessage.RCodeSuccess, "x.far.wild.example": dnsmessage.RCodeSuccess, // other entries of the list
		"_x.y.wild.example": dnsmessage.RCodeRefused,
	} {
		if got := asked(t, g, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for n := range 20 { // labels of services make names up as well
		asked(t, g, fmt.Sprintf("_x%d._tcp.exact.example", n))
	}
	made := 0
	for name := range w.different {
		if strings.HasPrefix(name, "_") {
			made++
		}
	}
	if made > 10 {
		t.Errorf("of names below one that the list has %d were asked for", made)
	}
	entries, _ := j.Entries()
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Reason == policy.Names && e.Name == "*.wild.example" })
	if i < 0 || entries[i].Count != 101 || !strings.Contains(entries[i].Explain(), "too many different names") {
		t.Errorf("on the record is %+v", entries)
	}
	if p := Proposal(entries, sandbox.NetworkPolicy{}); slices.Contains(p.AllowDomains, "*.wild.example") {
		t.Errorf("it is proposed to allow what is allowed: %+v", p)
	}
}

func TestAQuotaComesBack(t *testing.T) {
	p := rules("*.wild.example")
	at := time.Now()
	q := newQuotas(Quota{Names: 4, NamesPerMinute: 60, Questions: 8, QuestionsPerMinute: 120})
	take := func(name string, seconds float64) bool {
		return q.take(p, name+".wild.example", at.Add(time.Duration(seconds*float64(time.Second)))) == ""
	}
	for n := range 4 {
		if !take(fmt.Sprint("a", n), 0) {
			t.Fatalf("the name %d is refused", n)
		}
	}
	for _, step := range []struct {
		name    string
		seconds float64
		want    bool
	}{
		{"b0", 0, false}, {"a0", 0, true}, {"b0", 0.9, false}, {"b0", 1.1, true}, {"b1", 1.1, false},
		{"c0", 3600, true}, {"c1", 3600, true}, {"c2", 3600, true}, {"c3", 3600, true}, {"c4", 3600, false}, // no more than at once
		{"c0", 3600, true}, {"c0", 3600, true}, {"c0", 3600, true}, {"c0", 3600, true}, {"c0", 3600, false}, // questions, too
		{"c0", 3599, false}, {"c0", 3601, true}, // a clock that went back gives nothing
	} {
		if got := take(step.name, step.seconds); got != step.want {
			t.Errorf("%s after %v s: %t, want %t", step.name, step.seconds, got, step.want)
		}
	}
}

func TestAQuotaForgets(t *testing.T) {
	q := newQuotas(Quota{Names: MaxQuota, NamesPerMinute: MaxQuota, Questions: MaxQuota, QuestionsPerMinute: MaxQuota})
	at := time.Now()
	p := rules("*.wild.example")
	for n := range 3 * maxKnown {
		if q.take(p, fmt.Sprintf("n%d.wild.example", n), at) != "" {
			t.Fatalf("the name %d is refused", n)
		}
		if known := len(q.rules["*.wild.example"].known); known > maxKnown {
			t.Fatalf("%d names are kept", known)
		}
	}
	for n := range 2 * maxRules {
		q.take(rules(fmt.Sprintf("*.p%d.example", n)), fmt.Sprintf("x.p%d.example", n), at)
		if len(q.rules) > maxRules {
			t.Fatalf("%d rules are kept", len(q.rules))
		}
	}
}

// What a package manager does is no tunnel: one registry, asked for again and again.
func TestAPackageManagerIsNotBounded(t *testing.T) {
	w := &counts{different: map[string]bool{}}
	g := NewGate(Options{Policy: rules("*.registry.example", "registry.example"), Journal: NewJournal(nil), Resolver: w})
	for n := range 1500 {
		for _, name := range []string{"registry.example", "files.registry.example", fmt.Sprintf("cdn%d.registry.example", n%100)} {
			if got := asked(t, g, name); got != dnsmessage.RCodeSuccess && n < 900 {
				t.Fatalf("round %d, %s: %v", n, name, got)
			}
		}
	}
	open := NewGate(Options{Policy: policy.New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, policy.Operator{}), Journal: NewJournal(nil), Resolver: w})
	for n := range 5000 {
		if got := asked(t, open, fmt.Sprintf("n%d.any.example", n)); got != dnsmessage.RCodeSuccess {
			t.Fatalf("in mode open: %v", got)
		}
	}
}

func TestServerNamesCountAsQuestions(t *testing.T) {
	p := network(t, restricted("*.wild.example"), func(o *Options) {
		o.Quota = Quota{Names: 1, NamesPerMinute: 1, Questions: 10, QuestionsPerMinute: 1}
	})
	p.ask("8.8.8.8:53", "www.wild.example", dnsmessage.TypeA)
	status, body, err := p.get("93.184.216.77:80", "data.wild.example")
	if err != nil || status != http.StatusForbidden || !strings.Contains(body, "too many different names") {
		t.Errorf("%d, %q, %v", status, body, err)
	}
	p.noted("tcp", "*.wild.example", policy.Names)
}

// Whoever dials for the gate may know an address as the host's.
func TestTheHostsOwnAddresses(t *testing.T) {
	p := network(t, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, func(o *Options) {
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, fault.New(fault.Denied, "it is ours")
		}
	})
	status, body, err := p.get("93.184.216.8:80", "host.example")
	if err != nil || status != http.StatusForbidden || !strings.Contains(body, "the server's own host") {
		t.Errorf("%d, %q, %v", status, body, err)
	}
	p.noted("tcp", "93.184.216.8:80", policy.Host)
	u, err := p.dial("udp", "93.184.216.8:99")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = u.Write([]byte("x"))
	until(t, "the datagram on the record", func() bool {
		entries, _ := p.journal.Entries()
		return slices.ContainsFunc(entries, func(e Entry) bool { return e.Protocol == "udp" && e.Reason == policy.Host })
	})
}

// What comes to the port of names and is no question is on the record, and is answered by nobody.
func TestWhatIsNoQuestion(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	u, err := p.dial("udp", "8.8.8.8:53")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = u.Write([]byte("data"))
	c, err := p.dial("tcp", "9.9.9.9:53")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte("SSH-2.0-x\r\n"))
	for _, what := range []string{"8.8.8.8:53", "9.9.9.9:53"} {
		until(t, what+" on the record", func() bool {
			entries, _ := p.journal.Entries()
			return slices.ContainsFunc(entries, func(e Entry) bool {
				return e.Reason == policy.Protocol && netip.AddrPortFrom(e.Address, e.Port).String() == what
			})
		})
	}
	b := question(t, "tunnel.example")
	b[len(b)-1] = 3 // of class CHAOS
	if a := p.gate.answer(t.Context(), b, true); a == nil || a[3]&15 != byte(dnsmessage.RCodeNotImplemented) {
		t.Errorf("another class is answered with %x", a)
	}
	p.noted("dns", "tunnel.example", policy.Protocol)
}
