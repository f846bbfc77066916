// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"net/http"

	v1 "sandpit.dev/api/v1"
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
	out := new(v1.PushedImage)
	err = c.each(ctx, resp.Body, "push", "push again: what the registry has is not sent twice", func(ev event) (last bool, err error) {
		switch ev.name {
		case v1.PushProgress:
			return false, handOn(ev, func(s v1.PushStep) error {
				if tell != nil {
					tell(s)
				}
				return nil
			})
		case v1.PushDone:
			if err := json.Unmarshal(ev.data, out); err != nil {
				return true, garbled(err)
			}
			return true, nil
		case v1.StreamError:
			return true, handOn(ev, func(p v1.Problem) error { return faultOf(&p, "") })
		}
		return false, nil // of a later version
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
