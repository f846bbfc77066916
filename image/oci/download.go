// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// layer opens a layer, whose reader goes on where a connection broke.
func (r *remote) layer(p place, want descriptor) blob {
	return blob{digest: want.Digest, size: want.Size, open: func(ctx context.Context) (io.ReadCloser, error) {
		l := &download{ctx: ctx, remote: r, place: p, want: want}
		return l, l.connect()
	}}
}

// download is a layer on its way.
type download struct {
	ctx    context.Context
	remote *remote
	place  place
	want   descriptor

	done   int64
	tries  int // since the last byte
	body   io.ReadCloser
	cancel context.CancelFunc
	watch  *time.Timer // ends the connection where nothing comes
}

// connect asks for what is missing.
func (d *download) connect() error {
	ctx, cancel := context.WithCancel(d.ctx)
	header := http.Header{}
	if d.done > 0 {
		header.Set("Range", "bytes="+strconv.FormatInt(d.done, 10)+"-")
	}
	res, err := d.remote.get(ctx, d.place, "blobs", d.want.Digest, header)
	if err != nil {
		cancel()
		return err
	}
	d.body, d.cancel, d.watch = res.Body, cancel, time.AfterFunc(d.remote.stall, cancel)
	if d.done == 0 {
		return nil
	}
	if res.StatusCode == http.StatusPartialContent {
		if !strings.HasPrefix(res.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(d.done, 10)+"-") {
			d.disconnect()
			return refusedRemote("it answers with another part of a layer than the one asked for")
		}
		return nil
	}
	// One that knows no parts begins anew.
	_, err = io.CopyN(io.Discard, watched{d}, d.done)
	return err
}

// watched is the body of a connection, which is given up when nothing comes.
type watched struct{ d *download }

func (w watched) Read(p []byte) (int, error) {
	n, err := w.d.body.Read(p)
	if n > 0 {
		w.d.watch.Reset(w.d.remote.stall)
	}
	return n, err
}

func (d *download) disconnect() {
	if d.body != nil {
		d.watch.Stop()
		d.cancel()
		_ = d.body.Close()
		d.body = nil
	}
}

// Read returns io.EOF when as many bytes came as the manifest says; a layer that has more is found by its next byte.
func (d *download) Read(p []byte) (int, error) {
	for {
		if d.body != nil {
			n, err := watched{d}.Read(p)
			d.done += int64(n)
			if n > 0 {
				d.tries = 0
				return n, nil
			}
			if errors.Is(err, io.EOF) && d.done >= d.want.Size {
				return 0, io.EOF
			}
			if err == nil {
				continue
			}
			d.disconnect()
		}
		if err := d.ctx.Err(); err != nil {
			return 0, context.Cause(d.ctx)
		}
		if d.tries++; d.tries > retries {
			return 0, fault.New(fault.Unavailable, "the registry %s broke off a layer at byte %d of %d, %d times", shown(d.place.host), d.done, d.want.Size, retries).
				WithRemedy("try again; layers that were finished are kept")
		}
		select {
		case <-time.After(d.remote.retry):
		case <-d.ctx.Done():
			return 0, context.Cause(d.ctx)
		}
		if err := d.connect(); err != nil && !fault.Is(err, fault.Unavailable) {
			return 0, err
		}
	}
}

func (d *download) Close() error {
	d.disconnect()
	return nil
}
