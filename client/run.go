// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// StartRun starts a run in a sandbox, named by its id or by a key; with a key, a missing sandbox
// is created. The run does not depend on its client's connection.
func (c *Client) StartRun(ctx context.Context, sandbox string, r v1.StartRun) (*v1.Run, error) {
	out := new(v1.Run)
	if _, err := c.begin(ctx, request{method: "POST", path: "/sandboxes/" + seg(sandbox) + "/runs", body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Run returns a run with the output of its commands.
func (c *Client) Run(ctx context.Context, run string) (*v1.Run, error) {
	return c.run(ctx, request{method: "GET", path: "/runs/" + seg(run)})
}

// CancelRun ends a run. Cancelling one that has ended is not an error.
func (c *Client) CancelRun(ctx context.Context, run string) (*v1.Run, error) {
	return c.run(ctx, request{method: "POST", path: "/runs/" + seg(run) + "/cancel"})
}

func (c *Client) run(ctx context.Context, r request) (*v1.Run, error) {
	out := new(v1.Run)
	if _, err := c.call(ctx, r, out); err != nil {
		return nil, err
	}
	return out, nil
}

// RunQuery selects runs. The zero value is all of the project.
type RunQuery struct {
	Sandbox string // id or key, also of one that is gone
	Limit   int    // rows of a page; 0: the server's default
	Cursor  string
}

// RunsPage returns a page of runs, newest first, without their commands.
func (c *Client) RunsPage(ctx context.Context, q RunQuery) (*v1.RunList, error) {
	v := make(url.Values)
	set(v, "cursor", q.Cursor)
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	path := "/runs"
	if q.Sandbox != "" {
		path = "/sandboxes/" + seg(q.Sandbox) + "/runs"
	}
	p := new(v1.RunList)
	if _, err := c.call(ctx, request{method: "GET", path: path, query: v}, p); err != nil {
		return nil, err
	}
	return p, nil
}

// Runs returns all runs that match, and fetches each page when it is needed. The sequence ends
// after an error.
func (c *Client) Runs(ctx context.Context, q RunQuery) iter.Seq2[*v1.Run, error] {
	return all(q.Cursor, func(cursor string) ([]v1.Run, *string, error) {
		q := q
		q.Cursor = cursor
		p, err := c.RunsPage(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		return p.Items, p.NextCursor, nil
	})
}

// RunEvent is one thing that happened in a run.
type RunEvent struct {
	ID   int64           // from 1 on in each run
	Name string          // see v1.RunEventStarted and the others
	Data json.RawMessage // of the type that is named there
}

// FollowRun returns the events of a run after a number (0: all), to its last. It reconnects after
// a broken connection or a restart of the server, resumes after the last event, and fails after a
// minute without an answer. The sequence ends after an error. A slow loop misses nothing.
func (c *Client) FollowRun(ctx context.Context, run string, after int64) iter.Seq2[RunEvent, error] {
	return func(yield func(RunEvent, error) bool) {
		r := c.retry()
		for over := false; !over; {
			err := c.followRun(ctx, run, &after, &r, func(ev RunEvent) bool {
				over = ev.Name == v1.RunEventFinished || ev.Name == v1.RunEventFailed
				if !yield(ev, nil) {
					over = true
				}
				return !over
			})
			switch {
			case over || err == io.EOF:
				return
			case err == nil:
				continue
			}
			if err := r.again(ctx, err); err != nil {
				yield(RunEvent{}, err)
				return
			}
		}
	}
}

// followRun follows over one connection. It returns why that ended; io.EOF: there are no more
// events.
func (c *Client) followRun(ctx context.Context, run string, after *int64, r *retry, take func(RunEvent) bool) error {
	q := make(url.Values)
	if *after > 0 {
		q.Set("after", strconv.FormatInt(*after, 10))
	}
	resp, err := c.do(ctx, request{method: "GET", path: "/runs/" + seg(run) + "/events", query: q})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return io.EOF
	}
	r.worked()
	events := newEventReader(resp.Body)
	for {
		ev, err := events.next()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault.Wrap(fault.Unavailable, err, "the stream of events broke off")
		}
		if ev.name == v1.RunEventError {
			var e v1.RunStreamError
			_ = json.Unmarshal(ev.data, &e) // then it says nothing
			return fault.New(fault.Unavailable, "the stream of events broke off: %s", e.Error)
		}
		if ev.id <= *after {
			continue
		}
		*after = ev.id
		if !take(RunEvent{ev.id, ev.name, ev.data}) {
			return nil
		}
	}
}

// Artifacts lists the artifacts of a run of a sandbox; "latest" is the latest run that has
// artifacts.
func (c *Client) Artifacts(ctx context.Context, sandbox, run string) (*v1.ArtifactList, error) {
	out := new(v1.ArtifactList)
	resp, err := c.do(ctx, request{method: "GET", path: artifactPath(sandbox, run, ""), root: true})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(out); err != nil {
		return nil, fmt.Errorf("the list of artifacts cannot be read: %w", err)
	}
	return out, nil
}

// Artifact opens an artifact of a run. The caller closes it.
func (c *Client) Artifact(ctx context.Context, sandbox, run, path string) (io.ReadCloser, error) {
	resp, err := c.do(ctx, request{method: "GET", path: artifactPath(sandbox, run, path), root: true})
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func artifactPath(sandbox, run, path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = seg(parts[i])
	}
	return "/artifacts/" + seg(sandbox) + "/" + seg(run) + "/" + strings.Join(parts, "/")
}

// ArtifactLink makes a link to an artifact of a run. Anyone who has the link can use it, for as
// long as life; zero: the server's default.
func (c *Client) ArtifactLink(ctx context.Context, run, path string, life time.Duration) (*v1.ArtifactLink, error) {
	body := v1.CreateArtifactLink{Path: path}
	if life != 0 {
		seconds := int64(life / time.Second)
		body.ExpiresSeconds = &seconds
	}
	out := new(v1.ArtifactLink)
	if _, err := c.call(ctx, request{method: "POST", path: "/runs/" + seg(run) + "/links", body: body}, out); err != nil {
		return nil, err
	}
	return out, nil
}
