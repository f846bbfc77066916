// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"

	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

type watchFiles struct {
	byQuery
	Recursive *bool `query:"recursive" doc:"with all that is below; the default is false"`
}

// watchFiles sends what changes in a directory, until the client goes away. One
// that reads too slowly is told how much it missed, and one that takes nothing at
// all loses the connection.
func (a *API) watchFiles(ctx context.Context, c *call, in *watchFiles) error {
	p, err := place("", in.Path, true)
	if err != nil {
		return err
	}
	ctx, done := a.bound(ctx)
	defer done()
	r := engine.WatchRequest{Path: p, User: text0(in.User), Recursive: in.Recursive != nil && *in.Recursive}
	s := openEvents(c, a.heartbeat, a.stall)
	defer s.steady.done()
	begun := false
	end, err := a.engine.WatchFiles(ctx, c.caller, in.Ref, r, func(events []sandbox.FileEvent) error {
		if !begun {
			begun = true
			if err := s.send(v1.WatchBegun, 0, v1.Watching{Path: p, Recursive: r.Recursive}); err != nil {
				return err
			}
		}
		items := make([]item, len(events))
		for i, e := range events {
			items[i] = item{string(e.Type), e.Seq, watchEvent(e)}
		}
		return s.sendAll(items)
	})
	sent := s.end()
	switch {
	case err != nil && !sent:
		return byUser(why(ctx, err)) // it is an HTTP answer like any other
	case err != nil:
		p, _ := guard.Problem(byUser(why(ctx, err)), guard.RequestID(c.r.Context()))
		_ = s.send(v1.StreamError, 0, &p) // the client may be the one who went away
	default:
		_ = s.send(v1.WatchEnded, 0, v1.WatchEnd{Reason: string(end.Reason), Detail: end.Detail})
	}
	return nil
}

func watchEvent(e sandbox.FileEvent) v1.WatchEvent {
	return v1.WatchEvent{
		Seq: e.Seq, Type: string(e.Type), Path: e.Path, From: e.From, Exchange: e.Exchange,
		Escaped: e.Escaped, IsDir: e.IsDir, Time: e.At.UTC(), Dropped: e.Dropped,
	}
}
