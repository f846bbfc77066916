// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// Wires is what clients of other products ask of a sandbox beside commands and files, and what
// that costs over the plainest form of it. Both of a pair are measured in turn.
type Wires struct {
	Create  *Figures `json:"create"`    // without a pool
	Account *Figures `json:"account"`   // the same, with an account of its own
	True    *Figures `json:"true"`      // as the sandbox's user
	Sudo    *Figures `json:"sudo_true"` // by that user
	Shell   *Figures `json:"shell"`     // made, one command in it, deleted
	Plain   *Figures `json:"plain"`     // a look at a sandbox, on a warm connection
	TLS     *Figures `json:"tls"`       // the same by HTTP/2 over TLS
	Events  *Figures `json:"events"`    // from before a change until a subscriber has its event, of all subscribers
	Streams int      `json:"streams"`   // subscribers at that time
	Daytona *Daytona `json:"daytona"`
	Orkestr *Coat    `json:"orkestr"` // the wire of its SDK
	Gateway *Coat    `json:"gateway"` // that of the MCP Gateway's
}

const (
	benchDomain = "bench.test"
	streams     = 1000 // of events
)

// wires measures on a server of its own, which speaks TLS, too.
func (s *session) wires(ctx context.Context, n int) (_ *Wires, err error) {
	dir := filepath.Join(s.dir, "wires")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := listener.Addr().String()
	certs := filepath.Join(dir, "tls")
	if out, err := exec.CommandContext(ctx, s.o.Program, "tls", "init", benchDomain, "--dir", certs).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("tls init: %w: %s", err, out), listener.Close())
	}
	own := newServer(s.o.Program, dir, s.o.Images)
	own.env = []string{"SANDPIT_DOMAIN=" + benchDomain, "SANDPIT_TLS_CERT=" + filepath.Join(certs, "cert.pem"), "SANDPIT_TLS_KEY=" + filepath.Join(certs, "key.pem"), "SANDPIT_TLS_LISTEN=" + addr}
	if err := listener.Close(); err != nil { // it is the server's now
		return nil, err
	}
	if err := own.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, own.close(context.WithoutCancel(ctx))) }()
	overTLS, err := tlsClient(own.token, addr, filepath.Join(certs, "ca.pem"))
	if err != nil {
		return nil, err
	}
	o, w := &ours{client: own.client, pid: own.cmd.Process.Pid}, new(Wires)
	if w.Create, w.Account, err = o.accounts(ctx, n); err != nil {
		return nil, err
	}
	err = o.with(ctx, v1.CreateSandbox{Sudo: new(true)}, func(ref string) error {
		look := func(c *client.Client) func() error {
			return func() error { _, err := c.Get(ctx, ref); return err }
		}
		if w.True, w.Sudo, err = pair(ctx, n,
			func() error { return o.exec(ctx, ref, v1.Exec{Command: new("true")}) },
			func() error { return o.exec(ctx, ref, v1.Exec{Command: new("sudo true")}) }); err != nil {
			return err
		}
		if w.Shell, _, err = pair(ctx, n, func() error { return o.shell(ctx, ref) }, nil); err != nil {
			return err
		}
		if w.Plain, w.TLS, err = pair(ctx, n, look(own.client), look(overTLS)); err != nil {
			return err
		}
		w.Streams = streams
		w.Events, err = own.events(ctx, ref, streams, max(10, n/4))
		return err
	})
	if err != nil {
		return nil, err
	}
	if w.Orkestr, w.Gateway, err = own.coats(ctx, o, n); err != nil {
		return nil, err
	}
	if w.Daytona, err = own.daytona(ctx, o, s.o.DaytonaPython, n); err != nil {
		return nil, err
	}
	return w, nil
}

// pair times both n times in turn; other may be nil.
func pair(ctx context.Context, n int, one, other func() error) (a, b *Figures, err error) {
	var both [2]series
	err = inTurn(ctx, n+warmUp, func(round, side int) error {
		do := one
		if side == 1 {
			do = other
		}
		if do == nil {
			return nil
		}
		began := time.Now()
		err := do()
		if took := time.Since(began); round >= warmUp {
			both[side].add(took, nil)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return both[0].figures(), both[1].figures(), nil
}

// accounts times creates without an account and with one. Deleting is not timed.
func (o *ours) accounts(ctx context.Context, n int) (plain, named *Figures, err error) {
	var both [2]series
	specs := [2]v1.CreateSandbox{{}, {Account: &v1.Account{Name: "daytona", Home: "/home/daytona", Workdir: "/home/daytona"}}}
	err = inTurn(ctx, n+warmUp, func(round, side int) error {
		began := time.Now()
		box, _, err := o.client.Create(ctx, specs[side])
		took := time.Since(began)
		if err != nil {
			return err
		}
		if round >= warmUp {
			both[side].add(took, nil)
		}
		return o.client.Delete(ctx, box.ID)
	})
	if err != nil {
		return nil, nil, err
	}
	return both[0].figures(), both[1].figures(), nil
}

// shell makes a shell, runs one command in it, and deletes it.
func (o *ours) shell(ctx context.Context, ref string) error {
	sh, err := o.client.CreateShell(ctx, ref, v1.CreateShell{Name: new("bench")})
	if err != nil {
		return err
	}
	r, err := sh.Exec(ctx, v1.Exec{Command: new("true")})
	if err == nil {
		err = ended(&r.ExecOutcome)
	}
	return errors.Join(err, sh.Delete(ctx))
}

// tlsClient speaks HTTP/2 to an address, whose certificate is for names below benchDomain.
func tlsClient(token, addr, authority string) (*client.Client, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", authority)
	}
	var dialer net.Dialer
	t := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		},
	}
	return client.New("https://api."+benchDomain, token, client.Options{HTTP: &http.Client{Transport: second{t}}}), nil
}

// second takes answers by HTTP/2 alone.
type second struct{ http.RoundTripper }

func (t second) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil && resp.ProtoMajor != 2 {
		return nil, errors.Join(fmt.Errorf("the server answers by %s", resp.Proto), resp.Body.Close())
	}
	return resp, err
}

func (w *Wires) rows(row func(name string, f *Figures)) {
	if w == nil {
		return
	}
	row("create", w.Create)
	row("create with an account", w.Account)
	row("true, in a command", w.True)
	row("sudo true, in a command", w.Sudo)
	row("a shell, one command, deleted", w.Shell)
	row("a look at a sandbox", w.Plain)
	row("the same by HTTP/2 over TLS", w.TLS)
	row(fmt.Sprintf("an event to %d subscribers", w.Streams), w.Events)
	w.Daytona.rows(row)
	w.Orkestr.rows("Orkestr's wire", row)
	w.Gateway.rows("the MCP Gateway's wire", row)
}

func (w *Wires) lines(say func(format string, args ...any)) {
	if w == nil {
		return
	}
	say("an account costs a create %.2f ms at p50", w.Account.P50-w.Create.P50)
	say("sudo costs %.2f ms at p50; TLS with HTTP/2 %.2f ms a call", w.Sudo.P50-w.True.P50, w.TLS.P50-w.Plain.P50)
	w.Daytona.lines(say)
	w.Orkestr.line("Orkestr's wire", say)
	w.Gateway.line("the MCP Gateway's wire", say)
}
