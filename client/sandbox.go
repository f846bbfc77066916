// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "sandpit.dev/api/v1"
)

// Create makes a sandbox, or gives the one that has the key already; created
// tells which. When it returns, commands can run.
func (c *Client) Create(ctx context.Context, r v1.CreateSandbox) (s *v1.Sandbox, created bool, err error) {
	s = new(v1.Sandbox)
	status, err := c.begin(ctx, request{method: "POST", path: "/sandboxes", body: r}, s)
	if err != nil {
		return nil, false, err
	}
	return s, status == http.StatusCreated, nil
}

// Get gives a sandbox.
func (c *Client) Get(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "GET", path: of(ref, "")})
}

// Update changes what r names and leaves the rest.
func (c *Client) Update(ctx context.Context, ref string, r v1.UpdateSandbox) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "PATCH", path: of(ref, ""), body: r})
}

// Start starts a stopped sandbox; one that runs is no error.
func (c *Client) Start(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/start")})
}

// Stop ends a sandbox's processes and keeps its files; one that is stopped is no
// error.
func (c *Client) Stop(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/stop")})
}

// Restart gives a sandbox an empty disk: its processes end and every file in it
// is lost, but those of its volumes and its snapshots. Its id and key stay. One
// that was stopped stays stopped.
func (c *Client) Restart(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/restart")})
}

// Pause freezes a sandbox's processes, with all that they have in memory; its
// meter stands, and so do the timeouts of its commands. One that is paused is no
// error.
func (c *Client) Pause(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/pause")})
}

// Resume lets the processes of a paused sandbox go on where they were; one that
// runs is no error.
func (c *Client) Resume(ctx context.Context, ref string) (*v1.Sandbox, error) {
	return c.sandbox(ctx, request{method: "POST", path: of(ref, "/resume")})
}

// Delete deletes a sandbox and all that is in it. Its snapshots that have a name
// stay.
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
	Oldest   bool              // oldest first; else newest
	Limit    int               // most of one page, 1 to 500; zero: the server's default
	Cursor   string            // NextCursor of the page before
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

// List returns all sandboxes that match, page by page as they are asked for. After
// an error there is nothing more.
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

// Activity returns all that happened to a sandbox, page by page as it is asked
// for. After an error there is nothing more.
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
