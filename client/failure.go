// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// maxProblem is more than a server's error needs.
const maxProblem = 64 << 10

func readSome(r io.Reader) []byte {
	data, _ := io.ReadAll(io.LimitReader(r, maxProblem)) // what there is of it must do
	return data
}

// errorOf returns the server's error from an error response.
func errorOf(resp *http.Response, body []byte) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p v1.Problem
	if media != v1.ProblemType || json.Unmarshal(body, &p) != nil || p.Code == "" {
		if bytes.Contains(body, []byte("HTTP request to an HTTPS server")) { // net/http's words
			return fault.New(fault.Unavailable, "the server at %s speaks HTTPS, not HTTP", resp.Request.URL.Host).
				WithRemedy("write its URL with https")
		}
		// Something between us and the server, or no sandpit server at all.
		e := fault.New(codeOf(resp.StatusCode), "the server answered %s", resp.Status)
		if text := strings.TrimSpace(string(body)); text != "" && strings.HasPrefix(media, "text/plain") {
			e.Message += ": " + clip(text, 200)
		}
		return e.WithRemedy("see whether the URL %s is that of a sandpit server", resp.Request.URL.Redacted())
	}
	return faultOf(&p, resp.Header.Get("Retry-After"))
}

// faultOf turns a problem back into the error that it was made of.
func faultOf(p *v1.Problem, retryAfter string) *fault.Error {
	e := &fault.Error{Code: fault.Code(p.Code), Message: p.Detail, Reason: p.Reason, Remedy: p.Remedy, Version: p.Version}
	if !slices.Contains(fault.Codes(), e.Code) {
		e.Code = codeOf(p.Status) // of a newer server
	}
	if e.Code == fault.Internal {
		e.Message = fmt.Sprintf("%s (request %s)", p.Detail, p.RequestID)
	}
	switch disk := fault.Disk(p.Cause); {
	case e.Code == fault.Full && slices.Contains(fault.Disks(), disk):
		e.Disk = disk
	case p.Cause != "":
		e.Err = errors.New(p.Cause)
	}
	for _, f := range p.Errors {
		e.Fields = append(e.Fields, fault.Field{Name: f.Field, Message: f.Message})
	}
	if n, err := strconv.Atoi(retryAfter); err == nil && n > 0 {
		e.Retry = time.Duration(n) * time.Second
	}
	return e
}

// codeOf guesses a code from a status, for answers that have no code.
func codeOf(status int) fault.Code {
	switch status {
	case http.StatusUnauthorized:
		return fault.Unauthenticated
	case http.StatusForbidden:
		return fault.Denied
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusConflict:
		return fault.Conflict
	case http.StatusPreconditionFailed:
		return fault.PreconditionFailed
	case http.StatusRequestEntityTooLarge:
		return fault.TooLarge
	case http.StatusUnprocessableEntity:
		return fault.Invalid
	case http.StatusTooManyRequests:
		return fault.Exhausted
	case http.StatusInsufficientStorage:
		return fault.Full
	case http.StatusNotImplemented:
		return fault.Unsupported
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return fault.Unavailable
	case http.StatusGatewayTimeout:
		return fault.Timeout
	}
	if status >= 300 && status < 500 {
		return fault.Malformed
	}
	return fault.Internal
}

// unanswered returns the error of a request that got no answer, with the next step.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		code, cause := fault.Of(ctx.Err()), context.Cause(ctx)
		if code == fault.Timeout {
			return fault.Wrap(code, cause, "the deadline passed before the server answered")
		}
		return fault.Wrap(code, cause, "the request was canceled")
	}
	where := strings.TrimSuffix(c.base, "/v1")
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return fault.Wrap(fault.Unavailable, op, "no server answers at %s", where).
			WithRemedy("start one with `sandpit serve`, or set SANDPIT_URL to where one is")
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fault.Wrap(fault.Unavailable, bad, "the certificate of %s is not right: %v", where, bad.Err).
			WithRemedy("call the server by a name that its certificate has; have its authority trusted, by SSL_CERT_FILE=ca.pem where sandpit tls init made it")
	}
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.Wrap(fault.TooLarge, err, "the body has more than %d bytes", tooBig.Limit)
	}
	if plain := "http" + strings.TrimPrefix(where, "https"); strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return fault.New(fault.Unavailable, "the server at %s speaks HTTP, not HTTPS", where).
			WithRemedy("use its address without TLS, where nobody listens in on the way: %s", plain)
	}
	return fault.Wrap(fault.Unavailable, err, "the connection to %s broke before the answer", where).
		WithRemedy("ask again; if it was a command, it may be running: see the sandbox's processes")
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
