// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"sandpit.dev/fault"
)

// Registry is what the operator says of a registry. One of which nothing is said is spoken to without
// credentials, over https, and at addresses of the public internet.
type Registry struct {
	Name    string   // its host, with its port where references have one: ghcr.io, localhost:5000
	Mirrors []string // hosts that are asked before it; what holds of one is its own entry
	Private bool     // it may have an address that is not of the public internet
	Plain   bool     // it is spoken to over http
	// Projects may use what is said here: its mirrors, its credentials, its private address, http.
	Projects bool
	// Username and Password are what it is told who asks; "": nothing.
	Username, Password string
}

// Bounds of talking to registries.
const (
	maxRedirects  = 5
	maxTokenBytes = 1 << 20
	answerTime    = 30 * time.Second // until an answer begins
	stallTime     = 60 * time.Second // between two pieces of one
	retries       = 5                // of a layer, since its last byte
	retryTime     = time.Second
)

// dockerHost is where docker.io serves its images.
const dockerHost = "registry-1.docker.io"

// remote speaks to registries. It is safe for concurrent use.
type remote struct {
	registries map[string]Registry // by name
	public     func(netip.Addr) bool
	client     *http.Client
	pusher     *http.Client // which waits longer for what was sent to be stored
	stall      time.Duration
	retry      time.Duration

	mu     sync.Mutex
	tokens map[string]token // by host, repository and what they allow
}

type token struct {
	header string
	until  time.Time
}

// newRemote returns one that reaches addresses of the public internet, as public says, and what the operator lists.
func newRemote(list []Registry, public func(netip.Addr) bool, roots *x509.CertPool) *remote {
	r := &remote{registries: make(map[string]Registry), public: public, tokens: make(map[string]token), stall: stallTime, retry: retryTime}
	for _, e := range list {
		r.registries[strings.ToLower(e.Name)] = e
	}
	transport := func(answer time.Duration) *http.Client {
		return &http.Client{
			Transport: &http.Transport{
				DialContext: r.dial, TLSClientConfig: &tls.Config{RootCAs: roots}, TLSHandshakeTimeout: answerTime, ResponseHeaderTimeout: answer, MaxResponseHeaderBytes: 64 << 10,
				ExpectContinueTimeout: expectTime, IdleConnTimeout: stallTime, MaxIdleConnsPerHost: parallel, ForceAttemptHTTP2: true, DisableCompression: true,
			},
			CheckRedirect: r.redirect,
		}
	}
	r.client, r.pusher = transport(answerTime), transport(storeTime)
	return r
}

func (r *remote) close() {
	r.client.CloseIdleConnections()
	r.pusher.CloseIdleConnections()
}

// entry is what is said of a host, with or without its port.
func (r *remote) entry(host string) Registry {
	host = strings.ToLower(host)
	if e, ok := r.registries[host]; ok {
		return e
	}
	if name, port, err := net.SplitHostPort(host); err == nil && (port == "443" || port == "80") {
		host = name
	}
	if host == dockerHost {
		host = defaultRegistry
	}
	return r.registries[host]
}

// errPrivate is a connection that is not made.
var errPrivate = errors.New("its address is not of the public internet")

// dial connects where it may. The address is the one that the name was found to have: no name is asked for twice.
func (r *remote) dial(ctx context.Context, network, address string) (net.Conn, error) {
	private := r.entry(address).Private
	d := net.Dialer{Timeout: answerTime, ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(at)
		if err != nil {
			return err
		}
		a := ap.Addr().Unmap()
		if r.public(a) || private && listed(a) {
			return nil
		}
		return errPrivate
	}}
	return d.DialContext(ctx, network, address)
}

// listed reports whether an address may be a registry's that the operator lists: not those by which a
// machine on the link, or a cloud, tells a machine what it is.
func listed(a netip.Addr) bool {
	return a.IsValid() && (a.IsPrivate() || a.IsLoopback()) && a != netip.MustParseAddr("fd00:ec2::254")
}

// allowed refuses addresses of requests that are not to be made.
func (r *remote) allowed(u *url.URL) error {
	switch {
	case u.User != nil, u.Host == "":
		return refusedRemote("it sends requests to %s, which has no host or a user in it", shown(u.Redacted()))
	case u.Scheme == "https", u.Scheme == "http" && r.entry(u.Host).Plain:
		return nil
	}
	return refusedRemote("it sends requests to %s, which is not https", shown(u.Redacted()))
}

func (r *remote) redirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return refusedRemote("it redirects more than %d times", maxRedirects)
	}
	if req.URL.Host != via[0].URL.Host {
		req.Header.Del("Authorization")
	}
	return r.allowed(req.URL)
}

// refusedRemote is a fault of a registry's own.
func refusedRemote(format string, args ...any) error {
	return fault.New(fault.Unavailable, "the registry is refused: %s", fmt.Sprintf(format, args...)).
		WithRemedy("use another registry, or have the operator list this one in images.registries")
}

// place is where a repository is asked for.
type place struct {
	host       string
	repository string
	entry      Registry
}

// places returns where to ask for a reference: mirrors first.
func (r *remote) places(ref Reference) []place {
	e := r.entry(ref.Registry)
	var all []place
	for _, m := range e.Mirrors {
		all = append(all, place{strings.ToLower(m), ref.Repository, r.entry(m)})
	}
	return append(all, r.origin(ref))
}

// origin returns the registry itself, and no mirror of it.
func (r *remote) origin(ref Reference) place {
	host := ref.Registry
	if host == defaultRegistry {
		host = dockerHost
	}
	return place{host, ref.Repository, r.entry(ref.Registry)}
}

func (p place) url(kind, what string) string {
	scheme := "https"
	if p.entry.Plain {
		scheme = "http"
	}
	return scheme + "://" + p.host + "/v2/" + p.repository + "/" + kind + "/" + what
}

// get asks for something of a repository. The caller closes the answer's body.
func (r *remote) get(ctx context.Context, p place, kind, what string, header http.Header) (*http.Response, error) {
	for again := false; ; again = true {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url(kind, what), nil)
		if err != nil {
			return nil, err
		}
		for name, values := range header {
			req.Header[name] = values
		}
		req.Header.Set("User-Agent", "sandpit")
		if h := r.authorization(p, pulling); h != "" {
			req.Header.Set("Authorization", h)
		}
		res, err := r.client.Do(req)
		if err != nil {
			return nil, unreachable(p, err)
		}
		switch {
		case res.StatusCode == http.StatusOK, res.StatusCode == http.StatusPartialContent:
			return res, nil
		case res.StatusCode == http.StatusUnauthorized && !again:
			challenge := res.Header.Values("WWW-Authenticate")
			_ = res.Body.Close()
			if err := r.authorize(ctx, p, pulling, challenge); err != nil {
				return nil, err
			}
			continue
		}
		_ = res.Body.Close()
		return nil, answered(p, what, res.StatusCode)
	}
}

// unreachable is a registry that does not answer.
func unreachable(p place, err error) error {
	if fe, ok := errors.AsType[*fault.Error](err); ok {
		return fe
	}
	if errors.Is(err, errPrivate) {
		return fault.Wrap(fault.Denied, err, "the server does not connect to %s: it, or where it leads, has no address of the public internet", shown(p.host)).
			WithRemedy("have the operator list it in images.registries with private: true")
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the registry %s cannot be reached: %s", shown(p.host), reason(err)).
		WithRemedy("look whether the server reaches it; an image can also be brought with: sandpit image import FILE")
}

// reason is the innermost text of a failed request, which names no address of the server's.
func reason(err error) string {
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		return d.Err
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// answered is an answer other than what was asked for.
func answered(p place, what string, status int) error {
	switch status {
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "the registry %s has no %s of %s", shown(p.host), shown(what), shown(p.repository)).
			WithRemedy("look for its name and its tags there")
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.New(fault.Denied, "the registry %s does not give out %s to this server (%d): it is not there, or is not for everybody", shown(p.host), shown(p.repository), status).
			WithRemedy("look at the name; or have the operator set the registry's credentials in images.registries")
	case http.StatusTooManyRequests:
		return fault.New(fault.Exhausted, "the registry %s limits the requests of this server (429)", shown(p.host)).WithRemedy("try again later, or have the operator set credentials or a mirror in images.registries")
	}
	return fault.New(fault.Unavailable, "the registry %s answers %d", shown(p.host), status).WithRemedy("try again later")
}

// small reads a body that has to be so.
func small(body io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	if err == nil && int64(len(data)) > most {
		err = refusedRemote("its answer has more than %d bytes", most)
	}
	return data, err
}

// manifest returns a manifest or an index with its digest, which is compared where it is known.
func (r *remote) manifest(ctx context.Context, p place, what string) (data []byte, digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.stall)
	defer cancel()
	res, err := r.get(ctx, p, "manifests", what, http.Header{"Accept": {strings.Join([]string{ociManifest, ociIndex, dockerManifest, dockerList}, ", ")}})
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	if data, err = small(res.Body, maxManifest); err != nil {
		return nil, "", unreachable(p, err)
	}
	digest = digestOf(data)
	if isDigest(what) && digest != what {
		return nil, "", refused("the manifest %s has the digest %s", what, digest)
	}
	return data, digest, nil
}

// config returns a small blob.
func (r *remote) config(ctx context.Context, p place, want descriptor) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.stall)
	defer cancel()
	res, err := r.get(ctx, p, "blobs", want.Digest, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := small(res.Body, want.Size)
	if err != nil {
		return nil, unreachable(p, err)
	}
	if got := digestOf(data); got != want.Digest {
		return nil, refused("the config %s has the digest %s", want.Digest, got)
	}
	return data, nil
}
