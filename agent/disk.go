// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"

	"sandpit.dev/agent/wire"
)

// Lost is what was changed of a container's root outside of its disk: see wire.Lost.
type Lost = wire.Lost

// Lost returns what was changed of the root outside of the disk since the agent began. It looks at some thousand directories at most.
func (c *Client) Lost(ctx context.Context) (Lost, error) {
	var l Lost
	s, err := c.call(ctx, &wire.Request{Op: wire.OpLost}, &l)
	if err != nil {
		return Lost{}, err
	}
	defer s.close()
	if len(l.Some) > wire.MaxLost || l.Entries < 0 {
		return Lost{}, s.broken("what is lost makes no sense")
	}
	return l, s.finish(nil)
}

// ReadDisk opens the directories of the sandbox's disk as a tar archive. Every process in the sandbox stands still until it is closed, or
// read to its end. Hostile code may have written what is in it. It ends with ctx.
func (c *Client) ReadDisk(ctx context.Context) (*DiskReader, error) {
	s, err := c.call(ctx, &wire.Request{Op: wire.OpReadDisk}, nil)
	if err != nil {
		return nil, err
	}
	return &DiskReader{s: s}, nil
}

// DiskReader reads an archive of a disk. It is for one goroutine, but for Close.
type DiskReader struct {
	s    *stream
	rest []byte
	err  error
}

func (d *DiskReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for len(d.rest) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		t, p, err := d.s.next()
		switch {
		case err != nil:
			d.err = err
		case t == wire.Data:
			d.rest = p
		case t == wire.Done:
			d.err = io.EOF
		default:
			d.err = d.s.broken("a frame stands in an archive that is none")
		}
	}
	n := copy(b, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// Close ends the archive.
func (d *DiskReader) Close() error {
	d.s.close()
	return nil
}

// FillDisk removes what the directories of the sandbox's disk hold, and fills them from such an archive. No process may run
// meanwhile. It is on the disk when FillDisk returns; after an error a part is there.
func (c *Client) FillDisk(ctx context.Context, r io.Reader) error {
	s, err := c.open(ctx, &wire.Request{Op: wire.OpFillDisk}, true)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.upload(r); err != nil {
		return err
	}
	if err := s.reply(nil); err != nil {
		return err
	}
	return s.finish(nil)
}
