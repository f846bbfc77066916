// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/network/preview"
)

// Sandboxes of the tests: two of one project, one of another.
const (
	web   = "aaaaaaaaaaaaaaaa"
	other = "bbbbbbbbbbbbbbbb"
	alien = "cccccccccccccccc"
)

const (
	owner  = "spt_owner"  // of the project of web and other
	reader = "spt_reader" // may only look
	mallet = "spt_mallet" // of the project of alien
	admin  = "an-admin-token-of-any-form"
)

// house is a proxy before a real HTTP server, which stands for what listens on
// port 8000 of each sandbox.
type house struct {
	t     *testing.T
	links *preview.Links
	proxy *preview.Proxy
	addr  string // of the proxy

	mu      sync.Mutex
	now     time.Time
	opened  []string // links
	stopped map[string]bool
	dials   int
	valid   context.Context // of all tokens
	inside  string          // where what listens is

	granted map[string]preview.Grant // of links that are on record
	revoked map[string]context.CancelFunc
	seen    map[string]preview.Seen // by sandbox
	changed context.CancelFunc
	opaque  bool // the operator's token has no form
}

// ReachPreview, PreviewOpened and Check are what the proxy asks.
func (h *house) ReachPreview(_ context.Context, c access.Caller, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if project := map[string]string{web: "default", other: "default", alien: "strange"}[id]; project != c.Project {
		return fault.New(fault.NotFound, "there is no sandbox %q", id)
	}
	if h.stopped[id] {
		return fault.New(fault.State, "the sandbox %s is stopped (user)", id).WithRemedy("start it")
	}
	return nil
}

func (h *house) PreviewOpened(_ context.Context, _ access.Caller, _, link string, _ int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = append(h.opened, link)
	return nil
}

func (h *house) SeePort(_ context.Context, id string, port int) (preview.Seen, context.Context, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seen[id]
	s.Public = s.Public && port == 8000
	ctx, cancel := context.WithCancel(context.Background())
	h.changed = cancel
	return s, ctx, cancel, nil
}

func (h *house) show(id string, s preview.Seen) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed != nil {
		h.changed()
	}
	h.seen = map[string]preview.Seen{id: s}
}

func (h *house) AdmitLink(_ context.Context, id string) (preview.Grant, context.Context, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, ok := h.granted[id]
	if !ok {
		return g, nil, nil, fault.New(fault.Unauthenticated, "the link is not valid, or no more")
	}
	ctx, cancel := context.WithCancel(context.Background())
	if h.revoked == nil {
		h.revoked = make(map[string]context.CancelFunc)
	}
	h.revoked[id] = cancel
	return g, ctx, cancel, nil
}

// grant puts a link on record, and returns its host.
func (h *house) grant(id string, g preview.Grant) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.granted == nil {
		h.granted = make(map[string]preview.Grant)
	}
	g.Link = id
	h.granted[id] = g
	return strconv.Itoa(g.Port) + "-" + h.links.HostToken(id) + ".localhost"
}

func (h *house) revoke(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.granted, id)
	h.revoked[id]()
}

func (h *house) Admit(ctx context.Context, token string) (access.Caller, context.Context, func(), error) {
	c, err := h.Check(ctx, token)
	h.mu.Lock()
	defer h.mu.Unlock()
	return c, h.valid, func() {}, err
}

// Ours is what the tokens' owner says of their form; opaque has it say so of every text that is no JSON Web Token.
func (h *house) Ours(token string) bool {
	return strings.HasPrefix(token, "spt_") || strings.HasPrefix(token, "sps_") || h.opaque && !strings.HasPrefix(token, "eyJ")
}

func (h *house) Check(_ context.Context, token string) (access.Caller, error) {
	write := []access.Scope{access.SandboxesWrite}
	switch token {
	case owner, admin:
		return access.Caller{Project: "default", Actor: "owner", Scopes: write}, nil
	case mallet:
		return access.Caller{Project: "strange", Actor: "mallet", Scopes: write}, nil
	case reader:
		return access.Caller{Project: "default", Actor: "reader", Scopes: []access.Scope{access.SandboxesRead}}, nil
	}
	return access.Caller{}, fault.New(fault.Unauthenticated, "the bearer token is not valid")
}

func (h *house) dial(ctx context.Context, _ access.Caller, _ string, port int) (net.Conn, error) {
	h.mu.Lock()
	h.dials++
	inside := h.inside
	h.mu.Unlock()
	if port != 8000 {
		return nil, fault.New(fault.Unavailable, "nothing listens on port %d in the sandbox", port).WithRemedy("start a server there")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", inside)
}

func open(t *testing.T, program http.HandlerFunc, change ...func(*preview.Options)) *house {
	return openAt(t, "localhost", program, change...)
}

func openAt(t *testing.T, domain string, program http.HandlerFunc, change ...func(*preview.Options)) *house {
	t.Helper()
	h := &house{t: t, now: time.Unix(1_800_000_000, 0), stopped: make(map[string]bool), valid: context.Background()}
	inside := httptest.NewServer(program)
	h.inside = inside.Listener.Addr().String()
	var err error
	if h.links, err = preview.NewLinks([]byte("0123456789abcdef0123456789abcdef"), domain); err != nil {
		t.Fatal(err)
	}
	o := preview.Options{
		Links: h.links, Sandboxes: h, Tokens: h, Dial: h.dial,
		Problem: func(err error, status int) (int, []byte) {
			if status == 0 {
				status = map[fault.Code]int{
					fault.NotFound: 404, fault.Unauthenticated: 401, fault.Denied: 403, fault.Malformed: 400, fault.Timeout: 504,
				}[fault.Of(err)]
			}
			b, _ := json.Marshal(map[string]string{"detail": fault.As(err).Message})
			return status, b
		},
		Now: func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.now },
	}
	for _, f := range change {
		f(&o)
	}
	if h.proxy, err = preview.New(o); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h.proxy)
	h.addr = srv.Listener.Addr().String()
	t.Cleanup(func() { srv.Close(); h.proxy.Close(); inside.Close() })
	return h
}

// advance moves the proxy's clock.
func (h *house) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *house) link(id string, port int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	project := "default"
	if id == alien {
		project = "strange"
	}
	return h.links.Token(preview.Grant{Project: project, Sandbox: id, Port: port, Expires: h.now.Add(time.Hour), Link: "thelink"})
}

// hostOf is a preview's host.
func (h *house) hostOf(id string) string {
	_, port, _ := net.SplitHostPort(h.addr)
	return "8000-" + id + ".localhost:" + port
}

func pathOf(id string) string { return "/preview/" + id + "/8000" }

// answer is what came back, read to its end.
type answer struct {
	*http.Response
	body string
}

// get asks by GET; headers come in pairs, and Host is one.
func (h *house) get(host, path string, headers ...string) answer {
	h.t.Helper()
	return h.do("GET", host, path, nil, headers...)
}

func (h *house) do(method, host, path string, body io.Reader, headers ...string) answer {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, "http://"+h.addr, body)
	if err != nil {
		h.t.Fatal(err)
	}
	path, query, _ := strings.Cut(path, "?")
	req.URL.Opaque, req.URL.RawQuery, req.Host = path, query, host // as it stands
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := plain.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{resp, string(b)}
}

// raw sends a request that no client would send, and returns the head of the answer.
func (h *house) raw(request string) *http.Response {
	h.t.Helper()
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, request); err != nil {
		h.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

// dialed counts the connections that were made to programs.
func (h *house) dialed() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dials
}

var plain = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("got %d %s, want %d", a.StatusCode, a.body, status)
	}
	return a
}

// seen is what a program got, as it reports.
type seen struct {
	Method, URI, Host, Body string
	Header                  http.Header
}

// mirror is a program that answers with what it got.
func mirror(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(seen{r.Method, r.RequestURI, r.Host, string(b), r.Header})
}

func (a answer) seen(t *testing.T) (s seen) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		t.Fatalf("%d %q: %v", a.StatusCode, a.body, err)
	}
	return s
}
