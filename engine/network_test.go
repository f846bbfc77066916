// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/gates"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/policy"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// wired is a driver whose instances' traffic is whatever connects to a socket of
// the test's: each connection is meant for the address that it was made to.
type wired struct {
	runtime.Driver

	mu      sync.Mutex
	refuses error // what Steer answers
	traffic []*traffic
}

func (w *wired) Create(ctx context.Context, s runtime.Spec) (runtime.Instance, error) {
	i, err := w.Driver.Create(ctx, s)
	return w.wrap(i), err
}

func (w *wired) Open(ctx context.Context, h runtime.Handle) (runtime.Instance, error) {
	i, err := w.Driver.Open(ctx, h)
	return w.wrap(i), err
}

func (w *wired) wrap(i runtime.Instance) runtime.Instance {
	if i == nil {
		return nil
	}
	return &wiredInstance{i, w}
}

type wiredInstance struct {
	runtime.Instance
	w *wired
}

func (i *wiredInstance) Steer(context.Context) (runtime.Traffic, error) {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	if i.w.refuses != nil {
		return nil, i.w.refuses
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	t := &traffic{l: l, closed: make(chan struct{})}
	i.w.traffic = append(i.w.traffic, t)
	return t, nil
}

// open returns the traffic that is not closed.
func (w *wired) open() (out []*traffic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.traffic {
		select {
		case <-t.closed:
		default:
			out = append(out, t)
		}
	}
	return out
}

type traffic struct {
	l      *net.TCPListener
	once   sync.Once
	closed chan struct{}
}

func (t *traffic) Accept() (runtime.Conn, error) {
	c, err := t.l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (t *traffic) Wait() error {
	<-t.closed
	return net.ErrClosed
}

func (t *traffic) Read([]byte) (int, netip.AddrPort, netip.AddrPort, error) {
	<-t.closed
	return 0, netip.AddrPort{}, netip.AddrPort{}, net.ErrClosed
}

func (t *traffic) Lost() int64 { return 0 }

func (t *traffic) Answer([]byte, netip.Addr, netip.AddrPort) error { return nil }

func (t *traffic) Answering(_, _ netip.AddrPort) (net.Conn, error) { return nil, net.ErrClosed }

func (t *traffic) Close() error {
	t.once.Do(func() { close(t.closed) })
	return t.l.Close()
}

// get makes a request as a program in the sandbox.
func (t *traffic) get() (int, string, error) {
	c, err := net.Dial("tcp", t.l.Addr().String())
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: there.example\r\nConnection: close\r\n\r\n"); err != nil {
		return 0, "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// wire makes a house whose sandboxes can have a network, and a world that answers
// every connection.
func wire(t *testing.T, change ...func(*engine.Options)) (*house, *wired) {
	t.Helper()
	world, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Close() })
	go func() {
		for {
			c, err := world.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nworld")
				}
			}()
		}
	}()
	w := &wired{}
	var h *house
	all := append([]func(*engine.Options){func(o *engine.Options) {
		w.Driver = o.Runtimes["memory"]
		o.Runtimes = map[string]runtime.Driver{"memory": w}
		o.Network = engine.NetworkOptions{
			Rules: permit.Rules{Curated: []string{"curated.example"}},
			Options: gates.Options{
				Operator: policy.Operator{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
				Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, world.Addr().String())
				},
			},
		}
	}}, change...)
	h = open(t, t.TempDir(), func(o *engine.Options) {
		for _, f := range all {
			f(o)
		}
	})
	return h, w
}

func restricted(cidrs ...string) *sandbox.NetworkPolicy {
	p := &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted}
	for _, c := range cidrs {
		p.AllowCIDRs = append(p.AllowCIDRs, netip.MustParsePrefix(c))
	}
	return p
}

func TestNetwork(t *testing.T) {
	h, w := wire(t)
	t.Run("OffIsTheDefault", func(t *testing.T) {
		s := h.create(engine.CreateRequest{})
		if s.Network.Mode != sandbox.NetworkOff || len(w.open()) != 0 {
			t.Errorf("%+v, %d are steered", s.Network, len(w.open()))
		}
	})
	s := h.create(engine.CreateRequest{Key: "net", Network: restricted("192.0.2.0/24")})
	now := func() *traffic {
		t.Helper()
		open := w.open()
		if len(open) != 1 {
			t.Fatalf("%d are steered, want one", len(open))
		}
		return open[0]
	}
	if status, body, err := now().get(); status != 403 || !strings.Contains(body, "allow_domains") || err != nil {
		t.Errorf("what is not allowed: %d %q %v", status, body, err)
	}
	t.Run("RefusalsAreOnTheRecord", func(t *testing.T) {
		log, err := h.engine.NetworkLog(t.Context(), alice, "net")
		if err != nil || len(log.Entries) != 1 || log.Entries[0].Reason != policy.Domain || log.Since.IsZero() {
			t.Errorf("%+v, %v", log, err)
		}
		if got := log.Proposal.AllowDomains; !slices.Equal(got, []string{"there.example"}) {
			t.Errorf("proposes %v", got)
		}
		deadline := time.Now().Add(10 * time.Second)
		for {
			var page []*sandbox.Event
			err := h.store.View(t.Context(), func(tx store.Tx) (err error) {
				page, _, err = tx.Events().List(store.EventQuery{Sandbox: s.ID, Types: []sandbox.EventType{sandbox.EventNetworkRefused}})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 1 && !page[0].OK && strings.Contains(page[0].Detail, "127.0.0.1:") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the events are %+v", page)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	t.Run("AChangeHoldsAtOnce", func(t *testing.T) {
		before := now()
		if _, err := h.engine.Update(t.Context(), alice, "net", update.Patch{Network: restricted("127.0.0.0/8")}); err != nil {
			t.Fatal(err)
		}
		if status, body, err := before.get(); status != 200 || body != "world" || err != nil {
			t.Errorf("allowed: %d %q %v", status, body, err)
		}
		if now() != before {
			t.Error("it was steered anew")
		}
		if _, err := h.engine.Update(t.Context(), alice, "net", update.Patch{Network: &sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}}); err != nil {
			t.Fatal(err)
		}
		if len(w.open()) != 0 {
			t.Error("off, and still steered")
		}
		got, err := h.engine.Update(t.Context(), alice, "net", update.Patch{Network: restricted("127.0.0.0/8")})
		if err != nil || got.Network.Mode != sandbox.NetworkRestricted {
			t.Fatal(got, err)
		}
		if status, _, err := now().get(); status != 200 || err != nil {
			t.Errorf("on again: %d %v", status, err)
		}
	})
	t.Run("StopEndsItAndStartBringsItBack", func(t *testing.T) {
		if _, err := h.engine.Stop(t.Context(), alice, "net"); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(10 * time.Second)
		for len(w.open()) != 0 && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if len(w.open()) != 0 {
			t.Fatal("stopped, and still steered")
		}
		if _, err := h.engine.Start(t.Context(), alice, "net"); err != nil {
			t.Fatal(err)
		}
		if status, _, err := now().get(); status != 200 || err != nil {
			t.Errorf("%d %v", status, err)
		}
	})
	t.Run("DeleteEndsIt", func(t *testing.T) {
		if err := h.engine.Delete(t.Context(), alice, "net"); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(10 * time.Second)
		for len(w.open()) != 0 && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if len(w.open()) != 0 {
			t.Error("deleted, and still steered")
		}
	})
}

func TestNetworkOfWhatRunsIsTakenUpByTheNextServer(t *testing.T) {
	h, w := wire(t)
	h.create(engine.CreateRequest{Key: "net", Network: restricted("127.0.0.0/8")})
	h.end()
	if len(w.open()) != 0 {
		t.Error("the server ended, and its sockets are open")
	}
	dial := func(o *engine.Options) {
		w.Driver = o.Runtimes["memory"]
		o.Runtimes = map[string]runtime.Driver{"memory": w}
		o.Network.Operator.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	h.serve(dial)
	if len(w.open()) != 1 {
		t.Fatal("the next server does not steer it")
	}
	s, err := h.engine.Get(t.Context(), alice, "net")
	if err != nil || !s.Network.Equal(*restricted("127.0.0.0/8")) {
		t.Errorf("its policy is %+v, %v", s.Network, err)
	}
}

func TestNetworkThatCannotBeHad(t *testing.T) {
	t.Run("ByTheOperator", func(t *testing.T) {
		h, _ := wire(t, func(o *engine.Options) { o.Network.Most = sandbox.NetworkRestricted })
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Network: &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}})
		wantCode(t, err, fault.Denied)
		if got := h.engine.Networks(); !slices.Equal(got, []sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkRestricted}) {
			t.Errorf("the modes are %v", got)
		}
		s := h.create(engine.CreateRequest{Network: &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted}})
		if !slices.Equal(s.Network.AllowDomains, []string{"curated.example"}) {
			t.Errorf("without a list: %+v", s.Network)
		}
	})
	t.Run("ByTheRuntime", func(t *testing.T) {
		h := open(t, t.TempDir())
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k", Network: restricted("192.0.2.0/24")})
		wantCode(t, err, fault.Unsupported)
		if _, err := h.engine.Get(t.Context(), alice, "k"); !fault.Is(err, fault.NotFound) {
			t.Errorf("something is left: %v", err)
		}
	})
	t.Run("ByTheHost", func(t *testing.T) {
		h, w := wire(t)
		w.refuses = fault.Wrap(fault.Unavailable, errors.New("no more"), "the sandbox's network cannot be made")
		_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Key: "k", Network: restricted("192.0.2.0/24")})
		wantCode(t, err, fault.Unavailable)
		if _, err := h.engine.Get(t.Context(), alice, "k"); !fault.Is(err, fault.NotFound) {
			t.Errorf("something is left: %v", err)
		}
		h.create(engine.CreateRequest{Key: "k"})
		_, err = h.engine.Update(t.Context(), alice, "k", update.Patch{Network: restricted()})
		wantCode(t, err, fault.Unavailable)
		if s, err := h.engine.Get(t.Context(), alice, "k"); err != nil || s.Network.Mode != sandbox.NetworkOff {
			t.Errorf("after a change that failed: %+v, %v", s.Network, err)
		}
	})
	t.Run("Nonsense", func(t *testing.T) {
		h, _ := wire(t)
		for _, p := range []sandbox.NetworkPolicy{
			{Mode: "wide"}, {Mode: sandbox.NetworkOff, AllowDomains: []string{"a.example"}}, {Mode: sandbox.NetworkRestricted, AllowDomains: []string{"a b"}},
			{Mode: sandbox.NetworkRestricted, AllowDomains: []string{"10.0.0.1"}}, {Mode: sandbox.NetworkRestricted, AllowDomains: []string{"*.example"}},
			{Mode: sandbox.NetworkRestricted, AllowPorts: []sandbox.PortRange{{First: 9, Last: 8}}}, {Mode: sandbox.NetworkRestricted, AllowCIDRs: make([]netip.Prefix, 1)},
			{Mode: sandbox.NetworkRestricted, AllowDomains: slices.Repeat([]string{"a.example"}, sandbox.MaxAllowDomains+1)}, {Mode: sandbox.NetworkOpen, Learn: true},
		} {
			_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Network: &p})
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", fmt.Sprintf("%+.100v", p), err)
			}
		}
	})
}

func TestNetworkAndTheRecordAgree(t *testing.T) {
	t.Run("AfterAnUpdateThatFails", func(t *testing.T) {
		h, w := wire(t)
		h.create(engine.CreateRequest{Key: "net"})
		// The wrapper's instances are no runtime.Resizer: their limits cannot change while they are up.
		_, err := h.engine.Update(t.Context(), alice, "net", update.Patch{Network: restricted("127.0.0.0/8"), MemoryMB: new(300)})
		wantCode(t, err, fault.State)
		if len(w.open()) != 0 {
			t.Error("the record says off, and it is steered")
		}
	})
	t.Run("AServerThatAllowsLess", func(t *testing.T) {
		h, w := wire(t)
		h.create(engine.CreateRequest{Key: "net", Network: &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}})
		h.end()
		h.serve(func(o *engine.Options) {
			w.Driver = o.Runtimes["memory"]
			o.Runtimes = map[string]runtime.Driver{"memory": w}
			o.Network.Most = sandbox.NetworkRestricted
		})
		if open := w.open(); len(open) != 1 {
			t.Errorf("%d are steered", len(open))
		} else if status, _, err := open[0].get(); status != 403 || err != nil {
			t.Errorf("what was open is as it was: %d %v", status, err)
		}
		for _, p := range []sandbox.NetworkPolicy{
			{Mode: sandbox.NetworkRestricted, Learn: true}, *restricted("0.0.0.0/0"), *restricted("::/0"),
		} {
			_, _, err := h.engine.Create(t.Context(), alice, engine.CreateRequest{Network: &p})
			wantCode(t, err, fault.Denied)
		}
	})
	t.Run("AForksIsItsParents", func(t *testing.T) {
		h := open(t, t.TempDir()) // whose driver keeps snapshots, and gives no network
		h.create(engine.CreateRequest{Key: "plain"})
		fork, err := h.engine.Fork(t.Context(), alice, "plain", engine.ForkRequest{Count: 1})
		if err != nil || fork[0].Network.Mode != sandbox.NetworkOff {
			t.Errorf("%+v, %v", fork, err)
		}
	})
	t.Run("AHostThatRefusesOnce", func(t *testing.T) {
		h, w := wire(t)
		h.create(engine.CreateRequest{Key: "net", Network: restricted("127.0.0.0/8")})
		h.end()
		w.mu.Lock()
		w.refuses = fault.New(fault.Unavailable, "not now")
		w.mu.Unlock()
		h.serve(func(o *engine.Options) {
			w.Driver = o.Runtimes["memory"]
			o.Runtimes = map[string]runtime.Driver{"memory": w}
		})
		if len(w.open()) != 0 {
			t.Fatal("it is steered")
		}
		w.mu.Lock()
		w.refuses = nil
		w.mu.Unlock()
		// Any verb reconciles it; so does the clock, in a while.
		if _, err := h.engine.Update(t.Context(), alice, "net", update.Patch{Metadata: &map[string]string{"a": "b"}}); err != nil {
			t.Fatal(err)
		}
		if len(w.open()) != 1 {
			t.Error("it has no network still")
		}
	})
}

func TestARollbackThatFailsDeletesNothing(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", AutoDelete: new(true)})
	h.exec("box", "echo one > file")
	h.snapshot("box", "one")
	h.faulty.set(func(_ context.Context, call string) error {
		if call == "start" {
			return fault.New(fault.Unavailable, "start does not work now")
		}
		return nil
	}, nil)
	if _, err := h.engine.Rollback(t.Context(), alice, "box", "one"); err == nil {
		t.Fatal("the rollback worked")
	}
	h.faulty.set(nil, nil)
	got, err := h.engine.Get(t.Context(), alice, "box")
	if err != nil || got.ID != s.ID || got.State != sandbox.Stopped {
		t.Fatalf("%+v, %v", got, err)
	}
	if got := h.reads("box", "file"); got != "one\n" {
		t.Errorf("the file: %q", got)
	}
}

func TestWhatCannotBeFinishedCanBeDeleted(t *testing.T) {
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.exec("box", "echo one > file")
	h.snapshot("box", "one")
	h.faulty.set(func(_ context.Context, call string) error {
		if call == "rollback" || call == "stop" {
			return fault.New(fault.Exhausted, "the disk is full")
		}
		return nil
	}, nil)
	if _, err := h.engine.Rollback(t.Context(), alice, "box", "one"); err == nil {
		t.Fatal("the rollback worked")
	}
	if got := h.get(s.ID); got.State != sandbox.Restoring {
		t.Fatalf("it is %s", got.State)
	}
	if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	if err := h.engine.DeleteSnapshot(t.Context(), alice, string(s.ID), "one"); err != nil {
		t.Error("what it was to become is held still:", err)
	}
}

func TestWhatIsInForceIsWhatTheServerAllows(t *testing.T) {
	open := sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}
	for most, want := range map[sandbox.NetworkMode]sandbox.NetworkMode{
		"": sandbox.NetworkOpen, sandbox.NetworkOpen: sandbox.NetworkOpen, sandbox.NetworkRestricted: sandbox.NetworkRestricted, sandbox.NetworkOff: sandbox.NetworkOff,
	} {
		h := openNetwork(t, most)
		if got := h.engine.InForce(open); got.Mode != want {
			t.Errorf("with %q as the most: %s, want %s", most, got.Mode, want)
		}
	}
}

func openNetwork(t *testing.T, most sandbox.NetworkMode) *house {
	t.Helper()
	return open(t, t.TempDir(), func(o *engine.Options) { o.Network.Most = most })
}
