// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/events"
	"sandpit.dev/fault"
)

// API serves the operations on events. It is safe for concurrent use.
type API struct {
	Events   service.Events   // nil: nobody keeps events
	Webhooks service.Webhooks // nil: there are none
}

// Operations returns the rows of the coat's table that the API serves.
func (a *API) Operations() []httpapi.Operation {
	return append([]httpapi.Operation{
		httpapi.Raw("followEvents", "GET /events", "Follow what changes of the project's sandboxes, snapshots, volumes and templates, as server-sent events: begun (EventsPosition), then each change by its type (ProjectEvent), with the record in it, and reset (EventsPosition) where events are missing. With Last-Event-ID it goes on behind that event, also after a restart of the server.", http.StatusOK, a.follow).
			Media("", "text/event-stream").Events(eventTypes()),
	}, a.webhookOperations()...)
}

// eventTypes are the types of the events' data, by the events' names.
func eventTypes() map[string]reflect.Type {
	position := reflect.TypeFor[v1.EventsPosition]()
	all := map[string]reflect.Type{v1.EventsBegun: position, v1.EventsReset: position, v1.EventsEnd: position}
	for _, name := range events.Types() {
		all[name] = reflect.TypeFor[v1.ProjectEvent]()
	}
	return all
}

// lateGrace is for how long a client that took nothing in time can still take the rest, and the word that the stream was ended.
const lateGrace = 30 * time.Second

type follow struct {
	Type      []string `query:"type" doc:"only these types, separated by commas: sandbox.started and the like, or sandbox, snapshot, volume, template or image for all of one"`
	Project   *string  `query:"project" doc:"of this project, or * for all, for the server's own administrator's token; the default is the caller's"`
	LastEvent *string  `query:"last_event_id" doc:"the same as the header Last-Event-ID, which goes before it; 0: all events that are kept"`
	Follow    *bool    `query:"follow" doc:"false: end behind the newest event that there is, by an event end (EventsPosition); the default is true"`
}

func (a *API) follow(ctx context.Context, c *httpapi.Call, in *follow) error {
	if a.Events == nil {
		return fault.New(fault.Unsupported, "this server keeps no events")
	}
	q := events.Query{Project: httpapi.Given(in.Project), Types: in.Type, After: c.R.Header.Get("Last-Event-ID"), Once: in.Follow != nil && !*in.Follow}
	if q.After == "" {
		q.After = httpapi.Given(in.LastEvent)
	}
	if c.R.Method == http.MethodHead {
		c.W.Header().Set("Content-Type", "text/event-stream")
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	ctx, done := c.Bound(ctx)
	defer done()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	s := c.Events()
	defer s.Close()
	s.Late(lateGrace, func() {
		cut(fault.New(fault.Unavailable, "the server ended the stream of events: its client took nothing of it for %v", c.Stall()).
			WithRemedy("read events as they come, and go on behind the last one that came: send its id as Last-Event-ID"))
	})
	last := ""
	// A client that takes nothing is followed for no longer, whatever becomes of what was written for it.
	var pending chan error
	write := func(all []httpapi.Event) error {
		done := make(chan error, 1)
		pending = done
		go func() { done <- s.SendAll(all) }()
		select {
		case err := <-done:
			pending = nil
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	send := func(name string, p v1.EventsPosition) error {
		return write([]httpapi.Event{{Name: name, ID: p.ID, Data: p}})
	}
	err := a.Events.Follow(ctx, c.Caller, q, events.Follower{
		Begun: func(id string, gap bool) error {
			if gap {
				p := v1.EventsPosition{ID: id, Reason: "unknown_id", Detail: "the server does not keep the event of Last-Event-ID any more, or never had it: list anew, and go on from here"}
				if err := send(v1.EventsReset, p); err != nil {
					return err
				}
			}
			last = id
			return send(v1.EventsBegun, v1.EventsPosition{ID: id})
		},
		Told: func(all []*events.Event, id string) error {
			last = id
			if len(all) == 0 {
				return write([]httpapi.Event{{ID: id}})
			}
			out := make([]httpapi.Event, len(all))
			for i, e := range all {
				out[i] = httpapi.Event{Name: e.Type, ID: e.ID, Data: json.RawMessage(e.Text(shape.Event))}
			}
			return write(out)
		},
		Gap: func(id string) error {
			return send(v1.EventsReset, v1.EventsPosition{ID: id, Reason: "too_slow", Detail: "events came faster than they were read, and the next ones are not kept any more: list anew, and go on from here"})
		},
	})
	if pending != nil {
		<-pending // the client takes it, or loses the connection
	}
	if err == nil {
		s.End()
		_ = send(v1.EventsEnd, v1.EventsPosition{ID: last}) // the client may have gone
		return nil
	}
	return s.Fail(httpapi.Cause(ctx, err))
}
