// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/network/egress"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// The world that a sandbox under attack may reach.
const (
	worldName    = "allowed.example"
	worldBelow   = "wild.example" // of which all names below are allowed
	worldAddress = "93.184.216.34"
	worldSix     = "2606:2800:220:1::34"
	listed       = "8.8.4.0/24" // addresses that are reached without a name
	worldNames   = 20           // different ones below worldBelow, and no more
)

// watched is a sandbox's gate, and what got through it. Nothing of it leaves the test: the
// world is one server of ours, and what is dialled elsewhere is written down and refused.
type watched struct {
	journal *egress.Journal
	server  string

	mu      sync.Mutex
	dialled []string // network and address, but for what is allowed
	asked   []string // names that the world was asked for
	turns   int      // of the name that changes what it stands for
}

// guarded lets a gate with a restrictive policy have a sandbox's traffic.
func (b *box) guarded() *watched {
	b.t.Helper()
	w := &watched{journal: egress.NewJournal(nil)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = l.Close() })
	w.server = l.Addr().String()
	go w.serve(l)
	p, err := sandbox.NetworkPolicy{
		Mode:         sandbox.NetworkRestricted,
		AllowDomains: []string{worldName, "*." + worldBelow, "rebind.example"},
		AllowCIDRs:   []netip.Prefix{netip.MustParsePrefix(listed)},
	}.Normal()
	if err != nil {
		b.t.Fatal(err)
	}
	gate := egress.NewGate(egress.Options{
		Policy: policy.New(p, policy.Operator{}), Journal: w.journal, Resolver: w, Dial: w.dial,
		Quota: egress.Quota{Names: worldNames, NamesPerMinute: 1, Questions: 200, QuestionsPerMinute: 1},
	})
	traffic := b.steer()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		gate.Serve(ctx, traffic)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// serve answers requests, among them with redirects to where nobody may go, and says what else
// it was told.
func (w *watched) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			in := bufio.NewReader(c)
			first, err := in.Peek(1)
			if err != nil {
				return
			}
			if first[0] < 'A' || first[0] > 'Z' {
				b := make([]byte, 64)
				n, _ := in.Read(b)
				_, _ = fmt.Fprintf(c, "raw %x\n", b[:n])
				return
			}
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if to, ok := strings.CutPrefix(r.URL.Path, "/redirect/"); ok {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 302 Found\r\nLocation: http://%s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", to)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nworld")
		}()
	}
}

func (w *watched) dial(ctx context.Context, network, address string) (net.Conn, error) {
	to := netip.MustParseAddrPort(address)
	allowed := network == "tcp" && slices.Contains([]string{worldAddress, worldSix}, to.Addr().String()) ||
		netip.MustParsePrefix(listed).Contains(to.Addr())
	if !allowed {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dialled = append(w.dialled, network+" "+address)
		return nil, syscall.ECONNREFUSED
	}
	if network != "tcp" {
		return net.Dial("udp", "127.0.0.1:9") // nobody answers
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", w.server)
}

// LookupNetIP is the world's answer. One name stands for a public address first, and then for
// what nobody may reach.
func (w *watched) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(host, ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, host)
	four := []string{worldAddress}
	six := []string{worldSix}
	if host == "rebind.example" {
		if w.turns++; w.turns > 1 {
			four, six = []string{"169.254.169.254", "10.0.0.1", "127.0.0.1", "0.0.0.0"}, []string{"::1", "fd00:ec2::254", "::ffff:169.254.169.254"}
		}
	}
	var out []netip.Addr
	for _, a := range map[string][]string{"ip4": four, "ip6": six}[network] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

// LookupMX is asked for names only, as all that follow.
func (w *watched) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	return nil, w.other(name)
}

// LookupTXT is what tunnels are mostly made of.
func (w *watched) LookupTXT(_ context.Context, name string) ([]string, error) {
	return []string{"text"}, w.other(name)
}

// LookupSRV is the same for services.
func (w *watched) LookupSRV(_ context.Context, _, _, name string) (string, []*net.SRV, error) {
	return "", nil, w.other(name)
}

func (w *watched) other(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, strings.TrimSuffix(name, "."))
	return nil
}

// record is what the journal has, each as "protocol name-or-address:port reason".
func (w *watched) record() (out []string) {
	entries, _ := w.journal.Entries()
	for _, e := range entries {
		out = append(out, line(e))
	}
	slices.Sort(out)
	return out
}

func line(e egress.Entry) string {
	what := e.Name
	switch {
	case what == "" && e.Port != 0:
		what = netip.AddrPortFrom(e.Address, e.Port).String()
	case e.Port != 0:
		what = fmt.Sprintf("%s:%d", what, e.Port)
	}
	why := string(e.Reason)
	if e.Reason == policy.Allowed {
		why = "allowed"
	}
	return fmt.Sprintf("%s %s %s", e.Protocol, what, why)
}

// nothingGotOut holds that all that left is what the policy allows.
func (w *watched) nothingGotOut(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.dialled) > 0 {
		t.Errorf("it got out to %q", w.dialled)
	}
	below := map[string]bool{}
	for _, name := range w.asked {
		switch {
		case name == worldName || name == "rebind.example":
		case strings.HasSuffix(name, "."+worldBelow) || strings.HasPrefix(name, "_") && strings.HasSuffix(name, "."+worldName):
			below[name] = true
		default:
			t.Errorf("the world was asked for %q", name)
		}
	}
	if len(below) > 2*worldNames+4 { // of both rules, and what comes back while the test runs
		t.Errorf("the world was asked for %d names that were made up", len(below))
	}
}
