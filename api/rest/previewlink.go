// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/ports"
	"sandpit.dev/fault"
)

// previewLinkOperations are those on links to ports that are on record.
func (a *API) previewLinkOperations() []httpapi.Operation {
	return []httpapi.Operation{
		idempotency.Op("getPreviews", "GET /sandboxes/{id}/previews", "Who may see what programs in a sandbox serve, and what Host they see.", http.StatusOK, a.getPreviews),
		idempotency.Op("updatePreviews", "PATCH /sandboxes/{id}/previews", "Change who may see what programs in a sandbox serve, or what Host they see. What is private then is open to nobody without a right to it.", http.StatusOK, a.updatePreviews).
			Example(v1.UpdatePreviews{Host: new("localhost")}),
		idempotency.Op("createPreviewLink", "POST /sandboxes/{id}/preview-links", "Make a link to what a port serves over HTTP that can be listed and revoked. What proves it is in its host's name.", http.StatusCreated, a.createPreviewLink).
			Example(v1.CreatePreviewLink{Port: 8000, ExpiresSeconds: new(int64(86400))}).
			Extend(idempotency.Keyless("a link that was not heard of is listed, and can be revoked")),
		idempotency.Op("listPreviewLinks", "GET /sandboxes/{id}/preview-links", "List a sandbox's links to ports, oldest first. Needs the scope sandboxes:write: whoever sees a link can use it.", http.StatusOK, a.listPreviewLinks),
		idempotency.Op("revokePreviewLink", "DELETE /sandboxes/{id}/preview-links/{link}", "End a link to a port, with what is open by it.", http.StatusNoContent, a.revokePreviewLink),
	}
}

func (a *API) getPreviews(ctx context.Context, c *idempotency.Call, in *byRef) (v1.Previews, error) {
	p, err := a.Ports.PreviewsOf(ctx, c.Caller, in.Ref)
	return a.previewsOf(p), err
}

type updatePreviews struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.UpdatePreviews
}

func (a *API) updatePreviews(ctx context.Context, c *idempotency.Call, in *updatePreviews) (v1.Previews, error) {
	ch, err := previewsChange(&in.Body)
	if err != nil {
		return v1.Previews{}, err
	}
	p, err := a.Ports.SetPreviews(ctx, c.Caller, in.Ref, ch)
	return a.previewsOf(p), err
}

// ownHost is the word for the host that was asked.
const ownHost = "own"

func previewsChange(b *v1.UpdatePreviews) (ch ports.PreviewsChange, err error) {
	var sp httpapi.Spellings
	if v := httpapi.Choice(&sp, "access", b.Access, "private", "public"); v != nil {
		ch.Public = new(*v == "public")
	}
	ch.Ports, ch.Token = b.PublicPorts, b.Token
	if b.Host != nil {
		ch.Host = b.Host
		if *b.Host == ownHost {
			ch.Host = new("")
		} else if *b.Host == "" {
			sp.Add("host", "is empty; it is own, localhost or the name of a host")
		}
	}
	return ch, sp.Err()
}

func (a *API) previewsOf(p ports.Previews) v1.Previews {
	out := v1.Previews{Access: "private", PublicPorts: p.Ports, Host: p.Host, PublicAllowed: p.Allowed}
	if p.Public {
		out.Access = "public"
	}
	if out.PublicPorts == nil {
		out.PublicPorts = []int{}
	}
	if out.Host == "" {
		out.Host = ownHost
	}
	if p.Key != "" && a.previews != nil {
		out.Token = new(a.previews.SandboxToken(p.Project, string(p.Sandbox), p.Key))
	}
	return out
}

type createPreviewLink struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.CreatePreviewLink
}

func (a *API) createPreviewLink(ctx context.Context, c *idempotency.Call, in *createPreviewLink) (v1.PreviewLink, error) {
	if a.previews == nil {
		return v1.PreviewLink{}, fault.New(fault.Unsupported, "this server has no previews")
	}
	var expires time.Duration
	if s := in.Body.ExpiresSeconds; s != nil {
		if most := int64(ports.MaxLink / time.Second); *s < 1 || *s > most {
			return v1.PreviewLink{}, fault.InvalidField("expires_seconds", "%d is outside 1 to %d", *s, most)
		}
		expires = time.Duration(*s) * time.Second
	}
	if in.Body.Port > 0 && a.previews.LinkAddress(c.R, a.previews.HostToken("a"), in.Body.Port) == "" {
		return v1.PreviewLink{}, fault.New(fault.Unsupported, "such a link is the name of a host, and this server has no domain for previews that a client at %s reaches", c.R.Host).
			WithRemedy("set preview.domain, or make a link by createPreview, which has a form by path")
	}
	l, err := a.Ports.CreateLink(ctx, c.Caller, in.Ref, in.Body.Port, expires)
	if err != nil {
		return v1.PreviewLink{}, err
	}
	return a.previewLink(c, l), nil
}

func (a *API) listPreviewLinks(ctx context.Context, c *idempotency.Call, in *byRef) (v1.PreviewLinkList, error) {
	if a.previews == nil {
		return v1.PreviewLinkList{}, fault.New(fault.Unsupported, "this server has no previews")
	}
	all, err := a.Ports.Links(ctx, c.Caller, in.Ref)
	if err != nil {
		return v1.PreviewLinkList{}, err
	}
	out := v1.PreviewLinkList{Items: make([]v1.PreviewLink, 0, len(all))}
	for _, l := range all {
		out.Items = append(out.Items, a.previewLink(c, l))
	}
	return out, nil
}

type revokePreviewLink struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Link string `path:"link" doc:"the link's id"`
}

func (a *API) revokePreviewLink(ctx context.Context, c *idempotency.Call, in *revokePreviewLink) (httpapi.None, error) {
	return httpapi.None{}, a.Ports.RevokeLink(ctx, c.Caller, in.Ref, in.Link)
}

func (a *API) previewLink(c *idempotency.Call, l *ports.Link) v1.PreviewLink {
	token := a.previews.HostToken(l.ID)
	return v1.PreviewLink{
		ID: l.ID, SandboxID: string(l.Sandbox), Port: l.Port, URL: a.previews.LinkAddress(c.R, token, l.Port), Token: token,
		CreatedAt: l.CreatedAt.UTC(), CreatedBy: l.CreatedBy, ExpiresAt: shape.TimeOrNull(l.ExpiresAt),
	}
}
