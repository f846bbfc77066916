// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"sandpit.dev/fault"
)

// failed says what became of a call without an answer. The caller's own end is the caller's, with its cause if that is a
// *fault.Error.
func (c *Client) failed(ctx context.Context, r request, err error) error {
	if ctx.Err() != nil {
		if cause, ok := errors.AsType[*fault.Error](context.Cause(ctx)); ok {
			return fault.Wrap(cause.Code, err, "%s; the last call was %s", cause.Message, r).WithRemedy("%s", cause.Remedy)
		}
		return ctx.Err()
	}
	if _, told := errors.AsType[*fault.Error](err); told {
		return err // of the look for an Engine
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case isLimit(err):
		return fault.Wrap(fault.Unavailable, err, "the Engine at %s did not answer %s within %v", c.Host(), r, r.within).
			WithRemedy("see by docker ps whether it answers at all, and restart it if not: systemctl restart docker; sandboxes go on when it answers again")
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
		return fault.Wrap(fault.Denied, err, "user %d may not connect to the Engine at %s", os.Geteuid(), c.Host()).
			WithRemedy("add the server's user to the socket's group (usermod -aG docker USER) and log in again, or use an Engine of its own: rootless Docker or Podman")
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTSOCK):
		return fault.Wrap(fault.Unavailable, err, "no Engine listens at %s", c.Host()).
			WithRemedy("start it (systemctl start docker, or systemctl --user start podman.socket), or say where it is by DOCKER_HOST")
	case errors.As(err, &certificate):
		return fault.Wrap(fault.Denied, err, "who answers at %s has no certificate of the authority in DOCKER_CERT_PATH: %s", c.Host(), clip(certificate.Err.Error())).
			WithRemedy("put the right ca.pem there, and name the Engine in DOCKER_HOST as its certificate does")
	case strings.Contains(err.Error(), "remote error: tls: ") && c.Host().expired() != "": // of a type that net/http hides
		return fault.Wrap(fault.Denied, err, "the certificate in DOCKER_CERT_PATH, by which the Engine at %s would know this server, expired at %s", c.Host(), c.Host().expired()).
			WithRemedy("put a new cert.pem and key.pem there, and start the server again")
	case strings.Contains(err.Error(), "remote error: tls: "):
		return fault.Wrap(fault.Denied, err, "the Engine at %s does not accept the certificate in DOCKER_CERT_PATH: %s", c.Host(), clip(err.Error())).
			WithRemedy("put a cert.pem and key.pem of a client there, of the authority that the Engine trusts")
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"),
		strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return c.noEngine(err, "does not answer as one: "+clip(err.Error()))
	}
	return fault.Wrap(fault.Unavailable, err, "the connection to the Engine at %s broke", c.Host()).
		WithRemedy("try again; see the Engine's own log if it goes on: journalctl -u docker")
}

// isLimit reports whether a call ended since its time did, or its caller's.
func isLimit(err error) bool {
	var timeout net.Error
	return errors.Is(err, errTimeLimit) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.As(err, &timeout) && timeout.Timeout()
}

// noEngine is of what listens and is something else.
func (c *Client) noEngine(err error, what string) error {
	return fault.Wrap(fault.Unavailable, err, "what listens at %s is no Engine: it %s", c.Host(), what).
		WithRemedy("name the socket of Docker's Engine or of Podman's service in DOCKER_HOST; where it wants TLS, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, too")
}

// refused returns what the Engine says in an answer that is an error. Words about the
// thing that was asked for are for the caller; those about the Engine's insides are for the log.
func (c *Client) refused(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxWords))
	var said struct{ Message string }
	if bytes.Contains(b, []byte("HTTP request to an HTTPS server")) {
		return fault.New(fault.Unavailable, "the Engine at %s speaks TLS alone", c.Host()).WithRemedy("set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH")
	}
	if err != nil || json.Unmarshal(b, &said) != nil || said.Message == "" {
		said.Message = http.StatusText(resp.StatusCode)
		if words := strings.TrimSpace(string(b)); words != "" {
			said.Message += ": " + words
		}
	}
	return c.said(resp.StatusCode, said.Message)
}

// said makes an error of the Engine's words.
func (c *Client) said(status int, words string) error {
	words = clip(words)
	if strings.Contains(words, "no space left on device") || strings.Contains(words, "disk quota exceeded") {
		return fault.NoSpace(fault.StoreDisk, errors.New(words), "the disk of the Engine at %s is full", c.Host()).
			WithRemedy("make room there: docker system df says what takes it, docker system prune removes what nothing uses")
	}
	if status == http.StatusInternalServerError && strings.HasSuffix(words, "no such container") { // Podman, of one that went while it looked
		status = http.StatusNotFound
	}
	switch status {
	case http.StatusBadRequest:
		return fault.New(fault.Invalid, "the Engine refuses this: %s", words)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.New(fault.Denied, "the Engine does not allow this: %s", words)
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "the Engine has none: %s", words)
	case http.StatusConflict:
		return fault.New(fault.Conflict, "the Engine refuses this now: %s", words)
	}
	return fault.Wrap(fault.Unavailable, errors.New(words), "the Engine at %s failed", c.Host()).
		WithRemedy("the server's log has its words; try again")
}
