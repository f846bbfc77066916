// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/sandbox"
)

// copying is a COPY or an ADD that goes on.
type copying struct {
	s    *dockerfile.Step
	to   *agent.Client
	dir  bool // the destination is a directory
	own  *ids // nil: as the source has it
	mode *int64
}

// copyFiles does a COPY or an ADD, from the context, or from the sandbox of another stage. Nothing of it is made on this host:
// the files go into the sandbox as an archive, of which its agent makes nothing outside of the destination.
func (b *fileBuild) copyFiles(ctx context.Context, st, from *stage, s *dockerfile.Step) error {
	to, release, err := b.s.engine.Connect(ctx, caller(), access.SandboxesWrite, string(st.box), "a build")
	if err != nil {
		return err
	}
	defer release()
	c := &copying{s: s, to: to, dir: strings.HasSuffix(s.Dest, "/")}
	if !c.dir {
		if _, fi, err := followed(ctx, to, s.Dest); err == nil {
			c.dir = fi.Type == sandbox.Directory
		} else if !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	if s.Chown != "" {
		who, err := idsOf(ctx, to, s.Chown, -1)
		if err != nil {
			return err
		}
		c.own = &who
	} else if from == nil {
		c.own = &ids{} // the context's owners are those of another machine
	}
	if s.Chmod != "" {
		n, err := strconv.ParseInt(s.Chmod, 8, 32)
		if err != nil {
			return err
		}
		c.mode = &n
	}
	if from != nil {
		return b.copyStage(ctx, c, from)
	}
	for _, name := range s.Sources {
		all, err := b.context.Find(name)
		if err != nil {
			return err // it was there when the keys were made
		}
		for _, f := range all {
			if err := c.context(ctx, f); err != nil {
				return err
			}
		}
	}
	for _, f := range s.Files {
		dir, base := c.place(f.Name)
		if err := c.unpack(ctx, dir, func(w *tar.Writer) error {
			if err := w.WriteHeader(c.header(&tar.Header{Typeflag: tar.TypeReg, Name: base, Mode: 0o644, Size: int64(len(f.Data)), ModTime: time.Unix(0, 0)})); err != nil {
				return err
			}
			_, err := io.WriteString(w, f.Data)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// place returns the directory and the name of a file whose own name is base.
func (c *copying) place(base string) (dir, name string) {
	if c.dir {
		return path.Clean(c.s.Dest), base
	}
	return path.Dir(c.s.Dest), path.Base(c.s.Dest)
}

// header sets what --chown and --chmod say of an entry.
func (c *copying) header(h *tar.Header) *tar.Header {
	if c.own != nil {
		h.Uid, h.Gid = c.own.uid, c.own.gid
	}
	if c.mode != nil && h.Typeflag != tar.TypeSymlink {
		h.Mode = *c.mode
	}
	h.Uname, h.Gname, h.PAXRecords, h.Format = "", "", nil, tar.FormatPAX
	return h
}

// unpack has the agent make what write writes, below a directory.
func (c *copying) unpack(ctx context.Context, dir string, write func(*tar.Writer) error) error {
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		tw := tar.NewWriter(w)
		err := write(tw)
		if err == nil {
			err = tw.Close()
		}
		_ = w.CloseWithError(err)
		wrote <- err
	}()
	sum, err := c.to.Unpack(ctx, dir, r, sandbox.UnpackFilesOptions{User: sandbox.UserRoot, MakeParents: true, Owners: true})
	_ = r.CloseWithError(errUnpacked)
	if werr := <-wrote; werr != nil && !errors.Is(werr, errUnpacked) {
		return werr
	}
	if err != nil {
		return err
	}
	if sum.LeftAll > 0 && len(sum.Left) > 0 {
		return fault.New(fault.Invalid, "%d files cannot be made in %s, the first is %q: %s", sum.LeftAll, dir, sandbox.Clip(sum.Left[0].Path, 80), sum.Left[0].Reason)
	}
	return nil
}

var errUnpacked = errors.New("the archive is unpacked")

// context copies what a source means.
func (c *copying) context(ctx context.Context, f dockerfile.Found) error {
	if c.s.Unpack && f.Top.Mode.IsRegular() {
		r, err := archiveIn(f.Top)
		if err != nil {
			return err
		}
		if r != nil {
			return c.unpack(ctx, path.Clean(c.s.Dest), func(w *tar.Writer) error { return c.archive(r, w) })
		}
	}
	if !f.Top.Mode.IsDir() {
		dir, base := c.place(f.Base)
		return c.unpack(ctx, dir, func(w *tar.Writer) error { return c.entry(w, f.Top, base) })
	}
	return c.unpack(ctx, path.Clean(c.s.Dest), func(w *tar.Writer) error {
		if err := c.entry(w, f.Top, "."); err != nil {
			return err
		}
		for _, e := range f.Tree {
			name := e.Name
			if f.Top.Name != "." {
				name = strings.TrimPrefix(name, f.Top.Name+"/")
			}
			if err := c.entry(w, e, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// entry writes one of the context's.
func (c *copying) entry(w *tar.Writer, e *dockerfile.Entry, name string) error {
	h := &tar.Header{Name: name, Mode: int64(e.Mode.Perm()), ModTime: e.Time}
	if e.Mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case e.Mode.IsDir():
		h.Typeflag = tar.TypeDir
	case e.Mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
	default:
		h.Typeflag, h.Size = tar.TypeReg, e.Size
	}
	if err := w.WriteHeader(c.header(h)); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	_, err := io.Copy(w, e.Open())
	return err
}

// archive writes the entries of one that ADD unpacks. What they are named is checked where they are made.
func (c *copying) archive(r io.Reader, w *tar.Writer) error {
	if c.s.Chown == "" {
		c.own = nil // an archive's owners are as it says
	}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "the archive cannot be unpacked: %v", err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		h.Name = strings.TrimLeft(h.Name, "/")
		if h.Name == "" || h.Uid < 0 || h.Uid > maxID || h.Gid < 0 || h.Gid > maxID {
			return fault.New(fault.Invalid, "the archive's entry %q has no name, or an owner above %d", sandbox.Clip(h.Name, 80), maxID)
		}
		if h.Typeflag == tar.TypeGNUSparse || h.Typeflag == tar.TypeCont {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(c.header(h)); err != nil {
			return err
		}
		if _, err := io.Copy(w, tr); err != nil {
			return err
		}
	}
}

// copyStage copies from the sandbox of a stage.
func (b *fileBuild) copyStage(ctx context.Context, c *copying, from *stage) error {
	source, release, err := b.s.engine.Connect(ctx, caller(), access.SandboxesWrite, string(from.box), "a build")
	if err != nil {
		return err
	}
	defer release()
	for _, pattern := range c.s.Sources {
		names, err := matches(ctx, source, path.Clean("/"+pattern))
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return fault.New(fault.Invalid, "%q is not in %s", sandbox.Clip(pattern, 80), c.s.From)
		}
		if len(names) > 1 && !c.dir {
			return fault.New(fault.Invalid, "%d files fit %q, so that the destination has to be a directory, which ends in a slash", len(names), sandbox.Clip(pattern, 80))
		}
		for _, name := range names {
			if err := c.pack(ctx, source, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// pack copies a file or a tree of another sandbox.
func (c *copying) pack(ctx context.Context, source *agent.Client, name string) error {
	at, fi, err := followed(ctx, source, name)
	if err != nil {
		return err
	}
	if fi.Type == sandbox.OtherFile {
		return fault.New(fault.Invalid, "%q is neither a file nor a directory", sandbox.Clip(name, 80))
	}
	_, packed, err := source.Pack(ctx, at, sandbox.PackFilesOptions{User: sandbox.UserRoot})
	if err != nil {
		return err
	}
	defer packed.Close()
	dir, base := path.Clean(c.s.Dest), "."
	if fi.Type != sandbox.Directory {
		dir, base = c.place(path.Base(name))
	}
	top := path.Base(at)
	if at == "/" {
		top = "."
	}
	// Each name begins with the last of the path, in place of which the destination's is put.
	renamed := func(n string) string {
		n = path.Clean(n)
		if top == "." {
			return path.Join(base, n)
		}
		_, rest, _ := strings.Cut(n, "/")
		return path.Join(base, rest)
	}
	return c.unpack(ctx, dir, func(w *tar.Writer) error {
		for tr := tar.NewReader(packed); ; {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			h.Name = renamed(h.Name)
			if h.Typeflag == tar.TypeLink {
				h.Linkname = renamed(h.Linkname)
			}
			if err := w.WriteHeader(c.header(h)); err != nil {
				return err
			}
			if _, err := io.Copy(w, tr); err != nil {
				return err
			}
		}
	})
}

// maxHops bounds the links that a path leads through.
const maxHops = 40

// followed returns where a path leads to, if it is a link, and what is there.
func followed(ctx context.Context, c *agent.Client, name string) (string, sandbox.FileInfo, error) {
	for range maxHops {
		fi, err := c.Stat(ctx, name, sandbox.UserRoot)
		if err != nil || fi.Type != sandbox.Symlink {
			return name, fi, err
		}
		if path.IsAbs(fi.Target) {
			name = path.Clean(fi.Target)
		} else {
			name = path.Join(path.Dir(name), fi.Target)
		}
	}
	return "", sandbox.FileInfo{}, fault.New(fault.Invalid, "%q leads through more than %d links", sandbox.Clip(name, 80), maxHops)
}

// mostMatches bounds the names that a pattern may mean, at each of its parts: they are held in memory.
const mostMatches = 20_000

// matches returns the paths that a pattern means: itself, where it has no wildcard.
func matches(ctx context.Context, c *agent.Client, pattern string) ([]string, error) {
	at := []string{"/"}
	for part := range strings.SplitSeq(strings.TrimPrefix(pattern, "/"), "/") {
		var next []string
		for _, dir := range at {
			if !strings.ContainsAny(part, `*?[\`) {
				name := path.Join(dir, part)
				if _, err := c.Stat(ctx, name, sandbox.UserRoot); fault.Is(err, fault.NotFound) {
					continue
				} else if err != nil {
					return nil, err
				}
				next = append(next, name)
				continue
			}
			entries, truncated, err := c.List(ctx, dir, sandbox.ListFilesOptions{User: sandbox.UserRoot})
			if fault.Is(err, fault.NotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if truncated {
				return nil, fault.New(fault.TooLarge, "%s has too many files for a pattern", dir)
			}
			for _, e := range entries {
				ok, err := path.Match(part, e.Name)
				if err != nil {
					return nil, fault.New(fault.Invalid, "%q is not a valid pattern", sandbox.Clip(pattern, 80))
				}
				if ok {
					next = append(next, path.Join(dir, e.Name))
				}
			}
			if len(next) > mostMatches {
				return nil, fault.New(fault.TooLarge, "the pattern %q has more than %d matches", sandbox.Clip(pattern, 80), mostMatches).
					WithRemedy("copy the directory that they are in, or name fewer")
			}
		}
		at = next
	}
	return at, nil
}
