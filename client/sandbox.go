// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Create creates a sandbox, or returns the one that has the key already; created reports which.
// When it returns, commands can run.
func (c *Client) Create(ctx context.Context, r v1.CreateSandbox) (s *v1.Sandbox, created bool, err error) {
	s = new(v1.Sandbox)
	status, err := c.begin(ctx, request{method: "POST", path: "/sandboxes", body: r}, s)
	if err != nil {
		return nil, false, err
	}
	return s, status == http.StatusCreated, nil
}

// Get returns a sandbox.
func (c *Client) Get(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "GET", path: of(ref, "")})
}

// Update changes the fields that r sets.
func (c *Client) Update(ctx context.Context, ref string, r v1.UpdateSandbox) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "PATCH", path: of(ref, ""), body: r})
}

// Rename changes the key of a sandbox. A key in use is fault.Exists; the key that the sandbox has
// already is not an error. The request names the sandbox by its id, so that it can be
// sent again when it is not known what became of it.
func (c *Client) Rename(ctx context.Context, ref, key string) (*v1.Sandbox, error) {
	s, err := c.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	return c.Update(ctx, s.ID, v1.UpdateSandbox{Key: &key})
}

// Start starts a stopped sandbox. Starting one that runs is not an error.
func (c *Client) Start(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/start")})
}

// Stop ends a sandbox's processes and keeps its files. Stopping one that is stopped is not an
// error.
func (c *Client) Stop(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/stop")})
}

// StopWithin is Stop with a grace in which its processes may end by themselves, up to 10 minutes, instead of the
// server's own. Zero kills them at once.
func (c *Client) StopWithin(ctx context.Context, ref string, grace time.Duration) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/stop"), body: v1.StopSandbox{GraceSeconds: new(grace.Seconds())}})
}

// Restart stops a sandbox and starts it: its processes end and its files stay. One that is stopped
// or paused runs after. A server that is so old that its restart empties the disk is not made to:
// the error is fault.Unsupported, and nothing has changed.
func (c *Client) Restart(ctx context.Context, ref string) (*v1.Sandbox, error) {
	// Such a server refuses any parameter.
	s, err := c.sandbox(ctx, request{method: "POST", path: of(ref, "/restart"), query: url.Values{keepDisk: {"true"}}})
	if e, ok := errors.AsType[*fault.Error](err); ok && slices.ContainsFunc(e.Fields, func(f fault.Field) bool { return f.Name == keepDisk }) {
		return nil, fault.New(fault.Unsupported, "the restart of this server empties the disk of the sandbox %s, so it was not asked for", ref).
			WithRemedy("stop it and start it, which keeps its files, or update the server; for an empty disk roll it back to base")
	}
	return s, err
}

// keepDisk is the parameter of a restart that older servers do not know.
const keepDisk = "keep_disk"

// Reset replaces a sandbox's disk by an empty one: its processes end and its files are lost,
// except volumes and snapshots. Its id and key stay. A stopped sandbox stays stopped.
func (c *Client) Reset(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/reset")})
}

// Archive packs the disk of a stopped sandbox, and has it kept elsewhere: it takes no room where
// sandboxes run. Start brings it back. Archiving one that is archived is not an error; one that
// runs is fault.State.
func (c *Client) Archive(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/archive")})
}

// Pause freezes a sandbox's processes and keeps their memory. Its meter and the timeouts of its
// commands stop, too. Pausing one that is paused is not an error.
func (c *Client) Pause(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/pause")})
}

// Resume lets the processes of a paused sandbox continue. Resuming one that runs is not an error.
func (c *Client) Resume(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/resume")})
}

// Delete deletes a sandbox and everything in it. Its named snapshots stay.
func (c *Client) Delete(ctx context.Context, ref string) error {
	_, err := c.call(ctx, request{method: "DELETE", path: of(ref, "")}, nil)
	return err
}

func (c *Client) sandbox(ctx context.Context, r request) (*v1.Sandbox, error) {
	s := new(v1.Sandbox)
	if _, err := c.call(ctx, r, s); err != nil {
		return nil, err
	}
	return s, nil
}

// ListQuery selects sandboxes. Zero fields select all.
type ListQuery struct {
	Status   []string          // these states
	Image    string            // by the image's own name
	Search   string            // a part of id, key or image
	Metadata map[string]string // all of these labels
	SortBy   string            // created_at, last_activity_at, expires_at, cpu_cores, memory_mb or disk_mb; empty: created_at
	Oldest   bool              // oldest, or least, first; else newest, or greatest
	Limit    int               // most of one page, 1 to 500; zero: the server's default
	Cursor   string            // NextCursor of the page before

	// Both ends are included; a zero one is open.
	CreatedFrom, CreatedTo   time.Time
	ActivityFrom, ActivityTo time.Time // of the last use
	ExpiresFrom, ExpiresTo   time.Time // what never expires is in none
	CPUFrom, CPUTo           float64   // cores
	MemoryFrom, MemoryTo     int       // MiB
	DiskFrom, DiskTo         int       // MiB
}

// spans sets the ends that are not open.
func (q *ListQuery) spans(v url.Values) {
	for name, at := range map[string]time.Time{
		"created_from": q.CreatedFrom, "created_to": q.CreatedTo, "activity_from": q.ActivityFrom, "activity_to": q.ActivityTo,
		"expires_from": q.ExpiresFrom, "expires_to": q.ExpiresTo,
	} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, n := range map[string]float64{
		"cpu_cores_from": q.CPUFrom, "cpu_cores_to": q.CPUTo, "memory_mb_from": float64(q.MemoryFrom), "memory_mb_to": float64(q.MemoryTo),
		"disk_mb_from": float64(q.DiskFrom), "disk_mb_to": float64(q.DiskTo),
	} {
		if n != 0 {
			v.Set(name, strconv.FormatFloat(n, 'g', -1, 64))
		}
	}
}

// ListPage returns one page.
func (c *Client) ListPage(ctx context.Context, q ListQuery) (*v1.SandboxPage, error) {
	v := make(url.Values)
	if len(q.Status) > 0 {
		v.Set("status", strings.Join(q.Status, ","))
	}
	set(v, "image", q.Image)
	set(v, "search", q.Search)
	set(v, "cursor", q.Cursor)
	for name, value := range q.Metadata {
		v.Set("metadata."+name, value)
	}
	set(v, "sort_by", q.SortBy)
	q.spans(v)
	if q.Oldest {
		v.Set("sort_order", "asc")
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	p := new(v1.SandboxPage)
	if _, err := c.call(ctx, request{method: "GET", path: "/sandboxes", query: v}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// List returns all sandboxes that match, and fetches each page when it is needed. The sequence
// ends after an error.
func (c *Client) List(ctx context.Context, q ListQuery) iter.Seq2[*v1.Sandbox, error] {
	return all(q.Cursor, func(cursor string) ([]v1.Sandbox, *string, error) {
		q := q
		q.Cursor = cursor
		p, err := c.ListPage(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		return p.Items, p.NextCursor, nil
	})
}

// ActivityQuery selects events. Zero fields select all.
type ActivityQuery struct {
	Types     []string // these types
	ProcessID string   // only what is about this command
	Oldest    bool     // oldest first; else newest
	Limit     int      // most of one page, 1 to 200; zero: the server's default
	Cursor    string   // NextCursor of the page before
}

// ActivityPage returns one page of what happened to a sandbox.
func (c *Client) ActivityPage(ctx context.Context, ref string, q ActivityQuery) (*v1.EventPage, error) {
	v := make(url.Values)
	if len(q.Types) > 0 {
		v.Set("type", strings.Join(q.Types, ","))
	}
	set(v, "process_id", q.ProcessID)
	set(v, "cursor", q.Cursor)
	if q.Oldest {
		v.Set("sort_order", "asc")
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	p := new(v1.EventPage)
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/activity"), query: v}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// Activity returns all events of a sandbox, and fetches each page when it is needed. The sequence
// ends after an error.
func (c *Client) Activity(ctx context.Context, ref string, q ActivityQuery) iter.Seq2[*v1.Event, error] {
	return func(yield func(*v1.Event, error) bool) {
		q := q // each iteration begins where the caller said
		for {
			p, err := c.ActivityPage(ctx, ref, q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range p.Items {
				if !yield(&p.Items[i], nil) {
					return
				}
			}
			if p.NextCursor == nil {
				return
			}
			q.Cursor = *p.NextCursor
		}
	}
}

func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}
