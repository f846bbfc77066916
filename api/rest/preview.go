// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
)

// Previews makes links; nil in [Options]: the server has none.
type Previews interface {
	// Token proves the right that a preview is.
	Token(p ports.Preview) string
	// Addresses returns a preview's addresses as the sender of r reaches them: the one to
	// show, and the one by path.
	Addresses(r *http.Request, id string, port int) (address, path string)
	// HostToken returns the token of a link that is on record, and LinkAddress the address of a preview by it;
	// "" where the sender of r reaches none.
	HostToken(id string) string
	// SandboxToken returns the token that opens every port of a sandbox, by its key.
	SandboxToken(project, sandbox, key string) string
	LinkAddress(r *http.Request, token string, port int) string
}

type createPreview struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.CreatePreview
}

func (a *API) createPreview(ctx context.Context, c *idempotency.Call, in *createPreview) (v1.Preview, error) {
	if a.previews == nil {
		return v1.Preview{}, fault.New(fault.Unsupported, "this server has no previews")
	}
	var expires time.Duration
	if s := in.Body.ExpiresSeconds; s != nil {
		if most := int64(ports.MaxPreview / time.Second); *s < 1 || *s > most {
			return v1.Preview{}, fault.InvalidField("expires_seconds", "%d is outside 1 to %d", *s, most)
		}
		expires = time.Duration(*s) * time.Second
	}
	p, err := a.Ports.CreatePreview(ctx, c.Caller, in.Ref, in.Body.Port, expires)
	if err != nil {
		return v1.Preview{}, err
	}
	token := a.previews.Token(p)
	address, path := a.previews.Addresses(c.R, string(p.Sandbox), p.Port)
	with := "?sandpit_token=" + url.QueryEscape(token)
	return v1.Preview{
		ID: p.Link, SandboxID: string(p.Sandbox), Port: p.Port, URL: address + with, PathURL: path + with, BaseURL: address,
		Token: token, ExpiresAt: p.ExpiresAt,
	}, nil
}
