// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"strconv"

	"sandpit.dev/api/daytona/release"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// byRef is the input of operations that need nothing but a sandbox, by its id or name.
type byRef struct {
	Ref string `path:"id"`
}

func (a *API) getSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (*sandbox.Sandbox, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if fault.Is(err, fault.NotFound) && release.AsksForDeleted(release.Of(c.R)) {
		if was := a.gone.of(c.Caller.Project, in.Ref); was != nil {
			return was, nil
		}
	}
	return s, err
}

func (a *API) deleteSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (*sandbox.Sandbox, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return nil, err
	}
	was := *s
	was.State = sandbox.Deleted
	err = a.Sandboxes.Delete(ctx, c.Caller, string(s.ID))
	if err == nil && release.AsksForDeleted(release.Of(c.R)) {
		a.gone.add(&was)
	}
	return &was, err
}

func (a *API) startSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (*sandbox.Sandbox, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if err == nil && s.State == sandbox.Paused {
		return a.Sandboxes.Resume(ctx, c.Caller, in.Ref)
	}
	return a.Sandboxes.Start(ctx, c.Caller, in.Ref)
}

type stopSandbox struct {
	Ref   string `path:"id"`
	Force *bool  `query:"force"`
}

func (a *API) stopSandbox(ctx context.Context, c *httpapi.Call, in *stopSandbox) (*sandbox.Sandbox, error) {
	if given(in.Force) {
		return a.Sandboxes.StopWithin(ctx, c.Caller, in.Ref, 0)
	}
	return a.Sandboxes.Stop(ctx, c.Caller, in.Ref)
}

func (a *API) pauseSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (*sandbox.Sandbox, error) {
	return a.Sandboxes.Pause(ctx, c.Caller, in.Ref)
}

func (a *API) archiveSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (*sandbox.Sandbox, error) {
	return a.Sandboxes.Archive(ctx, c.Caller, in.Ref)
}

type resizeSandbox struct {
	Ref  string `path:"id"`
	Body wire.Resize
}

func (a *API) resizeSandbox(ctx context.Context, c *httpapi.Call, in *resizeSandbox) (*sandbox.Sandbox, error) {
	b, l := &in.Body, daytonaterms.Limits(given(in.Body.CPU), given(in.Body.Memory), given(in.Body.Disk))
	p := update.Patch{CPU: b.CPU}
	if b.Memory != nil {
		p.MemoryMB = &l.MemoryMB
	}
	if b.Disk != nil {
		p.DiskMB = &l.DiskMB
	}
	return a.Sandboxes.Update(ctx, c.Caller, in.Ref, p)
}

type replaceLabels struct {
	Ref  string `path:"id"`
	Body wire.Labels
}

func (a *API) replaceLabels(ctx context.Context, c *httpapi.Call, in *replaceLabels) (wire.Labels, error) {
	labels := in.Body.Labels
	if labels == nil {
		labels = make(map[string]string)
	}
	s, err := a.Sandboxes.Update(ctx, c.Caller, in.Ref, update.Patch{Metadata: &labels})
	if err != nil {
		return wire.Labels{}, err
	}
	return wire.Labels{Labels: a.item(c.R, s).Labels}, nil
}

// withValue is the input of operations whose value is in their path.
type withValue struct {
	Ref   string `path:"id"`
	Value string `path:"value"`
}

func (a *API) setPublic(ctx context.Context, c *httpapi.Call, in *withValue) (*sandbox.Sandbox, error) {
	public, err := strconv.ParseBool(in.Value)
	if err != nil {
		return nil, fault.InvalidField("isPublic", "%q is neither true nor false", sandbox.Clip(in.Value, 40))
	}
	if _, err := a.Ports.SetPreviews(ctx, c.Caller, in.Ref, ports.PreviewsChange{Public: &public}); err != nil {
		return nil, err
	}
	return a.Sandboxes.Get(ctx, c.Caller, in.Ref)
}

type setNetwork struct {
	Ref  string `path:"id"`
	Body wire.Network
}

func (a *API) setNetwork(ctx context.Context, c *httpapi.Call, in *setNetwork) (*sandbox.Sandbox, error) {
	p, bad := a.network(in.Body.BlockAll, in.Body.AllowList, in.Body.Domains)
	if len(bad) > 0 {
		return nil, fault.InvalidFields(bad...)
	}
	return a.Sandboxes.Update(ctx, c.Caller, in.Ref, update.Patch{Network: p, KeepHeaders: true})
}

func (a *API) toolboxAddress(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Address, error) {
	if _, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref); err != nil {
		return wire.Address{}, err
	}
	return wire.Address{URL: toolboxURL(c.R)}, nil
}
