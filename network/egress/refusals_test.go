// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/sandbox"
)

// clock stands still until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// still lets a gate's clock of refusals stand still, with n of a kind left.
func (p *place) still(k kind, n int) *clock {
	c := &clock{at: time.Now()}
	r := p.gate.refused[k]
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.left = c.now, bucket{left: float64(n), at: c.at}
	return c
}

// count counts what the journal has of an address or a name.
func (p *place) count(what string) (n int64) {
	entries, _ := p.journal.Entries()
	for _, e := range entries {
		if e.Name == what || e.Address.IsValid() && e.Address.String() == what {
			n += e.Count
		}
	}
	return n
}

// settled waits until nothing more is refused of a kind: there is none left for it.
func (p *place) settled(t *testing.T, k kind) {
	t.Helper()
	until(t, "no refusal is left", func() bool { return p.gate.refused[k].debt() > 0 })
}

// echoes is a server that sends back what comes.
func echoes(c net.Conn) { _, _ = io.Copy(c, c) }

func said(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Errorf("the echo is %q, %v", b, err)
	}
}

// A sandbox that is refused without end is heard as often as the server chooses, loses
// nothing that it may have, and all of it is on the record in the end.
func TestRefusedConnectionsAreMetered(t *testing.T) {
	p := network(t, sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("93.184.216.7/32")}})
	p.world.serve(t, "93.184.216.7:7", echoes)
	open, err := p.dial("tcp", "93.184.216.7:7")
	if err != nil {
		t.Fatal(err)
	}
	said(t, open, "before")
	const allowance, tried = 20, 600
	clock := p.still(connections, allowance)
	for range tried {
		c, err := p.dial("tcp", "93.184.216.9:80") // the kernel takes it
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	p.settled(t, connections)
	if n := p.count("93.184.216.9"); n > allowance+maxPending {
		t.Errorf("%d connections were refused, want at most %d and the %d that were on their way", n, allowance, maxPending)
	}
	said(t, open, "while none is left")
	clock.move(time.Hour)
	after, err := p.dial("tcp", "93.184.216.7:7")
	if err != nil {
		t.Fatalf("what is allowed, behind all that is not: %v", err)
	}
	said(t, after, "after")
	until(t, "all of them are on the record", func() bool { return p.count("93.184.216.9") == tried })
}

// Beyond half of what may be refused at once, a program is told no more why: the words take
// longer than the refusal.
func TestARefusalInHasteHasNoWords(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	p.still(connections, refusalsAtOnce/2+1)
	if status, body, err := p.get("93.184.216.9:80", "other.example"); err != nil || status != 403 {
		t.Errorf("the first: %d %q, %v", status, body, err)
	}
	if status, body, err := p.get("93.184.216.9:80", "other.example"); err == nil {
		t.Errorf("the second: %d %q, want a reset", status, body)
	}
}

func TestRefusedDatagramsAreMetered(t *testing.T) {
	p := network(t, sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("93.184.216.7/32")}, AllowDomains: []string{"allowed.example"}})
	echo, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := echo.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = echo.WriteTo(b[:n], from)
		}
	}()
	p.world.mu.Lock()
	p.world.servers["udp 93.184.216.7:7"] = echo.LocalAddr().String()
	p.world.mu.Unlock()
	open, err := p.dial("udp", "93.184.216.7:7")
	if err != nil {
		t.Fatal(err)
	}
	said(t, open, "before")
	const allowance, tried = 20, 5000 // more than the kernel keeps
	clock := p.still(datagrams, allowance)
	c, err := p.dial("udp", "93.184.216.9:9")
	if err != nil {
		t.Fatal(err)
	}
	for range tried {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	p.settled(t, datagrams)
	if n := p.count("93.184.216.9"); n > allowance {
		t.Errorf("%d datagrams were refused, want at most %d", n, allowance)
	}
	said(t, open, "while none is left")
	clock.move(time.Hour)
	until(t, "there is room again", func() bool {
		_, _ = c.Write([]byte("x")) // with it comes how many were lost
		_, lost := p.journal.Entries()
		return lost > 0
	})
	clock.move(time.Hour)
	if got := addresses(p.ask("192.0.2.53:53", "allowed.example", dnsmessage.TypeA)); len(got) == 0 {
		t.Error("an allowed name has no address any more")
	}
	entries, lost := p.journal.Entries()
	if n := p.count("93.184.216.9"); n+lost < tried {
		t.Errorf("%d datagrams are on the record and %d are counted as lost, of %d: %v", n, lost, tried, entries)
	}
}

func TestRefusedQuestionsAreMetered(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	clock := p.still(datagrams, 3)
	for range 3 {
		if m := p.ask("192.0.2.53:53", "other.example", dnsmessage.TypeA); m.RCode != dnsmessage.RCodeNameError {
			t.Errorf("got %v", m.RCode)
		}
	}
	p.settled(t, datagrams)
	clock.move(time.Minute)
	if m := p.ask("192.0.2.53:53", "allowed.example", dnsmessage.TypeA); len(addresses(m)) == 0 {
		t.Errorf("an allowed name after that: %+v", m.Header)
	}
	if n := p.count("other.example"); n != 3 {
		t.Errorf("%d are on the record, want 3", n)
	}
}

// The wait ends with the gate.
func TestAGateThatRefusesNoMoreEnds(t *testing.T) {
	r := newRefusals()
	at := time.Now()
	r.now, r.left = func() time.Time { return at }, bucket{at: at}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r.wait(ctx) {
		t.Error("it went on")
	}
}
