// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"strconv"
	"time"

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

// verb is what is done with a sandbox.
type verb func(ctx context.Context, ref string) (*sandbox.Sandbox, error)

// do answers with a sandbox as it is when a verb has ended.
func (a *API) do(ctx context.Context, c *httpapi.Call, ref string, v verb) (wire.Sandbox, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	s, err := v(ctx, ref)
	if err != nil {
		return wire.Sandbox{}, inWords(httpapi.Cause(ctx, err))
	}
	return a.whole(c, s), nil
}

func (a *API) getSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Sandbox, error) {
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return wire.Sandbox{}, err
	}
	return a.whole(c, s), nil
}

func (a *API) deleteSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Sandbox, error) {
	return a.do(ctx, c, in.Ref, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		s, err := a.Sandboxes.Get(ctx, c.Caller, ref)
		if err != nil {
			return nil, err
		}
		gone := *s
		gone.State = sandbox.Deleted
		return &gone, a.Sandboxes.Delete(ctx, c.Caller, string(s.ID))
	})
}

func (a *API) startSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Sandbox, error) {
	return a.do(ctx, c, in.Ref, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		s, err := a.Sandboxes.Get(ctx, c.Caller, ref)
		if err == nil && s.State == sandbox.Paused {
			return a.Sandboxes.Resume(ctx, c.Caller, ref)
		}
		return a.Sandboxes.Start(ctx, c.Caller, ref)
	})
}

type stopSandbox struct {
	Ref   string `path:"id"`
	Force *bool  `query:"force"`
}

func (a *API) stopSandbox(ctx context.Context, c *httpapi.Call, in *stopSandbox) (wire.Sandbox, error) {
	return a.do(ctx, c, in.Ref, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		if given(in.Force) {
			return a.Sandboxes.StopWithin(ctx, c.Caller, ref, 0)
		}
		return a.Sandboxes.Stop(ctx, c.Caller, ref)
	})
}

func (a *API) pauseSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Sandbox, error) {
	return a.do(ctx, c, in.Ref, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		return a.Sandboxes.Pause(ctx, c.Caller, ref)
	})
}

func (a *API) archiveSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Sandbox, error) {
	return a.do(ctx, c, in.Ref, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		return a.Sandboxes.Archive(ctx, c.Caller, ref)
	})
}

// update changes a sandbox.
func (a *API) update(ctx context.Context, c *httpapi.Call, ref string, p update.Patch) (wire.Sandbox, error) {
	return a.do(ctx, c, ref, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		return a.Sandboxes.Update(ctx, c.Caller, ref, p)
	})
}

type resizeSandbox struct {
	Ref  string `path:"id"`
	Body wire.Resize
}

func (a *API) resizeSandbox(ctx context.Context, c *httpapi.Call, in *resizeSandbox) (wire.Sandbox, error) {
	b, l := &in.Body, daytonaterms.Limits(given(in.Body.CPU), given(in.Body.Memory), given(in.Body.Disk))
	p := update.Patch{CPU: b.CPU}
	if b.Memory != nil {
		p.MemoryMB = &l.MemoryMB
	}
	if b.Disk != nil {
		p.DiskMB = &l.DiskMB
	}
	return a.update(ctx, c, in.Ref, p)
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

// minutes reads the value as minutes, at least least.
func (in *withValue) minutes(field string, least float64) (time.Duration, float64, error) {
	m, err := strconv.ParseFloat(in.Value, 64)
	if err != nil || !(m >= least && m <= daytonaterms.MaxMinutes) {
		return 0, 0, fault.InvalidField(field, "%q is not a number of minutes from %g to %g", sandbox.Clip(in.Value, 40), least, daytonaterms.MaxMinutes)
	}
	return daytonaterms.Minutes(m), m, nil
}

func (a *API) setPublic(ctx context.Context, c *httpapi.Call, in *withValue) (wire.Sandbox, error) {
	public, err := strconv.ParseBool(in.Value)
	if err != nil {
		return wire.Sandbox{}, fault.InvalidField("isPublic", "%q is neither true nor false", sandbox.Clip(in.Value, 40))
	}
	return a.do(ctx, c, in.Ref, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		if _, err := a.Ports.SetPreviews(ctx, c.Caller, ref, ports.PreviewsChange{Public: &public}); err != nil {
			return nil, err
		}
		return a.Sandboxes.Get(ctx, c.Caller, ref)
	})
}

// setAutostop and setAutopause are two sides of one clock: the other is off then.
func (a *API) setAutostop(ctx context.Context, c *httpapi.Call, in *withValue) (wire.Sandbox, error) {
	d, _, err := in.minutes("interval", 0)
	if err != nil {
		return wire.Sandbox{}, err
	}
	return a.update(ctx, c, in.Ref, update.Patch{IdleTimeout: &d, OnIdle: new(sandbox.IdleStop)})
}

func (a *API) setAutopause(ctx context.Context, c *httpapi.Call, in *withValue) (wire.Sandbox, error) {
	d, _, err := in.minutes("interval", 0)
	if err != nil {
		return wire.Sandbox{}, err
	}
	return a.update(ctx, c, in.Ref, update.Patch{IdleTimeout: &d, OnIdle: new(sandbox.IdlePause), AutoResume: new(true)})
}

func (a *API) setAutoarchive(ctx context.Context, c *httpapi.Call, in *withValue) (wire.Sandbox, error) {
	d, _, err := in.minutes("interval", 0)
	if err != nil {
		return wire.Sandbox{}, err
	}
	return a.update(ctx, c, in.Ref, update.Patch{ArchiveAfter: &d})
}

func (a *API) setAutodelete(ctx context.Context, c *httpapi.Call, in *withValue) (wire.Sandbox, error) {
	d, m, err := in.minutes("interval", -daytonaterms.MaxMinutes)
	if err != nil {
		return wire.Sandbox{}, err
	}
	p := update.Patch{AutoDelete: new(m == 0), Retention: new(max(d, 0))}
	return a.update(ctx, c, in.Ref, p)
}

func (a *API) setTTL(ctx context.Context, c *httpapi.Call, in *withValue) (wire.Sandbox, error) {
	d, _, err := in.minutes("ttlMinutes", 0)
	if err != nil {
		return wire.Sandbox{}, err
	}
	return a.update(ctx, c, in.Ref, update.Patch{TTL: &d})
}

type setNetwork struct {
	Ref  string `path:"id"`
	Body wire.Network
}

func (a *API) setNetwork(ctx context.Context, c *httpapi.Call, in *setNetwork) (wire.Sandbox, error) {
	p, bad := a.network(in.Body.BlockAll, in.Body.AllowList, in.Body.Domains)
	if len(bad) > 0 {
		return wire.Sandbox{}, fault.InvalidFields(bad...)
	}
	return a.update(ctx, c, in.Ref, update.Patch{Network: p, KeepHeaders: true})
}

func (a *API) toolboxAddress(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Address, error) {
	if _, err := a.Sandboxes.Get(ctx, c.Caller, in.Ref); err != nil {
		return wire.Address{}, err
	}
	return wire.Address{URL: toolboxURL(c.R)}, nil
}
