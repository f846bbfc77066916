// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"bytes"
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
	"time"

	"sandpit.dev/fault"
)

// Bounds of calls.
const (
	pingTimeout  = 800 * time.Millisecond // one of several places where an Engine may be
	dialTimeout  = 10 * time.Second
	callTimeout  = 30 * time.Second // of what an Engine does at once
	workTimeout  = 2 * time.Minute  // of what it may have to work for: start, commit, remove
	quietTimeout = 5 * time.Minute  // of what takes as long as it takes: without a byte either way
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
	host      Host
	transport *http.Transport
	version   Version
}

// Find returns a client of the Engine that the environment names, or else of the first of the
// usual sockets at which one answers. The caller closes it.
func Find(ctx context.Context, env Environment) (*Client, error) {
	if env.Host != "" {
		host, err := env.parse()
		if err != nil {
			return nil, err
		}
		return Open(ctx, host)
	}
	return first(ctx, env.usual())
}

// first asks all hosts in turn.
func first(ctx context.Context, hosts []Host) (*Client, error) {
	var asked []string
	var denied error
	for _, h := range hosts {
		limit, cancel := context.WithTimeout(ctx, pingTimeout)
		c, err := Open(limit, h)
		cancel()
		if err == nil {
			return c, nil
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

// Open returns a client of the Engine at a host, which it asks for its versions. The caller closes it.
func Open(ctx context.Context, host Host) (*Client, error) {
	c := &Client{host: host, transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, host.network, host.address)
		},
		TLSClientConfig: host.tls, TLSHandshakeTimeout: dialTimeout,
		DisableCompression: true, MaxResponseHeaderBytes: maxWords, MaxIdleConns: 8, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
	}}
	if err := c.negotiate(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// negotiate finds the newest version that both sides speak.
func (c *Client) negotiate(ctx context.Context) error {
	resp, done, err := c.send(ctx, request{method: http.MethodGet, path: "/_ping", within: callTimeout, bare: true})
	if err != nil {
		return err
	}
	done()
	theirs, ok := parseVersion(resp.Header.Get("Api-Version"))
	if !ok {
		return c.noEngine(nil, "says nothing of an API's version")
	}
	if theirs.before(Oldest) {
		return fault.New(fault.Unsupported, "the Engine at %s speaks version %s of the API, and %s is the oldest that works", c.host, theirs, Oldest).
			WithRemedy("update it to Docker 20.10 or Podman 4")
	}
	c.version = Newest
	if theirs.before(Newest) {
		c.version = theirs
	}
	return nil
}

// Close ends idle connections. Streams go on until they are closed.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Host returns where the Engine listens.
func (c *Client) Host() Host { return c.host }

// APIVersion returns the version that both sides speak.
func (c *Client) APIVersion() Version { return c.version }

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
		return c.failed(ctx, r.within, err)
	case len(b) > maxAnswer:
		return fault.New(fault.Unavailable, "the Engine at %s answers with more than %d MiB", c.host, maxAnswer>>20)
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
	limit, cancel := context.WithTimeoutCause(ctx, r.within, errTimeLimit)
	resp, err := c.do(limit, r)
	if err != nil {
		cancel()
		return nil, nil, c.failed(ctx, r.within, err)
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
	body, kind := r.body, r.kind
	if r.in != nil {
		b, err := json.Marshal(r.in)
		if err != nil {
			return nil, err
		}
		body, kind = bytes.NewReader(b), "application/json"
	}
	u := "http://engine"
	if c.host.network == "tcp" {
		u = "http://" + c.host.address
	}
	if c.host.tls != nil {
		u = "https://" + c.host.address
	}
	if !r.bare {
		u += "/v" + c.version.String()
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
