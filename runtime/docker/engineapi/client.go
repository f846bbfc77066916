// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
)

// Bounds of calls.
const (
	pingTimeout  = 800 * time.Millisecond // one of several places where an Engine may be
	dialTimeout  = 10 * time.Second
	callTimeout  = 30 * time.Second // of what an Engine does at once
	workTimeout  = 2 * time.Minute  // of what it may have to work for: start, commit, remove
	copyTimeout  = 15 * time.Minute // of what copies a disk before it says a word: commit
	quietTimeout = 5 * time.Minute  // of what takes as long as it takes: without a byte either way
	eventsLast   = 10 * time.Minute // how long one stream of events is listened to
	maxAnswer    = 64 << 20         // bytes; a list of 10,000 containers takes 20 MB
	maxWords     = 64 << 10         // bytes of an error's text
	maxLine      = 1 << 20          // bytes of an event, or of a line of progress
)

// Version is one of the API: 1.41.
type Version struct{ Major, Minor int }

// Versions that the client speaks. Oldest has all that it needs; it uses nothing that came after
// Newest.
var (
	Oldest = Version{1, 41}
	Newest = Version{1, 47}
)

// String returns it as it is in paths, without the v.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

func (v Version) before(o Version) bool {
	return v.Major < o.Major || v.Major == o.Major && v.Minor < o.Minor
}

func parseVersion(s string) (Version, bool) {
	a, b, ok := strings.Cut(s, ".")
	major, err := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	return Version{major, minor}, ok && err == nil && err2 == nil && major >= 0 && minor >= 0 && len(s) < 16
}

// Client speaks to one Engine. It is safe for concurrent use.
type Client struct {
	hosts     []Host // where it is looked for, in this order
	transport *http.Transport
	clock     Clock

	looking chan struct{} // held by who looks for it
	found   atomic.Pointer[found]
}

// found is an Engine that has answered. From then on the client is of that one alone.
type found struct {
	host    Host
	version Version
	podman  bool
}

// New returns a client of the Engine that the environment names, or else of the first of the usual
// sockets at which one answers. The first call looks for it, and each further one while none has
// answered. The caller closes it.
func New(env Environment) (*Client, error) { return NewWithClock(env, nil) }

// NewWithClock is [New] with a clock by which calls are bounded.
func NewWithClock(env Environment, clock Clock) (*Client, error) {
	hosts := env.usual()
	if env.Host != "" {
		host, err := env.parse()
		if err != nil {
			return nil, err
		}
		hosts = []Host{host}
	}
	c := newClient(hosts)
	c.clock = clock
	return c, nil
}

func newClient(hosts []Host) *Client {
	c := &Client{hosts: hosts, looking: make(chan struct{}, 1)}
	c.transport = transportTo(func() Host { return c.Host() })
	if len(hosts) == 1 {
		c.transport.TLSClientConfig = hosts[0].tls // the usual sockets have none
	}
	return c
}

// transportTo returns one whose connections lead to where an Engine is then.
func transportTo(host func() Host) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return host().Dial(ctx)
		},
		TLSHandshakeTimeout: dialTimeout,
		DisableCompression:  true, MaxResponseHeaderBytes: maxWords, MaxIdleConns: 8, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
	}
}

// Find is [New] and Connect.
func Find(ctx context.Context, env Environment) (*Client, error) {
	c, err := New(env)
	if err != nil {
		return nil, err
	}
	if err := c.Connect(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Connect looks for the Engine unless it was found.
func (c *Client) Connect(ctx context.Context) error {
	if c.found.Load() != nil {
		return nil
	}
	select {
	case c.looking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.looking }()
	if c.found.Load() != nil {
		return nil
	}
	f, err := c.look(ctx)
	if err == nil {
		c.found.Store(f)
	}
	return err
}

// look asks all hosts in turn.
func (c *Client) look(ctx context.Context) (*found, error) {
	if len(c.hosts) == 1 {
		return c.ask(ctx, c.hosts[0])
	}
	var asked []string
	var denied error
	for _, h := range c.hosts {
		limit, cancel := WithTimeout(ctx, c.clock, pingTimeout, context.DeadlineExceeded)
		f, err := c.ask(limit, h)
		cancel()
		if err == nil {
			return f, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, os.ErrNotExist) {
			asked = append(asked, h.address+" (missing)")
			continue
		}
		if fault.Of(err) == fault.Denied && denied == nil {
			denied = err
		}
		asked = append(asked, h.address+" ("+why(err)+")")
	}
	if denied != nil {
		return nil, denied
	}
	return nil, fault.New(fault.Unavailable, "no Engine of Docker or Podman answers: DOCKER_HOST is not set, and asked were %s", strings.Join(asked, ", ")).
		WithRemedy("start one (systemctl start docker, or systemctl --user start podman.socket), or say where it is by DOCKER_HOST")
}

func why(err error) string {
	if fault.Of(err) == fault.Timeout || errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + pingTimeout.String()
	}
	return fault.As(err).Message
}

// ask asks an Engine at a host for the newest version that both sides speak.
func (c *Client) ask(ctx context.Context, host Host) (*found, error) {
	c = &Client{transport: transportTo(func() Host { return host }), clock: c.clock}
	c.transport.TLSClientConfig = host.tls
	c.found.Store(&found{host: host})
	defer c.Close()
	f, err := c.negotiate(ctx)
	if err != nil && host.tls != nil && fault.Is(err, fault.Unavailable) && ctx.Err() == nil {
		if alert := c.alert(ctx); alert != nil {
			err = c.failed(ctx, request{method: http.MethodGet, path: "/_ping", within: callTimeout}, alert)
		}
	}
	if err != nil {
		return nil, err
	}
	f.host = host
	return f, nil
}

// alertTimeout bounds the wait for what an Engine has against a certificate, once it has that.
const alertTimeout = 2 * time.Second

// alert returns what an Engine over TLS says against this client once the handshake is over, as version 1.3 has it; nil: nothing.
// A call may fail for the connection's end before it has read that.
func (c *Client) alert(ctx context.Context) error {
	limit, cancel := WithTimeout(ctx, c.clock, dialTimeout, errTimeLimit)
	defer cancel()
	nc, err := c.dial(limit)
	if err == nil {
		_ = nc.SetReadDeadline(time.Now().Add(alertTimeout))
		_, err = nc.Read(make([]byte, 1))
		_ = nc.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
		return nil
	}
	return err
}

// negotiate finds the newest version that both sides speak.
func (c *Client) negotiate(ctx context.Context) (*found, error) {
	resp, done, err := c.send(ctx, request{method: http.MethodGet, path: "/_ping", within: callTimeout, bare: true})
	if err != nil {
		return nil, err
	}
	done()
	theirs, ok := parseVersion(resp.Header.Get("Api-Version"))
	if !ok {
		return nil, c.noEngine(nil, "says nothing of an API's version")
	}
	if theirs.before(Oldest) {
		return nil, fault.New(fault.Unsupported, "the Engine at %s speaks version %s of the API, and %s is the oldest that works", c.Host(), theirs, Oldest).
			WithRemedy("update it to Docker 20.10 or Podman 4")
	}
	f := &found{version: Newest, podman: resp.Header.Get("Libpod-Api-Version") != ""}
	if theirs.before(Newest) {
		f.version = theirs
	}
	return f, nil
}

// Close ends idle connections. Streams go on until they are closed.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Host returns where the Engine listens, or where it was looked for while none has answered.
func (c *Client) Host() Host {
	if f := c.found.Load(); f != nil {
		return f.host
	}
	if len(c.hosts) == 1 {
		return c.hosts[0]
	}
	return Host{network: "unix", name: "one of the usual sockets"}
}

// APIVersion returns the version that both sides speak, zero while none has answered.
func (c *Client) APIVersion() Version {
	if f := c.found.Load(); f != nil {
		return f.version
	}
	return Version{}
}

// Podman reports whether the Engine is Podman's service, which does some things by its own API alone.
func (c *Client) Podman() bool {
	f := c.found.Load()
	return f != nil && f.podman
}

// request is one call.
type request struct {
	method, path string
	query        url.Values
	in           any           // body, as JSON
	body         io.Reader     // body, as it is
	kind         string        // of body
	within       time.Duration // until the head of the answer is there, and for all of it where that is read by call
	header       http.Header
	bare         bool // no version in the path
}

// String names the call.
func (r request) String() string { return r.method + " " + clip(r.path) }

// call sends a request, and reads the answer's JSON into out, if that is not nil.
func (c *Client) call(ctx context.Context, r request, out any) error {
	resp, done, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer done()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.failed(ctx, r, err)
	case len(b) > maxAnswer:
		return fault.New(fault.Unavailable, "the Engine at %s answers with more than %d MiB", c.Host(), maxAnswer>>20)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return c.noEngine(err, "answers "+r.path+" with what is no JSON of its API")
	}
	return nil
}

// send sends a request and waits for the head of the answer, whose status is good. done ends it; the
// time limit of the request goes on until then.
func (c *Client) send(ctx context.Context, r request) (_ *http.Response, done func(), err error) {
	limit, cancel := WithTimeout(ctx, c.clock, r.within, errTimeLimit)
	resp, err := c.do(limit, r)
	if err != nil {
		err = cmp.Or(context.Cause(limit), err)
		cancel()
		return nil, nil, c.failed(ctx, r, err)
	}
	done = func() {
		_ = resp.Body.Close() // all was read, or nothing more is wanted
		cancel()
	}
	if resp.StatusCode < 300 || resp.StatusCode == http.StatusNotModified { // it is so already
		return resp, done, nil
	}
	defer done()
	return nil, nil, c.refused(resp)
}

// errTimeLimit is why a call of ours was ended, in contrast to the caller's.
var errTimeLimit = errors.New("the call's time limit passed")

// do sends a request as it is.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	host := c.Host()
	body, kind := r.body, r.kind
	if r.in != nil {
		b, err := json.Marshal(r.in)
		if err != nil {
			return nil, err
		}
		body, kind = bytes.NewReader(b), "application/json"
	}
	u := "http://engine"
	if host.network == "tcp" {
		u = "http://" + host.address
	}
	if host.tls != nil {
		u = "https://" + host.address
	}
	if !r.bare {
		u += "/v" + c.APIVersion().String()
	}
	u += r.path
	if len(r.query) > 0 {
		u += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u, body)
	if err != nil {
		return nil, err
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	return c.transport.RoundTrip(req)
}
