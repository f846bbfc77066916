// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
)

// world is a server on the host for each sandbox, which no other may reach.
type world struct {
	at    netip.Addr
	ports []uint16
	asked []atomic.Int64 // how often each was, by its own sandbox
	wrong atomic.Int64   // and how often by another
}

// openWorld opens n servers on an address of this host that sandboxes can be allowed to reach.
func openWorld(t *testing.T, n int) *world {
	t.Helper()
	w := &world{ports: make([]uint16, n), asked: make([]atomic.Int64, n)}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			w.at = p.Addr()
		}
	}
	if !w.at.IsValid() {
		t.Skip("needs an interface with an IPv4 address beside the loopback: sandboxes reach the host's own by no other way")
	}
	for i := range w.ports {
		l, err := net.Listen("tcp", netip.AddrPortFrom(w.at, 0).String())
		if err != nil {
			t.Fatal(err)
		}
		w.ports[i] = netip.MustParseAddrPort(l.Addr().String()).Port()
		s := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/"+strconv.Itoa(i) {
				w.wrong.Add(1)
			}
			w.asked[i].Add(1)
			_, _ = fmt.Fprintf(out, "server %d\n", i)
		})}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
	}
	return w
}

// open starts a server whose sandboxes may be allowed to reach the world.
func (w *world) open(t *testing.T) *host {
	t.Helper()
	h := open(t)
	h.kill()
	config := filepath.Join(h.dir, "sandpit.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "network: {allow_private: [%q]}\n", w.at), 0o600); err != nil {
		t.Fatal(err)
	}
	h.env = []string{"SANDPIT_CONFIG=" + config}
	h.start()
	return h
}

// policy lets the sandbox i reach its own server.
func (w *world) policy(i int) v1.NetworkPolicy {
	return v1.NetworkPolicy{
		Mode: "restricted", AllowDomains: []string{fmt.Sprintf("*.tenant-%d.example", i)},
		AllowCIDRs: []string{w.at.String()}, AllowPorts: []string{strconv.Itoa(int(w.ports[i]))},
	}
}

// holds holds that the sandbox i reaches its own server and not that of the next, whose
// names it cannot have either, and that its journal says so.
func (w *world) holds(ctx context.Context, h *host, ref string, i int) error {
	other := (i + 1) % len(w.ports)
	before := w.asked[i].Load()
	err := h.says(ctx, ref, fmt.Sprintf(
		`curl -sS -m 20 http://%[1]s:%[2]d/%[3]d; curl -s -m 20 -o /dev/null -w '%%{http_code}\n' http://%[1]s:%[4]d/%[3]d; curl -s -m 20 http://x.tenant-%[5]d.example/ || echo no name`,
		w.at, w.ports[i], i, w.ports[other], other), fmt.Sprintf("server %d\n403\nno name\n", i))
	if err != nil {
		return err
	}
	if got := w.asked[i].Load() - before; got != 1 {
		return fmt.Errorf("the server %d was asked %d times by the one sandbox that may", i, got)
	}
	log, err := h.client.NetworkLog(ctx, ref)
	if err != nil {
		return err
	}
	var reached, refused, name bool
	for _, e := range log.Items {
		switch {
		case e.Protocol == "tcp" && e.Allowed && e.Port == int(w.ports[i]):
			reached = true
		case e.Protocol == "tcp" && !e.Allowed && e.Port == int(w.ports[other]) && e.Reason == "port":
			refused = true
		case e.Protocol == "dns" && !e.Allowed && e.Name == fmt.Sprintf("x.tenant-%d.example", other) && e.Reason == "domain":
			name = true
		default:
			return fmt.Errorf("sandbox %d has on its record what it did not do: %+v", i, e)
		}
	}
	if !reached || !refused || !name {
		return fmt.Errorf("sandbox %d has %+v on its record", i, log.Items)
	}
	return nil
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines ([0-9]+)$`)

// goroutines asks the server how many it has.
func (h *host) goroutines(ctx context.Context) int {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/metrics", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	resp, err := h.http.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	m := goroutines.FindSubmatch(b)
	if err != nil || m == nil {
		h.t.Fatalf("the metrics say no number of goroutines: %v, %s", err, b)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// usage is what a server uses.
type usage struct {
	memory      int64
	descriptors int
	goroutines  int
}

// usage looks once what the server releases in batches is gone.
func (h *host) usage() (u usage) {
	h.t.Helper()
	h.http.CloseIdleConnections()
	var err error
	for calm := 0; calm < 5; calm++ {
		was := h.look().Count(leaktest.Descriptors)
		<-time.After(200 * time.Millisecond)
		if h.look().Count(leaktest.Descriptors) < was {
			calm = 0
		}
	}
	if u.memory, err = leaktest.PSS(h.cmd.Process.Pid); err != nil {
		h.t.Fatal(err)
	}
	u.descriptors = h.look().Count(leaktest.Descriptors)
	u.goroutines = h.goroutines(h.t.Context())
	return u
}

func TestManyPoliciesAtOnce(t *testing.T) {
	ctx := t.Context()
	n := length(50, 1000)
	w := openWorld(t, n)
	h := w.open(t)
	warm := group{limit: workers}
	for range 2 * workers {
		warm.do(func() error { return h.cycle(ctx) })
	}
	if err := warm.wait(); err != nil {
		t.Fatal(err)
	}
	h.http.CloseIdleConnections()
	before, network, began := h.rest(), hostNetwork(t), h.usage()

	// One half has no policy, so that its price is seen: the same number of each.
	var each [2]usage
	ids := make([]string, n)
	for round, spec := range []func(i int) v1.CreateSandbox{
		func(int) v1.CreateSandbox { return v1.CreateSandbox{} },
		func(i int) v1.CreateSandbox { return v1.CreateSandbox{Network: w.policy(i)} },
	} {
		started := time.Now()
		creates := group{limit: 4}
		for i := range n {
			creates.do(func() error {
				box, _, err := h.client.Create(ctx, spec(i))
				if err == nil {
					ids[i] = box.ID
				}
				return err
			})
		}
		if err := creates.wait(); err != nil {
			t.Fatal(err)
		}
		took := time.Since(started)
		each[round] = h.usage()
		t.Logf("%d sandboxes, with a policy: %t, created in %v; the server has %.1f MB, %d descriptors and %d goroutines, and had %.1f, %d and %d",
			n, round == 1, took.Round(time.Millisecond), mb(each[round].memory), each[round].descriptors, each[round].goroutines,
			mb(began.memory), began.descriptors, began.goroutines)
		if round == 0 {
			if err := h.deleteAll(ctx); err != nil {
				t.Fatal(err)
			}
			h.holdNothingBeyond(before)
			began = h.usage()
		}
	}
	inForce := programs(t, h.cmd.Process.Pid)
	if len(inForce) != n {
		t.Errorf("%d BPF programs are attached for %d sandboxes", len(inForce), n)
	}
	if diff := cmp.Diff(network, hostNetwork(t)); diff != "" {
		t.Errorf("the host's network is another with %d policies in force:\n%s", n, diff)
	}
	all := func(every int) error {
		g := group{limit: 4}
		for i := 0; i < n; i += every {
			g.do(func() error { return w.holds(ctx, h, ids[i], i) })
		}
		return g.wait()
	}
	started := time.Now()
	if err := all(1); err != nil {
		t.Fatal(err)
	}
	t.Logf("each reached its own server and no other's, in %v", time.Since(started).Round(time.Millisecond))
	page, err := h.client.ListPage(ctx, client.ListQuery{Status: []string{"running"}, Limit: 1})
	if err != nil || page.Total != n {
		t.Errorf("running: %d, %v, want %d", page.Total, err, n)
	}

	// Each policy is in force again under the next server, and what the last one had is gone.
	h.kill()
	h.start()
	if err := all(10); err != nil {
		t.Errorf("under the next server: %v", err)
	}
	again := programs(t, h.cmd.Process.Pid)
	if len(again) != n {
		t.Errorf("under the next server %d BPF programs are attached for %d sandboxes", len(again), n)
	}
	if w.wrong.Load() > 0 {
		t.Errorf("servers were asked %d times by sandboxes that may not", w.wrong.Load())
	}

	started = time.Now()
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("deleted in %v", time.Since(started).Round(time.Millisecond))
	h.holdNothingBeyond(before)
	gone := slices.DeleteFunc(append(inForce, again...), func(id uint32) bool { return !loaded(t, id) })
	if len(gone) > 0 {
		t.Errorf("of the BPF programs %d are left", len(gone))
	}
	if diff := cmp.Diff(network, hostNetwork(t)); diff != "" {
		t.Errorf("the host's network is another than before:\n%s", diff)
	}
	h.http.CloseIdleConnections()
	if now := h.goroutines(ctx); now > began.goroutines+workers {
		t.Errorf("the server has %d goroutines, and had %d before", now, began.goroutines)
	}
}

// A policy that changes again and again, off in between, while programs connect all the time,
// leaves nothing behind, and the last one holds.
func TestLeakOfChangedPolicies(t *testing.T) {
	ctx := t.Context()
	const sandboxes = 4
	w := openWorld(t, sandboxes)
	h := w.open(t)
	for range workers {
		if err := h.cycle(ctx); err != nil {
			t.Fatal(err)
		}
	}
	h.http.CloseIdleConnections()
	empty, network := h.rest(), hostNetwork(t)
	ids := make([]string, sandboxes)
	for i := range ids {
		box, _, err := h.client.Create(ctx, v1.CreateSandbox{})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = box.ID
		if err := h.says(ctx, ids[i], fmt.Sprintf(
			`(while :; do curl -s -m 5 -o /dev/null http://%[1]s:%[2]d/%[3]d http://192.0.2.99/; done) >/dev/null 2>&1 & echo begun`, w.at, w.ports[i], i), "begun\n"); err != nil {
			t.Fatal(err)
		}
	}
	change := func(i int, p v1.NetworkPolicy) error {
		_, err := h.client.Update(ctx, ids[i], v1.UpdateSandbox{Network: p})
		return err
	}
	off := v1.NetworkPolicy{Mode: "off"}
	turn := func(n int) {
		t.Helper()
		g := group{limit: sandboxes}
		for i := range sandboxes {
			g.do(func() error {
				named := v1.NetworkPolicy{Mode: "restricted", AllowDomains: []string{"other.example"}}
				policies := []v1.NetworkPolicy{w.policy(i), named, off, {Mode: "open"}}
				for turn := range n {
					if err := change(i, policies[turn%len(policies)]); err != nil {
						return err
					}
				}
				return change(i, off)
			})
		}
		if err := g.wait(); err != nil {
			t.Fatal(err)
		}
	}
	turn(10)
	before := h.usage()
	n := length(50, 250)
	began := time.Now()
	turn(n)
	took := time.Since(began)
	after := h.usage()
	t.Logf("%d changes of %d sandboxes' policies in %v; before: %+v, after: %+v", n*sandboxes, sandboxes, took.Round(time.Millisecond), before, after)
	const leeway = 16 // connections of the database's pool, and the like
	if after.goroutines > before.goroutines+leeway || after.descriptors > before.descriptors+leeway+64 {
		t.Errorf("before: %+v, after: %+v", before, after)
	}
	if ids := programs(t, h.cmd.Process.Pid); len(ids) != 0 {
		t.Errorf("with every network off, %d BPF programs are attached", len(ids))
	}
	for i := range ids {
		if err := change(i, w.policy(i)); err != nil {
			t.Fatal(err)
		}
		asked := w.asked[i].Load()
		limit := time.Now().Add(20 * time.Second)
		for w.asked[i].Load() == asked && time.Now().Before(limit) {
			<-time.After(10 * time.Millisecond)
		}
		if w.asked[i].Load() == asked {
			t.Errorf("the sandbox %d does not reach its server with its last policy", i)
		}
	}
	if w.wrong.Load() > 0 {
		t.Errorf("servers were asked %d times by sandboxes that may not", w.wrong.Load())
	}
	if err := h.deleteAll(ctx); err != nil {
		t.Fatal(err)
	}
	h.holdNothingBeyond(empty)
	if diff := cmp.Diff(network, hostNetwork(t)); diff != "" {
		t.Errorf("the host's network is another than before:\n%s", diff)
	}
}
