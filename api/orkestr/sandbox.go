// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of a lifetime, in seconds.
const (
	leastLife   = 10
	defaultLife = 600
)

// persist is where a volume is.
const persist = "/persist"

// What becomes of a sandbox at its end.
const (
	onTimeoutKill  = "kill"
	onTimeoutPause = "pause"
)

// sandboxShape is a sandbox as the SDK reads it.
type sandboxShape struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"`
	Template   string            `json:"template"` // as it was asked for
	Network    string            `json:"network"`
	CPU        float64           `json:"cpu"`
	MemoryMB   int               `json:"memory_mb"`
	Region     string            `json:"region"`
	CreatedAt  time.Time         `json:"created_at"`
	ExpiresAt  time.Time         `json:"expires_at"` // the SDK knows of no sandbox without: never is a year that is far
	OnTimeout  string            `json:"on_timeout"`
	AutoResume bool              `json:"auto_resume"`
	Preview    bool              `json:"preview_auth"`       // always false: who knows a host's name may see what it serves
	Token      *string           `json:"preview_auth_token"` // always null
	PausedEnd  *time.Time        `json:"paused_expires_at"`
	Node       *string           `json:"node_id"` // always null
	Metadata   map[string]string `json:"metadata"`
	Volume     *string           `json:"volume"`
}

// never is the end of a sandbox that has none.
func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

func (a *API) shape(s *sandbox.Sandbox) sandboxShape {
	out := sandboxShape{
		ID: string(s.ID), Status: statusOf(s.State), Template: s.AskedImage, Network: string(a.Networks.InForce(s.Network).Mode), CPU: s.Limits.CPU, MemoryMB: s.Limits.MemoryMB,
		Region: a.region, CreatedAt: s.CreatedAt.UTC(), ExpiresAt: s.ExpiresAt.UTC(), OnTimeout: onTimeoutKill, AutoResume: s.AutoResume, Metadata: maps.Clone(s.Metadata),
	}
	if t := s.Template; t != nil && t.Name != "" {
		out.Template = t.Name
	}
	if out.Template == "" {
		out.Template = s.Image
	}
	if s.ExpiresAt.IsZero() {
		out.ExpiresAt = never()
	}
	if s.OnExpiry == sandbox.ExpiryPause {
		out.OnTimeout = onTimeoutPause
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	if s.State != sandbox.Running && s.Retention > 0 && !s.StoppedAt.IsZero() {
		out.PausedEnd = new(s.StoppedAt.Add(s.Retention).UTC())
	}
	for _, m := range s.Mounts {
		if m.Path == persist {
			out.Volume = &m.Name
		}
	}
	return out
}

// Statuses of sandboxes.
const (
	statusStarting   = "starting"
	statusRunning    = "running"
	statusPausing    = "pausing"
	statusPaused     = "paused"
	statusResuming   = "resuming"
	statusTerminated = "terminated"
	statusFailed     = "failed"
)

// statusOf is what a state is called. What is stopped is called paused: a resume has it run again, of its files.
func statusOf(s sandbox.State) string {
	switch s {
	case sandbox.Creating, sandbox.Starting:
		return statusStarting
	case sandbox.Running:
		return statusRunning
	case sandbox.Pausing, sandbox.Stopping, sandbox.Archiving:
		return statusPausing
	case sandbox.Paused, sandbox.Stopped, sandbox.Archived:
		return statusPaused
	case sandbox.Resuming, sandbox.Restoring, sandbox.Unarchiving:
		return statusResuming
	case sandbox.Deleting, sandbox.Deleted:
		return statusTerminated
	case sandbox.Failed:
	}
	return statusFailed
}

// statesOf returns the states that a status selects; none: there is no such status.
func statesOf(status string) (all []sandbox.State) {
	for _, s := range sandbox.States() {
		if statusOf(s) == status {
			all = append(all, s)
		}
	}
	return all
}

type createSandbox struct {
	Body struct {
		Template    string            `json:"template"`
		Snapshot    string            `json:"snapshot"`
		Size        string            `json:"size"`
		Network     string            `json:"network"`
		Timeout     *int64            `json:"timeout_seconds"`
		OnTimeout   string            `json:"on_timeout"`
		AutoResume  bool              `json:"auto_resume"`
		PreviewAuth bool              `json:"preview_auth"`
		Env         map[string]string `json:"env"`
		Metadata    map[string]string `json:"metadata"`
		Region      *string           `json:"region"`
		Domains     []string          `json:"allow_domains"`
		Volume      *string           `json:"volume"`
	}
}

func (a *API) createSandbox(ctx context.Context, c *httpapi.Call, in *createSandbox) (sandboxShape, error) {
	r, err := a.request(in)
	if err != nil {
		return sandboxShape{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	undo := func() {}
	if v := in.Body.Volume; v != nil {
		if undo, err = a.volumeFor(ctx, c, *v); err != nil {
			return sandboxShape{}, httpapi.Cause(ctx, err)
		}
		r.Mounts = []volume.Mount{{Volume: *v, Path: persist}}
	}
	s, _, err := a.Sandboxes.Create(ctx, c.Caller, r)
	if err != nil {
		undo()
		return sandboxShape{}, retried(inWords(httpapi.Cause(ctx, err)))
	}
	return a.shape(s), nil
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
	if b.PreviewAuth {
		return engine.CreateRequest{}, unsupported("preview_auth", "is not here: who knows the name of a preview's host, which cannot be guessed, may see it").WithRemedy("leave it out")
	}
	life, err := lifetime(b.Timeout)
	if err != nil {
		return engine.CreateRequest{}, err
	}
	onExpiry := sandbox.ExpiryDelete
	switch b.OnTimeout {
	case "", onTimeoutKill:
	case onTimeoutPause:
		onExpiry = sandbox.ExpiryPause
	default:
		return engine.CreateRequest{}, fault.InvalidField("on_timeout", "%q is neither kill nor pause", sandbox.Clip(b.OnTimeout, 40))
	}
	r := engine.CreateRequest{
		From: b.Snapshot, Env: b.Env, Metadata: b.Metadata, TTL: life, OnExpiry: &onExpiry, AutoResume: &b.AutoResume,
		IdleTimeout: new(time.Duration(0)), // only its end ends it
	}
	if b.Snapshot != "" {
		return r, nil
	}
	if r.Image = b.Template; a.Templates != nil {
		r.Image, r.Template = "", &sandbox.Template{Asked: b.Template}
	}
	if b.Size != "" {
		if r.Limits, err = a.SizeTable().Fill(b.Size, sandbox.Limits{}); err != nil {
			return r, err
		}
	}
	r.Network, err = network(b.Network, b.Domains)
	return r, err
}

// network is what a sandbox may reach; nil: nothing was said of it.
func network(mode string, domains []string) (*sandbox.NetworkPolicy, error) {
	m := sandbox.NetworkMode(mode)
	switch m {
	case "":
		return nil, nil
	case sandbox.NetworkOff, sandbox.NetworkOpen: // the list is for the third
		return &sandbox.NetworkPolicy{Mode: m}, nil
	case sandbox.NetworkRestricted:
	default:
		return nil, fault.InvalidField("network", "%q is not valid; use off, restricted or open", sandbox.Clip(mode, 40))
	}
	p := &sandbox.NetworkPolicy{Mode: m}
	for _, d := range domains { // HTTPS alone, and the names below each
		p.AllowDomains = append(p.AllowDomains, d)
		if !strings.HasPrefix(d, "*.") {
			p.AllowDomains = append(p.AllowDomains, "*."+d)
		}
	}
	if len(domains) > 0 {
		p.AllowPorts = []sandbox.PortRange{{First: 443, Last: 443}}
	}
	return p, nil
}

// here refuses a place that is not this server: where data is kept is a promise.
func (a *API) here(region *string) error {
	if region == nil || *region == a.region {
		return nil
	}
	return unsupported("region", "there is no "+sandbox.Clip(*region, 40)+"; this server is in one place, which is called "+a.region).WithRemedy("leave region out, if it does not matter where it is")
}

// lifetime reads timeout_seconds.
func lifetime(seconds *int64) (time.Duration, error) {
	n := int64(defaultLife)
	if seconds != nil {
		n = *seconds
	}
	if most := int64(sandbox.MaxClock / time.Second); n < leastLife || n > most {
		return 0, fault.InvalidField("timeout_seconds", "%d is outside %d to %d", n, leastLife, most)
	}
	return time.Duration(n) * time.Second, nil
}

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
		if r.States = statesOf(*in.Status); *in.Status == statusTerminated {
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
		out.Sandboxes = append(out.Sandboxes, a.shape(s))
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
	return a.shape(s), nil
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
		s, err := a.Sandboxes.Get(ctx, caller, ref)
		switch {
		case err != nil:
			return nil, err
		case s.State == sandbox.Running:
			return nil, fault.New(fault.State, "the sandbox is running").WithRemedy("use it")
		case s.State == sandbox.Stopped || s.State == sandbox.Archived || s.State == sandbox.Failed:
			return a.Sandboxes.Start(ctx, caller, ref)
		}
		return a.Sandboxes.Resume(ctx, caller, ref)
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
	life, err := lifetime(in.Body.Timeout)
	if err != nil {
		return expires{}, err
	}
	s, err := a.Sandboxes.Get(ctx, c.Caller, in.ID)
	if err != nil {
		return expires{}, err
	}
	if s.State != sandbox.Running {
		return expires{}, fault.New(fault.State, "the sandbox is %s, and has no end while it does not run", statusOf(s.State)).WithRemedy("resume it first")
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
