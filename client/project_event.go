// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// AllEvents is where [EventsQuery] begins for all events that the server keeps.
const AllEvents = "0"

// EventsQuery says which events [Client.FollowEvents] passes on. The zero value is all of the project that happen
// from then on.
type EventsQuery struct {
	Types   []string // sandbox.started and the like, or sandbox, snapshot, volume, template or image for all of one; none: all
	Project string   // of another project, or "*" for all, for the server's own administrator's token
	After   string   // the ID of the last event that was seen; AllEvents; "": from now on
	Once    bool     // end behind the newest event that there is
	// Begun is called when the server tells of all that is committed from then on: with the id to go on behind, once
	// for each connection. It may be nil.
	Begun func(id string)
	// Reset is called where events are missing, since they are not kept any more: whoever has a list of what there is
	// makes it anew. Its error ends it all. Nil: the gap itself is an error, of the code conflict.
	Reset func(v1.EventsPosition) error
}

// FollowEvents passes the changes of a project's records to do, in the order of their commits and each once, until ctx
// is done or a function fails. Where the connection breaks, or the server is started again, it goes on behind the last
// event that do has had. It ends with an error where the server has not answered for as long as [Patience].
func (c *Client) FollowEvents(ctx context.Context, q EventsQuery, do func(*v1.ProjectEvent) error) error {
	v := make(url.Values)
	set(v, "type", strings.Join(q.Types, ","))
	set(v, "project", q.Project)
	if q.Once {
		v.Set("follow", "false")
	}
	last, tries := q.After, c.retry()
	for {
		header := http.Header{"Accept": {"text/event-stream"}}
		if last != "" {
			header.Set("Last-Event-ID", last)
		}
		resp, err := c.do(ctx, request{method: "GET", path: "/events", query: v, header: header})
		if err == nil {
			err = c.readEvents(ctx, resp.Body, q, &last, &tries, do)
			_ = resp.Body.Close() // all that matters was read
		}
		var broke lost
		switch {
		case err == nil:
			return nil
		case errors.As(err, &broke):
			err = broke.error
		case resp != nil: // it was the server's answer, or a function's
			return err
		}
		if err := tries.again(ctx, err); err != nil {
			return err
		}
	}
}

// readEvents reads one connection's events. A broken one is an error of the type lost.
func (c *Client) readEvents(ctx context.Context, body io.Reader, q EventsQuery, last *string, tries *retry, do func(*v1.ProjectEvent) error) error {
	events := newEventReader(body)
	for {
		ev, err := events.next()
		switch {
		case err != nil && ctx.Err() != nil:
			return c.unanswered(ctx, err)
		case err != nil:
			return lost{fault.Wrap(fault.Unavailable, err, "the stream of events broke").WithRemedy("follow them again behind %q", *last)}
		}
		tries.worked()
		switch ev.name {
		case "":
		case v1.EventsBegun, v1.EventsReset, v1.EventsEnd:
			var p v1.EventsPosition
			if err := json.Unmarshal(ev.data, &p); err != nil {
				return garbled(err)
			}
			switch {
			case ev.name == v1.EventsEnd:
				return nil
			case ev.name == v1.EventsBegun && q.Begun != nil:
				q.Begun(p.ID)
			case ev.name == v1.EventsReset && q.Reset == nil:
				return fault.New(fault.Conflict, "events are missing before %s: %s", p.ID, p.Detail).WithRemedy("list anew, and follow the events again")
			case ev.name == v1.EventsReset:
				if err := q.Reset(p); err != nil {
					return err
				}
			}
		case v1.StreamError:
			var p v1.Problem
			if err := json.Unmarshal(ev.data, &p); err != nil {
				return garbled(err)
			}
			if err := faultOf(&p, ""); fault.Is(err, fault.Unavailable) { // it goes down, and comes back
				return lost{err}
			} else {
				return err
			}
		default:
			out := new(v1.ProjectEvent)
			if err := json.Unmarshal(ev.data, out); err != nil {
				return garbled(err)
			}
			if err := do(out); err != nil {
				return err
			}
		}
		if ev.mark != "" {
			*last = ev.mark
		}
	}
}
