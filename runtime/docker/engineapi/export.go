// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engineapi

import (
	"cmp"
	"context"
	"io"
	"net/http"
)

// ExportContainer reads all files of a container, up or down, as a tar archive; what is mounted in it
// is no part of it. The caller closes it.
func (c *Client) ExportContainer(ctx context.Context, id string) (io.ReadCloser, error) {
	limit, cancel := context.WithCancelCause(ctx)
	quiet := afterFunc(c.clock, quietTimeout, func() { cancel(errTimeLimit) })
	r := request{method: http.MethodGet, path: container(id, "/export"), within: quietTimeout}
	d := &download{c: c, r: r, ctx: ctx, limit: limit, quiet: quiet, end: func() { cancel(context.Canceled) }}
	resp, err := c.do(limit, r)
	if err != nil {
		err = c.failed(ctx, r, cmp.Or(context.Cause(limit), err))
		quiet.Stop()
		d.end()
		return nil, err
	}
	d.body = resp.Body
	if resp.StatusCode >= 300 {
		defer func() { _ = d.Close() }()
		return nil, c.refused(resp)
	}
	return d, nil
}

// download is an answer that is as long as it is. It ends when no byte comes for too long.
type download struct {
	c     *Client
	r     request
	ctx   context.Context // the caller's
	limit context.Context
	body  io.ReadCloser
	quiet Timer
	end   func()
}

func (d *download) Read(b []byte) (int, error) {
	n, err := d.body.Read(b)
	if n > 0 {
		d.quiet.Reset(quietTimeout)
	}
	if err != nil && err != io.EOF {
		err = d.c.failed(d.ctx, d.r, cmp.Or(context.Cause(d.limit), err))
	}
	return n, err
}

// Close ends it. It may be called twice.
func (d *download) Close() error {
	d.quiet.Stop()
	d.end()
	return d.body.Close()
}
