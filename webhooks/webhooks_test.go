// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/access"
	"sandpit.dev/engine/events"
	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
	"sandpit.dev/webhooks"
)

var (
	alice = access.Caller{Project: access.DefaultProject, Actor: "alice", Via: "rest", Scopes: []access.Scope{access.Admin}}
	bob   = access.Caller{Project: "bobs", Actor: "bob", Via: "rest", Scopes: []access.Scope{access.Admin}}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// house is a store with a log of events, and the webhooks of it.
type house struct {
	*webhooks.Service
	t     *testing.T
	db    *sqlstore.Store
	store store.Store // whose changes are logged
	log   *events.Log
	o     webhooks.Options
	lists atomic.Int64 // how often all webhooks were read
	end   func()
}

func open(t *testing.T, o webhooks.Options) *house {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	ring, err := seal.Parse(seal.Generate())
	must(t, err)
	o.Ring = ring
	o.Body = func(e *events.Event) []byte { return fmt.Appendf(nil, "%s %s %s", e.ID, e.Type, e.Object) }
	if o.Backoff == nil && o.Now == nil {
		o.Backoff = func(int) time.Duration { return time.Millisecond }
	}
	h := &house{t: t, db: db, o: o}
	h.begin()
	return h
}

// begin starts a server's services, as after another server's end.
func (h *house) begin() {
	h.t.Helper()
	h.log = events.New(h.db, events.Options{Object: func(v any) any { return v.(*sandbox.Volume).Name }})
	h.store = h.log.Store()
	h.Service = webhooks.New(listed{h.db, &h.lists}, h.log, h.o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- h.log.Run(ctx) }()
	go func() { ended <- h.Service.Run(ctx) }()
	h.end = sync.OnceFunc(func() {
		cancel()
		for range 2 {
			must(h.t, <-ended)
		}
	})
	h.t.Cleanup(h.end)
}

// happen changes a record of a project: an event volume.created.
func (h *house) happen(project, name string) {
	h.t.Helper()
	must(h.t, h.store.Update(h.t.Context(), func(tx store.Tx) error {
		return tx.Volumes().Insert(&sandbox.Volume{ID: sandbox.NewID(), Project: project, Name: name, Runtime: "memory", State: sandbox.VolumeReady, CreatedAt: time.Now()})
	}))
}

func (h *house) create(c access.Caller, url string, types ...string) (*store.Webhook, string) {
	h.t.Helper()
	w, secret, err := h.Create(h.t.Context(), c, webhooks.Change{URL: &url, Types: &types})
	must(h.t, err)
	return w, secret
}

// await waits for commits until ok reports true.
func (h *house) await(what string, ok func() bool) {
	h.t.Helper()
	bound := time.After(time.Minute)
	for {
		changed := h.db.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-bound:
			h.t.Fatalf("waited for %s", what)
		}
	}
}

// over waits until the newest n deliveries of a webhook are over or were tried, and returns them.
func (h *house) tried(c access.Caller, id string, n int) (all []*store.Delivery) {
	h.t.Helper()
	h.await("deliveries", func() bool {
		var err error
		all, err = h.Deliveries(h.t.Context(), c, id, webhooks.Page{Limit: webhooks.MaxPage})
		must(h.t, err)
		return len(all) >= n && !slices.ContainsFunc(all[:n], func(d *store.Delivery) bool { return d.Attempts == 0 })
	})
	return all
}

// one returns the only delivery of a webhook.
func (h *house) one(c access.Caller, id string) *store.Delivery {
	h.t.Helper()
	all, err := h.Deliveries(h.t.Context(), c, id, webhooks.Page{Limit: webhooks.MaxPage})
	must(h.t, err)
	if len(all) != 1 {
		h.t.Fatalf("got %d deliveries", len(all))
	}
	return all[0]
}

// signedAt returns the time that a signature names.
func signedAt(t *testing.T, header string) time.Time {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimPrefix(strings.Split(header, ",")[0], "t="), 10, 64)
	must(t, err)
	return time.Unix(n, 0)
}

// receiver is a server that keeps what it was sent.
type receiver struct {
	*httptest.Server
	answer func(n int, w http.ResponseWriter, r *http.Request)
	mu     sync.Mutex
	heads  []http.Header
	bodies [][]byte
}

func receive(t *testing.T, at string, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	v := &receiver{answer: answer}
	v.Server = httptest.NewUnstartedServer(v)
	if at != "" {
		l, err := net.Listen("tcp", at)
		must(t, err)
		_ = v.Server.Listener.Close()
		v.Server.Listener = l
	}
	v.StartTLS()
	t.Cleanup(v.Close)
	return v
}

func (v *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.heads, v.bodies = append(v.heads, r.Header), append(v.bodies, b)
	n := len(v.bodies)
	v.mu.Unlock()
	if v.answer != nil {
		v.answer(n, w, r)
	}
}

func (v *receiver) got() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for _, b := range v.bodies {
		_, text, _ := strings.Cut(string(b), " ")
		out = append(out, text)
	}
	return out
}

// trusting returns options with which a receiver is reached that listens on one of some addresses.
func trusting(v *receiver, allow ...string) webhooks.Options {
	pool := x509.NewCertPool()
	pool.AddCert(v.Certificate())
	o := webhooks.Options{TLS: &tls.Config{RootCAs: pool}}
	for _, a := range allow {
		o.Allow = append(o.Allow, netip.MustParsePrefix(a))
	}
	return o
}

func TestEventsAreSentSignedAndInOrder(t *testing.T) {
	v := receive(t, "", nil)
	h := open(t, trusting(v, "127.0.0.1/32"))
	h.happen(alice.Project, "before")
	w, secret := h.create(alice, v.URL+"/hook?a=b", "volume")
	h.create(bob, v.URL+"/bobs", "snapshot")
	h.happen(alice.Project, "one")
	h.happen("bobs", "his")
	h.happen(alice.Project, "two")
	h.tried(alice, w.ID, 2)
	if got := v.got(); !slices.Equal(got, []string{`volume.created "one"`, `volume.created "two"`}) {
		t.Fatalf("got %q", got)
	}
	for i, head := range v.heads {
		at, err := strconv.ParseInt(strings.TrimPrefix(strings.Split(head.Get(webhooks.SignatureHeader), ",")[0], "t="), 10, 64)
		must(t, err)
		if got, want := head.Get(webhooks.SignatureHeader), webhooks.Sign(time.Unix(at, 0), v.bodies[i], secret); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if head.Get("Sandpit-Event") != "volume.created" || !strings.HasPrefix(head.Get("Sandpit-Delivery"), "del_") || head.Get("Sandpit-Attempt") != "1" || head.Get("Authorization")+head.Get("Cookie") != "" {
			t.Errorf("got %v", head)
		}
	}
	if bytes.Contains(w.Secret, []byte(secret)) || len(secret) != len("whsec_")+64 {
		t.Errorf("the secret is %q, and on record %q", secret, w.Secret)
	}

	// Another secret; the one before it signs, too, for a while.
	_, second, err := h.Rotate(t.Context(), alice, w.ID, time.Hour)
	must(t, err)
	d := h.tried(alice, w.ID, 2)[0]
	again, err := h.Repeat(t.Context(), alice, w.ID, d.ID)
	must(t, err)
	h.tried(alice, w.ID, 3)
	head, body := v.heads[2], v.bodies[2]
	at, err := strconv.ParseInt(strings.TrimPrefix(strings.Split(head.Get(webhooks.SignatureHeader), ",")[0], "t="), 10, 64)
	must(t, err)
	if got := head.Get(webhooks.SignatureHeader); second == secret || got != webhooks.Sign(time.Unix(at, 0), body, second, secret) || !bytes.Equal(body, v.bodies[1]) || again.Repeats != d.ID {
		t.Errorf("got %s of %s", got, body)
	}
	_, third, err := h.Rotate(t.Context(), alice, w.ID, 0)
	must(t, err)
	_, err = h.Repeat(t.Context(), alice, w.ID, d.ID)
	must(t, err)
	h.tried(alice, w.ID, 4)
	if got := v.heads[3].Get(webhooks.SignatureHeader); strings.Count(got, "v1=") != 1 || third == second {
		t.Errorf("without a grace: got %s", got)
	}
}

func TestADeliveryIsTriedAgainAndOverARestart(t *testing.T) {
	var up atomic.Bool
	v := receive(t, "", func(n int, w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	o := trusting(v, "127.0.0.1/32")
	o.Backoff = func(n int) time.Duration { return time.Duration(n) * 20 * time.Millisecond }
	h := open(t, o)
	w, _ := h.create(alice, v.URL)
	h.happen(alice.Project, "one")
	if d := h.tried(alice, w.ID, 1)[0]; d.State != store.DeliveryPending || d.Status != 503 || d.Detail != "it answered 503" || d.NextAt.IsZero() {
		t.Errorf("got %+v", d)
	}
	h.end()
	// What happens while nobody sends is sent by the next server.
	h.happen(alice.Project, "two")
	up.Store(true)
	h.begin()
	h.await("both", func() bool {
		all, err := h.Deliveries(t.Context(), alice, w.ID, webhooks.Page{State: store.DeliveryDone, Limit: 10})
		must(t, err)
		return len(all) == 2
	})
	got, err := h.Get(t.Context(), alice, w.ID)
	must(t, err)
	if got.Failures != 0 || got.Detail != "" {
		t.Errorf("got %+v", got)
	}
	all := v.got()
	if last := all[len(all)-2:]; !slices.Contains(last, `volume.created "one"`) || !slices.Contains(last, `volume.created "two"`) {
		t.Errorf("got %q", all)
	}
}

func TestOneThatFailsTooOftenIsSwitchedOff(t *testing.T) {
	var up atomic.Bool
	v := receive(t, "", func(n int, w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	h := open(t, trusting(v, "127.0.0.1/32"))
	w, _ := h.create(alice, v.URL)
	h.happen(alice.Project, "one")
	var got *store.Webhook
	h.await("the end of it", func() bool {
		var err error
		got, err = h.Get(t.Context(), alice, w.ID)
		must(t, err)
		return !got.DisabledAt.IsZero()
	})
	if got.Failures != 20 || got.DisabledBy != "system" || got.Detail != "it answered 404" || len(v.got()) != 20 {
		t.Errorf("got %+v after %d attempts", got, len(v.got()))
	}
	d := h.tried(alice, w.ID, 1)[0]
	if _, err := h.Repeat(t.Context(), alice, w.ID, d.ID); !fault.Is(err, fault.State) {
		t.Errorf("repeating to it: got %v", err)
	}
	h.happen(alice.Project, "meanwhile")
	up.Store(true)
	on := true
	_, err := h.Update(t.Context(), alice, w.ID, webhooks.Change{Enabled: &on})
	must(t, err)
	h.happen(alice.Project, "after")
	h.await("what was pending, and what came then", func() bool {
		all, err := h.Deliveries(t.Context(), alice, w.ID, webhooks.Page{State: store.DeliveryDone, Limit: 10})
		must(t, err)
		return len(all) == 2
	})
	all := v.got()
	if last := all[20:]; len(last) != 2 || slices.Contains(last, `volume.created "meanwhile"`) {
		t.Errorf("got %q", last)
	}
}

func TestNoURLOfTheServersOwnNetworkIsTaken(t *testing.T) {
	h := open(t, webhooks.Options{Allow: []netip.Prefix{netip.MustParsePrefix("192.168.7.0/24")}})
	own, err := net.InterfaceAddrs()
	must(t, err)
	bad := []string{
		"", "x", "https://", "https:///x", "ftp://hooks.example.org", "http://hooks.example.org", "https://user:pw@hooks.example.org", "https://hooks.example.org/#x", "https:hooks.example.org",
		"file:///etc/passwd", "unix:///run/x.sock", "https://hooks.example.org:99999999/", "https://hooks\n.example.org", "https://" + strings.Repeat("x", 3000),
		"https://127.0.0.1", "https://127.8.9.1:8080/v1/sandboxes", "https://[::1]", "https://[::ffff:127.0.0.1]", "https://[::ffff:169.254.169.254]", "https://0.0.0.0", "https://[::]",
		"https://10.0.0.1", "https://172.16.0.1", "https://192.168.1.1", "https://169.254.169.254/latest/meta-data", "https://[fe80::1]", "https://[fe80::1%25eth0]", "https://[fd00:ec2::254]",
		"https://100.64.0.1", "https://224.0.0.1", "https://255.255.255.255", "https://[64:ff9b::7f00:1]", "https://[2002:7f00:1::]", "https://localhost", "https://LOCALHOST.", "https://a.localhost",
		"https://[64:ff9b::a9fe:a9fe]", "https://[64:ff9b:1::808:808]", "https://[2002:a9fe:a9fe::1]", "https://[2001:0:808:808:0:0:f5ff:fffe]", "https://[::169.254.169.254]", "https://[::ffff:0:10.0.0.1]",
		"https://[2606:4700::5efe:10.0.0.1]", "https://[2606:4700::200:5efe:127.0.0.1]", "https://[64:ff9b::c0a8:709]", "https://[2130706433]", "https://[::ffff:10.1]",
		"http://1.1.1.1",
	}
	for _, a := range own {
		p, err := netip.ParsePrefix(a.String())
		must(t, err)
		if !p.Addr().IsLinkLocalUnicast() {
			bad = append(bad, "https://"+netip.AddrPortFrom(p.Addr(), 443).String())
		}
	}
	for _, url := range bad {
		_, _, err := h.Create(t.Context(), alice, webhooks.Change{URL: &url})
		if e := fault.As(err); !fault.Is(err, fault.Invalid) || len(e.Message) > 600 || e.Remedy == "" {
			t.Errorf("%.80q: got %v", url, err)
		}
	}
	for _, url := range []string{"https://hooks.example.org", "https://1.1.1.1/x", "http://192.168.7.9:80/x", "https://192.168.7.9", "https://[2606:4700::1111]"} {
		h.create(alice, url)
	}
	long, types := strings.Repeat("x", 300), []string{"exec"}
	ok := "https://hooks.example.org"
	for name, ch := range map[string]webhooks.Change{"a type": {URL: &ok, Types: &types}, "a description": {URL: &ok, Description: &long}} {
		if _, _, err := h.Create(t.Context(), alice, ch); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// names is a server of names, which answers each question as it is told then.
type names struct {
	mu   sync.Mutex
	is   netip.Addr
	asks int
}

func (n *names) set(a string) { n.mu.Lock(); n.is = netip.MustParseAddr(a); n.mu.Unlock() }

func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 2048)
		for {
			l, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:l]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			n.mu.Lock()
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				n.asks++
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: n.is.As4()}}}
			}
			n.mu.Unlock()
			if out, err := m.Pack(); err == nil {
				_, _ = c.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { _ = c.Close(); <-ended })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

func TestANameThatIsAnotherAddressAtTheSecondLookIsNotConnectedTo(t *testing.T) {
	good := receive(t, "127.0.0.2:0", func(_ int, w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	_, port, _ := net.SplitHostPort(good.Listener.Addr().String())
	trap := receive(t, "127.0.0.1:"+port, nil)
	o := trusting(good, "127.0.0.2/32")
	o.Backoff = func(int) time.Duration { return time.Hour }
	var n names
	n.set("127.0.0.2")
	o.Resolver = n.resolver(t)
	h := open(t, o)
	w, _ := h.create(alice, "https://example.com:"+port) // a name of the receivers' certificate
	h.happen(alice.Project, "first")
	if d := h.tried(alice, w.ID, 1)[0]; d.State != store.DeliveryDone {
		t.Fatalf("got %+v", d)
	}
	n.set("127.0.0.1")
	h.happen(alice.Project, "second")
	d := h.tried(alice, w.ID, 2)[0]
	if d.State != store.DeliveryPending || d.Detail != "its host stands for an address that webhooks may not reach" || strings.Contains(d.Detail, "127") {
		t.Errorf("got %+v", d)
	}
	n.set("169.254.169.254")
	for _, on := range []bool{false, true} { // it is tried again at once
		_, err := h.Update(t.Context(), alice, w.ID, webhooks.Change{Enabled: &on})
		must(t, err)
	}
	h.await("the third look", func() bool { d = h.tried(alice, w.ID, 2)[0]; return d.Attempts > 1 })
	if d.State != store.DeliveryPending || d.Detail != "its host stands for an address that webhooks may not reach" {
		t.Errorf("got %+v", d)
	}
	if got := trap.got(); len(got) != 0 || len(good.got()) != 1 {
		t.Errorf("the trap got %q, the host %q", got, good.got())
	}
}

func TestAnAnswerLeadsNowhere(t *testing.T) {
	trap := receive(t, "127.0.0.3:0", nil)
	v := receive(t, "", func(n int, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, trap.URL, http.StatusTemporaryRedirect)
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/heads":
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}
	})
	t.Setenv("HTTPS_PROXY", trap.URL)
	t.Setenv("HTTP_PROXY", trap.URL)
	h := open(t, trusting(v, "127.0.0.0/8"))
	for path, want := range map[string]string{"/redirect": "it answered 307; redirects are not followed", "/endless": "", "/heads": "it cannot be reached"} {
		w, _ := h.create(alice, v.URL+path)
		h.happen(alice.Project, strings.TrimPrefix(path, "/"))
		if d := h.tried(alice, w.ID, 1)[0]; d.Detail != want {
			t.Errorf("%s: got %+v", path, d)
		}
		must(t, h.Delete(t.Context(), alice, w.ID))
	}
	if got := trap.got(); len(got) != 0 {
		t.Errorf("the trap got %q", got)
	}
	stranger := open(t, webhooks.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	w, _ := stranger.create(alice, v.URL)
	stranger.happen(alice.Project, "x")
	if d := stranger.tried(alice, w.ID, 1)[0]; d.Detail != "its certificate does not verify" {
		t.Errorf("a certificate that nobody trusts: got %+v", d)
	}
}

func TestWebhooksAreTheirProjects(t *testing.T) {
	h := open(t, webhooks.Options{})
	ctx := t.Context()
	w, _ := h.create(alice, "https://hooks.example.org")
	on := true
	for name, do := range map[string]func(c access.Caller) error{
		"Get": func(c access.Caller) error { _, err := h.Get(ctx, c, w.ID); return err },
		"Update": func(c access.Caller) error {
			_, err := h.Update(ctx, c, w.ID, webhooks.Change{Enabled: &on})
			return err
		},
		"Rotate":     func(c access.Caller) error { _, _, err := h.Rotate(ctx, c, w.ID, 0); return err },
		"Delete":     func(c access.Caller) error { return h.Delete(ctx, c, w.ID) },
		"Deliveries": func(c access.Caller) error { _, err := h.Deliveries(ctx, c, w.ID, webhooks.Page{Limit: 1}); return err },
		"Repeat":     func(c access.Caller) error { _, err := h.Repeat(ctx, c, w.ID, "del_x"); return err },
	} {
		if err := do(bob); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s by another project: got %v", name, err)
		}
		weak := alice
		weak.Scopes = []access.Scope{access.SandboxesRead, access.SandboxesWrite}
		if err := do(weak); !fault.Is(err, fault.Denied) {
			t.Errorf("%s without the scope: got %v", name, err)
		}
	}
	if all, err := h.List(ctx, bob); err != nil || len(all) != 0 {
		t.Errorf("another's list: got %v, %v", all, err)
	}
	for i := range webhooks.MaxWebhooks - 1 {
		h.create(alice, fmt.Sprintf("https://hooks.example.org/%d", i))
	}
	url := "https://hooks.example.org/more"
	if _, _, err := h.Create(ctx, alice, webhooks.Change{URL: &url}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("one more: got %v", err)
	}
	must(t, h.Delete(ctx, alice, w.ID))
}
