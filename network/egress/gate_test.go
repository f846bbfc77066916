// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/steer"
	"sandpit.dev/network/policy"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// world is a resolver and servers, at addresses that nobody connects to for real.
type world struct {
	mu      sync.Mutex
	names   map[string][]string
	servers map[string]string // address:port → where it is
	dialled []string
	held    chan struct{} // nil, or dialling waits until it is closed
}

func (w *world) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []netip.Addr
	for _, text := range w.names[strings.TrimSuffix(host, ".")] {
		a := netip.MustParseAddr(text)
		if a.Is4() == (network == "ip4") {
			out = append(out, a)
		}
	}
	if out == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return out, nil
}

func (w *world) LookupMX(context.Context, string) ([]*net.MX, error) {
	return []*net.MX{{Host: "mail.allowed.example.", Pref: 10}}, nil
}

func (w *world) LookupTXT(context.Context, string) ([]string, error) {
	return []string{strings.Repeat("t", 300)}, nil
}

func (w *world) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, network+" "+address)
	to, ok := w.servers[network+" "+address]
	held := w.held
	w.mu.Unlock()
	if held != nil {
		<-held
		ctx = context.Background() // as a dial that was through just before
	}
	if !ok {
		return nil, syscall.ECONNREFUSED
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

// reached tells how often the world was dialled.
func (w *world) reached() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialled)
}

// serve begins a server of TCP at an address of the world.
func (w *world) serve(t testing.TB, address string, handle func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers["tcp "+address] = l.Addr().String()
}

// place is a sandbox's network: its namespace, and the gate.
type place struct {
	testing.TB
	ns      *os.File
	gate    *Gate
	world   *world
	journal *Journal
}

func network(t testing.TB, p sandbox.NetworkPolicy, change ...func(*Options)) *place {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes network namespaces")
	w := &world{servers: make(map[string]string), names: map[string][]string{
		"allowed.example": {"93.184.216.1", "2606:2800::1"}, "www.wild.example": {"93.184.216.2"}, "other.example": {"93.184.216.9"},
		"rebind.allowed.example": {"10.0.0.5", "169.254.169.254", "127.0.0.1", "::1", "fd00::1"},
		"mixed.allowed.example":  {"10.0.0.5", "93.184.216.3"},
	}}
	w.serve(t, "93.184.216.1:80", httpSays("allowed"))
	w.serve(t, "93.184.216.9:80", httpSays("other"))
	ns := namespace(t)
	s, err := steer.Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	p, err = p.Normal()
	if err != nil {
		t.Fatal(err)
	}
	j := NewJournal(nil)
	o := Options{Policy: policy.New(p, policy.Operator{}), Journal: j, Resolver: w, Dial: w.dial}
	for _, f := range change {
		f(&o)
	}
	g := NewGate(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.Serve(ctx, runtime.FromKernel(s)) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("the gate does not end")
		}
	})
	return &place{t, ns, g, w, j}
}

func restricted(domains ...string) sandbox.NetworkPolicy {
	return sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: domains}
}

// namespace makes a network namespace with its loopback up.
func namespace(t testing.TB) *os.File {
	t.Helper()
	type made struct {
		f   *os.File
		err error
	}
	c := make(chan made)
	go func() {
		goruntime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = loopbackUp()
		}
		if err != nil {
			c <- made{err: err}
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		c <- made{f, err}
	}()
	m := <-c
	if m.err != nil {
		t.Fatal(m.err)
	}
	t.Cleanup(func() { _ = m.f.Close() })
	return m.f
}

func hostNetwork(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Open("/proc/thread-self/ns/net") // the process's first thread may be in a sandbox
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
}

// dial connects as a program in the sandbox does.
func (p *place) dial(network, address string) (net.Conn, error) {
	type made struct {
		c   net.Conn
		err error
	}
	done := make(chan made)
	go func() {
		goruntime.LockOSThread() // its thread ends with it
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- made{err: err}
			return
		}
		c, err := net.DialTimeout(network, address, 5*time.Second)
		done <- made{c, err}
	}()
	m := <-done
	if m.err == nil {
		_ = m.c.SetDeadline(time.Now().Add(10 * time.Second))
		p.Cleanup(func() { _ = m.c.Close() })
	}
	return m.c, m.err
}

// ask asks for a name over UDP.
func (p *place) ask(server, name string, kind dnsmessage.Type) dnsmessage.Message {
	p.Helper()
	c, err := p.dial("udp", server)
	if err != nil {
		p.Fatal(err)
	}
	q := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name + "."), Type: kind, Class: dnsmessage.ClassINET}},
	}
	var opt dnsmessage.ResourceHeader
	if err := opt.SetEDNS0(4096, dnsmessage.RCodeSuccess, false); err != nil {
		p.Fatal(err)
	}
	q.Additionals = []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{}}}
	b, err := q.Pack()
	if err != nil {
		p.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		p.Fatal(err)
	}
	in := make([]byte, 4096)
	n, err := c.Read(in)
	if err != nil {
		p.Fatalf("%s has no answer: %v", name, err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(in[:n]); err != nil {
		p.Fatal(err)
	}
	if m.ID != 7 || !m.Response {
		p.Errorf("the answer is %+v", m.Header)
	}
	return m
}

func addresses(m dnsmessage.Message) []string {
	var out []string
	for _, r := range m.Answers {
		switch b := r.Body.(type) {
		case *dnsmessage.AResource:
			out = append(out, netip.AddrFrom4(b.A).String())
		case *dnsmessage.AAAAResource:
			out = append(out, netip.AddrFrom16(b.AAAA).String())
		}
	}
	return out
}

// get makes a plain request over a connection of its own.
func (p *place) get(address, host string) (status int, body string, err error) {
	c, err := p.dial("tcp", address)
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host); err != nil {
		return 0, "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func httpSays(text string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
	}
}

// noted looks for a refusal in the journal.
func (p *place) noted(protocol, what string, reason policy.Reason) {
	p.Helper()
	entries, _ := p.journal.Entries()
	for _, e := range entries {
		if e.Protocol == protocol && e.Reason == reason && (e.Name == what || netip.AddrPortFrom(e.Address, e.Port).String() == what || e.Address.String() == what) {
			return
		}
	}
	p.Errorf("%s to %s, refused for %q, is not on the record: %+v", protocol, what, reason, entries)
}

func TestNames(t *testing.T) {
	p := network(t, restricted("allowed.example", "*.allowed.example", "*.wild.example"))
	for _, server := range []string{"127.0.0.1:53", "8.8.8.8:53", "[::1]:53", "[2001:4860:4860::8888]:53"} {
		if got := addresses(p.ask(server, "allowed.example", dnsmessage.TypeA)); !slices.Equal(got, []string{"93.184.216.1"}) {
			t.Errorf("%s answers with %v", server, got)
		}
	}
	if got := addresses(p.ask("127.0.0.1:53", "ALLOWED.example", dnsmessage.TypeAAAA)); !slices.Equal(got, []string{"2606:2800::1"}) {
		t.Errorf("of IPv6: %v", got)
	}
	t.Run("OthersDoNotExist", func(t *testing.T) {
		m := p.ask("9.9.9.9:53", "secret-data.tunnel.example", dnsmessage.TypeTXT)
		if m.RCode != dnsmessage.RCodeNameError || len(m.Answers) != 0 {
			t.Errorf("answered with %+v", m)
		}
		why := ""
		for _, r := range m.Additionals {
			if o, ok := r.Body.(*dnsmessage.OPTResource); ok {
				for _, x := range o.Options {
					why = string(x.Data)
				}
			}
		}
		if !strings.Contains(why, "allow_domains") {
			t.Errorf("the reason beside it is %q", why)
		}
		p.noted("dns", "secret-data.tunnel.example", policy.Domain)
	})
	t.Run("AnswersThatAreNotPublicAreLeftOut", func(t *testing.T) {
		if got := addresses(p.ask("127.0.0.1:53", "rebind.allowed.example", dnsmessage.TypeA)); len(got) != 0 {
			t.Errorf("answers with %v", got)
		}
		if got := addresses(p.ask("127.0.0.1:53", "mixed.allowed.example", dnsmessage.TypeA)); !slices.Equal(got, []string{"93.184.216.3"}) {
			t.Errorf("answers with %v", got)
		}
		p.noted("dns", "rebind.allowed.example", policy.Private)
	})
	t.Run("NoRecordHidesNames", func(t *testing.T) {
		for _, kind := range []dnsmessage.Type{65, 64, 255, dnsmessage.TypeNS, dnsmessage.TypePTR} {
			if m := p.ask("127.0.0.1:53", "allowed.example", kind); len(m.Answers) != 0 || m.RCode != dnsmessage.RCodeSuccess {
				t.Errorf("type %v: %+v", kind, m)
			}
		}
	})
	t.Run("OtherRecords", func(t *testing.T) {
		if m := p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeMX); len(m.Answers) != 1 {
			t.Errorf("MX: %+v", m)
		}
		if m := p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeTXT); len(m.Answers) != 1 || len(m.Answers[0].Body.(*dnsmessage.TXTResource).TXT) != 2 {
			t.Errorf("TXT: %+v", m)
		}
	})
	t.Run("Nonsense", func(t *testing.T) {
		for _, b := range [][]byte{nil, {1}, make([]byte, 12), []byte(strings.Repeat("\xff", 512)), {0, 7, 1, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0xc0, 0x0c, 0, 1, 0, 1}} {
			c, err := p.dial("udp", "127.0.0.1:53")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write(b)
		}
		if got := addresses(p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)); len(got) != 1 {
			t.Errorf("after it: %v", got)
		}
	})
	t.Run("OverTCP", func(t *testing.T) {
		c, err := p.dial("tcp", "8.8.4.4:53")
		if err != nil {
			t.Fatal(err)
		}
		q := dnsmessage.Message{Header: dnsmessage.Header{ID: 3}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("allowed.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
		b, _ := q.Pack()
		if _, err := c.Write(append([]byte{0, byte(len(b))}, b...)); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 2)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatal(err)
		}
		in := make([]byte, int(head[0])<<8|int(head[1]))
		if _, err := io.ReadFull(c, in); err != nil {
			t.Fatal(err)
		}
		var m dnsmessage.Message
		if err := m.Unpack(in); err != nil || len(m.Answers) != 1 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

func TestPlainRequests(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	if status, body, err := p.get("93.184.216.1:80", "allowed.example"); status != 200 || body != "allowed" || err != nil {
		t.Errorf("an allowed name: %d %q %v", status, body, err)
	}
	t.Run("AnotherHostAtAnAllowedAddress", func(t *testing.T) {
		before := len(p.world.reached())
		status, body, err := p.get("93.184.216.1:80", "evil.example")
		if status != 403 || !strings.Contains(body, "evil.example") || err != nil {
			t.Errorf("%d %q %v", status, body, err)
		}
		p.noted("tcp", "evil.example", policy.Disagreement)
		_ = before
	})
	t.Run("AnAddressThatWasNotAskedFor", func(t *testing.T) {
		before := len(p.world.reached())
		if status, body, err := p.get("93.184.216.9:80", "other.example"); status != 403 || !strings.Contains(body, "allow_domains") || err != nil {
			t.Errorf("%d %q %v", status, body, err)
		}
		if status, body, err := p.get("93.184.216.9:80", "93.184.216.9"); status != 403 || !strings.Contains(body, "allow_cidrs") || err != nil {
			t.Errorf("%d %q %v", status, body, err)
		}
		// The name is allowed, and its address is another.
		if status, _, err := p.get("93.184.216.9:80", "allowed.example"); status != 403 || err != nil {
			t.Errorf("%d %v", status, err)
		}
		if after := p.world.reached(); len(after) != before {
			t.Errorf("the world was dialled: %v", after[before:])
		}
	})
	t.Run("NeverThePrivate", func(t *testing.T) {
		before := len(p.world.reached())
		for _, to := range []string{"10.0.0.1:80", "192.168.0.1:80", "169.254.169.254:80", "172.17.0.1:80", "100.100.100.200:80", "[fd00:ec2::254]:80", "[::ffff:10.0.0.1]:80", "[64:ff9b::a9fe:a9fe]:80"} {
			if status, body, err := p.get(to, "allowed.example"); status != 403 || !strings.Contains(body, "operator") {
				t.Errorf("%s: %d %q %v", to, status, body, err)
			}
		}
		if after := p.world.reached(); len(after) != before {
			t.Errorf("the world was dialled: %v", after[before:])
		}
	})
}

func TestANewServerKnowsWhatAnOldOneAnswered(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	// No question was asked here: the program had its answer from an earlier server.
	if status, body, err := p.get("93.184.216.1:80", "allowed.example"); status != 200 || body != "allowed" || err != nil {
		t.Errorf("%d %q %v", status, body, err)
	}
}

func TestTricks(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	for title, head := range map[string]string{
		"CONNECT to another":            "CONNECT evil.example:443 HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
		"a whole address of another":    "GET http://evil.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
		"two hosts":                     "GET / HTTP/1.1\r\nHost: allowed.example\r\nHost: evil.example\r\n\r\n",
		"a continued line":              "GET / HTTP/1.1\r\nHost: allowed.example\r\n .evil.example\r\n\r\n",
		"a space before the colon":      "GET / HTTP/1.1\r\nHost : evil.example\r\n\r\n",
		"a line that ends half":         "GET / HTTP/1.1\nHost: evil.example\n\n",
		"a carriage return in a line":   "GET / HTTP/1.1\r\nX: a\rHost: evil.example\r\nHost: allowed.example\r\n\r\n",
		"no version":                    "GET /\r\nHost: allowed.example\r\n\r\n",
		"a host with a user":            "GET / HTTP/1.1\r\nHost: allowed.example@evil.example\r\n\r\n",
		"a host with a NUL":             "GET / HTTP/1.1\r\nHost: allowed.example\x00.evil.example\r\n\r\n",
		"an empty record":               "\x16\x03\x01\x00\x00" + helloFor("evil.example"),
		"a record of another version":   "\x16\x02" + helloFor("evil.example")[2:],
		"an alert before the hello":     "\x15\x03\x01\x00\x02\x01\x00" + helloFor("evil.example"),
		"a hello without a name":        helloFor(""),
		"a hello of SSL 2":              "\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10" + strings.Repeat("x", 37),
		"a request line that ends half": "GET / HTTP/1.1\nHost: evil.example\r\n\r\n",
		"a line in the middle":          "GET / HTTP/1.1\r\nX: a\nHost: evil.example\r\n\r\n",
		"empty lines first":             "\r\n\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"a space first":                 " GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"a tab between":                 "QUERY\t/\tHTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"a method of its own":           "PURGE / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"HTTP/2 without a hello":        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a method without an end":       strings.Repeat("X", maxLine+1),
		"two hosts that differ":         "GET http://allowed.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"a head without an end":         "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", maxFirst) + "\r\n",
		"a hello that is cut":           "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\x16\x09",
		"a hello that is none":          "\x16\x03\x01\x00\x04\x02\x00\x00\x00",
		"a hello of more than there is": "\x16\x03\x01\x00\x04\x01\xff\xff\xff",
	} {
		t.Run(title, func(t *testing.T) {
			got := make(chan string, 1)
			p.world.serve(t, "93.184.216.1:8080", func(c net.Conn) {
				b, _ := io.ReadAll(c)
				got <- string(b)
			})
			c, err := p.dial("tcp", "93.184.216.1:8080")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, head); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(c)
			if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 403") && answer[0] != 21 {
				t.Errorf("answered with %q", answer)
			}
			select {
			case b := <-got:
				if b != "" {
					t.Errorf("the server got %q", b)
				}
			case <-time.After(5 * time.Second):
				t.Error("the connection to the server stays open")
			}
		})
	}
	t.Run("ByteByByte", func(t *testing.T) {
		c, err := p.dial("tcp", "93.184.216.1:80")
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n") {
			if _, err := c.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if b, _ := io.ReadAll(c); !strings.HasPrefix(string(b), "HTTP/1.1 403") {
			t.Errorf("got %q", b)
		}
	})
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"allowed.example", "evil.example"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLS(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	cert := certificate(t)
	p.world.serve(t, "93.184.216.1:443", func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		if s.Handshake() == nil {
			_, _ = s.Write([]byte("secret"))
			_ = s.CloseWrite()
		}
	})
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	for name, allowed := range map[string]bool{"allowed.example": true, "evil.example": false} {
		c, err := p.dial("tcp", "93.184.216.1:443")
		if err != nil {
			t.Fatal(err)
		}
		s := tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		err = s.Handshake()
		if allowed != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if b, err := io.ReadAll(s); string(b) != "secret" || err != nil {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		} else if !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s is told %v", name, err)
		}
	}
	p.noted("tcp", "evil.example", policy.Disagreement)
}

func TestAServerThatSpeaksFirst(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	p.world.serve(t, "93.184.216.1:22", func(c net.Conn) {
		_, _ = io.WriteString(c, "SSH-2.0-there\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "you said "+line)
	})
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "93.184.216.1:22")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); line != "SSH-2.0-there\r\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = io.WriteString(c, "SSH-2.0-here\n")
	if line, err := r.ReadString('\n'); line != "you said SSH-2.0-here\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
}

func TestAPolicyThatChangesCutsWhatItForbids(t *testing.T) {
	p := network(t, restricted("allowed.example"))
	p.world.serve(t, "93.184.216.1:7", func(c net.Conn) { _, _ = io.Copy(c, c) })
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	c, err := p.dial("tcp", "93.184.216.1:7")
	if err != nil {
		t.Fatal(err)
	}
	echo := func() error {
		if _, err := c.Write([]byte("\x01")); err != nil {
			return err
		}
		_, err := c.Read(make([]byte, 1))
		return err
	}
	if err := echo(); err != nil {
		t.Fatal(err)
	}
	p.gate.SetPolicy(policy.New(restricted("allowed.example", "other.example"), policy.Operator{}))
	if err := echo(); err != nil {
		t.Error("a wider policy cut it:", err)
	}
	began := time.Now()
	p.gate.SetPolicy(policy.New(restricted("other.example"), policy.Operator{}))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a narrower one did not: %v", err)
	}
	t.Log("cut after", time.Since(began))
	if m := p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA); m.RCode != dnsmessage.RCodeNameError {
		t.Errorf("the name is still answered: %+v", m)
	}
}

func TestDatagrams(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		b := make([]byte, 2000)
		for {
			n, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = l.WriteTo(append([]byte("re: "), b[:n]...), from)
		}
	}()
	cidr, _ := sandbox.ParseCIDR("", "93.184.217.0/24")
	p := network(t, sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: []string{"allowed.example"}, AllowCIDRs: []netip.Prefix{cidr}})
	p.world.mu.Lock()
	p.world.servers["udp 93.184.217.5:123"] = l.LocalAddr().String()
	p.world.servers["udp 93.184.216.1:443"] = l.LocalAddr().String()
	p.world.mu.Unlock()
	c, err := p.dial("udp", "93.184.217.5:123")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		if _, err := fmt.Fprintf(c, "what time %d", n); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		k, err := c.Read(b)
		if want := fmt.Sprintf("re: what time %d", n); string(b[:k]) != want || err != nil {
			t.Fatalf("%q, %v", b[:k], err)
		}
	}
	if got := p.world.reached(); len(got) != 1 {
		t.Errorf("the world was dialled %d times for one path", len(got))
	}
	p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeA)
	for to, why := range map[string]policy.Reason{"93.184.216.1:443": policy.Protocol, "8.8.8.8:123": policy.Address, "10.0.0.1:123": policy.Private} {
		c, err := p.dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("x"))
		_ = c.SetDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s answers", to)
		}
		what := to
		if why == policy.Protocol {
			what = "allowed.example"
		}
		p.noted("udp", what, why)
	}
}

func TestLearning(t *testing.T) {
	was := restricted("allowed.example")
	was.Learn = true
	p := network(t, was)
	if got := addresses(p.ask("127.0.0.1:53", "other.example", dnsmessage.TypeA)); len(got) != 1 {
		t.Errorf("a name to be learnt is answered with %v", got)
	}
	if status, body, err := p.get("93.184.216.9:80", "other.example"); status != 200 || body != "other" || err != nil {
		t.Errorf("%d %q %v", status, body, err)
	}
	if status, _, err := p.get("10.0.0.1:80", "other.example"); status != 403 || err != nil {
		t.Errorf("what no policy allows: %d %v", status, err)
	}
	entries, _ := p.journal.Entries()
	got := Proposal(entries, restricted("allowed.example"))
	if !slices.Equal(got.AllowDomains, []string{"allowed.example", "other.example"}) || len(got.AllowCIDRs) != 0 {
		t.Errorf("proposes %+v of %+v", got, entries)
	}
}

func TestTheJournalIsBounded(t *testing.T) {
	j := NewJournal(nil)
	for n := range 3 * maxEntries {
		j.note(Entry{Protocol: "tcp", Name: fmt.Sprint(n)})
		j.note(Entry{Protocol: "tcp", Name: fmt.Sprint("no", n), Reason: policy.Domain})
	}
	entries, dropped := j.Entries()
	if len(entries) != maxEntries || dropped == 0 {
		t.Errorf("%d entries, %d dropped", len(entries), dropped)
	}
}

func TestPinsAreBounded(t *testing.T) {
	p := newPins()
	for n := range 3 * maxPins {
		p.add(fmt.Sprint(n), []netip.Addr{netip.AddrFrom4([4]byte{1, byte(n >> 16), byte(n >> 8), byte(n)})})
	}
	if p.n > maxPins || len(p.byIP) > maxPins {
		t.Errorf("%d pins of %d addresses", p.n, len(p.byIP))
	}
	if last := 3*maxPins - 1; len(p.names(netip.AddrFrom4([4]byte{1, 0, byte(last >> 8), byte(last)}))) != 1 {
		t.Error("the last one is forgotten")
	}
}
