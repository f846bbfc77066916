// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/files"
	"sandpit.dev/sandbox"
)

type watchFiles struct {
	byQuery
	Recursive *bool `query:"recursive" doc:"with all that is below; the default is false"`
}

// watchFiles sends what changes in a directory, until the client goes away. One
// that reads too slowly is told how much it missed, and one that takes nothing at
// all loses the connection.
func (a *API) watchFiles(ctx context.Context, c *httpapi.Call, in *watchFiles) error {
	p, err := httpapi.Place("", in.Path, true)
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	r := files.WatchRequest{Path: p, User: httpapi.Given(in.User), Recursive: in.Recursive != nil && *in.Recursive}
	s := c.Events()
	defer s.Close()
	begun := false
	end, err := a.Files.WatchFiles(ctx, c.Caller, in.Ref, r, func(events []sandbox.FileEvent) error {
		if !begun {
			begun = true
			if err := s.Send(v1.WatchBegun, 0, v1.Watching{Path: p, Recursive: r.Recursive}); err != nil {
				return err
			}
		}
		items := make([]httpapi.Event, len(events))
		for i, e := range events {
			items[i] = httpapi.Event{Name: string(e.Type), Seq: e.Seq, Data: watchEvent(e)}
		}
		return s.SendAll(items)
	})
	if err != nil {
		return s.Fail(byUser(httpapi.Cause(ctx, err)))
	}
	s.End()
	_ = s.Send(v1.WatchEnded, 0, v1.WatchEnd{Reason: string(end.Reason), Detail: end.Detail}) // the client may have gone
	return nil
}

func watchEvent(e sandbox.FileEvent) v1.WatchEvent {
	return v1.WatchEvent{
		Seq: e.Seq, Type: string(e.Type), Path: e.Path, From: e.From, Exchange: e.Exchange,
		Escaped: e.Escaped, IsDir: e.IsDir, Time: e.At.UTC(), Dropped: e.Dropped,
	}
}
