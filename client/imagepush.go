// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// PushImage puts an image into a registry under a reference, and returns what it is there; tell, which may be nil, is called as it
// goes on. It ends with ctx. It needs the server's own administrator's token.
func (c *Client) PushImage(ctx context.Context, name, reference string, tell func(v1.PushStep)) (*v1.PushedImage, error) {
	resp, err := c.do(ctx, request{
		method: "POST", path: "/images/" + seg(name) + "/push", body: v1.PushImage{Reference: reference}, header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	events := newEventReader(resp.Body)
	for {
		ev, err := events.next()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, c.unanswered(ctx, err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fault.New(fault.Unavailable, "the stream broke before the push's end").WithRemedy("push again: what the registry has is not sent twice")
		case err != nil:
			return nil, fault.Wrap(fault.Unavailable, err, "the stream of the push cannot be read")
		}
		switch ev.name {
		case v1.PushProgress:
			err = handOn(ev, func(s v1.PushStep) error {
				if tell != nil {
					tell(s)
				}
				return nil
			})
		case v1.PushDone:
			out := new(v1.PushedImage)
			if err := json.Unmarshal(ev.data, out); err != nil {
				return nil, garbled(err)
			}
			return out, nil
		case v1.StreamError:
			err = handOn(ev, func(p v1.Problem) error { return faultOf(&p, "") })
		}
		if err != nil {
			return nil, err
		}
	}
}
