// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"sandpit.dev/fault"
)

// Options configure a client. The zero value works.
type Options struct {
	// HTTP sends the requests; nil: a client of its own that keeps connections.
	// Its Timeout bounds whole calls, waiting for commands included.
	HTTP *http.Client
	// UserAgent is sent with each request; empty: "sandpit-go".
	UserAgent string
	// Project is the one that calls are for, with the server's own administrator's token; of another token
	// it may only be the token's own. Empty: the token's.
	Project string
	// ReuseFrames has the bytes of a [Frame] hold only until the function returns that it is passed
	// to. It spares memory where a command writes much.
	ReuseFrames bool
	// Waiting is called when a server that was reached before stops answering and the client
	// retries, until the given time at most: with what it got instead of an answer, and once
	// until the server answers again. It may be called concurrently. It may be nil.
	Waiting func(err error, until time.Time)
}

// Client calls one server. It is safe for concurrent use, and reuses
// connections: make one and keep it.
type Client struct {
	base  string // with /v1, without a slash at the end
	token string
	agent string

	within string // the project that calls are for; empty: the token's
	http   *http.Client
	err    error // of the base URL; every call returns it

	reuse   bool // the bytes of frames
	onWait  func(error, time.Time)
	reached atomic.Bool // a server has answered
	waiting atomic.Bool // onWait was called, and no server has answered since
}

// New returns a client of the server at baseURL ("http://127.0.0.1:8080"), which may end with
// /v1. It does not connect: a bad URL is reported by the first call.
func New(baseURL, token string, o Options) *Client {
	c := &Client{token: token, within: o.Project, agent: o.UserAgent, http: o.HTTP, reuse: o.ReuseFrames, onWait: o.Waiting}
	if c.agent == "" {
		c.agent = "sandpit-go"
	}
	if c.http == nil {
		c.http = newHTTP()
	}
	u, err := url.Parse(strings.TrimRight(strings.TrimSpace(baseURL), "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		c.err = fault.New(fault.Invalid, "%q is not a server's URL", baseURL).
			WithRemedy("give one such as http://127.0.0.1:8080 (SANDPIT_URL)")
		return c
	}
	c.base = u.String()
	if !strings.HasSuffix(u.Path, "/v1") {
		c.base += "/v1"
	}
	return c
}

// newHTTP has no timeout of its own: commands may take a day. It follows no
// redirect, which could carry the token elsewhere.
func newHTTP() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			MaxIdleConns:          256,
			MaxIdleConnsPerHost:   256,
			IdleConnTimeout:       90 * time.Second,
			ExpectContinueTimeout: time.Second,
			DisableCompression:    true, // a file is what it is
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request is one call. The zero value of a field leaves it out.
type request struct {
	method, path string // the path is escaped, without the base
	root         bool   // the path is not an operation's: it is relative to the server's root
	query        url.Values
	body         any       // as JSON
	raw          io.Reader // or as it is
	size         int64     // of raw; -1: unknown
	header       http.Header
	resume       func(http.Header) // of [Client.repeat]: called before each try
}

// bigUpload is the size from which a request asks first whether its body is wanted.
const bigUpload = 1 << 20

// do sends a request. The caller closes the body; an error status is returned as an error.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	resp, _, err := c.send(ctx, r)
	return resp, err
}

// send is do that also reports whether an error is the server's answer, or ours to begin with.
func (c *Client) send(ctx context.Context, r request) (_ *http.Response, answered bool, _ error) {
	if c.err != nil {
		return nil, true, c.err
	}
	target := c.base + r.path
	if r.root {
		target = strings.TrimSuffix(strings.TrimSuffix(c.base, "/v1"), "/api") + r.path
	}
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	body := r.raw
	if r.body != nil {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r.body); err != nil {
			return nil, true, fault.Wrap(fault.Invalid, err, "the request cannot be encoded")
		}
		body = bytes.NewReader(buf.Bytes())
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, true, fault.Wrap(fault.Invalid, err, "the request cannot be made")
	}
	if r.raw != nil {
		if req.ContentLength = r.size; r.size == 0 {
			req.Body = http.NoBody
		}
		if r.size < 0 || r.size > bigUpload {
			req.Header.Set("Expect", "100-continue")
		}
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.authorize(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, false, c.unanswered(ctx, err)
	}
	c.answers()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, true, errorOf(resp, readSome(resp.Body))
	}
	return resp, true, nil
}

func (c *Client) authorize(h http.Header) {
	h.Set("User-Agent", c.agent)
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if c.within != "" {
		h.Set("X-Sandpit-Project", c.within)
	}
}

// call sends a request and decodes the answer into out, unless out is nil.
func (c *Client) call(ctx context.Context, r request, out any) (status int, err error) {
	resp, err := c.do(ctx, r)
	if err != nil {
		return 0, err
	}
	defer func() {
		drain(resp.Body)
		_ = resp.Body.Close() // all that matters was read
	}()
	if out == nil {
		return resp.StatusCode, nil
	}
	if err := c.decode(ctx, r, resp.Body, out); err != nil {
		return 0, unwrapLost(err)
	}
	return resp.StatusCode, nil
}

// decode decodes an answer. One that breaks off is lost.
func (c *Client) decode(ctx context.Context, r request, body io.Reader, out any) error {
	err := json.NewDecoder(body).Decode(out)
	if err == nil {
		drain(body)
		return nil
	}
	if ctx.Err() != nil {
		return c.unanswered(ctx, err)
	}
	e := fault.Wrap(fault.Unavailable, err, "the server's answer to %s %s cannot be read", r.method, r.path).
		WithRemedy("see whether %s is a sandpit server of a fitting version", c.base)
	_, garbage := errors.AsType[*json.SyntaxError](err)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); garbage || other {
		return e
	}
	return lost{e}
}

// seg makes one segment of a path. A key may be ".", which no path survives
// unless it is written in another way.
func seg(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// of is the path of a sandbox.
func of(ref string, rest string) string { return "/sandboxes/" + seg(ref) + rest }
