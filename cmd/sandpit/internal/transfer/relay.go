// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"

	"sandpit.dev/fault"
)

// AddArchive packs what an archive out of a sandbox holds, whose first name becomes as.
func (p *Packer) AddArchive(r io.Reader, as string) error {
	br := bufio.NewReaderSize(r, streamBuffer)
	tr := tar.NewReader(br)
	for {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		h, err := tr.Next()
		if err == io.EOF {
			return rest(br)
		}
		if err != nil {
			return p.c.brokeOff(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if err := p.relay(tr, h, as); err != nil {
			return err
		}
	}
}

// relay passes an entry on: of its header what a file has, and no more.
func (p *Packer) relay(tr *tar.Reader, h *tar.Header, as string) error {
	rel, why := below(h.Name)
	to := &tar.Header{Typeflag: h.Typeflag, Name: under(as, rel), Mode: h.Mode & 0o1777, ModTime: h.ModTime, Format: tar.FormatPAX}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		to.Typeflag, to.Size = tar.TypeReg, h.Size
	case tar.TypeDir:
		to.Name += "/"
	case tar.TypeSymlink:
		to.Linkname = h.Linkname
	case tar.TypeLink:
		of, bad := below(h.Linkname)
		if to.Linkname = under(as, of); bad != "" {
			why = "another name of " + h.Linkname + ": " + bad
		}
	default:
		why = "neither a file nor a directory"
	}
	if why != "" {
		p.c.Left(h.Name, why)
		return nil
	}
	if err := p.tw.WriteHeader(to); err != nil {
		if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) {
			p.c.Left(h.Name, err.Error())
			return nil
		}
		return err
	}
	if to.Size == 0 {
		return nil
	}
	from := &counted{r: tr, c: p.c, name: h.Name, size: to.Size}
	_, err := io.CopyBuffer(p.tw, from, p.buf)
	if from.err != nil {
		return p.c.brokeOff(from.err)
	}
	return err
}

// under is the name of what stands below a name.
func under(name, rel string) string {
	if rel == "" {
		return name
	}
	return name + "/" + rel
}

// maxAfter bounds what may follow the end of an archive.
const maxAfter = 1 << 20

// rest reads what follows the end of an archive, which says whether it is whole.
func rest(r io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, maxAfter+1))
	if err == nil && n > maxAfter {
		return fault.New(fault.Unavailable, "the archive goes on behind its end, by more than %d bytes", maxAfter)
	}
	return err
}

// brokeOff is the error of an archive that ends early. What the client says of it is passed on.
func (c *Copy) brokeOff(err error) error {
	if _, told := errors.AsType[*fault.Error](err); told {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "the copy broke off after %d bytes", c.done)
}
