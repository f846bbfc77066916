// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/api/daytona/release"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Previews makes addresses of what ports serve.
type Previews interface {
	// Token proves the right that a preview is.
	Token(p ports.Preview) string
	// Addresses returns a preview's addresses as the sender of r reaches them: the one to show, and the one by path.
	Addresses(r *http.Request, id string, port int) (address, path string)
	// HostToken returns the token of a link that is on record, and LinkAddress the address of a preview by it; "" where the
	// sender of r reaches none.
	HostToken(id string) string
	LinkAddress(r *http.Request, token string, port int) string
	// LinkPath is the same by path, where every client reaches it.
	LinkPath(r *http.Request, token string, port int) string
}

// Bounds of signed addresses.
const (
	defaultSigned = time.Minute
	maxSigned     = 24 * time.Hour
	// standing is how long the token of a standard address is good: clients ask for it anew with each address.
	standing = time.Hour
	// toolboxPort is where the toolbox is in Daytona's own sandboxes.
	toolboxPort = 2280
)

type byPort struct {
	Ref  string `path:"id"`
	Port string `path:"port"`
}

func (in *byPort) port() (int, error) {
	n, err := strconv.Atoi(in.Port)
	if err != nil || n < 1 || n > 65535 {
		return 0, fault.InvalidField("port", "%q is outside 1 to 65535", sandbox.Clip(in.Port, 20))
	}
	return n, nil
}

func (a *API) previewURL(ctx context.Context, c *httpapi.Call, in *byPort) (wire.Preview, error) {
	port, err := in.port()
	if err != nil {
		return wire.Preview{}, err
	}
	p, err := a.Ports.CreatePreview(ctx, c.Caller, in.Ref, port, standing)
	if err != nil {
		return wire.Preview{}, err
	}
	address, path := a.previews.Addresses(c.R, string(p.Sandbox), p.Port)
	switch {
	case port == toolboxPort && release.ToolboxByPreview(release.Of(c.R)):
		address = toolboxURL(c.R) + "/" + string(p.Sandbox)
	case !resolves(address):
		address = path
	}
	return wire.Preview{SandboxID: string(p.Sandbox), URL: address, Token: a.previews.Token(p)}, nil
}

// resolves reports whether programs find the host of an address. Names below localhost are found by browsers, and by few
// resolvers: clients are programs.
func resolves(address string) bool {
	u, err := url.Parse(address)
	return err == nil && !strings.HasSuffix(u.Hostname(), ".localhost")
}

type signedURL struct {
	byPort
	Seconds *float64 `query:"expiresInSeconds"`
}

// signedURL makes a link that is on record: by the name of a host where clients reach one, else by path.
func (a *API) signedURL(ctx context.Context, c *httpapi.Call, in *signedURL) (wire.SignedPreview, error) {
	port, err := in.port()
	if err != nil {
		return wire.SignedPreview{}, err
	}
	life := defaultSigned
	if s := in.Seconds; s != nil {
		if !(*s >= 1 && *s <= maxSigned.Seconds()) {
			return wire.SignedPreview{}, fault.InvalidField("expiresInSeconds", "%g is outside 1 to %d", *s, int(maxSigned.Seconds()))
		}
		life = time.Duration(*s * float64(time.Second))
	}
	l, err := a.Ports.CreateLink(ctx, c.Caller, in.Ref, port, life)
	if err != nil {
		return wire.SignedPreview{}, err
	}
	out := wire.SignedPreview{SandboxID: string(l.Sandbox), Port: port, Token: a.previews.HostToken(l.ID)}
	if out.URL = a.previews.LinkAddress(c.R, out.Token, port); out.URL == "" || !resolves(out.URL) {
		out.URL = a.previews.LinkPath(c.R, out.Token, port)
	}
	return out, nil
}

type expireSigned struct {
	byPort
	Token string `path:"token"`
}

// expireSigned ends a signed address by its token.
func (a *API) expireSigned(ctx context.Context, c *httpapi.Call, in *expireSigned) (httpapi.None, error) {
	all, err := a.Ports.Links(ctx, c.Caller, in.Ref)
	if err != nil {
		return httpapi.None{}, err
	}
	for _, l := range all {
		if in.Token == a.previews.HostToken(l.ID) {
			return httpapi.None{}, a.Ports.RevokeLink(ctx, c.Caller, in.Ref, l.ID)
		}
	}
	return httpapi.None{}, fault.New(fault.NotFound, "there is no signed address with this token; it may have expired")
}
