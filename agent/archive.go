// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Pack opens a file or a tree as a tar archive, whose entries begin with the last name of the path, or
// with "." where it ends in none. A link is packed as a link. Hostile code may have
// written the archive: nothing in it is to be trusted. The caller closes it, and it ends with ctx.
func (c *Client) Pack(ctx context.Context, path string, o sandbox.PackFilesOptions) (sandbox.FileInfo, *Archive, error) {
	var w wire.FileInfo
	s, err := c.call(ctx, &wire.Request{Op: wire.OpPack, Path: path, User: o.User, Pack: &wire.Pack{Follow: o.Follow, Exclude: o.Exclude}}, &w)
	if err != nil {
		return sandbox.FileInfo{}, nil, older(err)
	}
	fi, err := fileInfo(w, "")
	if err != nil {
		s.close()
		return sandbox.FileInfo{}, nil, err
	}
	return fi, &Archive{s: s}, nil
}

// Archive reads a tar archive. It is for one goroutine, but for Close.
type Archive struct {
	s    *stream
	rest []byte
	err  error
	sum  sandbox.FilesPacked
}

// Sum reports what the archive holds, once Read has returned io.EOF.
func (a *Archive) Sum() sandbox.FilesPacked { return a.sum }

func (a *Archive) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for len(a.rest) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		t, p, err := a.s.next()
		switch {
		case err != nil:
			a.err = err
		case t == wire.Data:
			a.rest = p
		case t != wire.Done:
			a.err = a.s.broken("a frame stands in an archive that is none")
		default:
			var w wire.Packed
			if err := wire.Decode(p, &w); err != nil {
				a.err = a.s.broken(err.Error())
				break
			}
			a.sum, a.err = packed(w), io.EOF
		}
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// Close ends the archive.
func (a *Archive) Close() error {
	a.s.close()
	return nil
}

// Unpack makes files of a tar archive, below a directory. Of the archive nothing is trusted: what cannot
// be made, or must not be, is left out. If it fails, or ctx ends, a part is there; each file whole.
func (c *Client) Unpack(ctx context.Context, path string, r io.Reader, o sandbox.UnpackFilesOptions) (sandbox.FilesPacked, error) {
	op := wire.OpUnpack
	if o.Outcomes {
		op = wire.OpUnpackEach
	}
	s, err := c.open(ctx, &wire.Request{
		Op: op, Path: path, User: o.User, Size: o.Most, Parents: o.MakeParents, Owners: o.Owners, Sync: o.Sync,
	}, true)
	if err != nil {
		return sandbox.FilesPacked{}, err
	}
	defer s.close()
	if err := s.upload(r); err != nil {
		return sandbox.FilesPacked{}, older(err)
	}
	var w wire.Unpacked
	if err := s.reply(&w); err != nil {
		return sandbox.FilesPacked{}, older(err)
	}
	sum := packed(w)
	if o.Outcomes {
		if sum.Outcomes, err = s.outcomes(); err != nil {
			return sandbox.FilesPacked{}, err
		}
	}
	return sum, nil
}

// outcomes reads what became of each entry of an archive.
func (s *stream) outcomes() (all []sandbox.FileOutcome, err error) {
	for size := 0; ; {
		t, p, err := s.next()
		switch {
		case err != nil:
			return nil, err
		case t == wire.Done:
			return all, nil
		case t != wire.Item:
			return nil, s.broken("a frame stands among what became of files that is none")
		}
		var some []wire.Outcome
		if err := wire.Decode(p, &some); err != nil {
			return nil, s.broken(err.Error())
		}
		if size += len(p); size > 4*wire.MaxOutcomeBytes || len(all)+len(some) > wire.MaxOutcomes {
			return nil, s.broken("it tells of more than was sent")
		}
		for _, w := range some {
			all = append(all, sandbox.FileOutcome{Path: clean(w.Path, 3*wire.MaxPath), Bytes: max(0, w.Bytes), Reason: clean(w.Reason, 2*wire.MaxLeftPath)})
		}
	}
}

// older says of an agent that knows no archives what else there is.
func older(err error) error {
	if fault.Is(err, fault.Unsupported) {
		return fault.Wrap(fault.Unsupported, err, "the sandbox's agent is of an earlier build, and makes no archives").
			WithRemedy("stop the sandbox and start it again")
	}
	return err
}

// packed checks what an agent reports of an archive.
func packed(w wire.Packed) sandbox.FilesPacked {
	sum := sandbox.FilesPacked{Entries: max(0, w.Entries), Bytes: max(0, w.Bytes)}
	for _, l := range w.Left[:min(len(w.Left), wire.MaxLeftOut)] {
		sum.Left = append(sum.Left, sandbox.FileLeftOut{Path: clean(l.Path, 2*wire.MaxLeftPath), Reason: clean(l.Reason, 400)})
	}
	sum.LeftAll = max(w.LeftAll, int64(len(sum.Left)))
	return sum
}
