// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/network/ask"
)

type askNetwork struct {
	Ref  string `path:"id" doc:"the sandbox's id or key"`
	Body v1.AskNetwork
}

func (a *API) askNetwork(ctx context.Context, c *idempotency.Call, in *askNetwork) (v1.NetworkRequest, error) {
	r, state, err := a.Requests.RequestNetwork(ctx, c.Caller, in.Ref, in.Body.AllowPresets, in.Body.AllowDomains, in.Body.Reason)
	if err != nil {
		return v1.NetworkRequest{}, err
	}
	return networkRequestOf(r, string(state)), nil
}

type listNetworkRequests struct {
	Sandbox *string `query:"sandbox" doc:"only those for the sandbox of this id or key"`
}

func (a *API) listNetworkRequests(ctx context.Context, c *idempotency.Call, in *listNetworkRequests) (v1.NetworkRequestList, error) {
	all, err := a.Requests.NetworkRequests(ctx, c.Caller, httpapi.Given(in.Sandbox))
	if err != nil {
		return v1.NetworkRequestList{}, err
	}
	out := v1.NetworkRequestList{Items: make([]v1.NetworkRequest, 0, len(all))}
	for _, r := range all {
		out.Items = append(out.Items, networkRequestOf(r, string(ask.Pending)))
	}
	return out, nil
}

type byNetworkRequest struct {
	Request string `path:"request" doc:"the request's id"`
}

func (a *API) grantNetwork(ctx context.Context, c *idempotency.Call, in *byNetworkRequest) (v1.NetworkRequest, error) {
	r, err := a.Requests.GrantNetwork(ctx, c.Caller, in.Request)
	if err != nil {
		return v1.NetworkRequest{}, err
	}
	return networkRequestOf(r, string(ask.Granted)), nil
}

func (a *API) denyNetwork(ctx context.Context, c *idempotency.Call, in *byNetworkRequest) (v1.NetworkRequest, error) {
	r, err := a.Requests.DenyNetwork(ctx, c.Caller, in.Request)
	if err != nil {
		return v1.NetworkRequest{}, err
	}
	return networkRequestOf(r, "denied"), nil
}

func networkRequestOf(r ask.Request, state string) v1.NetworkRequest {
	out := v1.NetworkRequest{
		ID: r.ID, SandboxID: string(r.Sandbox), Sandbox: r.Ref, State: state, AllowPresets: r.Presets, AllowDomains: r.Domains,
		PresetDomains: shape.PresetDomains(r.Names), Reason: r.Why, Actor: r.Actor,
	}
	for _, l := range []*[]string{&out.AllowPresets, &out.AllowDomains} {
		if *l == nil {
			*l = []string{}
		}
	}
	if out.PresetDomains == nil {
		out.PresetDomains = []v1.PresetDomain{}
	}
	if !r.At.IsZero() {
		out.CreatedAt, out.ExpiresAt = new(r.At.UTC()), new(r.Until.UTC())
	}
	return out
}
