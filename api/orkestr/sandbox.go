// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/orkestrterms"
	"sandpit.dev/engine"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// defaultLife is that of a sandbox of which nothing is said, in seconds.
const defaultLife = 600

// sandboxShape is a sandbox as the SDK reads it.
type sandboxShape struct {
	orkestrterms.Sandbox
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt time.Time  `json:"expires_at"` // the SDK knows of no sandbox without: never is a year that is far
	Preview   bool       `json:"preview_auth"`
	Token     *string    `json:"preview_auth_token"` // null, too, for who may not use it
	PausedEnd *time.Time `json:"paused_expires_at"`
	Node      *string    `json:"node_id"` // always null
}

// never is the end of a sandbox that has none.
func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

func (a *API) shape(c access.Caller, s *sandbox.Sandbox) sandboxShape {
	out := sandboxShape{Sandbox: orkestrterms.Of(s, a.Networks, a.region), CreatedAt: s.CreatedAt.UTC(), ExpiresAt: s.ExpiresAt.UTC()}
	if s.ExpiresAt.IsZero() {
		out.ExpiresAt = never()
	}
	if key := s.Previews.Key; key != "" {
		out.Preview = true
		if c.Require(access.SandboxesWrite) == nil {
			out.Token = new(a.previews.SandboxToken(s.Project, string(s.ID), key))
		}
	}
	if s.State != sandbox.Running && s.Retention > 0 && !s.StoppedAt.IsZero() {
		out.PausedEnd = new(s.StoppedAt.Add(s.Retention).UTC())
	}
	return out
}

// statesOf returns the states that a status selects; none: there is no such status.
func statesOf(status string) (all []sandbox.State) {
	for _, s := range sandbox.States() {
		if orkestrterms.Status(s) == status {
			all = append(all, s)
		}
	}
	return all
}

type createSandbox struct {
	Body struct {
		orkestrterms.Create
		Snapshot    string `json:"snapshot"`
		PreviewAuth bool   `json:"preview_auth"`
	}
}

func (a *API) createSandbox(ctx context.Context, c *httpapi.Call, in *createSandbox) (sandboxShape, error) {
	r, err := a.request(in)
	if err != nil {
		return sandboxShape{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	s, err := orkestrterms.Make(ctx, &a.Services, c.Caller, r, in.Body.Volume)
	if err != nil {
		return sandboxShape{}, retried(inWords(httpapi.Cause(ctx, err)))
	}
	return a.shape(c.Caller, s), nil
}

// request is what the engine is asked for.
func (a *API) request(in *createSandbox) (engine.CreateRequest, error) {
	b := &in.Body
	if (b.Template == "") == (b.Snapshot == "") {
		return engine.CreateRequest{}, fault.InvalidField("template", "is given with a snapshot, or neither is; give one of them")
	}
	if err := a.here(b.Region); err != nil {
		return engine.CreateRequest{}, err
	}
	if b.Timeout == nil {
		b.Timeout = new(int64(defaultLife))
	}
	r, err := b.Create.Request(&a.Services, b.Snapshot)
	if _, ok := errors.AsType[orkestrterms.TooLarge](err); ok {
		err = coded(codePlan, http.StatusForbidden, err)
	}
	r.Previews = ports.PreviewsChange{Token: &b.PreviewAuth}.Of(r.Previews)
	return r, err
}

// here refuses a place that is not this server.
func (a *API) here(region *string) error { return orkestrterms.Here(region, a.region) }

// retried has the SDK try again what had no room: nothing was made.
func retried(err error) error {
	if e := fault.As(err); e.Code == fault.Unavailable || e.Code == fault.Full && e.Disk != fault.SandboxDisk || e.Code == fault.Exhausted && e.Retry > 0 {
		return coded(codeFull, http.StatusServiceUnavailable, err)
	}
	return err
}

// inWords has an error about fields of the engine's speak of the SDK's.
func inWords(err error) error {
	var sp httpapi.Spellings
	for own, theirs := range map[string]string{
		"image": "template", "from_snapshot": "snapshot", "ttl_seconds": "timeout_seconds", "network.allow_domains": "allow_domains", "network.mode": "network", "mounts": "volume", "volumes": "volume",
	} {
		sp.Wrote(own, theirs)
	}
	return sp.Rename(err)
}

type listSandboxes struct {
	Limit    *int              `query:"limit"`
	Status   *string           `query:"status"`
	Cursor   *string           `query:"cursor"`
	Metadata map[string]string `query:"metadata.*"`
}

type sandboxPage struct {
	Sandboxes []sandboxShape `json:"sandboxes"`
	Next      *string        `json:"next_cursor"`
}

// maxPage is how many sandboxes a page has.
const maxPage = 200

func (a *API) listSandboxes(ctx context.Context, c *httpapi.Call, in *listSandboxes) (sandboxPage, error) {
	r := engine.SandboxesRequest{Limit: 50, Cursor: httpapi.Given(in.Cursor), Metadata: in.Metadata}
	if in.Limit != nil {
		if r.Limit = *in.Limit; r.Limit < 1 || r.Limit > maxPage {
			return sandboxPage{}, fault.InvalidField("limit", "%d is outside 1 to %d", r.Limit, maxPage)
		}
	}
	out := sandboxPage{Sandboxes: []sandboxShape{}}
	if in.Status != nil {
		if r.States = statesOf(*in.Status); *in.Status == orkestrterms.Terminated {
			return out, nil // nothing is kept of what is gone
		} else if r.States == nil {
			return sandboxPage{}, fault.InvalidField("status", "%q is not a status of sandboxes", sandbox.Clip(*in.Status, 40))
		}
	}
	page, err := a.Sandboxes.List(ctx, c.Caller, r)
	if err != nil {
		return sandboxPage{}, err
	}
	for _, s := range page.Items {
		out.Sandboxes = append(out.Sandboxes, a.shape(c.Caller, s))
	}
	if page.Next != "" {
		out.Next = &page.Next
	}
	return out, nil
}

// byRef is the input of operations that need nothing but a sandbox.
type byRef struct {
	ID string `path:"id"`
}

// do does one verb of the engine's with a sandbox, and answers with the sandbox.
func (a *API) do(ctx context.Context, c *httpapi.Call, ref string, verb func(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)) (sandboxShape, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	s, err := verb(ctx, c.Caller, ref)
	if err != nil {
		return sandboxShape{}, inWords(httpapi.Cause(ctx, err))
	}
	return a.shape(c.Caller, s), nil
}

func (a *API) getSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (sandboxShape, error) {
	return a.do(ctx, c, in.ID, a.Sandboxes.Get)
}

// deleteSandbox may be asked for twice.
func (a *API) deleteSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (httpapi.None, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	err := httpapi.Cause(ctx, a.Sandboxes.Delete(ctx, c.Caller, in.ID))
	if fault.Is(err, fault.NotFound) {
		if _, gone := a.Activity.Departed(ctx, c.Caller, in.ID); gone == nil {
			err = nil
		}
	}
	return httpapi.None{}, err
}

type paused struct {
	ID string `json:"sandbox_id"`
}

func (a *API) pauseSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (paused, error) {
	s, err := a.do(ctx, c, in.ID, a.Sandboxes.Pause)
	return paused{s.ID}, err
}

// resumeSandbox has what is paused go on, and starts what is stopped.
func (a *API) resumeSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (sandboxShape, error) {
	out, err := a.do(ctx, c, in.ID, func(ctx context.Context, caller access.Caller, ref string) (*sandbox.Sandbox, error) {
		if s, err := a.Sandboxes.Get(ctx, caller, ref); err == nil && s.State == sandbox.Running {
			return nil, fault.New(fault.State, "the sandbox is running").WithRemedy("use it")
		}
		return orkestrterms.Resume(ctx, a.Sandboxes, caller, ref)
	})
	return out, retried(err)
}

type setTimeout struct {
	ID   string `path:"id"`
	Body struct {
		Timeout *int64 `json:"timeout_seconds"`
	}
}

type expires struct {
	At time.Time `json:"expires_at"`
}

// setTimeout moves the end of a sandbox that runs.
func (a *API) setTimeout(ctx context.Context, c *httpapi.Call, in *setTimeout) (expires, error) {
	if in.Body.Timeout == nil {
		return expires{}, fault.InvalidField("timeout_seconds", "is missing")
	}
	life, err := orkestrterms.Life(*in.Body.Timeout)
	if err != nil {
		return expires{}, err
	}
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.ID)
	if err != nil {
		return expires{}, err
	}
	if s.State != sandbox.Running {
		return expires{}, fault.New(fault.State, "the sandbox is %s, and has no end while it does not run", orkestrterms.Status(s.State)).WithRemedy("resume it first")
	}
	out, err := a.do(ctx, c, string(s.ID), func(ctx context.Context, caller access.Caller, ref string) (*sandbox.Sandbox, error) {
		return a.Sandboxes.Update(ctx, caller, ref, update.Patch{TTL: &life})
	})
	return expires{out.ExpiresAt}, err
}

// names sorts and compacts a list of names.
func names(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return append([]string{}, slices.Compact(all)...)
}
