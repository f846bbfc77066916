// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/network/policy"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// helloFor is a ClientHello in one record; no name: without the extension.
func helloFor(name string) string {
	body := "\x03\x03" + strings.Repeat("r", 32) + "\x00" + "\x00\x02\x13\x01" + "\x01\x00"
	if n := len(name); name != "" {
		body += string([]byte{0, byte(n + 9), 0, 0, 0, byte(n + 5), 0, byte(n + 3), 0, 0, byte(n)}) + name
	}
	return string([]byte{22, 3, 1, 0, byte(len(body) + 4), 1, 0, 0, byte(len(body))}) + body
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: ", what)
		}
	}
}

func rules(domains ...string) *policy.Policy {
	return policy.New(restricted(domains...), policy.Operator{})
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]speech{
		helloFor("allowed.example"): speaksTLS, helloFor(""): speaksTLS, helloFor("allowed.example")[:9]: unclear, "\x16": unclear, "\x15": unclear,
		"\x16\x10binary": other, "\x15\x03": malformed, "\x00\x16": other,
		"GE": unclear, "QUERY": unclear, "QUERY / HT": unclear, "SSH-2.0-here\n": other, "EHLO me\r\n": other, "\r\n": unclear,
		"GET /?u=http://x/ HTTP/1.1\r\nHost: a.b\r\n\r\n":        speaksHTTP,
		"\r\nGET / HTTP/1.0\r\nHost: a.b:80\r\n\r\nbody\nbody":   speaksHTTP,
		"QUERY / HTTP/1.1\r\nHost: a.b\r\n\r\n":                  speaksHTTP,
		"OPTIONS * HTTP/1.1\r\nHost: a.b\r\n\r\n":                speaksHTTP,
		"GET http://A.b:80/ HTTP/1.1\r\nHost: a.b\r\n\r\n":       speaksHTTP,
		"CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n":      speaksHTTP,
		"CONNECT a.b:443 HTTP/1.1\r\nHost: c.d:443\r\n\r\n":      malformed,
		"GET http://u@a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n":        malformed,
		"GET a.b HTTP/1.1\r\nHost: a.b\r\n\r\n":                  malformed,
		"GET / HTTP/3.0\r\nHost: a.b\r\n\r\n":                    malformed,
		"DESCRIBE rtsp://a.b/ RTSP/1.0\r\nCSeq: 1\r\n\r\n":       other,
		"GET / HTTP/1.1\r\nX: y\nmore that is still on its way ": malformed,
	} {
		if got, name := sniff([]byte(text)); got != want || got == speaksHTTP && name != "a.b" {
			t.Errorf("%.60q: %d %q, want %d", text, got, name, want)
		}
	}
}

func TestAPolicyThatChangesTwiceDuringADial(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	ended := make(chan struct{})
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) { _, _ = io.Copy(io.Discard, c); close(ended) })
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	held := make(chan struct{})
	p.world.mu.Lock()
	p.world.held = held
	p.world.mu.Unlock()
	if _, err := p.dial("tcp", "93.184.216.1:7"); err != nil {
		t.Fatal(err)
	}
	until(t, "the dial", func() bool { return len(p.world.reached()) == 1 })
	p.gate.SetPolicy(rules("other.example"))
	p.gate.SetPolicy(rules("allowed.example"))
	close(held)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the connection to the server outlives what was cut")
	}
	entries, _ := p.journal.Entries()
	if slices.ContainsFunc(entries, func(e Entry) bool { return e.Protocol == "tcp" && e.Reason == policy.Allowed }) {
		t.Errorf("what was cut is noted as let through: %+v", entries)
	}
}

func TestAResetIsPassedOn(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	got := make(chan error, 1)
	begun := make(chan struct{})
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		close(begun)
		_, err := io.Copy(io.Discard, c)
		got <- err
	})
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "93.184.216.1:7")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte{1})
	<-begun
	reset(c.(*net.TCPConn))
	select {
	case err := <-got:
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server sees %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the server sees nothing")
	}
}

func TestWhatIsCutShortIsNotPassedOn(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	got := make(chan string, 1)
	p.world.serve(t, "93.184.216.1:8080", func(c net.Conn) {
		b, _ := io.ReadAll(c)
		got <- string(b)
	})
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "93.184.216.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: evil.example\r\n")
	_ = c.(*net.TCPConn).CloseWrite()
	if b := <-got; b != "" {
		t.Errorf("the server got %q", b)
	}
}

func TestANameThatWasSaidIsHeldToThePolicy(t *testing.T) {
	p := network(t, restricted("allowed.example", "second.example"))
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) { _, _ = io.Copy(c, c) })
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	head := "GET / HTTP/1.1\r\nHost: second.example\r\n\r\n"
	said, err := p.dial("tcp", "93.184.216.1:7")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(said, head)
	if _, err := io.ReadFull(said, make([]byte, len(head))); err != nil {
		t.Fatal(err)
	}
	silent, err := p.dial("tcp", "93.184.216.1:7")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the second dial", func() bool { return len(p.world.reached()) == 2 })
	time.Sleep(20 * time.Millisecond) // it is being listened to
	p.gate.SetPolicy(rules("allowed.example"))
	if _, err := said.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection for a name that is forbidden now: %v", err)
	}
	_, _ = io.WriteString(silent, head)
	if b, _ := io.ReadAll(silent); !strings.HasPrefix(string(b), "HTTP/1.1 403") {
		t.Errorf("what is said after the change: %q", b)
	}
}

func TestWhatWasNotHeardIsCut(t *testing.T) {
	p := network(t, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen})
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) { _, _ = io.Copy(c, c) })
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "93.184.216.1:7")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte("x"))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p.gate.SetPolicy(rules("allowed.example"))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
}

func TestLearningKeepsNobodyWaiting(t *testing.T) {
	was := restricted("allowed.example")
	was.Learn = true
	p := network(t, was)
	p.world.serve(t, "93.184.216.9:22", func(c net.Conn) { _, _ = io.WriteString(c, "hello") })
	c, err := p.dial("tcp", "93.184.216.9:22")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(firstBound / 2))
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// crowd is traffic of connections that say nothing, after some errors.
type crowd struct {
	l        net.Listener
	errors   atomic.Int64 // how many are still to come
	accepted atomic.Int64
	closed   chan struct{}
	once     sync.Once
	mu       sync.Mutex
	clients  []net.Conn
}

func (c *crowd) Accept() (runtime.Conn, error) {
	select {
	case <-c.closed:
		return nil, net.ErrClosed
	default:
	}
	if c.errors.Add(-1) >= 0 {
		return nil, errors.New("odd")
	}
	client, err := net.Dial("tcp", c.l.Addr().String())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.clients = append(c.clients, client)
	c.mu.Unlock()
	s, err := c.l.Accept()
	if err != nil {
		return nil, err
	}
	c.accepted.Add(1)
	return s.(*net.TCPConn), nil
}

func (c *crowd) Wait() error {
	<-c.closed
	return net.ErrClosed
}

func (c *crowd) Read([]byte) (n int, from, to netip.AddrPort, err error) {
	<-c.closed
	return 0, from, to, net.ErrClosed
}

func (c *crowd) Lost() int64 { return 0 }

func (c *crowd) Answer([]byte, netip.Addr, netip.AddrPort) error { return nil }

func (c *crowd) Answering(_, _ netip.AddrPort) (net.Conn, error) { return nil, net.ErrClosed }

func (c *crowd) Close() error { c.once.Do(func() { close(c.closed) }); return nil }

func TestConnectionsThatWaitAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &crowd{l: l, closed: make(chan struct{})}
	c.errors.Store(2)
	g := NewGate(Options{Policy: rules(), Journal: NewJournal(nil), Resolver: &world{}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.Serve(ctx, c) }()
	until(t, "as many as there may be", func() bool { return c.accepted.Load() >= maxPending })
	time.Sleep(50 * time.Millisecond)
	if n := c.accepted.Load(); n > maxPending {
		t.Errorf("%d were accepted", n)
	}
	cancel()
	<-done
	for _, x := range c.clients {
		_ = x.Close()
	}
}

func TestFlowsAreBoundedByKind(t *testing.T) {
	open := policy.New(sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, policy.Operator{})
	g := NewGate(Options{Policy: open, Journal: NewJournal(nil)})
	to := netip.MustParseAddrPort("8.8.8.8:1")
	for kind, most := range map[kind]int{datagrams: 128, connections: 512} {
		var last *flow
		for n := range most {
			if last = (&flow{to: to, kind: kind}); !g.enter(last) {
				t.Fatalf("kind %d: %d are too many", kind, n)
			}
		}
		if g.enter(&flow{to: to, kind: kind}) {
			t.Errorf("kind %d: no end", kind)
		}
		g.leave(last)
		if !g.enter(last) {
			t.Errorf("kind %d: what left has its place still", kind)
		}
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	long, err := p.dial("tcp", "8.8.8.8:53")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = long.Write([]byte{0x10, 0x01})
	if _, err := long.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		t.Errorf("a message that is too long: %v", err)
	}
	for range maxStreams {
		if _, err := p.dial("tcp", "8.8.8.8:53"); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all streams", func() bool { return len(p.gate.streams) == maxStreams })
	c, err := p.dial("tcp", "8.8.8.8:53")
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if err == nil || isTimeout(err) {
		t.Errorf("one stream more: %v", err)
	}
	q, err := (&dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("allowed.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{maxQuestion, maxQuestion + 1} {
		u, err := p.dial("udp", "8.8.8.8:53")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = u.Write(append(slices.Clone(q), make([]byte, size-len(q))...))
		_ = u.SetDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := u.Read(make([]byte, 2000)); (err == nil) != (size <= maxQuestion) {
			t.Errorf("a question of %d bytes: %v", size, err)
		}
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestAnswersFit(t *testing.T) {
	w := &world{names: map[string][]string{}}
	for n := range maxAnswers {
		w.names["many.example"] = append(w.names["many.example"], fmt.Sprintf("2606:2800::%x", n+1))
	}
	g := NewGate(Options{Policy: rules("many.example"), Journal: NewJournal(nil), Resolver: w})
	for _, c := range []struct {
		size     int // that the question's OPT says; 0: it has none
		datagram bool
		room     int
		cut      bool
	}{{0, true, 512, true}, {100, true, 512, true}, {800, true, 800, true}, {4096, true, 1232, false}, {0, false, 65535, false}} {
		q := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("many.example."), Type: dnsmessage.TypeAAAA, Class: dnsmessage.ClassINET}}}
		if c.size > 0 {
			var opt dnsmessage.ResourceHeader
			_ = opt.SetEDNS0(c.size, dnsmessage.RCodeSuccess, false)
			q.Additionals = []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{}}}
		}
		b, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		a := g.answer(t.Context(), b, c.datagram)
		var m dnsmessage.Message
		if err := m.Unpack(a); err != nil {
			t.Fatal(err)
		}
		if len(a) > c.room || m.Truncated != c.cut || c.cut && len(a)+28 <= c.room || !c.cut && len(m.Answers) != maxAnswers || len(m.Additionals) > 0 != (c.size > 0) {
			t.Errorf("%+v: %d bytes, %d answers, cut %v, %d beside", c, len(a), len(m.Answers), m.Truncated, len(m.Additionals))
		}
	}
	q := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("evil.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	b, _ := q.Pack()
	if a := g.answer(t.Context(), b, true); bytes.Contains(a, []byte("allow_domains")) {
		t.Error("a question without OPT has one in its answer")
	}
}

func TestThePrivateAddressOfANameIsNotTold(t *testing.T) {
	w := &world{names: map[string][]string{"inside.example": {"10.0.0.5"}}}
	j := NewJournal(nil)
	g := NewGate(Options{Policy: rules("inside.example"), Journal: j, Resolver: w})
	if _, err := g.lookup(t.Context(), g.Policy(), "inside.example", false); err != nil {
		t.Fatal(err)
	}
	if all, _ := j.Entries(); len(all) != 1 || all[0].Address.IsValid() || strings.Contains(all[0].Explain(), "10.0.0.5") {
		t.Errorf("noted: %+v", all)
	}
}

func TestRefusalsDoNotHide(t *testing.T) {
	news := 0
	j := NewJournal(func(Entry) { news++ })
	j.note(Entry{Protocol: "tcp", Name: "a", Reason: policy.Domain, Learned: true})
	j.note(Entry{Protocol: "tcp", Name: "a", Reason: policy.Domain})
	if all, _ := j.Entries(); len(all) != 2 {
		t.Errorf("a refusal hides behind what was learnt: %+v", all)
	}
	for n := range 2 * maxEntries {
		j.note(Entry{Protocol: "tcp", Name: fmt.Sprint(n), Reason: policy.Domain})
	}
	all, dropped := j.Entries()
	last := fmt.Sprint(2*maxEntries - 1)
	if !slices.ContainsFunc(all, func(e Entry) bool { return e.Name == last }) || len(all) != maxEntries || dropped != maxEntries+2 || news != maxEntries {
		t.Errorf("%d entries, %d dropped, %d news", len(all), dropped, news)
	}
}

func TestProposal(t *testing.T) {
	was := restricted("*.wild.example")
	was.AllowPorts = []sandbox.PortRange{{First: 80, Last: 80}}
	addr := netip.MustParseAddr("93.184.216.1")
	got := Proposal([]Entry{
		{Protocol: "tcp", Name: "a.wild.example", Address: addr, Port: 8443, Reason: policy.Port},
		{Protocol: "tcp", Name: "b.wild.example", Address: addr, Port: 8443, Reason: policy.Port, Learned: true},
		{Protocol: "udp", Name: "c.example", Address: addr, Port: 123, Reason: policy.Address, Learned: true},
	}, was)
	if !slices.Equal(got.AllowPorts, []sandbox.PortRange{{First: 80, Last: 80}, {First: 8443, Last: 8443}}) ||
		!slices.Equal(got.AllowDomains, was.AllowDomains) || !slices.Equal(got.AllowCIDRs, []netip.Prefix{netip.PrefixFrom(addr, 32)}) {
		t.Errorf("proposes %+v", got)
	}
}
