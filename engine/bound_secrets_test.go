// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
	"sandpit.dev/sandbox"
)

// webOf makes a house whose sandboxes reach one web server, which says what authorization it got.
// Its certificate is for example.com.
func webOf(t *testing.T) (*house, *wired, func(*engine.Options)) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := []byte(r.Header.Get("Authorization") + strings.Join(r.Header.Values("X-Org"), ",") + r.Header.Get("X-Mine"))
		slices.Reverse(auth) // an echo that no veil knows
		_, _ = w.Write(auth)
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	w := &wired{}
	keys := withKeys(keyRing(t, seal.Generate()))
	change := func(o *engine.Options) {
		keys(o)
		w.Driver = o.Runtimes["memory"]
		o.Runtimes["memory"] = w
		o.Network.Operator.Allow = restricted("127.0.0.0/8").AllowCIDRs
		o.Network.Roots = roots
		o.Network.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		}
	}
	return open(t, t.TempDir(), change), w, change
}

// program is one inside that keeps a connection to the web server.
type program struct {
	*testing.T
	c  *tls.Conn
	in *bufio.Reader
}

func (t *traffic) program(test *testing.T) *program {
	test.Helper()
	raw, err := net.Dial("tcp", t.l.Addr().String())
	if err != nil {
		test.Fatal(err)
	}
	test.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	// What it is shown it takes: the files inside are another test's.
	c := tls.Client(raw, &tls.Config{ServerName: "example.com", InsecureSkipVerify: true})
	return &program{test, c, bufio.NewReader(c)}
}

// asks makes a request, and gives what authorization the server got.
func (p *program) asks() (string, error) {
	return p.sends("Authorization: the stand-in\r\n")
}

// sends makes a request with headers, and gives what the server got.
func (p *program) sends(headers string) (string, error) {
	if _, err := io.WriteString(p.c, "GET / HTTP/1.1\r\nHost: example.com\r\n"+headers+"\r\n"); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(p.in, nil)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(resp.Body)
	slices.Reverse(b)
	return string(b), err
}

// got checks what a new program's request brings to the server.
func (w *wired) got(t *testing.T, want string) *program {
	t.Helper()
	all := w.open()
	if len(all) == 0 {
		t.Fatal("nothing is steered")
	}
	p := all[len(all)-1].program(t)
	if got, err := p.asks(); got != want || err != nil {
		t.Errorf("the server got %q, want %q (%v)", got, want, err)
	}
	return p
}

func isCut(p *program) bool {
	_, err := p.asks()
	var timeout net.Error
	return err != nil && (!errors.As(err, &timeout) || !timeout.Timeout())
}

func bind(name, value string) secrets.Request {
	return secrets.Request{Name: name, Value: value, Hosts: []string{"example.com"}}
}

func TestBoundSecretsFollowTheSandbox(t *testing.T) {
	t.Parallel()
	h, w, change := webOf(t)
	h.secret("", bind("KEY", "of the project"))
	s := h.create(engine.CreateRequest{Key: "net", Network: restricted("127.0.0.0/8")})
	first := w.got(t, "Bearer of the project")
	if got := h.variable("net", "KEY"); got != "sandpit-secret-KEY" {
		t.Errorf("inside it is %q", got)
	}

	h.secret("net", bind("KEY", "its own"))
	if !isCut(first) {
		t.Error("a connection outlives what it carries")
	}
	own := w.got(t, "Bearer its own")
	h.secret("", bind("KEY", "of the project, changed"))
	if got, err := own.asks(); got != "Bearer its own" || err != nil {
		t.Errorf("a change that does not concern it: %q, %v", got, err)
	}

	h.restart(change)
	w.got(t, "Bearer its own")
	if _, err := h.engine.Stop(t.Context(), alice, "net"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Start(t.Context(), alice, "net"); err != nil {
		t.Fatal(err)
	}
	w.got(t, "Bearer its own")

	if err := h.secrets().DeleteSecret(t.Context(), chief, "net", "KEY"); err != nil {
		t.Fatal(err)
	}
	last := w.got(t, "Bearer of the project, changed")
	if err := h.secrets().DeleteSecret(t.Context(), chief, "", "KEY"); err != nil {
		t.Fatal(err)
	}
	if !isCut(last) {
		t.Error("a connection outlives its secret")
	}
	w.got(t, "the stand-in")

	// This runtime has no root that could change what is trusted: that is told, and each time once.
	n := 0
	for _, ev := range h.events(s.ID) {
		if ev.Type == sandbox.EventNetworkRefused && strings.Contains(ev.Detail, "trust") {
			n++
		}
	}
	if n == 0 || n > 6 {
		t.Errorf("%d events tell of trust", n)
	}
	for _, ev := range h.events(s.ID) {
		if strings.Contains(fmt.Sprintf("%+v", ev), "of the project") {
			t.Errorf("an event has a value: %+v", ev)
		}
	}
}

func TestACreateHasItsBoundSecretsFromTheStart(t *testing.T) {
	t.Parallel()
	h, w, _ := webOf(t)
	r := bind("KEY", "of the creator")
	h.create(engine.CreateRequest{Key: "net", Network: restricted("127.0.0.0/8"), Secrets: map[string]secrets.Request{"KEY": {Value: r.Value, Hosts: r.Hosts}}})
	w.got(t, "Bearer of the creator")
}

func TestANetworkThatIsTurnedOnTakesBoundSecrets(t *testing.T) {
	t.Parallel()
	h, w, _ := webOf(t)
	h.secret("", bind("KEY", "of the project"))
	h.create(engine.CreateRequest{Key: "net"})
	if _, err := h.engine.Update(t.Context(), alice, "net", update.Patch{Network: restricted("127.0.0.0/8")}); err != nil {
		t.Fatal(err)
	}
	w.got(t, "Bearer of the project")
}

// last is a new program in the sandbox that was steered last.
func (w *wired) last(t *testing.T) *program {
	t.Helper()
	all := w.open()
	if len(all) == 0 {
		t.Fatal("nothing is steered")
	}
	return all[len(all)-1].program(t)
}

func TestHeadersOfHostsFollowThePolicy(t *testing.T) {
	t.Parallel()
	h, w, change := webOf(t)
	with := func(org string) *sandbox.NetworkPolicy {
		p := restricted("127.0.0.0/8")
		if org != "" {
			p.Headers = sandbox.HostHeaders{"example.com": {"x-org": org}}
		}
		return p
	}
	update := func(p update.Patch) {
		t.Helper()
		if _, err := h.engine.Update(t.Context(), alice, "net", p); err != nil {
			t.Fatal(err)
		}
	}
	brings := func(want string) *program {
		t.Helper()
		p := w.last(t)
		if got, err := p.sends("X-Org: its own\r\nX_Org: its own\r\n"); got != want || err != nil {
			t.Errorf("the server got %q, want %q (%v)", got, want, err)
		}
		return p
	}
	h.create(engine.CreateRequest{Key: "net", Network: with("acme")})
	first := brings("acme")
	update(patchOf(with("other")))
	if !isCut(first) {
		t.Error("a connection outlives the headers that it is given")
	}
	kept := brings("other")
	// A policy of who cannot write headers keeps those that there are; one that says nothing has none.
	p := patchOf(restricted("127.0.0.0/8", "192.0.2.0/24"))
	p.KeepHeaders = true
	update(p)
	if got, err := kept.sends("X-Org: its own\r\n"); got != "other" || err != nil {
		t.Errorf("a change that does not concern it: %q, %v", got, err)
	}
	// Headers alone leave the rest of the policy.
	p = patchOf(nil)
	p.Headers = &sandbox.HostHeaders{"example.com": {"X-Org": "alone"}}
	update(p)
	if !isCut(kept) {
		t.Error("a connection outlives headers that are replaced")
	}
	brings("alone")
	if s, err := h.engine.Get(t.Context(), alice, "net"); err != nil || len(s.Network.AllowCIDRs) != 2 || s.Network.Headers["example.com"]["x-org"] != "alone" {
		t.Errorf("the policy is %+v, %v", s.Network, err)
	}
	p.Headers = &sandbox.HostHeaders{"example.com": {"X-Org": "other"}}
	update(p)
	h.restart(change)
	brings("other")
	h.secret("", bind("KEY", "of the project"))
	if got, err := w.last(t).sends(""); got != "Bearer of the projectother" || err != nil {
		t.Errorf("beside a secret: %q, %v", got, err)
	}
	if _, err := h.engine.Stop(t.Context(), alice, "net"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Start(t.Context(), alice, "net"); err != nil {
		t.Fatal(err)
	}
	if got, err := w.last(t).sends(""); got != "Bearer of the projectother" || err != nil {
		t.Errorf("started again: %q, %v", got, err)
	}
	if err := h.secrets().DeleteSecret(t.Context(), chief, "", "KEY"); err != nil {
		t.Fatal(err)
	}
	last := brings("other")
	update(patchOf(with("")))
	if !isCut(last) {
		t.Error("a connection outlives the headers of a policy")
	}
	brings("its own")
}

func patchOf(p *sandbox.NetworkPolicy) update.Patch { return update.Patch{Network: p} }

// What is in a header is shown, so that the value of a secret is none.
func TestHeadersOfHostsAreNoSecrets(t *testing.T) {
	t.Parallel()
	h, _, _ := webOf(t)
	h.secret("", bind("KEY", "of-the-project"))
	p := restricted("127.0.0.0/8")
	p.Headers = sandbox.HostHeaders{"example.com": {"x-org": "it is of-the-project"}}
	_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "net", Network: p})
	wantCode(t, err, fault.Invalid)
	h.create(engine.CreateRequest{Key: "net", Network: restricted("127.0.0.0/8")})
	_, err = h.engine.Update(t.Context(), alice, "net", patchOf(p))
	wantCode(t, err, fault.Invalid)
}

func TestAChangeOfStandInHeadersAloneReachesTheSandbox(t *testing.T) {
	t.Parallel()
	h, w, _ := webOf(t)
	r := bind("KEY", "of the project")
	r.Header, r.StandInHeaders = "x-key", []string{"authorization"}
	h.secret("", r)
	h.create(engine.CreateRequest{Key: "net", Network: restricted("127.0.0.0/8")})
	both := "Authorization: sandpit-secret-KEY\r\nX-Mine: sandpit-secret-KEY\r\n"
	first := w.last(t)
	if got, err := first.sends(both); got != "of the projectsandpit-secret-KEY" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	r.StandInHeaders = []string{"x-mine"}
	h.secret("", r)
	if !isCut(first) {
		t.Error("a connection outlives what it carries")
	}
	if got, err := w.last(t).sends(both); got != "sandpit-secret-KEYof the project" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
