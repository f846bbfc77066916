// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"maps"
	"net/http"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// sandboxShape is a sandbox by the SDK's model, whose fields of numbers and texts are never null.
type sandboxShape struct {
	ID           string            `json:"id"`
	UserName     string            `json:"user_name"` // the project: nobody else has sandboxes here
	Status       string            `json:"status"`
	Image        string            `json:"image"`
	Workspace    string            `json:"workspace_path"`
	CreatedAt    time.Time         `json:"created_at"`
	LastActivity *time.Time        `json:"last_activity_at"`
	StoppedAt    *time.Time        `json:"stopped_at"`
	MemoryMB     int               `json:"memory_mb"`
	CPUCores     float64           `json:"cpu_cores"`
	DiskMB       int               `json:"disk_mb"`
	IdleTimeout  int64             `json:"idle_timeout_seconds"` // 0: never
	ExecCount    int64             `json:"exec_count"`
	SessionKey   *string           `json:"session_key"`
	Metadata     map[string]string `json:"metadata"`
	Mounts       []struct{}        `json:"mounts"` // always empty: there are none of object stores
	egressShape
}

func (a *API) shape(s *sandbox.Sandbox) sandboxShape {
	out := sandboxShape{
		ID: UUID(s.ID), UserName: s.Project, Status: string(s.State), Image: s.AskedImage, Workspace: sandbox.Workspace,
		CreatedAt: s.CreatedAt.UTC(), LastActivity: timeOf(s.LastActivity), StoppedAt: timeOf(s.StoppedAt),
		MemoryMB: s.Limits.MemoryMB, CPUCores: s.Limits.CPU, DiskMB: s.Limits.DiskMB, IdleTimeout: int64(s.IdleTimeout / time.Second),
		ExecCount: s.ExecCount, Metadata: maps.Clone(s.Metadata), Mounts: []struct{}{}, egressShape: a.egressOf(s),
	}
	if out.Image == "" {
		out.Image = s.Image
	}
	if s.Key != "" {
		out.SessionKey = &s.Key
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	return out
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// byRef is the input of operations that need nothing but a sandbox.
type byRef struct {
	ID string `path:"id"`
}

// do does one verb of the engine's with a sandbox, and answers with the sandbox.
func (a *API) do(ctx context.Context, c *httpapi.Call, id string, verb func(ctx context.Context, ref string) (*sandbox.Sandbox, error)) (sandboxShape, error) {
	ref, err := refOf(id)
	if err != nil {
		return sandboxShape{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	s, err := verb(ctx, ref)
	if err != nil {
		return sandboxShape{}, inWords(httpapi.Cause(ctx, err))
	}
	return a.shape(s), nil
}

type sandboxList struct {
	Items []sandboxShape `json:"items"`
}

// listSandboxes lists all of them: the SDK knows of no next page.
func (a *API) listSandboxes(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (sandboxList, error) {
	out := sandboxList{Items: []sandboxShape{}}
	r := engine.SandboxesRequest{Limit: engine.MaxPage}
	for {
		page, err := a.Sandboxes.List(ctx, c.Caller, r)
		if err != nil {
			return sandboxList{}, err
		}
		for _, s := range page.Items {
			out.Items = append(out.Items, a.shape(s))
		}
		if page.Next == "" {
			return out, nil
		}
		if len(out.Items) >= maxSandboxes {
			return sandboxList{}, fault.New(fault.TooLarge, "there are more than %d sandboxes", maxSandboxes).WithRemedy("list them by GET /v1/sandboxes, which has pages")
		}
		r.Cursor = page.Next
	}
}

// maxSandboxes bounds a list.
const maxSandboxes = 10_000

// limits are the fields of requests that say how much a sandbox may use; nil: nothing was said.
type limits struct {
	CPU      *float64 `json:"cpu_cores"`
	MemoryMB *int     `json:"memory_mb"`
	DiskMB   *int     `json:"disk_mb"`
	Idle     *int64   `json:"idle_timeout_seconds"`
}

// idle returns the idle time that is asked for.
func (l *limits) idle() (*time.Duration, error) {
	if l.Idle == nil {
		return nil, nil
	}
	const most = int64(sandbox.MaxClock / time.Second)
	if s := *l.Idle; s < 0 || s > most {
		return nil, fault.InvalidField("idle_timeout_seconds", "%d is outside 0 to %d", s, most)
	}
	d := time.Duration(*l.Idle) * time.Second
	return &d, nil
}

type createSandbox struct {
	Body struct {
		Image      string            `json:"image"`
		Metadata   map[string]string `json:"metadata"`
		SessionKey *string           `json:"session_key"`
		Env        map[string]string `json:"env_vars"`
		Mounts     []any             `json:"mounts"`
		limits
		egressAsked
	}
}

func (a *API) createSandbox(ctx context.Context, c *httpapi.Call, in *createSandbox) (sandboxShape, error) {
	b := &in.Body
	if len(b.Mounts) > 0 {
		return sandboxShape{}, unsupported("mounts", "object stores are not mounted here").
			WithRemedy("copy what is needed into the sandbox by upload_file, or mount a volume by POST /v1/sandboxes")
	}
	idle, err := b.idle()
	if err != nil {
		return sandboxShape{}, err
	}
	r := engine.CreateRequest{
		Image: b.Image, Key: httpapi.Given(b.SessionKey), Env: b.Env, Metadata: b.Metadata, IdleTimeout: idle,
		Limits: sandbox.Limits{CPU: given(b.CPU), MemoryMB: given(b.MemoryMB), DiskMB: given(b.DiskMB)},
	}
	if r.Network, err = b.policy(); err != nil {
		return sandboxShape{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	s, created, err := a.Sandboxes.Create(ctx, c.Caller, r)
	if err != nil {
		return sandboxShape{}, inWords(httpapi.Cause(ctx, err))
	}
	if !created {
		c.Status = http.StatusOK
	}
	return a.shape(s), nil
}

func given[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}

// unsupported returns the error about a field that asks for what is not here.
func unsupported(field, why string) *fault.Error {
	e := fault.As(fault.InvalidField(field, "%s", why))
	e.Code = fault.Unsupported
	return e
}

// inWords has an error about fields of the engine's speak of the SDK's.
func inWords(err error) error {
	var sp httpapi.Spellings
	for own, theirs := range map[string]string{
		"key": "session_key", "env": "env_vars", "limits.cpu": "cpu_cores", "limits.memory_mb": "memory_mb", "limits.disk_mb": "disk_mb", "network": "requested_egress_policy",
		"network.allow_domains": "requested_egress_policy.allowed_domains", "network.allow_cidrs": "requested_egress_policy.allowed_cidrs",
	} {
		sp.Wrote(own, theirs)
	}
	return sp.Rename(err)
}

func (a *API) getSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (sandboxShape, error) {
	return a.do(ctx, c, in.ID, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		return a.Sandboxes.Get(ctx, c.Caller, ref)
	})
}

type updateSandbox struct {
	ID   string `path:"id"`
	Body struct {
		Metadata map[string]string `json:"metadata"`
		Env      map[string]string `json:"env_vars"`
		Image    *string           `json:"image"`
		limits
		egressAsked
	}
}

func (a *API) updateSandbox(ctx context.Context, c *httpapi.Call, in *updateSandbox) (sandboxShape, error) {
	b := &in.Body
	if b.Image != nil {
		return sandboxShape{}, unsupported("image", "a sandbox keeps the image that it was made of").WithRemedy("create another sandbox")
	}
	idle, err := b.idle()
	if err != nil {
		return sandboxShape{}, err
	}
	p := update.Patch{IdleTimeout: idle, CPU: b.CPU, MemoryMB: b.MemoryMB, DiskMB: b.DiskMB, KeepHeaders: true}
	if b.Metadata != nil {
		p.Metadata = &b.Metadata
	}
	if b.Env != nil {
		p.Env = &b.Env
	}
	if p.Network, err = b.policy(); err != nil {
		return sandboxShape{}, err
	}
	if b.asksDefault() {
		p.Network = new(a.Networks.DefaultNetwork())
	}
	return a.do(ctx, c, in.ID, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		return a.Sandboxes.Update(ctx, c.Caller, ref, p)
	})
}

func (a *API) deleteSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (httpapi.None, error) {
	ref, err := refOf(in.ID)
	if err != nil {
		return httpapi.None{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	return httpapi.None{}, httpapi.Cause(ctx, a.Sandboxes.Delete(ctx, c.Caller, ref))
}

func (a *API) stopSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (sandboxShape, error) {
	return a.do(ctx, c, in.ID, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		return a.Sandboxes.Stop(ctx, c.Caller, ref)
	})
}

// resumeSandbox starts a stopped sandbox, and has a paused one go on.
func (a *API) resumeSandbox(ctx context.Context, c *httpapi.Call, in *byRef) (sandboxShape, error) {
	return a.do(ctx, c, in.ID, func(ctx context.Context, ref string) (*sandbox.Sandbox, error) {
		s, err := a.Sandboxes.Get(ctx, c.Caller, ref)
		switch {
		case err != nil:
			return nil, err
		case s.State == sandbox.Paused:
			return a.Sandboxes.Resume(ctx, c.Caller, ref)
		}
		return a.Sandboxes.Start(ctx, c.Caller, ref)
	})
}
