// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// What is denied in mode open is reached by no name, no address and no first bytes that name it.
func TestWhatIsDeniedInModeOpen(t *testing.T) {
	p := network(t, sandbox.NetworkPolicy{
		Mode: sandbox.NetworkOpen, DenyDomains: []string{"other.example", "*.wild.example"}, AllowDomains: []string{"www.wild.example"},
		DenyCIDRs: []netip.Prefix{netip.MustParsePrefix("93.184.216.2/32"), netip.MustParsePrefix("93.184.217.0/24")},
	})
	p.world.serve(t, "93.184.216.2:80", httpSays("wild"))
	p.world.serve(t, "93.184.217.1:80", httpSays("denied"))
	ask := func(name string) dnsmessage.Message { return p.ask("127.0.0.1:53", name, dnsmessage.TypeA) }

	if m := ask("other.example"); m.RCode != dnsmessage.RCodeNameError {
		t.Errorf("other.example is answered: %v", addresses(m))
	}
	p.noted("dns", "other.example", policy.Denied)
	if m := ask("x.wild.example"); m.RCode != dnsmessage.RCodeNameError {
		t.Errorf("x.wild.example is answered: %v", addresses(m))
	}
	get := func(address, host string, status int, body string) {
		t.Helper()
		got, text, err := p.get(address, host)
		if err != nil || got != status || !strings.Contains(text, body) {
			t.Errorf("%s at %s: %d %q %v, want %d %q", host, address, got, text, err, status, body)
		}
	}
	get("93.184.216.9:80", "other.example", 403, "is denied to this sandbox") // it knew the address
	p.noted("tcp", "other.example", policy.Denied)
	get("93.184.216.9:80", "third.example", 200, "other") // whoever hides the name
	get("93.184.217.1:80", "third.example", 403, "is denied to this sandbox")
	p.noted("tcp", "93.184.217.1:80", policy.Denied)
	get("93.184.216.2:80", "www.wild.example", 403, "is denied") // nobody asked for the name: it could be another's
	if got := addresses(ask("www.wild.example")); len(got) != 1 || got[0] != "93.184.216.2" {
		t.Errorf("the name that goes first has %v", got)
	}
	get("93.184.216.2:80", "www.wild.example", 200, "wild")
	get("93.184.216.1:80", "allowed.example", 200, "allowed")
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: Other.Example.\r\n\r\n", "CONNECT other.example:443 HTTP/1.1\r\nHost: third.example\r\n\r\n",
		"GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n", "GET / HTTP/1.1\r\nHost: third.example\r\nHost: other.example\r\n\r\n", helloFor("other.example"), helloFor("OTHER.example"),
	} {
		c, err := p.dial("tcp", "93.184.216.9:80")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, head)
		if b, _ := io.ReadAll(c); len(b) > 0 && !strings.HasPrefix(string(b), "HTTP/1.1 403") && b[0] != 21 { // an alert, or a reset
			t.Errorf("%q gets %q", head, b)
		}
	}
}

// Protocols without a name for the host go on working beside a list of names: mode open lets them through.
func TestWithoutANameInModeOpen(t *testing.T) {
	p := network(t, sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, DenyDomains: []string{"other.example"}})
	p.world.serve(t, "93.184.216.1:22", func(c net.Conn) {
		_, _ = io.WriteString(c, "SSH-2.0-there\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "you said "+line)
	})
	cert := certificate(t)
	p.world.serve(t, "93.184.216.1:443", func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		if s.Handshake() == nil {
			_, _ = s.Write([]byte("hello"))
			_ = s.CloseWrite()
		}
	})
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) { _, _ = io.Copy(c, c) })

	c, err := p.dial("tcp", "93.184.216.1:22")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); line != "SSH-2.0-there\r\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	_, _ = io.WriteString(c, "SSH-2.0-here\n")
	if line, err := r.ReadString('\n'); line != "you said SSH-2.0-here\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if c, err = p.dial("tcp", "93.184.216.1:443"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(tls.Client(c, &tls.Config{InsecureSkipVerify: true})); string(b) != "hello" || err != nil {
		t.Errorf("TLS without a name: %q, %v", b, err)
	}
	if c, err = p.dial("tcp", "93.184.216.1:7"); err != nil {
		t.Fatal(err)
	}
	word := make([]byte, 4)
	if _, err := c.Write([]byte("\x01\x02\x03\x04")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, word); err != nil || string(word) != "\x01\x02\x03\x04" {
		t.Errorf("bytes: %q, %v", word, err)
	}
}

// A list that comes later holds for what is open already.
func TestAListOfWhatIsDeniedCutsWhatIsOpen(t *testing.T) {
	open := sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}
	p := network(t, open)
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) { _, _ = io.Copy(c, c) })
	dial := func() net.Conn {
		c, err := p.dial("tcp", "93.184.216.1:7")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("\x01")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := dial()
	denies := open
	denies.DenyCIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	p.gate.SetPolicy(policy.New(denies, policy.Operator{}))
	if _, err := c.Write([]byte("\x01")); err != nil {
		t.Errorf("a list that has it not cut it: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Errorf("a list that has it not cut it: %v", err)
	}
	denies.DenyCIDRs = append(denies.DenyCIDRs, netip.MustParsePrefix("93.184.216.1/32"))
	p.gate.SetPolicy(policy.New(denies, policy.Operator{}))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it goes on: %v", err)
	}
	p.gate.SetPolicy(policy.New(open, policy.Operator{}))
	c = dial() // nobody looked whom it names
	denies.DenyCIDRs, denies.DenyDomains = nil, []string{"other.example"}
	p.gate.SetPolicy(policy.New(denies, policy.Operator{}))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("what may be for a name that is denied goes on: %v", err)
	}
}
